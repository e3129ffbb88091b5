import t from 'tap'
import { SessionSweep } from '../../broker/head/session-sweep.ts'
import { silent } from '../../core/log.ts'
import type { SessionRecord, SessionState } from '../../store/session-store.ts'
import { ManualClock } from '../clock.ts'

const DAY_MS = 86_400_000
const record = (sessionId: string, state: SessionState, more: Partial<SessionRecord> = {}): SessionRecord =>
  ({ sessionId, service: 'S', durable: true, priority: 2000, settings: {}, environment: {}, state, createdAt: '2026-01-01T00:00:00Z', ...more })

function sweepOf (t: { teardown: (end: () => unknown) => unknown }, records: SessionRecord[], durableRetentionMs = 5 * DAY_MS) {
  const clock = new ManualClock()
  const timers = new Map<string, number>()
  const closed: string[] = []
  const end = new AbortController()
  t.teardown(() => end.abort())
  const sweep = new SessionSweep({
    sessions: { list: async () => ({ items: records }), get: async id => records.find(({ sessionId }) => sessionId === id) },
    raising: { recover: async () => ({ raised: 0, failed: 0 }) },
    launcher: { close: async id => { closed.push(id); return true } },
    timers: { get: async (_, id) => timers.get(id) },
    setTimer: async (_, id, at) => { timers.set(id, at) },
    endedRetentionMs: 3_600_000,
    durableRetentionMs,
    clock,
    log: silent,
    signal: end.signal
  })
  return { sweep, timers, closed, clock }
}

t.test('retention: what nobody serves gets a time, once; durable sessions days, ended ones an hour, those at work none', async t => {
  const { sweep, timers, clock } = sweepOf(t, [
    record('1', 'Suspended'), record('2', 'Canceled'), record('3', 'Failed'), record('4', 'Finished'), record('5', 'Failed', { durable: false }), record('6', 'Canceled', { durable: false }),
    record('7', 'Running', { worker: 'm/1' }), record('8', 'Canceled', { worker: 'm/1' }), record('9', 'Starting')
  ])
  const now = clock.now()
  await sweep.keepTime()
  const times = Object.fromEntries(timers)
  t.same(times, { 1: now + 5 * DAY_MS, 2: now + 5 * DAY_MS, 3: now + 5 * DAY_MS, 4: now + 3_600_000, 5: now + 3_600_000, 6: now + 3_600_000 })
  clock.jump(DAY_MS)
  await sweep.keepTime()
  t.same(Object.fromEntries(timers), times, 'the first time counts')
})

t.test('retention: when the time comes, only what is still wanted by nobody goes', async t => {
  const { sweep, closed } = sweepOf(t, [record('1', 'Suspended'), record('2', 'Running', { worker: 'm/1' })])
  for (const id of ['1', '2', '3']) await sweep.forget(id)
  t.same(closed, ['1'])
})

t.test('retention: 0 is for ever', async t => {
  const { sweep, timers } = sweepOf(t, [record('1', 'Suspended')], 0)
  await sweep.keepTime()
  t.equal(timers.size, 0)
})
