import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { MessageStore, StateChange, StoredClient, StoredRequest, StoredResponse } from '../../store/message-store.ts'
import type { ClientView } from '../contract.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { CustomWork } from './custom-work.ts'
import { Intake, type CommitOptions, type Refusal } from './intake.ts'
import type { Settler } from './settler.ts'
import type { Throttle } from './throttle.ts'
import { Signal } from './signal.ts'
import type { SessionTrace } from './trace.ts'

export interface QueueNeeds {
  store: MessageStore
  isDurable: boolean
  requests: RequestQueue
  settler: Settler
  counters: SessionCounters
  /** Decides what becomes of requests before they are stored. */
  custom?: Pick<CustomWork, 'decides' | 'accept' | 'route' | 'takeChanges' | 'giveBack'> | undefined
  clock: Clock
  /** Undefined: traceMessages is 0. */
  trace?: SessionTrace | undefined
  /** Interactive: told of what was taken and not read yet. */
  throttle: Throttle
  /** A purged queue of the same client id, until its last row is gone from the store: its purge must not take rows of this one along. */
  predecessorGone?: Promise<void> | undefined
  /** Bytes of waiting requests that may stay in memory, all clients together. */
  cache: { used: number, readonly max: number }
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void }
}

/**
 * The queues of one ClientId: what waits and its responses ([broker-behaviour] 2.7, 3.3); how requests come in is its Intake's. It outlives the BrokerClient object
 * above it, which has the client's state and clocks.
 */
export class ClientQueue {
  readonly key: string
  readonly displayId: string
  readonly #needs: QueueNeeds
  readonly #intake: Intake
  #responses = 0
  #released = 0
  #faults = 0
  #fetched = 0
  #outstanding = 0
  /** Interactive: requests that were taken, less the responses that were acknowledged. */
  #unread = 0
  #isGone = false
  /** Responses on their way to the store. */
  #settling = 0
  /** Told when a request was kept, a response stored or the end came. */
  readonly changed = new Signal()

  constructor (needs: QueueNeeds, displayId: string, stored?: StoredClient) {
    this.#needs = needs
    this.displayId = displayId
    this.key = displayId.toLowerCase()
    this.#intake = new Intake({
      ...needs, key: this.key, displayId, owner: this, changed: this.changed, kept: request => this.#kept(request), flushed: batch => this.#flushed(batch), letGo: request => this.#letGo(request),
    })
    if (stored !== undefined) this.#recover(stored)
  }

  get committed (): number { return this.#intake.committed }
  get committedSeq (): number { return this.#intake.committedSeq }
  /** Something of it is flushed, for all that is known. */
  get isFlushed (): boolean { return this.#intake.isFlushed }
  get endOfMessages (): boolean { return this.#intake.endOfMessages }
  /** Place of the first response that is still kept. */
  get released (): number { return this.#released }
  get responses (): number { return this.#responses }
  get faults (): number { return this.#faults }
  get outstanding (): number { return this.#outstanding }
  get uncommitted (): number { return this.#intake.uncommitted.length }
  get total (): number { return this.#responses + this.#outstanding + (this.#needs.isDurable ? this.uncommitted : 0) }
  /** EOM received, something committed and nothing pending ([broker-behaviour] 3.1). */
  get isAllProcessed (): boolean { return this.endOfMessages && this.#outstanding === 0 }

  #recover (stored: StoredClient): void {
    const { custom, counters } = this.#needs
    this.#responses = stored.responses
    this.#faults = stored.faults
    const made = stored.outstanding.map((seq): BrokerRequest => ({ clientKey: this.key, owner: this, seq, tries: 0, envelope: undefined, decision: custom === undefined ? undefined : 'unread' }))
    this.#intake.recover(stored, made.filter(({ seq }) => seq > stored.committedSeq))
    this.#flushed(made.filter(({ seq }) => seq <= stored.committedSeq))
    counters.total += this.total
    counters.processed += stored.responses
    counters.faulted += stored.faults
  }

  /** Takes a request: see Intake. */
  accept (envelope: Envelope, batchId: number, isAcknowledged?: boolean): Promise<Refusal | undefined> { return this.#intake.accept(envelope, batchId, isAcknowledged) }
  /** Flush and EndRequests: see Intake. */
  commit (count: number, options: CommitOptions): Promise<void> { return this.#intake.commit(count, options) }
  refused (error: unknown): void { this.#intake.refused(error) }
  restart (): void { this.#intake.restart() }
  desert (): void { this.#intake.desert() }

  #kept (request: BrokerRequest): void {
    if (this.#needs.isDurable) { this.#keepInMemory(request); return }
    this.#outstanding++
    this.#unread++
    this.#needs.throttle.add()
    this.#goes(request)
  }

  #flushed (batch: readonly BrokerRequest[]): void {
    this.#outstanding += batch.length
    for (const request of batch) this.#goes(request)
  }

  /** It may be worked on. */
  #goes (request: BrokerRequest): void {
    request.queuedAt = this.#needs.trace?.now
    if (this.#needs.custom === undefined) this.#needs.requests.put(request)
    else this.#needs.custom.route(request)
  }

  /** A request stays in memory while there is room; else its turn reads it from the store. */
  #keepInMemory (request: BrokerRequest): void {
    const { cache } = this.#needs
    const bytes = request.envelope?.body.length ?? 0
    if (cache.used + bytes <= cache.max) { cache.used += bytes; return }
    request.envelope = undefined
    if (request.decision !== undefined) request.decision = 'unread'
  }

  #letGo (request: BrokerRequest): void {
    if (this.#needs.isDurable) this.#needs.cache.used -= request.envelope?.body.length ?? 0
    request.envelope = undefined
  }

  /** Fills in a request that is only in the store, and the ones behind it in the same round trip. False: it is gone. */
  async load (request: BrokerRequest): Promise<boolean> {
    if (request.envelope !== undefined) return true
    await this.fill([request, ...this.#needs.requests.peek(this.key, 63).filter(next => next.envelope === undefined && next.seq > 0)])
    return request.envelope !== undefined
  }

  /** Fills in requests from the store, with what was decided of them. */
  async fill (wanted: readonly BrokerRequest[]): Promise<void> {
    const rows = new Map((await this.#needs.store.requests(this.key, wanted.map(next => next.seq))).map((row: StoredRequest) => [row.seq, row]))
    for (const next of wanted) {
      const row = rows.get(next.seq)
      if (row === undefined) continue
      if (next.decision === 'unread') next.decision = row.decision
      next.receivedAt ??= row.receivedAt
      if (next.envelope !== undefined) continue
      next.envelope = row.envelope
      this.#needs.cache.used += row.envelope.body.length
    }
  }

  /** Its turn may be long in coming: it is read again then, where there is no room. */
  shed (request: BrokerRequest): void {
    const { cache } = this.#needs
    if (cache.used > cache.max) this.#letGo(request)
  }

  /** Stores the answer of a request; the first one wins. Resolves when a reader may have it. */
  async complete (request: BrokerRequest, response: Envelope, isFault: boolean, requestAction: string, changes?: readonly StateChange[]): Promise<void> {
    const { settler, counters, isDurable } = this.#needs
    if (this.#isGone) return // purged while the store had no room for it
    this.#settling++
    const settlement = { clientId: this.key, seq: request.seq, response, isFault, requestAction, letter: request.letter, trace: this.#needs.trace?.facts(request) }
    const at = await settler.settle(settlement, changes).catch(error => {
      if (--this.#settling === 0) this.changed.tell()
      throw error
    })
    this.#settling--
    if (isDurable) this.#letGo(request)
    else request.envelope = undefined
    if (at === undefined) { counters.duplicates++; this.changed.tell(); return }
    this.#needs.trace?.answered(request, at, isFault)
    // Responses are raised before outstanding is lowered: a reader must never see "all processed" with a response missing ([broker-behaviour] 3.1).
    this.#responses = Math.max(this.#responses, at + 1)
    if (isFault) { this.#faults++; counters.faulted++ }
    if (request.letter !== undefined) counters.deadLettered++
    counters.processed++
    this.#outstanding--
    this.changed.tell()
  }

  /** Readers have got all responses before this place, or passed over them. Each counts once, however often it is read. */
  fetched (before: number): void {
    if (before <= this.#fetched) return
    this.#needs.counters.replyFetched += before - this.#fetched
    this.#fetched = before
  }

  /** These were handed to a reader. */
  handed (responses: readonly StoredResponse[]): void { this.#needs.trace?.delivered(this.key, responses) }

  /** A response has taken the place of a fault. */
  mended (): void {
    this.#faults--
    this.changed.tell()
  }

  read (from: number, count: number, maxBytes: number): Promise<StoredResponse[]> {
    return this.#needs.store.read(this.key, from, count, maxBytes)
  }

  /** So many responses have been delivered. */
  acknowledged (count = 1): void {
    const { throttle, isDurable } = this.#needs
    if (isDurable) return
    this.#unread -= count
    throttle.remove(count)
  }

  /** Interactive: delivered responses up to and with place `through` are freed. */
  release (through: number): Promise<void> {
    this.#released = Math.max(this.#released, through + 1)
    return this.#needs.store.release(this.key, through)
  }

  /** Forgets everything of this client; totals stay in the session's counters. May be said again when the store was away. */
  async purge (): Promise<void> {
    const { requests, store, counters, isDurable } = this.#needs
    if (!this.#isGone) {
      this.#isGone = true
      const dropped = requests.drop(this.key)
      for (const request of dropped) request.isDropped = true
      const left = this.#intake.end()
      // In an interactive session what is not flushed may be at an instance already: its envelope is still needed there.
      for (const request of isDurable ? [...dropped, ...left] : dropped) this.#letGo(request)
    }
    await this.#intake.quiet()
    // Behind the purge they would answer requests of the next client of this id.
    while (this.#settling > 0) await this.changed.next(this.#needs.clock, -1)
    await store.purge(this.key)
    counters.abandoned += this.#outstanding + this.uncommitted
    counters.purgedProcessed += this.#responses
    counters.purgedFaulted += this.#faults
    this.#intake.forgotten()
    this.acknowledged(this.#unread) // what nobody will read holds nobody up
    this.changed.tell()
  }

  /** What is shown of it, beside what only its client knows. */
  view (state: ClientView['state'], status: ClientView['status']): ClientView {
    return { clientId: this.displayId, state, status, total: this.total, flushed: this.committed, processed: this.#responses, faulted: this.#faults, endRequests: this.endOfMessages }
  }
}
