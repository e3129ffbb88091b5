import { SoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { MessageStore } from '../../store/message-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { MessageState, TraceAnswer, TraceLine, TraceSummary } from '../contract.ts'
import type { ClientQueue } from './client-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { Desk } from './dispatcher.ts'
import { isoTime, SessionTrace, tracedDesk } from './trace.ts'
import type { TraceRow } from './trace-row.ts'
import { search, withoutScheme, type Extent, type Hit, type Hits, type Wanted } from './trace-search.ts'
import { lineOf, messageOf, spreads, stateOf, type Known } from './trace-view.ts'

interface Needs {
  sessionId: string
  /** Setting traceMessages; 0: what the store has is all that is known. */
  most: number
  isDurable: boolean
  store: MessageStore
  /** By lower-case client id. */
  queues: ReadonlyMap<string, ClientQueue>
  counters: SessionCounters
  clock: Clock
}

type Rows = ReadonlyMap<string, TraceRow>

const STATES: readonly MessageState[] = ['received', 'waiting', 'running', 'answered', 'faulted']
const MOST_LISTED = 1000
const MOST_TEXT = 10_000
const IN_A_LIST = 10
/** Matches of a message id that are named. */
const NAMED = 5

/** What became of a session's messages, for whoever asks (`soa trace`): from this broker's own rows, and for what they do not reach from the store. */
export class Tracing {
  /** Undefined: nothing is traced. */
  readonly log: SessionTrace | undefined
  readonly #needs: Needs
  readonly #since: number

  constructor (needs: Needs) {
    this.#needs = needs
    this.#since = needs.clock.now()
    this.log = needs.most === 0 ? undefined : new SessionTrace(needs.most, needs.clock, needs.isDurable, ({ clientKey, owner }) => needs.queues.get(clientKey) === owner)
  }

  over (desk: Desk): Desk { return this.log === undefined ? desk : tracedDesk(desk, this.log) }

  poolChanged (event: 'added' | 'removed', task: TaskInfo): void {
    if (event === 'added') this.log?.added(task)
    else this.log?.removed(task.id)
  }

  /** `GET /sessions/{id}/trace`. @throws InvalidArgument, noMessage */
  async answer (query: URLSearchParams, signal: AbortSignal): Promise<TraceAnswer> {
    const { sessionId } = this.#needs
    const text = (name: string): string | undefined => {
      const value = query.get(name) ?? undefined
      if (value !== undefined && (value === '' || value.length > MOST_TEXT)) throw new SoaError('InvalidArgument', { argument: name, why: `1 to ${MOST_TEXT} characters, not ${value.length}` })
      return value
    }
    const [message, userData, cursor] = [text('message'), text('userData'), text('cursor')]
    const client = query.get('client')?.toLowerCase()
    const state = query.get('state') ?? undefined
    const limit = Number(query.get('limit') ?? (userData === undefined && state === undefined && client === undefined ? IN_A_LIST : 100))
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED) throw new SoaError('InvalidArgument', { argument: 'limit', why: `1 to ${MOST_LISTED}, not ${query.get('limit') ?? ''}` })
    if (state !== undefined && !STATES.includes(state as MessageState)) throw new SoaError('InvalidArgument', { argument: 'state', why: `${STATES.join(', ')}, not "${state.slice(0, 100)}"` })
    const clients = client === undefined ? [...this.#needs.queues.keys()] : [client]
    if (message !== undefined) return { sessionId, message: messageOf(await this.#one(message, clients, signal)) }
    if (userData === undefined && state === undefined && client === undefined && cursor === undefined) return { sessionId, ...await this.#session(limit, signal) }
    return { sessionId, ...await this.#items({ userData, isExact: query.get('exact') === 'true', state: state as MessageState | undefined }, clients, { limit, cursor, signal }) }
  }

  async #items (wanted: Wanted, clients: readonly string[], options: Extent): Promise<Pick<TraceAnswer, 'items' | 'looked' | 'next'>> {
    let rows = this.#index()
    const { hits, looked, next } = await search(this.#needs.store, clients, wanted, hit => wanted.state === undefined || stateOf(this.#known(hit, rows)) === wanted.state, options)
    rows = this.#index() // as they are now, for what was found
    return { items: hits.map(hit => lineOf(this.#known(hit, rows))), looked, next }
  }

  /** Rows by seq and client, for the hits of one answer. */
  #index (): Rows { return new Map(Array.from(this.log?.rows() ?? [], row => [`${row.seq} ${row.clientKey}`, row])) }

  #known ({ clientKey, head }: Hit, rows: Rows): Known {
    const { queues, isDurable } = this.#needs
    const queue = queues.get(clientKey)
    const row = rows.get(`${head.seq} ${clientKey}`)
    return {
      clientId: queue?.displayId ?? clientKey,
      row,
      delivery: row && this.log?.deliveryOf(row),
      head,
      isQueued: !isDurable || head.seq <= (queue?.committedSeq ?? 0),
      queuedAt: this.log?.flushedAt(clientKey, head.seq),
    }
  }

  /** The same with what the store has of it, its user data above all. */
  async #withHead (row: TraceRow): Promise<Known> {
    const { queues, store } = this.#needs
    const { clientKey, seq, at } = row
    const of = at === undefined ? 'requests' as const : 'responses' as const
    const head = seq === 0 ? undefined : (await store.scan(clientKey, of, (at ?? seq) + 1, 1, {})).items.find(item => item.seq === seq)
    return { clientId: queues.get(clientKey)?.displayId ?? clientKey, row, head, isQueued: true, queuedAt: undefined, delivery: this.log?.deliveryOf(row) }
  }

  /** The message whose id this is, or begins so. A whole id that this broker has traced is looked up nowhere else. */
  async #one (id: string, clients: readonly string[], signal: AbortSignal): Promise<Known> {
    const { sessionId, store } = this.#needs
    const wanted = withoutScheme(id)
    const rows = [...this.log?.rows() ?? []].filter(({ clientKey, messageId }) => clients.includes(clientKey) && withoutScheme(messageId).startsWith(wanted))
    const isWhole = (messageId: string): boolean => messageId === id || withoutScheme(messageId) === wanted
    const whole = rows.filter(({ messageId }) => isWhole(messageId))
    if (whole.length === 1) return await this.#withHead(whole[0] as TraceRow)
    const known = this.#index()
    const isNew = ({ clientKey, head }: Hit): boolean => !known.has(`${head.seq} ${clientKey}`)
    const { hits } = wanted === '' ? { hits: [] } : await search(store, clients, { messageId: wanted }, isNew, { limit: NAMED + 1, most: Infinity, signal })
    const found = [
      ...rows.map(row => ({ messageId: row.messageId, known: () => this.#withHead(row) })),
      ...hits.map(hit => ({ messageId: hit.head.messageId, known: async () => this.#known(hit, known) })),
    ]
    const exact = found.filter(({ messageId }) => isWhole(messageId))
    const [only, ...others] = exact.length > 0 ? exact : found
    if (only === undefined) throw new SoaError('noMessage', { sessionId, messageId: id.slice(0, 200) })
    if (others.length === 0) return await only.known()
    const ids = [...new Set([only, ...others].map(({ messageId }) => messageId))]
    throw new SoaError('InvalidArgument', {
      argument: 'message',
      why: ids.length === 1 ? `several clients sent ${ids[0] ?? ''}: say which (client)` : `more than one message id begins with "${id.slice(0, 200)}": ${ids.slice(0, NAMED).join(', ')}${ids.length > NAMED ? ', …' : ''}`,
    })
  }

  async #session (limit: number, signal: AbortSignal): Promise<Required<Pick<TraceAnswer, 'summary' | 'latest' | 'slowest' | 'failed'>>> {
    const { counters, clock, queues, store } = this.#needs
    const rows = [...this.log?.rows() ?? []]
    const { processing, queued, processed, faulted } = counters.view()
    const counts = { waiting: queued, running: processing, answered: processed - faulted, faulted }
    const summary: TraceSummary = { traced: rows.length, most: this.log?.most ?? 0, forgotten: this.log?.forgotten ?? 0, since: isoTime(this.#since), ...counts, ...spreads(rows) }
    const lines = async (some: TraceRow[]): Promise<TraceLine[]> => (await Promise.all(some.slice(0, limit).map(row => this.#withHead(row)))).map(lineOf)
    // Nothing has run here: what an earlier broker did lies in the store.
    if (rows.length === 0) {
      const clients = [...queues.keys()]
      const [answered, faults] = await Promise.all((['answered', 'faulted'] as const).map(state => search(store, clients, { state }, () => true, { limit, signal }))) as [Hits, Hits]
      const all = answered.hits.map(hit => lineOf(this.#known(hit, new Map())))
      const failed = faults.hits.map(hit => lineOf(this.#known(hit, new Map())))
      return { summary, latest: all, slowest: [...all].sort((a, b) => (b.totalMs ?? 0) - (a.totalMs ?? 0)), failed }
    }
    const now = clock.now()
    const took = ({ receivedAt, queuedAt, runs, answeredAt }: TraceRow): number => (answeredAt ?? now) - (queuedAt ?? receivedAt ?? runs[0]?.at ?? now)
    return {
      summary,
      latest: await lines(rows),
      slowest: await lines([...rows].sort((a, b) => took(b) - took(a))),
      failed: await lines(rows.filter(row => row.isFault || row.runs.some(run => run.outcome !== undefined))),
    }
  }
}
