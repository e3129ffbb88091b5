import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import t from 'tap'
import { SessionCounters } from '../../broker/worker/counters.ts'
import { SessionFigures } from '../../broker/worker/figures.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { serviceFault } from '../../wire/soap/fault.ts'
import { ManualClock, settle } from '../clock.ts'
import { FLUSH, never, openSession, reading, request, type TaskNews } from './open-session.ts'

const OPS = ['send', 'send', 'flush', 'answer', 'answer', 'answer', 'fault', 'timeout', 'break', 'start', 'start', 'kill', 'cancelTask', 'purge', 'call', 'wait', 'read', 'replay', 'remove'] as const
type Step = readonly [op: (typeof OPS)[number], n: number]

/** One random run; after every step the identities of [broker-behaviour] 9.1 hold. */
async function run (durable: boolean, steps: readonly Step[]): Promise<void> {
  const news: TaskNews = new EventEmitter()
  const clock = new ManualClock()
  const calls: Array<{ sent: Envelope, taskId: string, resolve: (result: CallResult) => void }> = []
  const { session, store, client } = await openSession({
    durable,
    clock,
    instances: 0,
    news,
    settings: { messageResendLimit: 1, maxUncountedTries: 2, multiEmissionDelayTime: 50, messageThrottleStartThreshold: 100_000 },
    connect: ({ id: taskId }) => ({
      call: (sent, { signal }) => new Promise<CallResult>(resolve => {
        const call = { sent, taskId, resolve: (result: CallResult) => { const at = calls.indexOf(call); if (at >= 0) calls.splice(at, 1); resolve(result) } }
        calls.push(call)
        signal.addEventListener('abort', () => call.resolve({ outcome: 'aborted' }), { once: true })
      }),
      close: async () => {},
    }),
  })
  const running: string[] = []
  let [ids, tasks] = [0, 0]
  let grown = session.counters.grown()
  let floor = { total: 0, processed: 0, replyFetched: 0, deadLettered: 0 }
  const tell = (id: string, state: TaskState, more: Partial<TaskInfo> = {}): void => {
    news.emit('tasks', [{ id, sessionId: '7', node: 'n', machineName: 'm', state, capacity: 2, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '', ...more }])
  }
  const pick = <T>(from: readonly T[], n: number): T | undefined => from[n % Math.max(1, from.length)]
  const do_ = async ([op, n]: Step): Promise<void> => {
    const id = `c${n % 3}`
    const call = pick(calls, n)
    const task = pick(running, n)
    switch (op) {
      case 'send': await client(id).accept(request(++ids), -1, never); return
      case 'flush': if (client(id).queue.uncommitted > 0) await client(id).flush(client(id).queue.uncommitted, FLUSH); return
      case 'answer': call?.resolve({ outcome: 'answered', reading: reading({ ...call.sent, action: 'urn:EchoResponse' }) }); return
      case 'fault': call?.resolve({ outcome: 'answered', reading: reading(serviceFault({ soap: 12, blame: 'sender', reason: 'no' }), true) }); return
      case 'timeout': call?.resolve({ outcome: 'timedOut' }); return
      case 'break': call?.resolve({ outcome: 'broken', error: new Error('gone') }); return
      case 'start': if (running.length < 3) { running.push(`1-${++tasks}`); tell(`1-${tasks}`, 'Running') } return
      case 'kill': case 'cancelTask':
        if (task === undefined) return
        running.splice(running.indexOf(task), 1)
        tell(task, op === 'kill' ? 'Failed' : 'Canceled', op === 'kill' ? { exit: { code: 1, signal: null, stderr: '', why: 'exit code 1' } } : {})
        return
      case 'purge': await session.purge(id); return
      case 'call': session.call(client(id), request(++ids, { userData: undefined }), never).catch(() => undefined); return
      case 'wait': await clock.advance(n * 20); return
      case 'read': {
        const { queue } = client(id)
        if (queue.responses === 0) return
        const enough = new AbortController()
        const reading = client(id).pull(n % 2 === 0 ? 'Begin' : 'Current', 1, '', { maxBytes: 1e9, signal: enough.signal, end: () => undefined }).catch(() => undefined)
        await settle(3)
        enough.abort()
        await reading
        return
      }
      case 'replay': case 'remove': {
        const letter = pick((await session.letters.page(new URLSearchParams())).items, n)
        if (letter !== undefined) await (op === 'replay' ? session.letters.replay(letter.id).catch(() => undefined) : session.letters.remove(letter.id))
      }
    }
  }
  const check = async (): Promise<void> => {
    const view = session.counters.view()
    const { total, processed, processing, queued, outstanding, faulted, purgedTotal, purgedProcessed, purgedFaulted, directlyReplied, replyFetched, deadLettered } = view
    const say = (what: string): Error => new Error(`${what}: ${JSON.stringify(view)}`)
    if (total !== processed + processing + queued) throw say('total = processed + processing + queued')
    if (outstanding !== total - processed - purgedTotal + purgedProcessed) throw say('outstanding = total − processed − purgedTotal + purgedProcessed')
    if (Object.values(view).some(count => !(count >= 0))) throw say('nothing is negative')
    if (directlyReplied > processed || replyFetched > processed || faulted > processed) throw say('parts of processed')
    for (const name of ['total', 'processed', 'replyFetched', 'deadLettered'] as const) if (view[name] < floor[name]) throw say(`${name} went down from ${floor[name]}`)
    floor = { total, processed, replyFetched, deadLettered }
    const now = session.counters.grown()
    for (const [name, value] of Object.entries(now)) if (value < grown[name as keyof typeof grown]) throw say(`${name}, which is scraped, went down from ${grown[name as keyof typeof grown]} to ${value}`)
    grown = now
    const kept = await store.purged()
    if (kept.total + session.counters.droppedCalls !== purgedTotal || kept.processed !== purgedProcessed || kept.faulted !== purgedFaulted) throw say(`the store's purged counters are ${JSON.stringify(kept)}`)
    if (await store.deadLettered() !== deadLettered) throw say('dead letters ever')
    const clients = await store.load()
    const faults = clients.reduce((sum, { faults }) => sum + faults, 0)
    if (directlyReplied === 0 && faulted !== faults + purgedFaulted) throw say(`the store has ${faults} faults`)
  }
  try {
    for (const step of steps) { await do_(step); await settle(8); await check() }
    // At rest: everything that can be answered is.
    for (const id of ['c0', 'c1', 'c2']) await do_(['flush', Number(id.slice(1))])
    await do_(['start', 0])
    for (let turn = 0; turn < 1000 && (session.counters.outstanding > 0 || session.letters.running > 0 || session.counters.processing > 0); turn++) {
      await do_(['answer', 0])
      await settle(3)
      await clock.advance(calls.length > 0 ? 0 : 1000)
      await check()
    }
    const { outstanding, processing, replaying } = session.counters.view()
    if (outstanding + replaying > 0 || processing > 0) throw new Error(`at rest: ${JSON.stringify(session.counters.view())}`)
  } finally {
    for (const call of [...calls]) call.resolve({ outcome: 'aborted' })
    const closing = session.close('destroyed')
    await clock.advance(0)
    await closing
  }
}

for (const durable of [true, false]) {
  t.test(`counters (${durable ? 'durable' : 'interactive'}): the identities hold at every step, whatever happens`, async t => {
    const step = fc.tuple(fc.constantFrom(...OPS), fc.nat(20))
    const result = await fc.check(fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), steps => run(durable, steps)), { numRuns: Number(process.env.COUNTER_RUNS ?? 30) })
    if (!result.failed) { t.pass(`${result.numRuns} runs`); return }
    const error = result.errorInstance
    t.fail(error instanceof Error ? error.message : String(error), { seed: result.seed, path: result.counterexamplePath ?? '', shortest: (result.counterexample?.[0] ?? []).map(([op, n]) => `${op} ${n}`) })
  })
}

t.test('counters: calls a second are taken over the last seconds, whenever one looks; a call\'s duration over the life of the broker', async t => {
  const clock = new ManualClock()
  const counters = new SessionCounters(clock)
  t.same([counters.callsPerSecond, counters.callDurationMs], [0, 0])
  for (let i = 0; i < 100; i++) { await clock.advance(100); counters.took(30) }
  t.ok(Math.abs(counters.callsPerSecond - 10) < 0.5, `ten a second: ${counters.callsPerSecond}`)
  await clock.advance(777)
  t.ok(counters.callsPerSecond > 7 && counters.callsPerSecond < 10, `fewer in a while without one: ${counters.callsPerSecond}`)
  await clock.advance(10_000)
  t.equal(counters.callsPerSecond, 0)
  t.equal(counters.callDurationMs, 30)
  counters.took(60)
  t.ok(counters.callDurationMs > 30 && counters.callDurationMs < 31)
  await clock.advance(3_600_000)
  counters.took(30)
  t.ok(counters.callsPerSecond > 0 && counters.callsPerSecond <= 1, `an hour later: ${counters.callsPerSecond}`)
})

t.test('figures: what a worker tells heads is exact after a known run, counts a raised session\'s past once, and stays when sessions end', async t => {
  const figures = new SessionFigures()
  let calls = 0
  // The third call takes too long at first, the fifth request is answered by a fault, and the seventh is not flushed.
  const answer = (sent: Envelope): CallResult => {
    calls++
    if (calls === 3) return { outcome: 'timedOut' }
    return sent.messageId === 'urn:uuid:5' ? { outcome: 'answered', reading: reading(serviceFault({ soap: 12, blame: 'sender', reason: 'no' }), true) } : { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) }
  }
  const clock = new ManualClock()
  const first = await openSession({ durable: true, clock, answer })
  figures.opened(first.session)
  for (let n = 1; n <= 6; n++) await first.client('a').accept(request(n), -1, never)
  await first.client('a').flush(6, FLUSH)
  await clock.advance(5000)
  await first.client('c').accept(request(7), -1, never)
  const { grown, now } = figures.view().Echo ?? {}
  t.match(grown, { received: 7, flushed: 6, stored: 6, faults: 1, retried: 1, direct: 0, deadLetters: 0, refused: 0, discarded: 0 })
  t.ok((grown?.storeBatches ?? 0) > 0)
  t.match(now, { sessions: 1, queued: 1, processing: 0, running: 1 }, 'an unflushed request is outstanding too')
  first.session.fail(new Error('over')) // a memory store forgets when it is closed: the next broker takes it as this one left it
  figures.ended(first.session)
  figures.ended(first.session)
  t.match(figures.view(), { Echo: { grown: { received: 7, stored: 6, faults: 1 }, now: { sessions: 0, queued: 0, running: 0 } } }, 'it has ended, and its work stays')

  const again = await openSession({ durable: true, clock, store: first.store, record: { state: 'Suspended' } })
  t.equal(again.session.counters.view().total, 7, 'its counters begin with what the store knows')
  figures.opened(again.session)
  t.match(figures.view(), { Echo: { grown: { received: 7, stored: 6, faults: 1 }, now: { sessions: 1 } } }, 'and what was told is not told twice')
  await again.client('b').accept(request(8), -1, never)
  await again.client('b').endRequests(1, FLUSH)
  await clock.advance(1000)
  t.match(figures.view(), { Echo: { grown: { received: 8, flushed: 7, stored: 7, faults: 1 } } })
  const end = again.session.close('destroyed')
  await clock.advance(0)
  await end
  figures.ended(again.session)
  t.match(figures.view(), { Echo: { grown: { received: 8, flushed: 7, stored: 7, faults: 1 }, now: { sessions: 0 } } })
})

t.test('counters: a session that is raised begins with what its store knows, purged clients too', async t => {
  const first = await openSession({ durable: true })
  for (const id of ['a', 'b']) {
    await first.client(id).accept(request(1), -1, never)
    await first.client(id).endRequests(1, FLUSH)
  }
  await settle(10)
  await first.session.purge('a')
  const before = first.session.counters.view()
  t.match(before, { total: 2, processed: 2, purgedTotal: 1, purgedProcessed: 1, outstanding: 0 })
  // Memory stores forget when they are closed: the next broker takes it as one that crashed left it.
  const second = await openSession({ durable: true, store: first.store })
  const { total, processed, faulted, purgedTotal, purgedProcessed, purgedFaulted, outstanding, queued } = before
  t.match(second.session.counters.view(), { total, processed, faulted, purgedTotal, purgedProcessed, purgedFaulted, outstanding, queued })
  first.session.fail(new Error('over'))
  await second.session.close('destroyed')
})
