import t, { type Test } from 'tap'
import { DurableSession, Session, type BrokerClient } from '../../client/index.ts'
import { Cluster } from './cluster.ts'

// BvtCase1–11 and BvtDurableCase1–3 of HPC Pack's E2ETest ([broker-behaviour] 11.5), over our client and with assertions, which the peer's suite only logs.
// The .NET interop (test/interop/dotnet) runs the same calls through WCF proxies and HPC's own client classes.

const CALLS = 500

async function send (client: BrokerClient, name: string): Promise<void> {
  await Promise.all(Array.from({ length: CALLS }, (_, i) => client.send('Echo', { input: `${i}` }, { userData: `${i}:${name}` })))
  await client.endRequests()
}

/** Each response once, with the answer to what its user data says, and none of another client's. */
async function read (t: Test, client: BrokerClient, name: string): Promise<void> {
  const seen = new Set<string>()
  const wrong: string[] = []
  for await (const { userData, result } of client.responses({ timeoutMs: 120_000 })) {
    const [row = '', of = ''] = String(userData).split(':')
    const { EchoResult } = result() as { EchoResult: string }
    if (of !== name || !EchoResult.endsWith(`:${row}`) || seen.has(row)) wrong.push(`${String(userData)} ${EchoResult}`)
    seen.add(row)
  }
  t.same(wrong, [], `${name}: each response is its own`)
  t.equal(seen.size, CALLS, `${name}: ${CALLS} responses`)
}

async function sendAndRead (t: Test, session: Session, name: string): Promise<void> {
  const client = session.client(name)
  await send(client, name)
  await read(t, client, name)
}

t.setTimeout(600_000)

t.test('the peer\'s end-to-end cases', async t => {
  const cluster = await Cluster.start(t, { cores: 4 })
  const options = { service: 'CcpEchoSvc', head: cluster.head }

  await t.test('BvtCase1: an interactive session, 500 calls of a plain proxy, each answered in its own exchange', async t => {
    await using session = await Session.create(options)
    const client = session.client()
    const answers = await Promise.all(Array.from({ length: CALLS }, (_, i) => client.call('Echo', { input: `${i}` })))
    t.equal(answers.filter((answer, i) => String((answer as { EchoResult: string }).EchoResult).endsWith(`:${i}`)).length, CALLS)
  })

  await t.test('BvtCase2: two clients in parallel on one session', async t => {
    await using session = await Session.create(options)
    await Promise.all(['first', 'second'].map(name => sendAndRead(t, session, name)))
  })

  await t.test('BvtCase3: two clients in parallel on an attached session, which is then closed', async t => {
    await using created = await Session.create(options)
    const session = await Session.attach(created.id, { head: cluster.head })
    await Promise.all(['first', 'second'].map(name => sendAndRead(t, session, name)))
    await session.close()
    await t.rejects(Session.attach(created.id, { head: cluster.head }), 'nothing is left of it')
  })

  await t.test('BvtCase4 and 8: no units at most is refused by its name, and alone in a task too', async t => {
    await t.rejects(Session.create({ ...options, maxUnits: 0 }), /maxUnits/)
    t.match(await Promise.allSettled([Session.create({ ...options, maxUnits: 0 })]), [{ status: 'rejected' }])
  })

  await t.test('BvtCase5: three units at most', async t => {
    await using session = await Session.create({ ...options, maxUnits: 3 })
    await sendAndRead(t, session, 'only')
  })

  for (const [name, sessions, maxUnits] of [['BvtCase9', 6, 3], ['BvtCase10', 2, 15], ['BvtCase11', 2, 30]] as const) {
    await t.test(`${name}: ${sessions} sessions with ${maxUnits} units at most, all at once on four cores`, async t => {
      await Promise.all(Array.from({ length: sessions }, async (_, i) => {
        await using session = await Session.create({ ...options, maxUnits })
        await sendAndRead(t, session, `of-${i}`)
      }))
    })
  }

  await t.test('BvtDurableCase1: sent, ended, everything let go of; attached again under the same client id', async t => {
    const session = await DurableSession.create(options)
    await send(session.client('mine'), 'mine')
    await session.detach()
    const again = await DurableSession.attach(session.id, { head: cluster.head })
    await read(t, again.client('MINE'), 'mine')
    await again.close()
  })

  await t.test('BvtDurableCase2: two clients in parallel, each on its own attached session object', async t => {
    const created = await DurableSession.create(options)
    await Promise.all(['first', 'second'].map(async name => {
      const session = await DurableSession.attach(created.id, { head: cluster.head })
      await sendAndRead(t, session, name)
      await session.detach()
    }))
    await created.close()
  })

  await t.test('BvtDurableCase3: two clients in parallel on one durable session object', async t => {
    const session = await DurableSession.create(options)
    await Promise.all(['first', 'second'].map(name => sendAndRead(t, session, name)))
    await session.close()
  })
})
