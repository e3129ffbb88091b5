import t from 'tap'
import { SessionRaising } from '../../broker/head/session-raising.ts'
import { Turns } from '../../broker/head/turns.ts'
import { silent } from '../../core/log.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import { ManualClock } from '../clock.ts'

/** Sessions of one worker that dies and dies; what is raised is put at it again. */
function raisingOf (t: { teardown: (end: () => unknown) => unknown }, record: SessionRecord) {
  const end = new AbortController()
  t.teardown(() => end.abort())
  let now = record
  const raised: string[] = []
  const raising = new SessionRaising({
    sessions: {
      ofWorker: async () => now.worker === undefined ? [] : [now],
      get: async () => now,
      update: async (_, change) => (now = { ...now, ...change }),
      create: async () => false,
      list: async () => ({ items: [] }),
      countByState: async () => ({}),
      remove: async () => {},
    },
    pool: {
      take: async () => { throw new Error('nobody is taken here') },
      settled () {},
      release () {},
      find: async () => undefined,
      servedBy: () => undefined,
      doubt: async () => {},
    } as unknown as ConstructorParameters<typeof SessionRaising>[0]['pool'],
    demand: { remove: async () => {} },
    purgeQueues: async () => {},
    raiseLater: async id => { raised.push(id); now = { ...now, state: 'Running', worker: 'm/1' } },
    turns: new Turns(),
    limits: { raiseTimeoutMs: 1000 },
    clock: new ManualClock(),
    log: silent,
    signal: end.signal,
  })
  return { died: (why: string) => raising.workerDied('m/1', why), raised, session: () => now }
}

const record: SessionRecord = { sessionId: '7', service: 'S', durable: true, isAlone: true, priority: 2000, settings: {}, environment: {}, state: 'Running', worker: 'm/1', brokerUniqueId: 'u', createdAt: '2026-01-01T00:00:00Z' }

t.test('raising: a custom broker that ends its worker by itself is raised three times, then its session fails and says why', async t => {
  const { died, raised, session } = raisingOf(t, record)
  for (let n = 0; n < 4; n++) await died('exit code 1')
  t.same(raised, ['7', '7', '7'])
  t.match(session(), { state: 'Failed', worker: undefined, why: 'its custom broker has ended its worker 4 times, the last with exit code 1' })
})

t.test('raising: a worker that is killed is no fault of the custom broker in it, and one that serves others too is none of anybody', async t => {
  const killed = raisingOf(t, record)
  for (let n = 0; n < 8; n++) await killed.died('signal SIGKILL')
  t.equal(killed.raised.length, 8)
  const shared = raisingOf(t, { ...record, isAlone: false })
  for (let n = 0; n < 8; n++) await shared.died('exit code 1')
  t.equal(shared.raised.length, 8)
})
