import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { DurableSession, Session, type Response } from '../../client/index.ts'
import { FakeBroker } from './fake-broker.ts'

/** Nobody listens there: no program of a user may have port 9, and none of ours does. */
const DEAD = 'http://127.0.0.1:9'
const N = 60
const numbers = Array.from({ length: N }, (_, i) => i)
async function rowsOf (responses: AsyncIterable<Response>): Promise<number[]> {
  const rows: number[] = []
  for await (const response of responses) rows.push(Number(response.userData))
  return rows.sort((a, b) => a - b)
}
const sends = (session: Session, rows: readonly number[]): Promise<string[]> => Promise.all(rows.map(row => session.client('C').send('Echo', { input: `i${row}` }, { userData: String(row) })))

t.test('heads: of several the first that answers is taken, and asked first from then on', async t => {
  const broker = await FakeBroker.open(t)
  await using session = await DurableSession.create({ service: 'Echo', head: `${DEAD}, ${broker.head}/` })
  t.equal(session.endpoint, `${broker.head}/4711/Http`)
  t.match(await session.status(), { sessionId: '4711' })
  t.same(broker.log, ['POST sessions', 'GET sessions/4711'])
})

t.test('heads: when none answers the error says of each why', async t => {
  const other = 'http://127.0.0.1:7'
  await t.rejects(Session.create({ service: 'Echo', head: `${DEAD},${other}`, retryForMs: 1 }), {
    name: 'ConnectionError', message: /^POST \/api\/v1\/sessions: gave up after \d tries in 1 ms: http:\/\/127\.0\.0\.1:9: .*ECONNREFUSED.*; http:\/\/127\.0\.0\.1:7: .*ECONNREFUSED/
  })
  await t.rejects(Session.attach('4711', { head: `${DEAD},${other}`, retryForMs: 60_000, signal: AbortSignal.timeout(1) }), { name: 'TimeoutError' }, 'and the signal ends it')
})

t.test('heads: one that is being drained is passed over; when all are, that is what is said', async t => {
  const broker = await FakeBroker.open(t)
  const second = await broker.openHead(t)
  const head = `${broker.head},${second.url}`
  const offline = new SoaError('Broker_BrokerIsOffline', {})
  broker.troubles['POST sessions'] = [offline]
  const session = await Session.create({ service: 'Echo', head })
  t.equal(session.endpoint, `${second.url}/4711/Http`)
  await session.detach()
  broker.troubles['POST sessions'] = [offline, offline, offline, offline]
  await t.rejects(Session.create({ service: 'Echo', head, retryForMs: 1 }), { fault: 'Broker_BrokerIsOffline', message: /is being drained; http:.*is being drained/ } as object as Error)
})

t.test('heads: what a head refuses is no reason to ask another', async t => {
  const broker = await FakeBroker.open(t)
  broker.troubles['POST sessions'] = [new SoaError('Service_NotFound', { serviceName: 'Echo' })]
  await t.rejects(Session.create({ service: 'Echo', head: `${broker.head},${DEAD}` }), { name: 'ProblemError' })
  t.same(broker.log, ['POST sessions'])
})

t.test('heads: an entry that is no URL of a head is named', async t => {
  for (const [head, why] of [
    ['grid:8080', /a URL such as http:\/\/127\.0\.0\.1:8080 is expected, or several with commas between them, not "grid:8080"$/],
    ['http://a:8080,,http://b:8080', /not "", entry 2 of 3$/],
    ['http://a:8080,ftp://b', /not "ftp:\/\/b", entry 2 of 2$/],
    ...['http://b/#', 'http://b/?', 'http://b?x', 'http://b;http://c', 'http://b\\c', 'http://b:0', 'http://b:99999', 'http://::1:8080', 'http://:p@b', 'http://u:p@b', 'http://b http://c', 'http:///b'].map((entry): [string, RegExp] =>
      [`http://a:8080,${entry}`, new RegExp(`not ${JSON.stringify(entry).replace(/[\\?]/g, '\\$&')}, entry 2 of 2$`)]),
    ['http://a:8080?x=1', /not "http:\/\/a:8080\?x=1"$/],
    [Array.from({ length: 33 }, (_, i) => `http://h${i}`).join(), /at most 32 heads are tried, not 33/]
  ] as const) await t.rejects(Session.create({ service: 'Echo', head }), { fault: 'InvalidArgument', message: why } as object as Error)
})

for (const when of ['while requests are sent', 'before EndRequests', 'before the responses are read', 'while they are read'] as const) {
  t.test(`heads: the one that a session goes through dies ${when}: each response comes once, through the other`, async t => {
    const broker = await FakeBroker.open(t)
    const second = await broker.openHead(t)
    const first = await broker.openHead(t)
    await using session = await DurableSession.create({ service: 'Echo', head: `${first.url},${second.url}`, retryForMs: 10_000 })
    const client = session.client('C')
    await sends(session, [0])
    const rest = numbers.slice(1)
    if (when === 'while requests are sent') {
      const some = broker.arrived('Echo', 20)
      const all = sends(session, rest)
      await some
      await first.die()
      await all
    } else {
      await sends(session, rest)
    }
    if (when === 'before EndRequests') await first.die()
    t.equal(await client.endRequests(), N)
    if (when === 'before the responses are read') await first.die()
    const rows: number[] = []
    for await (const response of client.responses()) {
      rows.push(Number(response.userData))
      if (rows.length === 3 && when === 'while they are read') await first.die()
    }
    t.same(rows.sort((a, b) => a - b), numbers)
    t.equal(session.endpoint, `${second.url}/4711/Http`)
    t.equal(new Set(broker.messageIds).size, N)
  })
}

t.test('heads: one whose broker cannot be reached through it is left, though it answers', async t => {
  const broker = await FakeBroker.open(t)
  const second = await broker.openHead(t)
  await using session = await DurableSession.create({ service: 'Echo', head: `${broker.head},${second.url}`, retryForMs: 10_000 })
  broker.troubles.Echo = [new SoaError('Broker_BrokerUnavailable', { sessionId: '4711' }), new SoaError('Broker_BrokerUnavailable', { sessionId: '4711' })]
  await sends(session, [0])
  t.equal(session.endpoint, `${second.url}/4711/Http`)
})

t.test('heads: a session that the other head does not know is gone, and that is said at once', async t => {
  const broker = await FakeBroker.open(t)
  const first = await broker.openHead(t)
  await using session = await DurableSession.create({ service: 'Echo', head: `${first.url},${broker.head}`, retryForMs: 60_000 })
  await sends(session, [0])
  await first.die()
  broker.troubles['GET sessions/4711'] = [new SoaError('InvalidSessionId', { sessionId: '4711' })]
  await t.rejects(sends(session, [1]), { name: 'ProblemError', status: 404 })
})

t.test('heads: of those that the head knows one is enough to be told', async t => {
  const broker = await FakeBroker.open(t)
  const first = await broker.openHead(t)
  broker.heads.push({ http: 'http://127.0.0.1:11', machine: 'another machine, whose loopback is not ours' })
  await using session = await DurableSession.create({ service: 'Echo', head: first.url, retryForMs: 10_000 })
  const heard = broker.arrived('GET heads', 1)
  await sends(session, [0, 1])
  await heard
  await session.status()
  await first.die()
  await sends(session, [2])
  t.equal(session.endpoint, `${broker.head}/4711/Http`)
  t.equal(await session.client('C').endRequests(), 3)
  t.same(await rowsOf(session.client('C').responses()), [0, 1, 2])
})
