import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { toFault } from '../../wire/soap/fault.ts'
import type { CallResult, SoapCaller } from '../../transport/channel.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import { hostFailureText } from '../../broker/worker/host-failure.ts'
import { DispatcherPool, TASK_REACTIONS } from '../../broker/worker/dispatcher-pool.ts'
import type { Desk } from '../../broker/worker/dispatcher.ts'
import type { BrokerRequest } from '../../broker/worker/broker-request.ts'
import { RequestQueue } from '../../broker/worker/request-queue.ts'
import { ManualClock, settle } from '../clock.ts'

const envelope = (messageId: string): Envelope => ({ v: 1, soap: 12, enc: 'utf8', action: 'urn:a', messageId, otherHeaders: [], prefixesInScope: [], body: Buffer.from('<a/>') })
const task = (id: string, state: TaskState, more: Partial<TaskInfo> = {}): TaskInfo =>
  ({ id, sessionId: '7', node: 'n1', machineName: 'n1', state, capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '2026-01-01T00:00:00Z', ...more })

/** A service instance at the pool's door: calls wait until the test answers them, or the signal cuts them. */
function bench (limits: Partial<{ prefetch: number, resendLimit: number }> = {}, options: { takesExit?: boolean } = {}) {
  const exits: string[] = []
  const wants: Array<{ leaving: readonly string[], avoided: readonly string[] }> = []
  const requests = new RequestQueue()
  const events: string[] = []
  const calls: Array<{ messageId: string | undefined, answer: (result: CallResult) => void }> = []
  const done: string[] = []
  const givenUp: string[] = []
  const clock = new ManualClock()
  const desk: Desk = {
    requests,
    load: async () => true,
    started () {},
    complete: async request => { done.push(request.envelope?.messageId ?? '') },
    giveUp: async (request, why) => { givenUp.push(`${request.envelope?.messageId}: ${why}`) },
    putBack: request => { requests.putBack(request) },
  }
  const connect = (): SoapCaller => ({
    call: (sent, { signal }) => new Promise<CallResult>(resolve => {
      calls.push({ messageId: sent.messageId, answer: resolve })
      signal.addEventListener('abort', () => resolve({ outcome: 'aborted' }), { once: true })
    }),
    close: async () => {},
  })
  const pool: DispatcherPool = new DispatcherPool({
    desk,
    connect,
    hasReply: () => false,
    exit: async ({ id }) => { exits.push(id); return options.takesExit ?? true },
    limits: {
      maxConcurrentCalls: 0,
      prefetch: limits.prefetch ?? 0,
      operationTimeoutMs: 1000,
      resendLimit: limits.resendLimit ?? 3,
      initializationTimeoutMs: 60_000,
      taskFateTimeoutMs: 5000,
      cancelGraceMs: 15_000,
      retryPeriodMs: 300_000,
    },
    clock,
    failed: error => { throw error },
    changed: (event, { id }) => events.push(`${event} ${id}`),
    hostFailed: ({ id }, inARow) => events.push(`failed ${id}, ${inARow} in a row`),
    wantsChanged: () => { wants.push({ leaving: pool.leaving, avoided: pool.avoided }) },
    log: silent,
  })
  const put = (messageId: string): BrokerRequest => {
    const request: BrokerRequest = { clientKey: 'c', seq: 1, tries: 0, envelope: envelope(messageId) }
    requests.put(request)
    return request
  }
  return { pool, requests, events, calls, done, givenUp, clock, put, exits, wants }
}

const reply: CallResult = { outcome: 'answered', reading: { envelope: envelope('r'), batchId: -1, mustUnderstand: [], isFault: false, addressed: true } }

t.test('dispatcher pool: the seed\'s sequence adds one dispatcher and removes one, and its requests are back in the queue', async t => {
  const { pool, requests, events, calls, put } = bench()
  const request = put('m-1')
  for (const state of ['Running', 'Running'] as const) pool.taskStateChanged([task('1', state)])
  await settle()
  t.equal(calls.length, 1, 'one slot took the request')
  for (const state of ['Canceling', 'Canceled', 'Finishing', 'Finished', 'Running'] as const) pool.taskStateChanged([task('1', state)])
  await settle()
  t.same(events, ['added 1', 'removed 1'])
  t.equal(requests.length, 1)
  t.equal(await requests.take(new AbortController().signal), request)
  t.equal(request.tries, 0, 'a canceled task costs no try')
})

t.test('dispatcher pool: what each task state does', async t => {
  const expected: Record<TaskState, [whenNew: string[], whenRunning: string[]]> = {
    Queued: [[], ['added 1']],
    Dispatching: [[], ['added 1']],
    Running: [['added 1'], ['added 1']],
    Canceling: [[], ['added 1', 'removed 1']],
    Finishing: [[], ['added 1', 'removed 1']],
    Finished: [[], ['added 1', 'removed 1']],
    Failed: [[], ['added 1', 'removed 1']],
    Canceled: [[], ['added 1', 'removed 1']],
  }
  t.same(Object.keys(expected).sort(), Object.keys(TASK_REACTIONS).sort())
  for (const state of Object.keys(expected) as TaskState[]) {
    const fresh = bench()
    fresh.pool.taskStateChanged([task('1', state)])
    await settle()
    t.same(fresh.events, expected[state][0], `${state} of an unknown task`)
    const running = bench()
    running.pool.taskStateChanged([task('1', 'Running')])
    running.pool.taskStateChanged([task('1', state)])
    await settle()
    t.same(running.events, expected[state][1], `${state} after Running, nothing in flight`)
    await Promise.all([fresh.pool.close(0), running.pool.close(0), fresh.clock.advance(0), running.clock.advance(0)])
  }
})

t.test('dispatcher pool: Canceling takes nothing new, lets the call in flight finish, and then the dispatcher goes', async t => {
  const { pool, requests, events, calls, done, put } = bench()
  put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  pool.taskStateChanged([task('1', 'Canceling')])
  put('m-2')
  await settle()
  t.same(events, ['added 1'], 'still there: the host answers')
  calls[0]?.answer(reply)
  await settle()
  t.same(done, ['m-1'])
  t.same(events, ['added 1', 'removed 1'])
  t.equal(requests.length, 1, 'the new request waits for another instance')
})

t.test('dispatcher pool: hosts that end before they take a call are told with their count, which a host that runs sets back', async t => {
  const { pool, events, clock } = bench()
  const exit = { code: 1, signal: null, stderr: 'no such module', why: 'exit code 1 before it accepted connections' }
  pool.taskStateChanged([task('1', 'Dispatching'), task('1', 'Failed', { exit }), task('1', 'Failed', { exit }), task('2', 'Failed', { exit })])
  pool.taskStateChanged([task('3', 'Running'), task('3', 'Failed', { exit }), task('4', 'Failed', { exit }), task('5', 'Failed')])
  await settle()
  t.same(events, ['failed 1, 1 in a row', 'failed 2, 2 in a row', 'added 3', 'failed 4, 1 in a row', 'removed 3'], 'a lost node (5) says nothing of the service')
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: a host that never answers after Canceling is cut when the grace has passed', async t => {
  const { pool, requests, events, clock, put } = bench()
  put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  pool.taskStateChanged([task('1', 'Canceling')])
  await clock.advance(14_999)
  t.same(events, ['added 1'])
  await clock.advance(1)
  t.same(events, ['added 1', 'removed 1'])
  t.equal(requests.length, 1)
})

t.test('dispatcher pool: capacity × (1 + prefetch) calls are in flight at a time', async t => {
  const { pool, calls, clock, put } = bench({ prefetch: 1 })
  for (let i = 1; i <= 10; i++) put(`m-${i}`)
  pool.taskStateChanged([task('1', 'Running', { capacity: 2 })])
  await settle()
  t.equal(calls.length, 4)
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: a host that ends by itself while executing costs a try, a lost node does not', async t => {
  for (const [exit, tries] of [[{ code: 139, signal: null, stderr: '', why: 'exit code 139' }, 1], [undefined, 0]] as const) {
    const { pool, calls, put } = bench()
    const request = put('m-1')
    pool.taskStateChanged([task('1', 'Running')])
    await settle()
    calls[0]?.answer({ outcome: 'broken', error: new Error('socket hang up') })
    await settle()
    pool.taskStateChanged([task('1', 'Failed', exit === undefined ? {} : { exit })])
    await settle()
    t.equal(request.tries, tries, exit === undefined ? 'node lost' : exit.why)
  }
})

t.test('dispatcher pool: a host that exits 0 in the middle of a call without being asked costs a try, one that was asked to go does not', async t => {
  for (const [asked, tries] of [[[], 1], [['Canceling'], 0]] as const) {
    const { pool, calls, put } = bench()
    const request = put('m-1')
    pool.taskStateChanged([task('1', 'Running')])
    await settle()
    for (const state of asked) pool.taskStateChanged([task('1', state)])
    calls[0]?.answer({ outcome: 'broken', error: new Error('socket hang up') })
    pool.taskStateChanged([task('1', 'Finished', { exit: { code: 0, signal: null, stderr: '', why: 'exit code 0' } })])
    await settle()
    t.equal(request.tries, tries, asked.length === 0 ? 'by itself' : 'asked to')
  }
})

t.test('dispatcher pool: a broken connection whose task lives on counts when its fate is not known in time', async t => {
  const { pool, calls, clock, done, put } = bench()
  const request = put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  calls[0]?.answer({ outcome: 'broken', error: new Error('socket hang up') })
  await clock.advance(5000)
  t.equal(request.tries, 1)
  t.equal(calls.length, 2, 'the same instance gets the next call')
  calls[1]?.answer(reply)
  await settle()
  t.same(done, ['m-1'])
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: past the limit the request is given up with the reason, and the instance is kept', async t => {
  const { pool, calls, givenUp, clock, put } = bench({ resendLimit: 1 })
  put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  calls[0]?.answer({ outcome: 'timedOut' })
  await settle()
  calls[1]?.answer({ outcome: 'timedOut' })
  await settle()
  t.same(givenUp, ['m-1: no answer within 1000 ms (serviceOperationTimeout)'])
  put('m-2')
  await settle()
  t.equal(calls.length, 3)
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: nobody listening costs no try; after the start-up time the instance is left alone for the retry period, then asked again', async t => {
  const { pool, calls, events, clock, put } = bench()
  const request = put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  const refuse = (): void => { for (const call of calls.splice(0)) call.answer({ outcome: 'unreachable', error: new Error('ECONNREFUSED') }) }
  for (let second = 0; second < 80; second++) { refuse(); await clock.advance(1000) }
  refuse()
  await settle()
  t.same(events, ['added 1', 'removed 1', 'failed 1, 1 in a row'])
  t.match(pool.loads, [{ id: '1', isBlocked: true, inFlight: 0 }], 'it counts as blocked')
  t.equal(request.tries, 0)
  await clock.advance(300_000)
  t.same(events.slice(3), ['added 1'])
  t.match(pool.loads, [{ id: '1', isBlocked: false }])
  await Promise.all([pool.close(0), clock.advance(0)])
})

const segfault = { code: 139, signal: null, stderr: '\u001b[31mpanic\u001b[0m: table is gone\n', why: 'exit code 139 (128 + SIGSEGV)' }

t.test('dispatcher pool: a request that is given up since its host died says how it died, with its last lines', async t => {
  const { pool, calls, givenUp, put } = bench({ resendLimit: 0 })
  put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  calls[0]?.answer({ outcome: 'broken', error: new Error('socket hang up') })
  await settle()
  pool.taskStateChanged([task('1', 'Failed', { exit: segfault })])
  await settle()
  t.same(givenUp, ['m-1: service host: exit code 139 (128 + SIGSEGV); its last lines on stderr:\npanic: table is gone'])
  t.match(pool.ended, [{ id: '1', state: 'Failed', exit: segfault }], 'and the task is still shown')
  t.same(pool.tasks, [])
})

t.test('a host\'s last lines: of a Python traceback a fault has the exception and its place, of anything else the last 2 KiB', async t => {
  const said = (stderr: string): string => hostFailureText({ code: 1, signal: null, why: 'exit code 1', stderr })
  const traceback = (exception: string): string => `Traceback (most recent call last):\n  File "/srv/book.py", line 90, in <module>\n    main()\n    ~~~~^^\n  File "/srv/book.py", line 41, in price\n    raise ValueError(trade)\n${exception}\n`
  const place = '(/srv/book.py, line 41, in price)'
  t.equal(said(traceback('ValueError: no such trade')), `service host: exit code 1; ValueError: no such trade ${place}`)
  t.equal(said(traceback('KeyboardInterrupt')), `service host: exit code 1; KeyboardInterrupt ${place}`)
  t.equal(said(`loading the book\n${traceback('contoso.errors.Gone: 7')}bye\n`), `service host: exit code 1; contoso.errors.Gone: 7 ${place}; its last lines on stderr:\nloading the book\nbye`)
  t.equal(said(`${traceback("KeyError: 'a'")}\nDuring handling of the above exception, another exception occurred:\n\n${traceback('RuntimeError: no book')}`), `service host: exit code 1; RuntimeError: no book ${place}`)
  const deep = Array.from({ length: 30 }, (_, i) => `  File "/srv/deep.py", line ${i}, in f\n    f()\n`).join('')
  t.equal(said(`    f()\n${deep}RecursionError: maximum recursion depth exceeded\n`), 'service host: exit code 1; RecursionError: maximum recursion depth exceeded (/srv/deep.py, line 29, in f)', 'its beginning may be lost')
  t.equal(said('  File "/srv/x.py", line 3\n    foo(\n       ^\nSyntaxError: \'(\' was never closed'), "service host: exit code 1; SyntaxError: '(' was never closed (/srv/x.py, line 3)")
  t.equal(said('a File "x", line 3 is no traceback'), 'service host: exit code 1; its last lines on stderr:\na File "x", line 3 is no traceback')
  t.equal(said(''), 'service host: exit code 1')
  const long = said(`${'x'.repeat(5000)} the end`)
  t.ok(long.length < 2200 && long.endsWith('xxx the end') && long.includes('stderr:\n… xxx'), 'the end is what counts')
  t.ok(said(traceback(`ValueError: ${'y'.repeat(5000)}`)).length < 1300)
})

t.test('dispatcher pool: of the tasks that ended by themselves the latest ten are shown, and none that was asked to end', async t => {
  const { pool } = bench()
  pool.taskStateChanged(Array.from({ length: 12 }, (_, n) => task(`1-${n}`, 'Failed', { exit: segfault })))
  const asked = { code: 0, signal: null, stderr: '', why: 'exit code 0' }
  pool.taskStateChanged([task('2-1', 'Running'), task('2-1', 'Canceling'), task('2-1', 'Canceled', { exit: asked }), task('3-1', 'Running'), task('3-1', 'Finished', { exit: asked })])
  await settle()
  t.same(pool.ended.map(({ id }) => id), ['1-3', '1-4', '1-5', '1-6', '1-7', '1-8', '1-9', '1-10', '1-11', '3-1'])
})

t.test('dispatcher pool: idle instances leave by their Exit, the youngest first; one that said yes gets no dispatcher again', async t => {
  const { pool, events, exits, clock, put, calls } = bench()
  pool.taskStateChanged(['5-2', '5-10', '4-1'].map(id => task(id, 'Running')))
  await settle()
  const left = pool.leave(1)
  await settle()
  await left
  t.same(exits.sort(), ['5-10', '5-2'])
  pool.taskStateChanged([task('5-10', 'Running')])
  t.equal(pool.size, 1)
  put('m-1')
  await settle()
  t.equal(calls.length, 1, 'the one that stays takes requests')
  pool.taskStateChanged([task('5-10', 'Finished', { exit: { code: 0, signal: null, stderr: '', why: 'exit code 0' } })])
  t.same(pool.ended, [], 'it was asked to')
  t.same(events.filter(event => event.startsWith('added')).length, 3)
  await clock.advance(16_000)
  t.same(events.at(-1), 'added 5-2', 'one that still runs after its grace is needed again')
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: an instance that does not take Exit is let go of, and gets requests again when nobody canceled it', async t => {
  const { pool, events, exits, clock } = bench({}, { takesExit: false })
  pool.taskStateChanged([task('1-1', 'Running')])
  await settle()
  await Promise.all([pool.leave(0), settle()])
  t.same(exits, ['1-1'])
  t.same(pool.leaving, ['1-1'])
  await clock.advance(16_000)
  t.same(pool.leaving, [])
  t.same(events, ['added 1-1', 'removed 1-1', 'added 1-1'])
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: one that has got a call meanwhile does not leave', async t => {
  const { pool, exits, put, clock } = bench()
  pool.taskStateChanged([task('1-1', 'Running'), task('1-2', 'Running')])
  put('m-1')
  await settle()
  const busy = pool.loads.find(({ inFlight }) => inFlight > 0)?.id
  const going = pool.retire(['1-1', '1-2', '9-9'])
  await settle()
  t.same(await going, ['1-1', '1-2'].filter(id => id !== busy))
  t.same(exits, ['1-1', '1-2'].filter(id => id !== busy))
  await Promise.all([pool.close(0), clock.advance(0)])
})

for (const takesExit of [true, false]) {
  t.test(`dispatcher pool: on a draining node calls have all the time that they need, then the host ${takesExit ? 'is told to exit' : 'that takes no Exit is let go of'}`, async t => {
    const { pool, exits, calls, put, clock, done, wants } = bench({}, { takesExit })
    put('m-1')
    pool.taskStateChanged([task('1', 'Running')])
    await settle()
    pool.taskStateChanged([task('1', 'Finishing')])
    put('m-2')
    await clock.advance(3_600_000)
    t.same([pool.size, calls.length, exits], [1, 1, []], 'an hour later')
    calls[0]?.answer(reply)
    await settle()
    t.same(done, ['m-1'])
    t.same(exits, ['1'])
    await clock.advance(takesExit ? 15_999 : 0)
    t.same(pool.leaving, takesExit ? [] : ['1'])
    await clock.advance(1)
    t.same([pool.leaving, wants.length], [['1'], 1], 'one that took it and does not end is canceled too')
    await Promise.all([pool.close(0), clock.advance(0)])
  })
}

t.test('dispatcher pool: a canceled task is told to exit when its last call is answered', async t => {
  const { pool, exits, calls, put } = bench()
  put('m-1')
  pool.taskStateChanged([task('1', 'Running')])
  await settle()
  pool.taskStateChanged([task('1', 'Canceling')])
  await settle()
  t.same(exits, [])
  calls[0]?.answer(reply)
  await settle()
  t.same(exits, ['1'])
})

t.test('dispatcher pool: what a host died of has the next one alone, so that it costs nobody else a try', async t => {
  const { pool, calls, givenUp, done, clock, put } = bench({ resendLimit: 3 })
  const capacity = 4
  const [poison, ...others] = ['poison', 'a', 'b', 'c', 'd', 'e'].map(put)
  const flying = (): string[] => calls.map(({ messageId }) => messageId ?? '')
  for (let host = 1; givenUp.length === 0 && host < 20; host++) {
    pool.taskStateChanged([task(String(host), 'Running', { capacity })])
    // Everybody is answered but for the poison, which kills its host once nothing else can be answered.
    for (;;) {
      await settle()
      const at = calls.findIndex(({ messageId }) => messageId !== 'poison')
      if (at === -1 || (host === 1)) break
      calls.splice(at, 1)[0]?.answer(reply)
    }
    if (!flying().includes('poison')) { pool.taskStateChanged([task(String(host), 'Canceled')]); await settle(); continue }
    if (host > 1) t.same(flying(), ['poison'], `alone on host ${host}`)
    for (const call of calls.splice(0)) call.answer({ outcome: 'broken', error: new Error('socket hang up') })
    pool.taskStateChanged([task(String(host), 'Failed', { exit: segfault })])
    await settle()
  }
  t.match(givenUp, [/^poison: service host: exit code 139/])
  t.equal(poison?.tries, 4)
  t.ok(others.every(({ tries }) => tries <= 1), 'the others lost one try at most')
  pool.taskStateChanged([task('99', 'Running', { capacity })])
  for (let n = 0; done.length < 5 && n < 20; n++) { await settle(); for (const call of calls.splice(0)) call.answer(reply) }
  t.same([...new Set(done)].sort(), ['a', 'b', 'c', 'd', 'e'])
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: where a host has no service the session starts nothing for the retry period, and lets go of that host; whoever waits is told when nothing comes instead', async t => {
  const { pool, calls, events, clock, givenUp, put, wants } = bench({ resendLimit: 0 })
  const request = put('m-1')
  pool.taskStateChanged([task('1', 'Running'), task('2', 'Running', { node: 'n2' })])
  await settle()
  const fault = toFault(new SoaError('Service_InitializeFailed', { why: 'no licence' }), { soap: 12, relatesTo: 'm-1' })
  const refusal: CallResult = { outcome: 'answered', reading: { envelope: fault, batchId: -1, mustUnderstand: [], isFault: true, addressed: true } }
  calls[0]?.answer(refusal)
  await settle()
  t.same(events, ['added 1', 'added 2', 'removed 1', 'failed 1, 1 in a row'])
  t.same(wants.at(-1), { leaving: ['1'], avoided: ['n1'] })
  await clock.advance(5000)
  t.equal(events.length, 4, 'another one may do it')
  calls[1]?.answer(refusal)
  await settle()
  t.same(wants.at(-1), { leaving: ['1', '2'], avoided: ['n1', 'n2'] })
  await clock.advance(5000)
  t.equal(events.at(-1), 'failed 2, 3 in a row')
  t.same(givenUp, [])
  t.equal(request.tries, 0)
  pool.taskStateChanged([task('1', 'Canceling'), task('1', 'Canceled')])
  await clock.advance(300_000)
  t.same(pool.avoided, [], 'and is tried again')
  t.same(pool.leaving, ['2'])
  await Promise.all([pool.close(0), clock.advance(0)])
})

t.test('dispatcher pool: a node that could not be prepared is avoided', async t => {
  const { pool, events, clock, wants } = bench()
  pool.taskStateChanged([task('1', 'Failed', { exit: { code: 3, signal: null, stderr: '', why: 'prepareNodeCommandLine: exit code 3', isNodeUnfit: true } })])
  t.same(events, ['failed 1, 1 in a row'])
  t.same(wants, [{ leaving: [], avoided: ['n1'] }])
  await clock.advance(5000)
  t.same(events.at(-1), 'failed 1, 3 in a row')
  await Promise.all([pool.close(0), clock.advance(0)])
})
