import { readFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { DurableSession, Session, SoapFaultError } from '../../client/index.ts'
import { Cluster } from '../e2e/cluster.ts'
import { proxyOf, scenario, skip } from './dotnet.ts'

t.setTimeout(240_000)

t.test('a C# service in a grid', { skip }, async t => {
  const cluster = await Cluster.start(t, { cores: 2 })

  await t.test('a durable session of the TypeScript client: stored requests, typed faults, retries, and which instance answered', async t => {
    const session = await DurableSession.create({ service: 'TradeDesk', head: cluster.head })
    const client = session.client('desk')
    const legs = (i: number) => ({ Leg: [{ Price: `${i}.10`, Quantity: 2n, Symbol: `S${i}` }] })
    await Promise.all(Array.from({ length: 30 }, (_, i) => client.send('Book', { trade: { Id: '0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa', Side: 'Sell', Legs: legs(i), Traded: new Date(0), Valid: 'PT1S' } }, { userData: String(i) })))
    await client.send('Book', { trade: { Side: 'Buy', Traded: new Date(0), Valid: 'PT0S', Id: '0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa' } }, { userData: 'rejected' })
    await client.send('Flaky', { request: session.id, tries: 1 }, { userData: 'flaky' })
    await client.endRequests()
    const totals = new Map<string, unknown>()
    const instances = new Set<string>()
    for await (const response of client.responses()) {
      const key = String(response.userData)
      if (key === 'rejected') {
        t.match(response.fault, { message: 'the trade breaks rules', value: { Code: 1, Rules: { string: ['a trade has a leg'] } } })
        continue
      }
      const result = response.result() as { BookResult?: { Total: string, BookedBy: string }, FlakyResult?: number }
      totals.set(key, result.BookResult?.Total ?? result.FlakyResult)
      if (result.BookResult !== undefined) instances.add(result.BookResult.BookedBy)
    }
    t.same(Object.fromEntries(totals), { ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [String(i), `${i * 2}.20`])), flaky: 1 })
    t.ok(instances.size >= 1 && [...instances].every(one => /^[\w-]+:\d+$/.test(one)), [...instances].join())
    await session.close()
  })

  await t.test('calls of the TypeScript client: what the service wants retried is retried; an exception tells nothing', async t => {
    await using session = await Session.create({ service: 'TradeDesk', maxUnits: 1, head: cluster.head })
    const client = session.client()
    t.same(await client.call('Flaky', { request: 'a', tries: 3 }), { FlakyResult: 3 })
    await t.rejects(client.call('Flaky', { request: 'b', tries: 99 }), { name: 'RetryOperationError', message: /try 4 of 99/ })
    const fault = await client.call('Fail', { why: 'secret' }).catch((error: unknown) => error)
    t.ok(fault instanceof SoapFaultError && !fault.message.includes('secret'), String(fault))
    t.equal(await client.call('Note', { text: 'noted' }), undefined)
    t.same(await client.call('Exposure', { trades: { Trade: [] } }), { ExposureResult: {} })
  })

  await t.test('.NET calls it through the broker, by the proxy that ?wsdl gives', async t => {
    await using session = await Session.create({ service: 'TradeDesk', maxUnits: 1, head: cluster.head })
    const wsdl = `${session.endpoint}?wsdl`
    t.equal(await proxyOf(wsdl, 'Generated.Desk'), readFileSync(asset('test/interop/dotnet/generated/Desk.cs'), 'utf8'), 'the proxy that runs here is what ?wsdl gives')
    for (const { check, ok, why } of await scenario('desk', wsdl)) t.ok(ok, why === undefined ? check : `${check}: ${why}`)
  })
})
