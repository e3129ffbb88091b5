/** [broker-behaviour] 4.5, row by row, with real dispatchers on a clock that is moved by hand: what a failure does to the request, its tries, and its dispatcher. */
import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import { DispatcherPool } from '../../broker/worker/dispatcher-pool.ts'
import type { Desk } from '../../broker/worker/dispatcher.ts'
import type { BrokerRequest } from '../../broker/worker/broker-request.ts'
import { RequestQueue } from '../../broker/worker/request-queue.ts'
import { OUTCOMES, REPLIES, type Outcome } from '../../broker/worker/retry.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import type { CallResult, SoapCaller } from '../../transport/channel.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { retryOperationFault, serviceFault, toFault } from '../../wire/soap/fault.ts'
import { ManualClock, settle } from '../clock.ts'

const envelope = (messageId: string): Envelope => ({ v: 1, soap: 12, enc: 'utf8', action: 'urn:a', messageId, otherHeaders: [], prefixesInScope: [], body: Buffer.from('<a/>') })
const read = (envelope: Envelope, isFault = false, more: Partial<Reading> = {}): CallResult => ({ outcome: 'answered', reading: { envelope, batchId: -1, mustUnderstand: [], isFault, addressed: true, ...more } })
const segfault = { code: 139, signal: null, stderr: '', why: 'exit code 139 (128 + SIGSEGV)' }
const exit0 = { code: 0, signal: null, stderr: '', why: 'exit code 0' }
const hangUp: CallResult = { outcome: 'broken', error: new Error('socket hang up') }

interface Options { resendLimit?: number, maxUncounted?: number, capacity?: number, prefetch?: number, keepsOrder?: boolean }

function bench ({ resendLimit = 3, maxUncounted = 10, capacity = 1, prefetch = 0, keepsOrder = true }: Options = {}) {
  const requests = new RequestQueue()
  const clock = new ManualClock()
  const calls: Array<{ id: string, taskId: string, answer: (result: CallResult) => void }> = []
  const seen = { stored: [] as string[], givenUp: [] as string[], dispatchers: [] as string[], exits: [] as string[], failed: [] as string[] }
  const desk: Desk = {
    requests,
    load: async () => true,
    started () {},
    complete: async (request, _, isFault) => { seen.stored.push(`${request.envelope?.messageId}${isFault ? ' fault' : ''}`) },
    giveUp: async (request, why) => { seen.givenUp.push(`${request.envelope?.messageId}: ${why}`) },
    putBack: request => { requests.putBack(request) },
  }
  const connect = (task: TaskInfo): SoapCaller => ({
    call: ({ messageId = '' }, { signal }) => new Promise<CallResult>(resolve => {
      calls.push({ id: messageId, taskId: task.id, answer: resolve })
      signal.addEventListener('abort', () => resolve({ outcome: 'aborted' }), { once: true })
    }),
    close: async () => {},
  })
  const pool = new DispatcherPool({
    desk,
    connect,
    keepsOrder,
    hasReply: () => true,
    exit: async ({ id }) => { seen.exits.push(id); return true },
    limits: {
      maxConcurrentCalls: capacity,
      prefetch,
      operationTimeoutMs: 1000,
      resendLimit,
      maxUncounted,
      initializationTimeoutMs: 60_000,
      taskFateTimeoutMs: 5000,
      cancelGraceMs: 15_000,
      retryPeriodMs: 300_000
    },
    clock,
    failed: error => { throw error },
    changed: (event, { id }) => seen.dispatchers.push(`${event} ${id}`),
    hostFailed: ({ id }) => seen.failed.push(id),
    wantsChanged () {},
    log: silent,
  })
  const tell = async (id: string, state: TaskState, exit?: TaskInfo['exit']): Promise<void> => {
    pool.taskStateChanged([{ id, sessionId: '7', node: `n${id}`, machineName: 'm', state, capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '', ...(exit === undefined ? {} : { exit }) }])
    await settle()
  }
  const put = (messageId: string): BrokerRequest => {
    const request: BrokerRequest = { clientKey: 'c', seq: 1, tries: 0, envelope: envelope(messageId) }
    requests.put(request)
    return request
  }
  const close = async (): Promise<void> => { await Promise.all([pool.close(0), clock.advance(0)]) }
  return { pool, requests, calls, seen, clock, tell, put, close }
}
type Bench = ReturnType<typeof bench>

/** How each outcome comes about: the first call, which is `m-1`'s, comes to this. */
const HAPPENS: Record<Outcome, (at: Bench) => Promise<void>> = {
  serviceAskedRetry: async ({ calls }) => { calls[0]?.answer(read(retryOperationFault(envelope('m-1'), { reason: 'no licence', retryCount: 0, lastFailedServiceId: '' }), true, { bodyElement: '{http://www.w3.org/2003/05/soap-envelope}Fault' })) },
  timedOut: async ({ calls }) => { calls[0]?.answer({ outcome: 'timedOut' }) },
  badReply: async ({ calls }) => { calls[0]?.answer({ outcome: 'accepted' }) },
  instanceFailed: async ({ calls, tell }) => { calls[0]?.answer(hangUp); await tell('1', 'Failed', segfault) },
  waitedAtHost: async ({ calls, tell }) => { for (const call of calls) call.answer(hangUp); await tell('1', 'Failed', segfault) },
  taskTakenAway: async ({ calls, tell }) => { calls[0]?.answer(hangUp); await tell('1', 'Canceled') },
  preempted: async ({ calls }) => { calls[0]?.answer(read(toFault(new SoaError('Service_Preempted', { left: 0 }), { soap: 12, relatesTo: 'm-1' }), true, { bodyElement: '{http://www.w3.org/2003/05/soap-envelope}Fault' })) },
  instanceUnreachable: async ({ calls }) => { calls[0]?.answer({ outcome: 'unreachable', error: new Error('ECONNREFUSED') }) },
  initializeFailed: async ({ calls }) => { calls[0]?.answer(read(toFault(new SoaError('Service_InitializeFailed', { why: 'no such module' }), { soap: 12, relatesTo: 'm-1' }), true, { bodyElement: '{http://www.w3.org/2003/05/soap-envelope}Fault' })) },
}

for (const outcome of Object.keys(OUTCOMES) as Outcome[]) {
  const { costs, when } = OUTCOMES[outcome]
  t.test(`failure matrix: ${outcome}: ${when}`, async t => {
    const at = bench(outcome === 'waitedAtHost' ? { prefetch: 1 } : {})
    if (outcome === 'waitedAtHost') at.put('ahead')
    const request = at.put('m-1')
    await at.tell('1', 'Running')
    const sent = at.calls.length
    await HAPPENS[outcome](at)
    await settle()
    t.same([request.tries, request.uncounted], [costs === 'try' ? 1 : 0, costs === 'uncountedTry' ? 1 : 0], 'what it costs')
    t.same(at.seen.givenUp, [], 'it goes back to the queue')
    t.match(request.history ?? [], costs === 'nothing' ? [] : [{ taskId: '1', node: 'n1', outcome }], 'and is remembered')
    // Back in the queue: another instance gets it, or the same one where the slot goes on.
    await at.tell('2', 'Running')
    await at.clock.advance(1000)
    t.ok(at.calls.slice(sent).some(({ id }) => id === 'm-1'), 'it runs again')
    const goesOn = ['serviceAskedRetry', 'timedOut', 'badReply', 'instanceUnreachable'].includes(outcome)
    t.equal(at.seen.dispatchers.includes('removed 1'), !goesOn, goesOn ? 'its dispatcher goes on' : 'its dispatcher takes no more')
    t.same(at.seen.failed, outcome === 'initializeFailed' ? ['1'] : [])
    await at.close()
  })
}

t.test('failure matrix: replies are stored as the response, faults of the service too, and are never tried again; one with the preemption header stops the dispatcher', async t => {
  const fault = serviceFault({ soap: 12, blame: 'sender', reason: 'no such option' })
  const replies: Record<keyof typeof REPLIES, CallResult> = { answered: read(envelope('r')), faulted: read(fault, true), leaving: read(envelope('r'), false, { preemption: 0 }) }
  for (const kind of Object.keys(REPLIES) as Array<keyof typeof REPLIES>) {
    const at = bench()
    const request = at.put('m-1')
    await at.tell('1', 'Running')
    at.calls[0]?.answer(replies[kind])
    await settle()
    t.same(at.seen.stored, [REPLIES[kind].isFault ? 'm-1 fault' : 'm-1'], kind)
    t.same([request.tries, request.uncounted], [0, undefined])
    t.equal(at.seen.dispatchers.includes('removed 1'), !REPLIES[kind].keepsInstance)
    await at.tell('1', 'Canceling')
    t.same(at.seen.exits, ['1'], 'and when its task is canceled it is told to exit')
    await at.close()
  }
})

t.test('failure matrix: a fault of the limit: the last try\'s reason; a service\'s own reason is kept', async t => {
  const at = bench({ resendLimit: 2 })
  at.put('m-1')
  await at.tell('1', 'Running')
  for (let run = 0; run < 3; run++) {
    t.equal(at.calls.length, run + 1)
    at.calls[run]?.answer(read(retryOperationFault(envelope('m-1'), { reason: `disk full ${run}`, retryCount: 0, lastFailedServiceId: '' }), true, { bodyElement: '{http://www.w3.org/2003/05/soap-envelope}Fault' }))
    await settle()
  }
  t.same(at.seen.givenUp, ['m-1: disk full 2'])
  await at.close()
})

t.test('failure matrix: of a host that dies, the calls that it can have been working on lose a try and those behind them do not', async t => {
  const at = bench({ capacity: 2, prefetch: 1 })
  const requests = ['a', 'b', 'c', 'd'].map(at.put)
  await at.tell('1', 'Running')
  t.equal(at.calls.length, 4, 'two execute, two wait at the host')
  for (const { answer } of at.calls) answer(hangUp)
  await at.tell('1', 'Failed', segfault)
  t.same(requests.map(({ tries }) => tries), [1, 1, 0, 0])
  t.same(requests.map(({ uncounted = 0 }) => uncounted), [0, 0, 1, 1])
  t.same(requests.map(({ isSuspect = false }) => isSuspect), [true, true, false, false], 'only those who can have done it are suspected')
  await at.close()
})

t.test('failure matrix: whoever waits at the host moves up when one before it is answered, and not when one behind it is', async t => {
  const at = bench({ capacity: 1, prefetch: 2 })
  const requests = new Map(['a', 'b', 'c'].map(id => [id, at.put(id)]))
  await at.tell('1', 'Running')
  at.calls.find(({ id }) => id === 'a')?.answer(read(envelope('r')))
  await settle()
  requests.set('d', at.put('d'))
  await settle()
  t.same(at.calls.map(({ id }) => id), ['a', 'b', 'c', 'd'])
  for (const { answer } of at.calls.slice(1)) answer(hangUp)
  await at.tell('1', 'Finished', exit0)
  t.same(['b', 'c', 'd'].map(id => requests.get(id)?.tries), [1, 0, 0], 'b was executing, and its host ended by itself')
  await at.close()
})

t.test('failure matrix: the news of the host\'s end may come before its connections break', async t => {
  const at = bench({ capacity: 1, prefetch: 1 })
  const [first, second] = ['a', 'b'].map(at.put)
  await at.tell('1', 'Running')
  await at.tell('1', 'Failed', segfault)
  t.same([first?.tries, first?.uncounted, second?.tries, second?.uncounted], [1, 0, 0, 1])
  await at.close()
})

t.test('failure matrix: hosts of another make work in an order that is theirs: each call may have been the one', async t => {
  const at = bench({ capacity: 1, prefetch: 1, keepsOrder: false })
  const requests = ['a', 'b'].map(at.put)
  await at.tell('1', 'Running')
  for (const { answer } of at.calls) answer(hangUp)
  await at.tell('1', 'Failed', segfault)
  t.same(requests.map(({ tries }) => tries), [1, 1])
  await at.close()
})

t.test('failure matrix: a request whose hosts are taken away ten times is given up, and says what it went through', async t => {
  const at = bench({ resendLimit: 3, maxUncounted: 10 })
  const request = at.put('m-1')
  for (let host = 1; host <= 10; host++) {
    t.same(at.seen.givenUp, [], `host ${host}`)
    await at.tell(String(host), 'Running')
    at.calls.at(-1)?.answer(hangUp)
    await at.tell(String(host), host % 2 === 0 ? 'Canceled' : 'Failed') // canceled, or its node lost
  }
  t.match(at.seen.givenUp, [/^m-1: /])
  t.same([request.tries, request.uncounted], [0, 10])
  t.same(request.history?.map(({ taskId, outcome }) => `${taskId} ${outcome}`), Array.from({ length: 10 }, (_, i) => `${i + 1} taskTakenAway`))
  await at.close()
})

t.test('failure matrix: a limit of 0 runs a request once: whatever may have run is given up, what has not goes on', async t => {
  for (const outcome of Object.keys(OUTCOMES) as Outcome[]) {
    const at = bench({ resendLimit: 0, ...(outcome === 'waitedAtHost' ? { prefetch: 1 } : {}) })
    if (outcome === 'waitedAtHost') at.put('ahead')
    at.put('m-1')
    await at.tell('1', 'Running')
    await HAPPENS[outcome](at)
    await settle()
    t.equal(at.seen.givenUp.some(line => line.startsWith('m-1: ')), OUTCOMES[outcome].mayHaveRun, outcome)
    await at.close()
  }
  const at = bench({ resendLimit: 0 })
  at.put('m-1')
  await at.tell('1', 'Running')
  await at.close()
  t.match(at.seen.givenUp, [/^m-1: /], 'the dispatcher is closed with the call in flight')
})
