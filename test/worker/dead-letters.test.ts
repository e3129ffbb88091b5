import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import type { BrokerClient } from '../../broker/worker/broker-client.ts'
import type { Settings } from '../../config/settings.ts'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisMessageStore } from '../../store/redis-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { userDataText } from '../../wire/soap/hpc-headers.ts'
import { settle } from '../clock.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { FLUSH, never, open, openSession, reading, request, type TaskNews } from './open-session.ts'

const ONE_TRY: Partial<Settings> = { messageResendLimit: 0, serviceRequestPrefetchCount: 0 }
const query = (more: Record<string, string> = {}): URLSearchParams => new URLSearchParams(more)
const echo = (sent: Envelope): CallResult => ({ outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) })
const idOf = (sent: Envelope): string => (sent.messageId ?? '').replace('urn:uuid:', '')

/** User data and kind of all that a client reads from Begin. */
async function all (client: BrokerClient, count: number): Promise<string[]> {
  const { responses } = await client.pull('Begin', count, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  return responses.map(({ envelope, isFault }) => `${userDataText(envelope.userData as Uint8Array)} ${isFault ? 'fault' : 'ok'}`)
}

async function send (client: BrokerClient, ...ns: number[]): Promise<void> {
  for (const n of ns) await client.accept(request(n), -1, never)
  await client.endRequests(ns.length, FLUSH)
  await settle(20)
}

for (const durable of [true, false]) {
  const kind = durable ? 'durable' : 'interactive'

  t.test(`dead letters (${kind}): a request that runs out of tries has its fault, and is kept with its payload and what it went through`, async t => {
    const { session, client } = await open(t, { durable, settings: { messageResendLimit: 1 }, answer: sent => idOf(sent) === '2' ? { outcome: 'timedOut' } : echo(sent) })
    await send(client('Risk'), 1, 2, 3)
    t.match(session.counters.view(), { total: 3, processed: 3, faulted: 1, deadLettered: 1, outstanding: 0 })
    const page = await session.letters.page(query())
    t.match(page, { total: 1, dropped: 0, items: [{ id: '1', sessionId: '7', clientId: 'Risk', seq: 2, messageId: 'urn:uuid:2', action: 'urn:Echo', userData: '2', state: 'Dead', why: /serviceOperationTimeout/ }] })
    t.same(page.items[0]?.tries.map(({ taskId, node, outcome }) => [taskId, node, outcome]), [['1-0', 'n1', 'timedOut'], ['1-0', 'n1', 'timedOut']])
    t.match(await session.letters.show('1'), { body: '<n>2</n>', envelope: /<n>2<\/n>/ })
    t.same((await all(client('Risk'), 3)).sort(), ['1 ok', '2 fault', '3 ok'])
    t.same((await session.letters.page(query({ client: 'rISK' }))).items.length, 1)
    t.same((await session.letters.page(query({ client: 'other' }))).items, [])
  })

  t.test(`dead letters (${kind}): one that runs again has fresh tries; its response takes the place of its fault`, async t => {
    let isMended = false
    const runs: string[] = []
    const { session, client } = await open(t, { durable, settings: ONE_TRY, answer: sent => { runs.push(idOf(sent)); return idOf(sent) === '2' && !isMended ? { outcome: 'timedOut' } : echo(sent) } })
    await send(client(), 1, 2, 3)
    t.same(await all(client(), 3), ['1 ok', '2 fault', '3 ok'])
    isMended = true
    t.match(await session.letters.replay('1'), { id: '1', state: 'Replaying' })
    t.equal(session.callsWanted, 1, 'service instances are wanted for it')
    t.match(session.counters.view(), { total: 3, processed: 3, processing: 0, queued: 0, outstanding: 0, replaying: 1 }, 'it has its response all the while')
    await settle(20)
    t.same(runs, ['1', '2', '3', '2'])
    t.same(await all(client(), 3), ['1 ok', '2 ok', '3 ok'], 'in the same place')
    t.match(session.counters.view(), { total: 3, processed: 3, faulted: 0, deadLettered: 1, replaying: 0 })
    t.same(await session.letters.page(query()), { items: [], total: 0, dropped: 0 })
    await t.rejects(session.letters.replay('1'), { name: 'SoaError', fault: 'noDeadLetter' })
  })
}

t.test('dead letters: one that is given up again is one dead letter with what it went through now, and the fault says so', async t => {
  let why = 1
  const { session, client } = await open(t, { durable: true, settings: ONE_TRY, answer: () => ({ outcome: 'badReply', error: new Error(`no SOAP ${why++}`) }) })
  await send(client(), 1)
  await session.letters.replay('1')
  await settle(20)
  t.match(await session.letters.page(query()), { total: 1, items: [{ id: '1', state: 'Dead', why: 'no SOAP 2', tries: [{ why: 'no SOAP 2' }] }] })
  t.same(await all(client(), 1), ['1 fault'])
  const { responses } = await client().pull('Begin', 1, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  t.match(Buffer.from(responses[0]?.envelope.body ?? []).toString(), /no SOAP 2/)
  t.match(session.counters.view(), { processed: 1, faulted: 1, deadLettered: 1 })
})

t.test('dead letters: removed, its fault stays, also while it runs again; purged with its client; and what is not there is refused', async t => {
  let release: (() => void) | undefined
  const { session, client } = await open(t, {
    durable: true,
    settings: ONE_TRY,
    instances: 2,
    answer: sent => release === undefined ? { outcome: 'timedOut' } : new Promise<CallResult>(resolve => { release = () => resolve(echo(sent)) }),
  })
  await send(client(), 1, 2)
  release = () => {}
  await session.letters.replay('1')
  await settle()
  await session.letters.remove('1')
  await session.letters.remove('1')
  release()
  await settle(20)
  t.same((await all(client(), 2)).sort(), ['1 fault', '2 fault'])
  t.match(session.counters.view(), { replaying: 0, processing: 0 })
  await session.letters.replay('2')
  await settle()
  await session.purge('c')
  t.equal(session.letters.running, 0)
  release()
  await settle(20)
  t.same(await session.letters.page(query()), { items: [], total: 0, dropped: 0 })
  t.equal(session.state, 'Running')
  for (const id of ['3', '0', 'x', '../1']) await t.rejects(session.letters.show(id), { fault: 'noDeadLetter', message: `session 7 has no dead letter ${id}` })
  for (const limit of ['0', '1001', 'x', '1.5']) await t.rejects(session.letters.page(query({ limit })), { fault: 'InvalidArgument', message: `limit: 1 to 1000, not ${limit}` })
  await t.rejects(session.letters.page(query({ cursor: 'x' })), { fault: 'InvalidArgument', message: /cursor/ })
})

t.test('dead letters (interactive): where the fault has been read there is no place for another response, which is said', async t => {
  const { session, client } = await open(t, { settings: ONE_TRY, answer: () => ({ outcome: 'timedOut' }) })
  await send(client(), 1)
  await all(client(), 1)
  await client().pull('Current', 1, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  await t.rejects(session.letters.replay('1'), { fault: 'deadLetterRead', message: /was read and freed/ })
  t.match(await session.letters.page(query()), { total: 1, items: [{ state: 'Dead' }] }, 'it can be looked at all the same')
})

t.test('dead letters: a canceled session runs none again, and shows them', async t => {
  const { session, client } = await open(t, { durable: true, settings: ONE_TRY, answer: () => ({ outcome: 'timedOut' }) })
  await send(client(), 1)
  await session.cancel()
  await t.rejects(session.letters.replay('1'), { name: 'SoaError', fault: 'Session_ValidateJobFailed_JobCanceled' })
  t.match(await session.letters.page(query()), { total: 1 })
})

t.test('dead letters: a request that kills its host each time ends as one, and 1,000 others finish', async t => {
  const news: TaskNews = new EventEmitter()
  const calls: Array<{ id: string, taskId: string, resolve: (result: CallResult) => void, sent: Envelope }> = []
  const task = (id: string, state: 'Running' | 'Failed', exit?: object): never => ({ id, sessionId: '7', node: 'n1', machineName: 'n1', state, capacity: 4, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '', ...(exit === undefined ? {} : { exit }) }) as never
  const { session, client, clock } = await open(t, {
    durable: true,
    instances: 0,
    news,
    connect: ({ id: taskId }) => ({
      call: (sent, { signal }) => new Promise<CallResult>(resolve => {
        calls.push({ id: idOf(sent), taskId, resolve, sent })
        signal.addEventListener('abort', () => resolve({ outcome: 'aborted' }), { once: true })
      }),
      close: async () => {},
    }),
  })
  const poison = '500'
  for (let n = 1; n <= 1001; n++) await client().accept(request(n), -1, never)
  await client().endRequests(1001, FLUSH)
  let hosts = 0
  let died = 0
  const start = async (): Promise<void> => { news.emit('tasks', [task(`1-${++hosts}`, 'Running')]); await settle() }
  await start()
  await start()
  // Hosts work on four calls at a time, in order; one dies as soon as the poison is among them.
  for (let round = 0; session.counters.outstanding > 0 && round < 5000; round++) {
    const sick = [...new Set(calls.map(({ taskId }) => taskId))].find(taskId => calls.filter(call => call.taskId === taskId).slice(0, 4).some(({ id }) => id === poison))
    if (sick !== undefined) {
      died++
      for (const call of calls.filter(({ taskId }) => taskId === sick)) { calls.splice(calls.indexOf(call), 1); call.resolve({ outcome: 'broken', error: new Error('socket hang up') }) }
      news.emit('tasks', [task(sick, 'Failed', { code: 139, signal: null, stderr: '', why: 'exit code 139' })])
      await settle()
      await start()
      continue
    }
    const [call] = calls.splice(0, 1)
    if (call === undefined) { await clock.advance(1); continue }
    call.resolve(echo(call.sent))
    await settle(2)
  }
  t.match(session.counters.view(), { total: 1001, processed: 1001, faulted: 1, deadLettered: 1, outstanding: 0 })
  t.equal(died, 4, 'it ran four times (messageResendLimit 3), and no host died of anything else')
  const { items } = await session.letters.page(query())
  t.match(items, [{ messageId: `urn:uuid:${poison}`, why: /exit code 139/ }])
  t.same(items[0]?.tries.map(({ outcome }) => outcome), Array.from({ length: 4 }, () => 'instanceFailed'))
  const read = await all(client(), 1001)
  t.equal(new Set(read).size, 1001)
  t.same(read.filter(line => line.endsWith('fault')), [`${poison} fault`])
})

t.test('dead letters (Redis): a broker that dies while one runs again loses nothing: the next one goes on, and the response comes into the same place', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendfsync: 'everysec' })
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  const store = (create: boolean): Promise<RedisMessageStore> => RedisMessageStore.open({ redis, prefix: 'letters', sessionId: '7', level: 'process', create, log: silent })
  const until = async (t: Test, what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => {
    for (let turn = 0; turn < 2000; turn++) { if (await isSo()) { t.pass(what); return } await new Promise<void>(resolve => setImmediate(resolve)) }
    t.fail(`never: ${what}`)
  }
  const first = await openSession({ durable: true, store: await store(true), settings: ONE_TRY, answer: sent => idOf(sent) === '2' ? { outcome: 'timedOut' } : echo(sent) })
  await send(first.client('C'), 1, 2, 3)
  await until(t, 'all are answered', () => first.session.counters.processed === 3)
  const before = await all(first.client('C'), 3)
  t.same([...before].sort(), ['1 ok', '2 fault', '3 ok'])

  await first.session.close('suspended')
  // A new broker claims the session while the old one has the replay at a host that never answers: its own writes are refused from then on.
  const second = await openSession({ durable: true, store: await store(false), settings: ONE_TRY, answer: () => new Promise<CallResult>(() => {}) })
  t.match(second.session.counters.view(), { total: 3, processed: 3, faulted: 1, deadLettered: 1 }, 'raised with its counts')
  await second.session.letters.replay('1')
  const third = await openSession({ durable: true, store: await store(false), settings: ONE_TRY, answer: echo })
  await until(t, 'the replay came to its end', () => third.session.counters.faulted === 0)
  const after = await all(third.client('C'), 3)
  t.same(after, before.map(line => line.replace('fault', 'ok')), 'in the same places')
  t.match(third.session.counters.view(), { total: 3, processed: 3, faulted: 0, deadLettered: 1, replaying: 0 })
  t.same(await third.session.letters.page(query()), { items: [], total: 0, dropped: 0 })
  second.session.fail(new Error('the old one is over'))
  await third.session.close('destroyed')
  t.same(await redis.keys('{letters:s:7}*'), [])
})
