import { cutText } from '../../core/cut-text.ts'
import type { Clock } from '../../core/clock.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { TraceFacts } from '../../store/trace-facts.ts'
import type { Desk } from './dispatcher.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { Outcome, Verdict } from './retry.ts'
import type { Run, RunPlace, TraceRow } from './trace-row.ts'

/** Responses from one place through another that were handed to a reader. */
interface Page { readonly from: number, through: number, readonly at: number }

const RUNS_KEPT = 20
const FLUSHES_KEPT = 1000
const FAILED_STORED = 5
const WHY_KEPT = 200

/**
 * What became of the latest messages of a session: rows are written as requests go their way, and read only when somebody asks. At most `most` rows; what is
 * still under way stays beyond that. A request that has had no run yet has no row: its BrokerRequest has its times, and a million that wait cost nothing here.
 */
export class SessionTrace {
  readonly most: number
  readonly #clock: Clock
  readonly #isDurable: boolean
  readonly #isKept: (request: BrokerRequest) => boolean
  /** A ring: `#next` is the oldest one once it is full. */
  readonly #ring: TraceRow[] = []
  #next = 0
  /** By client, the places of each page that a reader got, as they lay side by side. */
  readonly #pages = new Map<string, Page[]>()
  readonly #places = new Map<string, RunPlace>()
  /** By client, the latest flushes: everything up to `seq` may run since then. */
  readonly #flushes = new Map<string, Array<{ seq: number, at: number }>>()
  /** Rows that are out of the ring and under way. */
  readonly #lingering = new Set<TraceRow>()
  /** Rows that went to make room for later ones. */
  forgotten = 0

  /** @param most setting traceMessages, 1 … @param isKept its client was not purged */
  constructor (most: number, clock: Clock, isDurable: boolean, isKept: (request: BrokerRequest) => boolean) {
    this.most = most
    this.#isDurable = isDurable
    this.#isKept = isKept
    this.#clock = clock
  }

  get now (): number { return this.#clock.now() }

  added ({ id, node, address }: TaskInfo): void { this.#places.set(id, { taskId: id, node, address }) }
  removed (taskId: string): void { this.#places.delete(taskId) }

  flushed (clientKey: string, seq: number): void {
    const flushes = this.#flushes.get(clientKey)
    const flush = { seq, at: this.now }
    if (flushes === undefined) { this.#flushes.set(clientKey, [flush]); return }
    flushes.push(flush)
    if (flushes.length > 2 * FLUSHES_KEPT) flushes.splice(0, FLUSHES_KEPT)
  }

  /** Undefined: it was not flushed, or before this broker had the session. */
  flushedAt (clientKey: string, seq: number): number | undefined { return this.#flushes.get(clientKey)?.find(flush => flush.seq >= seq)?.at }

  started (request: BrokerRequest, taskId: string): void {
    if (request.isPart === true) return
    const row = request.trace ??= this.#rowOf(request)
    if (row === undefined || taskId === '') return // a custom broker answers it itself
    row.runs.push({ place: this.#places.get(taskId) ?? { taskId, node: undefined, address: undefined }, nth: ++row.tries, at: this.#clock.now() })
    if (row.runs.length > RUNS_KEPT) row.runs.shift()
  }

  /** A service instance answered. */
  replied ({ trace: row }: BrokerRequest, taskId: string): void {
    if (row === undefined) return
    const run = lastRun(row, taskId)
    if (run !== undefined) run.endedAt = this.#clock.now()
  }

  /** A run came to nothing. */
  failed ({ trace: row }: BrokerRequest, taskId: string, outcome: Outcome, action: Verdict['action'], why: string): void {
    const run = row && lastRun(row, taskId)
    if (run === undefined) return
    run.endedAt = this.#clock.now()
    run.outcome = outcome
    run.action = action
    run.why = why
  }

  /** It has its response, which is on its way to whoever keeps it or waits for it. */
  completed (request: BrokerRequest, isFault: boolean, isGivenUp: boolean): void {
    if (request.isPart === true) return
    const row = request.trace ??= this.#rowOf(request)
    if (row === undefined) return
    if (row.repliedAt !== undefined && request.replayOf === undefined) return // of two responses the first counts
    if (isGivenUp && row.runs.some(run => run.endedAt === undefined)) return // the request lives on with another run
    row.repliedAt = this.#clock.now()
    row.isFault = isFault
    row.isGivenUp = isGivenUp
    if (row.seq === 0 || request.replayOf !== undefined) row.answeredAt = row.repliedAt
  }

  /** What is stored with the response; of an interactive session, whose store goes with this broker, nothing. */
  facts ({ trace: row }: BrokerRequest): TraceFacts | undefined {
    if (!this.#isDurable || row?.repliedAt === undefined) return undefined
    const { receivedAt, queuedAt, runs, tries, repliedAt } = row
    const answering = row.isGivenUp ? undefined : runs.findLast(run => run.outcome === undefined)
    const failed = runs.length === 1 && answering !== undefined
      ? undefined
      : runs.flatMap(({ place: { taskId, node = '' }, endedAt, outcome, why = '' }) => outcome === undefined || endedAt === undefined ? [] : [{ taskId, node, at: isoTime(endedAt), outcome, why: cutText(why, WHY_KEPT) }]).slice(-FAILED_STORED)
    return { receivedAt, queuedAt, dispatchedAt: answering?.at, repliedAt, tries, taskId: answering?.place.taskId, node: answering?.place.node, failed: failed?.length === 0 ? undefined : failed }
  }

  /** The store has the response. */
  answered ({ trace: row }: BrokerRequest, at: number, isFault: boolean): void {
    if (row === undefined) return
    row.answeredAt = this.#clock.now()
    row.isFault = isFault // a custom broker may have changed it
    row.at = at
    if (this.#lingering.delete(row)) this.forgotten++
  }

  /** These were handed to a reader. */
  delivered (clientKey: string, responses: readonly StoredResponse[]): void {
    if (responses.length === 0) return
    const now = this.now
    let pages = this.#pages.get(clientKey)
    if (pages === undefined) this.#pages.set(clientKey, pages = [])
    let last: Page | undefined
    for (const { at } of responses) {
      if (last?.through === at - 1) last.through = at
      else pages.push(last = { from: at, through: at, at: now })
    }
    if (pages.length > 2 * this.most) pages.splice(0, pages.length - this.most)
  }

  /** When a reader first got the response at this place, and how often; undefined: never, or that is forgotten. */
  deliveryOf ({ clientKey, at }: TraceRow): { at: number, times: number } | undefined {
    if (at === undefined) return undefined
    const pages = this.#pages.get(clientKey)?.filter(({ from, through }) => from <= at && at <= through) ?? []
    return pages[0] === undefined ? undefined : { at: pages[0].at, times: pages.length }
  }

  /** The client was purged. */
  forget (clientKey: string): void {
    for (const row of this.rows()) if (row.clientKey === clientKey && row.seq !== 0) row.isGone = true
    this.#pages.delete(clientKey)
    this.#flushes.delete(clientKey)
    for (const row of this.#lingering) if (row.clientKey === clientKey) this.#lingering.delete(row)
  }

  find (clientKey: string, seq: number): TraceRow | undefined {
    for (const row of this.rows()) if (row.seq === seq && row.clientKey === clientKey) return row
    return undefined
  }

  /** Latest first run first. */
  * rows (): Generator<TraceRow> {
    const { length } = this.#ring
    for (let i = 1; i <= length; i++) {
      const row = this.#ring[(this.#next - i + length) % length] as TraceRow
      if (!row.isGone) yield row
    }
    yield * this.#lingering
  }

  #rowOf (request: BrokerRequest): TraceRow | undefined {
    const { clientKey, seq, envelope, receivedAt, queuedAt } = request
    if (seq !== 0 && !this.#isKept(request)) return undefined // purged before its first run
    const known = request.replayOf === undefined ? undefined : this.find(clientKey, seq)
    if (known !== undefined) return known
    const row: TraceRow = { clientKey, seq, messageId: envelope?.messageId ?? '', action: envelope?.action ?? '', receivedAt, queuedAt, runs: [], tries: 0, isFault: false, isGivenUp: false, isGone: false }
    this.#keep(row)
    return row
  }

  #keep (row: TraceRow): void {
    if (this.#ring.length < this.most) { this.#ring.push(row); return }
    const oldest = this.#ring[this.#next] as TraceRow
    this.#ring[this.#next] = row
    this.#next = (this.#next + 1) % this.most
    if (oldest.seq !== 0 && oldest.answeredAt === undefined && !oldest.isGone) this.#lingering.add(oldest)
    else this.forgotten++
  }
}

const lastRun = (row: TraceRow, taskId: string): Run | undefined => row.runs.findLast(run => run.endedAt === undefined && run.place.taskId === taskId)

/** ISO 8601 with ms. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()

/** The desk that dispatchers see, with every step of a request written down. */
export function tracedDesk (desk: Desk, trace: SessionTrace): Desk {
  return {
    requests: desk.requests,
    load: request => desk.load(request),
    started (request, taskId) { trace.started(request, taskId); desk.started(request, taskId) },
    ended (request, taskId, ms) {
      if (ms !== undefined) trace.replied(request, taskId)
      desk.ended?.(request, taskId, ms)
    },
    failed (request, taskId, outcome, action, why) { trace.failed(request, taskId, outcome, action, why) },
    complete (request, response, isFault, isMade, changes) {
      trace.completed(request, isFault, false)
      return desk.complete(request, response, isFault, isMade, changes)
    },
    giveUp (request, why, taskId) {
      trace.completed(request, true, true)
      return desk.giveUp(request, why, taskId)
    },
    putBack: request => desk.putBack(request),
  }
}
