import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { SessionStore } from '../../store/session-store.ts'
import { METRICS, type Seen } from './metrics-table.ts'
import type { Nodes } from './rest/cluster.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface MetricsNeeds {
  sessions: Pick<SessionStore, 'countByState'>
  pool: Pick<WorkerPool, 'workers' | 'sessions' | 'figures'>
  nodes: Pick<Nodes, 'nodes'>
  clock: Clock
  log: Logger
}

/** Nodes are read with all that a plan is made from, so for scrapes that come faster than this they are read once. */
const FRESH_MS = 2000

/** `/metrics` for Prometheus: METRICS, and what prom-client says of this process. A registry of its own, so that two heads in one process do not meet. */
export function metricsRoute (app: FastifyInstance, { sessions, pool, nodes, clock, log }: MetricsNeeds): void {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  let seen: Seen | undefined
  for (const [name, { kind, labels: labelNames, help, read }] of Object.entries(METRICS)) {
    const common = { name, help, labelNames, registers: [registry] }
    if (kind === 'gauge') {
      const gauge: Gauge = new Gauge({ ...common, collect () { gauge.reset(); for (const [labels, value] of rows()) gauge.set(labels, value) } })
    } else {
      // The sums are the brokers': they are shown as they are told, and told so that they never go down.
      const counter: Counter = new Counter({ ...common, collect () { counter.reset(); for (const [labels, value] of rows()) counter.inc(labels, value) } })
    }
    const rows = (): ReturnType<typeof read> => seen === undefined ? [] : read(seen)
  }

  const readNodes = fresh(clock, () => nodes.nodes())
  const look = async (): Promise<Seen> => {
    const [byState, allNodes, figures] = await Promise.all([sessions.countByState(), readNodes(), pool.figures()])
    return { sessions: byState, nodes: allNodes, workers: pool.workers.length, workerSessions: pool.sessions, figures }
  }
  // Whoever asks while it is being read gets the same.
  let reading: Promise<string> | undefined
  const read = (): Promise<string> => (reading ??= look().then(found => { seen = found; return registry.metrics() }).finally(() => { reading = undefined }))

  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    const text = await read().catch((err: unknown) => { log.warn({ err }, 'metrics could not be read'); throw err })
    return reply.type(registry.contentType).send(text)
  })
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
