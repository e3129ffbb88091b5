import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { asset } from '../../core/assets.ts'
import { DurableSession, Session } from '../../client/index.ts'
import { Controller } from '../../client/controller.ts'
import { READ_LIMITS } from '../../client/fault.ts'
import { httpCaller } from '../../transport/http/connector.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { Cluster } from './cluster.ts'

/** The envelope of the blog post that this project began with, byte for byte: UserData 0, an empty ClientId, no MessageID, a To of another machine. */
const seed = readFileSync(asset('test/wire/seed-generate-request.xml'))
const withoutUserData = Buffer.from(seed.toString('utf8').replace(/<HPCServer2008_Broker_UserDataNS.*?<\/HPCServer2008_Broker_UserDataNS>\s*/, ''))
const ACTION = 'http://tempuri.org/ISimpleService/Generate'

async function post (endpoint: string, body: Buffer): Promise<{ status: number, type: string, reading: Reading }> {
  const answer = await fetch(endpoint, { method: 'POST', headers: { 'content-type': 'application/soap+xml; charset=utf-8' }, body: new Uint8Array(body) })
  return { status: answer.status, type: answer.headers.get('content-type') ?? '', reading: readEnvelope(new Uint8Array(await answer.arrayBuffer()), { limits: READ_LIMITS }) }
}

function generated (t: Test, { envelope }: Pick<Reading, 'envelope'>): void {
  const n = Number(/GenerateResult[^>]*>(\d+)</.exec(Buffer.from(envelope.body).toString())?.[1] ?? NaN)
  t.ok(Number.isInteger(n) && n >= 0 && n < 10_000, `GenerateResult ${n} is in 0 … 9999`)
}

t.setTimeout(300_000)

t.test('seed envelope: accepted byte for byte', async t => {
  const cluster = await Cluster.start(t)

  for (const Kind of [DurableSession, Session]) {
    const kind = Kind === DurableSession ? 'durable' : 'interactive'
    await t.test(`${kind}: with UserData it is stored, answered at once with an empty Body, and its response is pulled`, async t => {
      const session = await Kind.create({ service: 'SimpleService', head: cluster.head })
      const { status, type, reading } = await post(session.endpoint, seed)
      t.equal(status, 200)
      t.match(type, /^application\/soap\+xml/)
      t.match(reading, { bodyElement: undefined, isFault: false, envelope: { soap: 12, action: `${ACTION}Response`, body: { length: 0 } } })

      const caller = httpCaller(`${session.endpoint}/Controller`, { connections: 1, maxMessageSize: 1_000_000, ...READ_LIMITS })
      t.teardown(() => caller.close())
      const controller = new Controller({ caller, way: { persist: (_what, _options, attempt) => attempt(0, new AbortController().signal) }, clientId: '', retryForMs: 0 })
      await controller.commit('EndRequests', 0, { count: 1, batchId: -1, timeoutMs: 30_000, signal: new AbortController().signal })
      const responses = []
      for await (const response of session.client('').responses()) responses.push(response)
      t.match(responses, [{ userData: '0', op: 'Generate', fault: undefined, messageId: /^urn:uuid:/ }])
      for (const response of responses) generated(t, response)
      await session.close()
    })

    await t.test(`${kind}: without UserData the reply comes in the same exchange`, async t => {
      const session = await Kind.create({ service: 'SimpleService', head: cluster.head })
      const { status, reading } = await post(session.endpoint, withoutUserData)
      t.equal(status, 200)
      t.match(reading, { isFault: false, envelope: { soap: 12, action: `${ACTION}Response` } })
      generated(t, reading)
      await session.close()
    })
  }

  await t.test('a path below a session that is nothing is 404, from whichever side it is asked', async t => {
    const session = await Session.create({ service: 'SimpleService', head: cluster.head })
    for (const method of ['GET', 'POST']) {
      const answer = await fetch(`${session.endpoint}/Nope`, { method, signal: AbortSignal.timeout(30_000) })
      t.equal(answer.status, 404, method)
    }
    await session.close()
  })
})
