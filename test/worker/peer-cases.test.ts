import { EventEmitter } from 'node:events'
import t from 'tap'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { settle } from '../clock.ts'
import { FLUSH, never, open, reading, request, type TaskNews } from './open-session.ts'

/*
 * The tests of HPC Pack's own broker ([broker-behaviour] 11), what it says that they leave out (11.6), and the test here that shows the same behaviour.
 *
 * | the peer's | here |
 * | --- | --- |
 * | 11.1 RepeatableCallbackTrigger, ThreadHelper; 11.2 TimeoutManager | no such parts: all timers are core/clock.ts's, moved by hand in every test of this folder |
 * | 11.1 RequestSender: create, release, refresh, start | transport/tcp.test.ts, transport/http-connector.test.ts; dispatcher-pool.test.ts: capacity × (1 + prefetch) calls |
 * | 11.1 ResponseReceiver: endpoint not found; fault; preemption | failure-matrix.test.ts: each row; replies are stored as the response |
 * | 11.1 RequestQueueAdapter: put back | this file: a request that goes back |
 * | 11.1 ResponseQueueAdapter ×4 | this file: stored or answered in the same exchange, reply or fault |
 * | 11.1 FrontEndBuilder ×3 | head/launchers.test.ts: addresses by what a client asks for |
 * | 11.1 MemoryPersist, AzureQueuePersist | store/store-promises.ts for every store; this file: 640,000 bytes |
 * | 11.2 NewDispatcher | dispatcher-pool.test.ts: the seed's sequence; duplex and request/reply front ends: duplex.test.ts, over-http.test.ts |
 * | 11.3, 11.4 Azure queues, Serilog sinks, blobs | nothing of the kind here |
 * | 11.5 BvtCase1–11, BvtDurableCase1–3 | e2e/peer-bvt.long.ts; through WCF and HPC's own client classes: interop/dotnet.test.ts |
 * | 11.6 recovery | model.test.ts, e2e/kill-broker.test.ts, head/dead-worker.test.ts |
 * | 11.6 retry limit | retry.test.ts, failure-matrix.test.ts, dispatcher-pool.test.ts: past the limit |
 * | 11.6 throttling | throttle.test.ts; this file: a client that is purged holds nobody up |
 * | 11.6 time-outs of client and session | session.test.ts: idle clocks; this file: the three clocks |
 * | 11.6 grow and shrink, blacklist, preemption | e2e/elastic.long.ts, core/planner.test.ts; dispatcher-pool.test.ts: left alone for the retry period |
 * | 11.6 fairness | request-queue.test.ts: clients take turns |
 * | 11.6 batch ids | session.test.ts: a higher batch id; model.test.ts |
 * | 11.6 purge | session.test.ts, duplex.test.ts: a purge ends the responses with its reason; this file |
 * | 11.6 Begin | session.test.ts: Begin brings everything again; duplex.test.ts: filters |
 */

const pull = async (client: ReturnType<Awaited<ReturnType<typeof open>>['client']>, count: number) => await client.pull('Begin', count, '', { maxBytes: 1e9, signal: never, end: () => undefined })
const hold = () => {
  const held: Array<{ sent: Envelope, answer: (result: CallResult) => void }> = []
  return { held, answer: (sent: Envelope): Promise<CallResult> => new Promise(resolve => held.push({ sent, answer: resolve })) }
}

t.test('peer: a request that goes back is counted out once, and runs again', async t => {
  const { held, answer } = hold()
  const { session, client } = await open(t, { answer })
  await client().accept(request(1), -1, never)
  await settle()
  t.match(session.counters, { processing: 1, processed: 0 })
  held[0]?.answer({ outcome: 'badReply', error: new Error('no SOAP') })
  await settle()
  t.equal(held.length, 2, 'the same request again')
  t.equal(held[1]?.sent.messageId, held[0]?.sent.messageId)
  t.match(session.counters, { processing: 1, total: 1 }, 'counted once')
  held[1]?.answer({ outcome: 'answered', reading: reading(request(1)) })
})

for (const [what, result, isFault] of [
  ['a reply', (sent: Envelope): CallResult => ({ outcome: 'answered', reading: reading(sent) }), false],
  ['a failure past the limit', (): CallResult => ({ outcome: 'timedOut' }), true],
] as const) {
  t.test(`peer: ${what} is stored for a request with user data, and answered in the same exchange without`, async t => {
    const { session, client } = await open(t, { settings: { messageResendLimit: 0 }, answer: result })
    await client().accept(request(1), -1, never)
    const { responses: [stored] } = await pull(client(), 1)
    t.match(stored, { isFault, envelope: { relatesTo: 'urn:uuid:1' } })
    const direct = await session.call(client('d'), request(2, { userData: undefined }), never)
    t.match(direct, { isFault, envelope: { relatesTo: 'urn:uuid:2' } })
    t.equal(client('d').queue.responses, 0, 'and not stored')
    t.match(session.counters, { processing: 0, processed: 2, directlyReplied: 1 })
  })
}

for (const durable of [false, true]) {
  t.test(`peer (${durable ? 'durable' : 'interactive'}): 640,000 bytes go through and come back as they were`, async t => {
    const { client } = await open(t, { durable })
    const body = Buffer.from(`<n>${'x'.repeat(640_000)}</n>`)
    await client().accept(request(1, { body }), -1, never)
    await client().endRequests(1, FLUSH)
    const { responses: [response] } = await pull(client(), 1)
    t.ok(body.equals(response?.envelope.body as Buffer))
  })
}

t.test('peer: what a client that was purged left unread holds nobody up, and a message that came twice counts once', async t => {
  const { client, session } = await open(t, { settings: { messageThrottleStartThreshold: 3, messageThrottleStopThreshold: 2 } })
  for (const n of [1, 1, 1, 2, 3, 4]) await client('a').accept(request(n), -1, never)
  let isTaken = false
  const waiting = client('b').accept(request(9), -1, never).then(() => { isTaken = true })
  await settle()
  t.notOk(isTaken, 'four are taken, and three are the most')
  await session.purge('a')
  await waiting
  t.ok(isTaken)
})

t.test('peer: the three clocks: no client at all, an idle client, an idle session; 0 is at once', async t => {
  const settings = { clientConnectionTimeout: 1000, clientIdleTimeout: 2000, sessionIdleTimeout: 4000 }
  for (const durable of [false, true]) {
    const alone = await open(t, { durable, settings })
    await alone.clock.advance(1000)
    t.match(alone.ended, [/^destroyed: no client within 1000 ms/], 'nobody ever came: nothing is worth keeping')

    const left = await open(t, { durable, settings })
    await left.client().accept(request(1), -1, never)
    await left.client().endRequests(1, FLUSH)
    await settle()
    await left.clock.advance(5999)
    t.same(left.ended, [])
    await left.clock.advance(1)
    t.match(left.ended, [durable ? /^suspended: no client for 4000 ms/ : /^destroyed: no client for 4000 ms/])
    t.throws(() => left.client(), { name: 'SoaError', fault: durable ? 'Broker_BrokerSuspending' : 'Session_ValidateJobFailed_AlreadyFinished' }, 'a late caller is told whether to attach again')

    const atOnce = await open(t, { durable, settings: { ...settings, sessionIdleTimeout: 0 } })
    await atOnce.client().accept(request(1), -1, never)
    await atOnce.client().endRequests(1, FLUSH)
    await settle()
    await atOnce.clock.advance(2000)
    t.equal(atOnce.ended.length, 1)
  }
})

t.test('peer: a client that says nothing for three times the idle time lives while its requests run, and so does its session', async t => {
  const { held, answer } = hold()
  const { client, clock, ended } = await open(t, { durable: true, settings: { clientIdleTimeout: 1000, sessionIdleTimeout: 1000 }, answer })
  const first = client()
  await first.accept(request(1), -1, never)
  await first.endRequests(1, FLUSH)
  await clock.advance(3000)
  t.equal(client(), first)
  t.same(ended, [])
  held[0]?.answer({ outcome: 'answered', reading: reading(request(1)) })
  await settle()
  await clock.advance(2000)
  t.match(ended, [/sessionIdleTimeout/], 'with nothing left to do it ends, and says why')
})

t.test('peer: an EndRequests that fails starts the idle clock again', async t => {
  const { client, clock } = await open(t, { durable: true, settings: { clientIdleTimeout: 10_000 } })
  const first = client()
  await first.accept(request(1), -1, never)
  await clock.advance(9000)
  const refused = t.rejects(first.endRequests(2, { ...FLUSH, timeoutMs: 5000 }), { name: 'SoaError', fault: 'OperationTimeout' })
  await clock.advance(5000)
  await refused
  await clock.advance(9000)
  t.equal(first.state, 'ClientConnected')
  await clock.advance(1000)
  t.equal(first.state, 'Disconnected')
})

for (const [durable, flushed, ends, isKept] of [
  [true, false, false, false], [true, true, false, true], [true, true, true, true], [false, true, false, false], [false, true, true, true],
] as const) {
  t.test(`peer (${durable ? 'durable' : 'interactive'}): of an idle client that ${flushed ? ends ? 'has ended' : 'has flushed' : 'has flushed nothing'} the data is ${isKept ? 'kept' : 'gone'}`, async t => {
    const { client, clock, store } = await open(t, { durable, settings: { clientIdleTimeout: 1000, sessionIdleTimeout: 1_000_000 } })
    const first = client()
    await first.accept(request(1), -1, never)
    if (flushed) await (ends ? first.endRequests(1, FLUSH) : first.flush(1, FLUSH))
    await settle()
    await clock.advance(1000)
    t.equal(first.state, 'Disconnected')
    t.equal((await store.load()).length, isKept ? 1 : 0)
    if (!isKept) return
    const { responses, endOfMessages } = await pull(client(), 1)
    t.same([responses.length, endOfMessages], [1, ends], 'whoever comes back under its id reads it')
  })
}

t.test('peer (interactive): who has read all and comes back is told the end at once', async t => {
  const { client, clock } = await open(t, { settings: { clientIdleTimeout: 1000, sessionIdleTimeout: 1_000_000 } })
  await client().accept(request(1), -1, never)
  await client().endRequests(1, FLUSH)
  const current = () => client().pull('Current', 1, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  t.equal((await current()).responses.length, 1)
  t.match(await current(), { responses: [], endOfMessages: true })
  await clock.advance(1000)
  t.match(await current(), { responses: [], endOfMessages: true })
})

t.test('peer: a purge drops the calls in the same exchange that wait for their turn', async t => {
  const { session, client } = await open(t, { instances: 0 })
  await client().accept(request(1), -1, never)
  const refused = t.rejects(session.call(client(), request(2, { userData: undefined }), never), { name: 'SoaError', fault: 'ClientPurged' })
  await session.purge('c')
  await refused
})

t.test('peer: an idle session whose instances have left takes new clients, and asks for instances again', async t => {
  const news: TaskNews = new EventEmitter()
  const { client, clock, targets, session } = await open(t, { durable: true, news, settings: { sessionIdleTimeout: 1_000_000, clientIdleTimeout: 1_000_000 } })
  await client('old').accept(request(1), -1, never)
  await client('old').endRequests(1, FLUSH)
  await settle()
  await clock.advance(20_000)
  t.equal(targets.at(-1), 0, 'they have left')
  await client('new').accept(request(2), -1, never)
  session.workCame()
  await settle()
  t.ok((targets.at(-1) ?? 0) > 0)
})
