import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Gauge, Registry, type GaugeConfiguration } from 'prom-client'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { SessionState, SessionStore } from '../../store/session-store.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import type { Nodes } from './rest/cluster.ts'
import { SESSION } from './session.states.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface MetricsNeeds {
  sessions: Pick<SessionStore, 'list'>
  pool: Pick<WorkerPool, 'workers' | 'sessions'>
  nodes: Pick<Nodes, 'nodes'>
  clock: Clock
  log: Logger
}

/** Counting reads every record, so figures of the store are at most this old instead of being read for each scrape. */
const FRESH_MS = 2000

const SUMS: ReadonlyArray<[name: string, help: string, of: (node: NodeView) => number]> = [
  ['soa_slots', 'Slots of all nodes', node => node.cores],
  ['soa_slots_busy', 'Slots in use', node => node.busy],
  ['soa_tasks', 'Tasks on all nodes', node => node.tasks]
]

/** `/metrics` for Prometheus: figures of the cluster as this head sees them, and of its own process. A registry of its own, so that two heads in one process do not meet. */
export function metricsRoute (app: FastifyInstance, { sessions, pool, nodes, clock, log }: MetricsNeeds): void {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  const gauge = <L extends string>(config: GaugeConfiguration<L>): Gauge<L> => new Gauge(config)
  const states = Object.keys(SESSION) as SessionState[]
  const readSessions = fresh(clock, async () => Object.fromEntries(await Promise.all(states.map(async state => [state, await countOf(sessions, state)] as const))))
  const readNodes = fresh(clock, () => nodes.nodes())

  gauge({
    name: 'soa_sessions',
    help: 'Sessions by state',
    labelNames: ['state'],
    registers,
    async collect () { for (const [state, count] of Object.entries(await readSessions())) this.set({ state }, count) }
  })
  gauge({ name: 'soa_workers', help: 'Broker workers that this head looks after', registers, collect () { this.set(pool.workers.length) } })
  gauge({ name: 'soa_worker_sessions', help: 'Sessions at these workers', registers, collect () { this.set(pool.sessions) } })
  gauge({
    name: 'soa_nodes',
    help: 'Nodes by state',
    labelNames: ['state'],
    registers,
    async collect () {
      const all = await readNodes()
      for (const state of ['Online', 'Draining', 'Offline']) this.set({ state }, all.filter(node => node.state === state).length)
    }
  })
  for (const [name, help, of] of SUMS) {
    gauge({ name, help, registers, async collect () { this.set((await readNodes()).reduce((sum, node) => sum + of(node), 0)) } })
  }

  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    const text = await registry.metrics().catch((err: unknown) => { log.warn({ err }, 'metrics could not be read'); throw err })
    return reply.type(registry.contentType).send(text)
  })
}

async function countOf (sessions: Pick<SessionStore, 'list'>, state: SessionState): Promise<number> {
  let count = 0
  let cursor: string | undefined
  do {
    const page = await sessions.list({ state, cursor, limit: 1000 })
    count += page.items.length
    cursor = page.next
  } while (cursor !== undefined)
  return count
}

/** The last answer while it is fresh; one question at a time. */
function fresh<T> (clock: Clock, read: () => Promise<T>): () => Promise<T> {
  let last: { at: number, value: Promise<T> } | undefined
  return () => {
    if (last === undefined || clock.now() - last.at >= FRESH_MS) {
      const value = read()
      last = { at: clock.now(), value }
      value.catch(() => { last = undefined }) // a failure is told to who asked, and not kept
    }
    return last.value
  }
}
