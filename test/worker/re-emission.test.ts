import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import { SessionCounters } from '../../broker/worker/counters.ts'
import { ReEmission } from '../../broker/worker/re-emission.ts'
import type { BrokerRequest } from '../../broker/worker/broker-request.ts'
import { RequestQueue } from '../../broker/worker/request-queue.ts'
import type { Settings } from '../../config/settings.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { ManualClock, settle } from '../clock.ts'
import { FLUSH, never, open, reading, request, type TaskNews } from './open-session.ts'

/** A session with a grid at hand: calls wait until the test answers them. */
async function bench (t: Test, settings: Partial<Settings> = {}) {
  const news: TaskNews = new EventEmitter()
  const calls: Array<{ n: string, at: string, answer: (result?: CallResult) => Promise<void> }> = []
  const opened = await open(t, {
    durable: true,
    instances: 0,
    news,
    settings: { multiEmissionDelayTime: 1000, serviceRequestPrefetchCount: 0, ...settings },
    connect: ({ id: at }) => ({
      call: (sent: Envelope, { signal }) => new Promise<CallResult>(resolve => {
        const call = {
          n: (sent.messageId ?? '').replace('urn:uuid:', ''),
          at,
          answer: async (result: CallResult = { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse', body: Buffer.from(`<from>${at}</from>`) }) }) => {
            calls.splice(calls.indexOf(call), 1)
            resolve(result)
            await settle(8)
          },
        }
        calls.push(call)
        signal.addEventListener('abort', () => { void call.answer({ outcome: 'aborted' }) }, { once: true })
      }),
      close: async () => {},
    }),
  })
  const tell = async (id: string, state: TaskState, more: Partial<TaskInfo> = {}): Promise<void> => {
    news.emit('tasks', [{ id, sessionId: '7', node: `n${id}`, machineName: 'm', state, capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '', ...more }])
    await settle()
  }
  const send = async (...ns: number[]): Promise<void> => {
    for (const n of ns) await opened.client().accept(request(n), -1, never)
    await opened.client().flush(ns.length, FLUSH)
    await settle()
  }
  const flying = (): string[] => calls.map(({ n, at }) => `${n}@${at}`).sort()
  const bodies = async (count: number): Promise<string[]> => {
    const { responses } = await opened.client().pull('Begin', count, '', { maxBytes: 1e9, signal: never, end: () => undefined })
    return responses.map(({ envelope, isFault }) => isFault ? 'fault' : Buffer.from(envelope.body).toString())
  }
  return { ...opened, calls, tell, send, flying, bodies }
}

t.test('re-emission: a straggler runs at a second instance too; the first response counts, the late one is dropped and counted', async t => {
  const { clock, calls, tell, send, flying, bodies, session } = await bench(t)
  await tell('1', 'Running')
  await tell('2', 'Running')
  await send(1)
  t.same(flying(), ['1@1'])
  await clock.advance(999)
  t.same(flying(), ['1@1'])
  await clock.advance(1)
  t.same(flying(), ['1@1', '1@2'])
  t.match(session.counters.view(), { total: 1, processing: 1, queued: 0, reemitted: 1 }, 'one request, however many instances have it')
  await calls.find(({ at }) => at === '2')?.answer()
  t.match(session.counters.view(), { total: 1, processed: 1, processing: 0, duplicates: 0 })
  t.same(await bodies(1), ['<from>2</from>'])
  await calls[0]?.answer()
  t.match(session.counters.view(), { processed: 1, processing: 0, duplicates: 1, faulted: 0 })
  t.same(await bodies(1), ['<from>2</from>'])
  await send(2)
  t.equal(calls.length, 1, 'both instances are free again')
})

t.test('re-emission: never to the instance that has it: the copy waits for another one', async t => {
  const { clock, tell, send, flying, session } = await bench(t, { serviceRequestPrefetchCount: 3 })
  await tell('1', 'Running')
  await send(1)
  await clock.advance(5000)
  t.same(flying(), ['1@1'], 'three slots of that instance are free')
  t.match(session.counters.view(), { processing: 1, queued: 0, reemitted: 1 })
  await tell('2', 'Running')
  t.same(flying(), ['1@1', '1@2'])
})

t.test('re-emission: a copy that waits is not sent any more once the answer is there', async t => {
  const { clock, calls, tell, send, session } = await bench(t)
  await tell('1', 'Running')
  await send(1)
  await clock.advance(1000)
  await calls[0]?.answer()
  await tell('2', 'Running')
  await clock.advance(10_000)
  t.same(calls, [])
  t.match(session.counters.view(), { processed: 1, processing: 0, outstanding: 0, duplicates: 0, reemitted: 1 })
})

t.test('re-emission: never more copies at a time than the limit and one', async t => {
  const { clock, calls, tell, send, flying, session } = await bench(t, { messageResendLimit: 2 })
  for (const id of ['1', '2', '3', '4', '5']) await tell(id, 'Running')
  await send(1)
  await clock.advance(60_000)
  t.equal(flying().length, 3)
  t.equal(session.counters.reemitted, 2)
  for (const call of [...calls]) await call.answer()
  t.match(session.counters.view(), { processed: 1, duplicates: 2, processing: 0 })
})

t.test('re-emission: a run that fails is nobody\'s affair while another one is under way; all of them count together', async t => {
  const { clock, calls, tell, send, bodies, session } = await bench(t, { messageResendLimit: 1 })
  await tell('1', 'Running')
  await tell('2', 'Running')
  await send(1)
  await clock.advance(1000)
  t.equal(calls.length, 2)
  await calls[0]?.answer({ outcome: 'timedOut' })
  t.match(session.counters.view(), { processing: 1, processed: 0 })
  t.equal(calls.length, 1, 'it is not put back')
  await clock.advance(60_000)
  t.equal(calls.length, 1, 'nor sent a third time: one try is used up, one runs')
  await calls[0]?.answer({ outcome: 'timedOut' })
  t.match(session.counters.view(), { processed: 1, faulted: 1, processing: 0, deadLettered: 1 }, 'two tries that failed are what the limit allows')
  t.same(await bodies(1), ['fault'])
})

t.test('re-emission: a run that fails while the copy waits for an instance leaves the request waiting', async t => {
  const { clock, calls, tell, send, session, flying } = await bench(t)
  await tell('1', 'Running')
  await send(1)
  await clock.advance(1000)
  await calls[0]?.answer({ outcome: 'timedOut' })
  t.same(flying(), ['1@1'], 'the same instance may have it now')
  t.match(session.counters.view(), { processing: 1, queued: 0 })
  await calls[0]?.answer()
  t.match(session.counters.view(), { processed: 1, processing: 0, duplicates: 0 })
})

t.test('re-emission: an instance that dies with one of the copies changes nothing for the other one', async t => {
  const { clock, calls, tell, send, session, bodies } = await bench(t)
  await tell('1', 'Running')
  await tell('2', 'Running')
  await send(1)
  await clock.advance(1000)
  await tell('1', 'Failed', { exit: { code: 139, signal: null, stderr: '', why: 'exit code 139' } })
  t.equal(calls.length, 1)
  await calls[0]?.answer()
  t.same(await bodies(1), ['<from>2</from>'])
  t.match(session.counters.view(), { processed: 1, processing: 0, queued: 0, duplicates: 0 })
})

t.test('re-emission: what is answered late for a client that was purged counts for nobody', async t => {
  const { clock, calls, tell, send, session } = await bench(t)
  await tell('1', 'Running')
  await tell('2', 'Running')
  await send(1)
  await clock.advance(1000)
  await session.purge('c')
  for (const call of [...calls]) await call.answer()
  t.match(session.counters.view(), { total: 1, processed: 0, processing: 0, outstanding: 0, purgedTotal: 1 })
  t.equal(session.state, 'Running')
})

t.test('re-emission: off by default and with a limit of 0', async t => {
  for (const settings of [{ multiEmissionDelayTime: -1 }, { multiEmissionDelayTime: 0, messageResendLimit: 0 }]) {
    const { clock, tell, send, flying } = await bench(t, settings)
    await tell('1', 'Running')
    await tell('2', 'Running')
    await send(1)
    await clock.advance(3_600_000)
    t.same(flying(), ['1@1'])
  }
})

t.test('re-emission: one timer for all, and none while nothing is under way', async t => {
  const clock = new ManualClock()
  const counters = new SessionCounters(clock)
  const reEmission = new ReEmission({ delayMs: 1000, resendLimit: 3, requests: new RequestQueue(), counters, clock })
  const requests: BrokerRequest[] = Array.from({ length: 100 }, (_, i) => ({ clientKey: 'c', seq: i + 1, tries: 0, envelope: undefined }))
  for (const request of requests) { reEmission.started(request, '1'); await clock.advance(1) }
  t.equal(clock.pending, 1)
  t.equal(reEmission.size, 100)
  for (const request of requests.slice(0, 90)) reEmission.ended(request, '1')
  await clock.advance(1000)
  t.equal(counters.reemitted, 10, 'those that were still there when their time came')
  t.equal(reEmission.size, 0)
  await clock.advance(1000)
  t.equal(clock.pending, 0)
})
