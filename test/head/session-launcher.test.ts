import t from 'tap'
import { SessionLauncher, type LauncherNeeds } from '../../broker/head/session-launcher.ts'
import type { SessionView } from '../../broker/contract.ts'
import { Turns } from '../../broker/head/turns.ts'
import type { Worker } from '../../broker/head/worker-link.ts'
import { silent } from '../../core/log.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import { ManualClock, settle } from '../clock.ts'

const WANTED = { sessionId: '7', service: 'Pooled', durable: false, state: 'Starting', poolSize: 1, createdAt: '2026-01-01T00:00:00.000Z' } as unknown as SessionRecord
const VIEW = { sessionId: '7', state: 'Running', brokerUniqueId: 'u', tasks: [] } as unknown as SessionView

/** A head where session 7 of a pool is allocated, and somebody else's create of it was faster. */
function late (): { launcher: SessionLauncher, turns: Turns, clock: ManualClock, now: { record: SessionRecord | undefined } } {
  const clock = new ManualClock()
  const turns = new Turns()
  const now: { record: SessionRecord | undefined } = { record: WANTED }
  const worker = { id: 'm/1', link: { view: async () => VIEW } } as unknown as Worker
  const launcher = new SessionLauncher({
    sessions: { get: async () => now.record, create: async () => false },
    allocations: { get: async () => WANTED, remove: async () => {} },
    pool: { sessions: 0 },
    raising: { locate: async () => worker },
    shortage: async () => undefined,
    turns,
    limits: { maxSessions: 10 },
    clock,
    log: silent,
  } as unknown as LauncherNeeds)
  return { launcher, turns, clock, now }
}

t.test('pool: a session that another caller of this head is starting is waited for, in its turn', async t => {
  const { launcher, turns, now } = late()
  let begun = (): void => {}
  const begins = new Promise<void>(resolve => { begun = resolve })
  const beginning = turns.run('7', () => begins)
  const seen = launcher.start('7', false)
  await settle()
  now.record = { ...WANTED, state: 'Running', worker: 'm/1' }
  begun()
  await beginning
  t.match(await seen, { isReused: true, view: { brokerUniqueId: 'u' } })
})

t.test('pool: one that another head is starting is looked at until it takes requests', async t => {
  const { launcher, clock, now } = late()
  const seen = launcher.start('7', false)
  await clock.advance(1000)
  now.record = { ...WANTED, state: 'Running', worker: 'm/1' }
  await clock.advance(1000)
  t.match(await seen, { isReused: true, view: { brokerUniqueId: 'u' } })
})

t.test('pool: one that never gets started is given up, and one whose start failed is said to be none', async t => {
  const stuck = late()
  const never = t.rejects(stuck.launcher.start('7', false), { fault: 'Broker_BrokerUnavailable', message: /7/ })
  await stuck.clock.advance(31_000)
  await never
  const gone = late()
  const seen = t.rejects(gone.launcher.start('7', false), { fault: 'InvalidSessionId', message: /7/ })
  await gone.clock.advance(1000)
  gone.now.record = undefined
  await gone.clock.advance(1000)
  await seen
})
