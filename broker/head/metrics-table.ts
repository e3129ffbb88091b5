import type { Figures } from '../contract.ts'
import { NODE_STATES } from '../../store/node.states.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import type { SessionState } from '../../store/session-store.ts'
import type { FigureBook } from './worker-figures.ts'

/** What the metrics are taken from: read once for each scrape. */
export interface Seen {
  readonly sessions: Partial<Record<SessionState, number>>
  readonly nodes: readonly NodeView[]
  readonly workers: number
  readonly workerSessions: number
  readonly figures: ReturnType<FigureBook['view']>
}

export interface Metric {
  readonly kind: 'gauge' | 'counter'
  /** head: of the workers that this head looks after, so that the sum over all heads is the cluster's. cluster: the same at each head. */
  readonly of: 'head' | 'cluster'
  readonly labels: readonly string[]
  readonly help: string
  readonly read: (seen: Seen) => ReadonlyArray<readonly [labels: Readonly<Record<string, string>>, value: number]>
}

const SESSION_STATES: readonly SessionState[] = ['Starting', 'Running', 'Suspended', 'Finished', 'Failed', 'Canceled']

const one = (of: Metric['of'], help: string, value: (seen: Seen) => number): Metric => ({ kind: 'gauge', of, labels: [], help, read: seen => [[{}, value(seen)]] })
const ofNodes = (help: string, value: (node: NodeView) => number): Metric => one('cluster', help, ({ nodes }) => nodes.reduce((sum, node) => sum + value(node), 0))
const grown = (name: keyof Figures['grown'], help: string): Metric => ({
  kind: 'counter', of: 'head', labels: ['service'], help, read: ({ figures }) => [...figures].map(([service, { grown }]) => [{ service }, grown[name]] as const)
})
const now = (name: keyof Figures['now'], help: string): Metric => ({
  kind: 'gauge', of: 'head', labels: ['service'], help, read: ({ figures }) => [...figures].map(([service, { now }]) => [{ service }, now?.[name] ?? 0] as const)
})

/** `/metrics` beside what prom-client says of every process, and docs/operations.md. No label is of a session or client: their number has no bound. */
export const METRICS: Readonly<Record<string, Metric>> = {
  soa_sessions: {
    kind: 'gauge', of: 'cluster', labels: ['state'], help: 'Sessions by state', read: ({ sessions }) => SESSION_STATES.map(state => [{ state }, sessions[state] ?? 0] as const)
  },
  soa_nodes: {
    kind: 'gauge', of: 'cluster', labels: ['state'], help: 'Nodes by state', read: ({ nodes }) => Object.keys(NODE_STATES).map(state => [{ state }, nodes.filter(node => node.state === state).length] as const)
  },
  soa_slots: ofNodes('Slots of all nodes', node => node.cores),
  soa_slots_busy: ofNodes('Slots in use', node => node.busy),
  soa_tasks: ofNodes('Tasks on all nodes', node => node.tasks),
  soa_workers: one('head', 'Broker workers of this machine that this head looks after', ({ workers }) => workers),
  soa_worker_sessions: one('head', 'Sessions at these workers', ({ workerSessions }) => workerSessions),

  soa_served_sessions: now('sessions', 'Sessions that have a broker now'),
  soa_requests_queued: now('queued', 'Requests taken that wait for a service instance'),
  soa_requests_processing: now('processing', 'Requests at a service instance'),
  soa_dead_letters_replaying: now('replaying', 'Dead letters that are being run again'),
  soa_dispatchers: now('dispatchers', 'Dispatchers that give requests to a service instance'),
  soa_instances_starting: now('starting', 'Service instances that are placed and do not run yet'),
  soa_instances_running: now('running', 'Service instances that run'),
  soa_instances_leaving: now('leaving', 'Service instances that finish what they have, or are canceled'),
  soa_instances_blocked: now('blocked', 'Running service instances that cannot be reached, left alone for endpointNotFoundRetryPeriod'),

  soa_requests_received_total: grown('received', 'Requests taken, flushed or not, and calls answered in the same exchange'),
  soa_requests_flushed_total: grown('flushed', 'Requests that a Flush or EndRequests answered for'),
  soa_requests_discarded_total: grown('discarded', 'Unflushed requests that were forgotten, since their client began its batch again or left'),
  soa_requests_refused_total: grown('refused', 'Requests that were not taken, since their session had been canceled, had failed or was ending'),
  soa_requests_retried_total: grown('retried', 'Runs that came to nothing and whose request went back to the queue'),
  soa_requests_resent_total: grown('resent', 'Requests sent to one more instance since the first one took long (multiEmissionDelayTime)'),
  soa_responses_stored_total: grown('stored', 'Responses stored, faults among them'),
  soa_responses_direct_total: grown('direct', 'Calls answered in the same exchange, faults among them'),
  soa_responses_fetched_total: grown('fetched', 'Responses that readers have got, each once'),
  soa_responses_duplicate_total: grown('duplicates', 'Responses that came when the request had one'),
  soa_faults_total: grown('faults', 'Responses that were faults, of the service or of the broker'),
  soa_dead_letters_total: grown('deadLetters', 'Requests that were given up'),
  soa_dead_letters_answered_total: grown('mended', 'Dead letters that were run again and answered without a fault'),
  soa_calls_total: grown('calls', 'Runs that a service instance answered'),
  soa_call_seconds_total: grown('callSeconds', 'Seconds that service instances worked on them; divided by soa_calls_total: a call on average'),
  soa_store_batches_total: grown('storeBatches', 'Batches of responses that the store has taken'),
  soa_store_seconds_total: grown('storeSeconds', 'Seconds that the store took over them; divided by soa_store_batches_total: a write on average')
}

/** The table of docs/operations.md. */
export function metricsMarkdown (): string {
  const rows = Object.entries(METRICS).map(([name, { kind, of, labels, help }]) => `| \`${name}\` | ${kind} | ${labels.join(', ')} | ${of} | ${help} |`)
  return ['| name | kind | label | of | what it is |', '| --- | --- | --- | --- | --- |', ...rows].join('\n')
}
