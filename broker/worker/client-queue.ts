import { SoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { MessageStore, StoredClient, StoredRequest, StoredResponse } from '../../store/message-store.ts'
import type { ClientView } from '../contract.ts'
import type { BrokerRequest, RequestQueue } from './request-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { Settler } from './settler.ts'
import { Appender } from './appender.ts'
import { Signal } from './signal.ts'

export interface QueueNeeds {
  store: MessageStore
  isDurable: boolean
  requests: RequestQueue
  settler: Settler
  counters: SessionCounters
  clock: Clock
  /** A purged queue of the same client id, until its last row is gone from the store: its purge must not take rows of this one along. */
  predecessorGone?: Promise<void> | undefined
  /** Bytes of waiting requests that may stay in memory, all clients together. */
  cache: { used: number, readonly max: number }
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void }
}

/** Why a request was not taken: the caller answers with a fault where it can, and it is counted and logged. */
export type Refusal = 'olderBatch' | 'ended'

/**
 * The queues of one ClientId: counts, batch ids, duplicates, Flush and the responses ([broker-behaviour] 2.3, 2.7, 3.3). It outlives the
 * BrokerClient object above it, which has the client's state and clocks.
 */
export class ClientQueue {
  readonly key: string
  readonly displayId: string
  readonly #needs: QueueNeeds
  readonly #appender: Appender
  #nextSeq = 1
  /** Accepted and kept by the store since the last commit; in order of seq. */
  #uncommitted: BrokerRequest[] = []
  #committed = 0
  #committedSeq = 0
  #endOfMessages = false
  #batchId = -1
  /** Who sends this batch is still the one who began it, as far as is known here. */
  #isBatchOurs = true
  #responses = 0
  #faults = 0
  #outstanding = 0
  #flushing: Promise<unknown> = Promise.resolve()
  #starting: Promise<void> = Promise.resolve()
  /** Requests of this batch that were refused where their sender could not see it, and why the last one was. */
  #refusals: { count: number, last: unknown } = { count: 0, last: undefined }
  /** Message ids of this batch. Emptied by EndRequests: nothing is taken after it. */
  readonly #seen = new Set<string>()
  /** Told when a request was kept, a response stored or the end came. */
  readonly changed = new Signal()

  constructor (needs: QueueNeeds, displayId: string, stored?: StoredClient) {
    this.#needs = needs
    this.displayId = displayId
    this.key = displayId.toLowerCase()
    this.#appender = new Appender(batch => needs.store.append(this.key, displayId, batch))
    if (stored !== undefined) this.#recover(stored)
  }

  get committed (): number { return this.#committed }
  get endOfMessages (): boolean { return this.#endOfMessages }
  get responses (): number { return this.#responses }
  get faults (): number { return this.#faults }
  get outstanding (): number { return this.#outstanding }
  get uncommitted (): number { return this.#uncommitted.length }
  get total (): number { return this.#responses + this.#outstanding + (this.#needs.isDurable ? this.#uncommitted.length : 0) }
  /** EOM received, something committed and nothing pending ([broker-behaviour] 3.1). */
  get isAllProcessed (): boolean { return this.#endOfMessages && this.#outstanding === 0 }

  #recover (stored: StoredClient): void {
    const { requests, counters } = this.#needs
    this.#nextSeq = stored.appended + 1
    this.#committed = stored.committed
    this.#committedSeq = stored.committedSeq
    this.#endOfMessages = stored.endOfMessages
    this.#batchId = stored.batchId
    this.#responses = stored.responses
    this.#faults = stored.faults
    this.#isBatchOurs = false
    for (const id of stored.uncommittedMessageIds) this.#seen.add(id)
    for (const seq of stored.outstanding) {
      const request: BrokerRequest = { clientKey: this.key, owner: this, seq, tries: 0, envelope: undefined }
      if (seq > stored.committedSeq) { this.#uncommitted.push(request); continue }
      this.#outstanding++
      requests.put(request)
    }
    counters.total += this.total
    counters.processed += stored.responses
    counters.faulted += stored.faults
  }

  /**
   * Takes a request: resolves when the store has it. A duplicate of this batch resolves too, and changes nothing.
   * @param isAcknowledged its sender is told that it is here
   */
  async accept (envelope: Envelope, batchId: number, isAcknowledged = true): Promise<Refusal | undefined> {
    const { isDurable, requests, counters } = this.#needs
    await this.#needs.predecessorGone
    if (this.#endOfMessages) return 'ended'
    if (isDurable) {
      // HPC's client counts its batches from 0 in each process. Where the old process may be gone, a lower id is a new one's; an equal one too, if it cannot know what has arrived.
      const isNewProcess = !this.#isBatchOurs && (batchId < this.#batchId || (batchId === this.#batchId && !isAcknowledged))
      if (batchId < this.#batchId && !isNewProcess) return 'olderBatch'
      this.#isBatchOurs = true
      // Whoever brings the new batch id first clears the way; the others of that batch wait until what they send cannot be taken for the old one.
      if (batchId > this.#batchId || isNewProcess) this.#starting = this.#startBatch(batchId)
      await this.#starting
    }
    const messageId = envelope.messageId as string
    if (this.#seen.has(messageId)) {
      await this.#appender.settled()
      return undefined
    }
    this.#seen.add(messageId)
    const request: BrokerRequest = { clientKey: this.key, owner: this, seq: this.#nextSeq++, tries: 0, envelope }
    counters.total++
    try {
      await this.#appender.append({ seq: request.seq, envelope, batchId })
    } catch (error) {
      this.#seen.delete(messageId)
      counters.total--
      throw error
    }
    this.#uncommitted.push(request)
    if (isDurable) this.#keepInMemory(request)
    else {
      this.#outstanding++
      requests.put(request)
    }
    this.changed.tell()
    return undefined
  }

  /** Whoever waits for a request that was refused learns why instead of waiting for its time limit. */
  refused (error: unknown): void {
    this.#refusals = { count: this.#refusals.count + 1, last: error }
    this.changed.tell()
  }

  /** The next batch may be another process's, whatever its id. */
  restart (): void { this.#isBatchOurs = false }

  /** Its sender has left without having flushed, and cannot know what has arrived: a durable queue forgets it, an interactive one counts anew ([broker-behaviour] 2.6). */
  desert (): void {
    this.restart()
    if (this.#uncommitted.length === 0) return
    if (this.#needs.isDurable) {
      this.#starting = this.#startBatch(-1)
      this.#starting.catch(error => this.#needs.log.warn({ clientId: this.displayId, err: error as Error }, 'unflushed requests could not be removed yet'))
    } else {
      this.#committed += this.#uncommitted.length
      this.#committedSeq = this.#uncommitted.at(-1)?.seq ?? this.#committedSeq
      this.#uncommitted = []
    }
  }

  /** A request stays in memory while there is room; else its turn reads it from the store. */
  #keepInMemory (request: BrokerRequest): void {
    const { cache } = this.#needs
    const bytes = request.envelope?.body.length ?? 0
    if (cache.used + bytes > cache.max) request.envelope = undefined
    else cache.used += bytes
  }

  /** A higher batch id: the client starts again after a failed flush, so what it did not flush is forgotten ([broker-behaviour] 2.3). */
  async #startBatch (batchId: number): Promise<void> {
    this.#batchId = batchId
    this.#refusals = { count: 0, last: undefined }
    if (this.#uncommitted.length === 0) { this.#seen.clear(); return }
    await this.#appender.settled()
    const forgotten = this.#uncommitted
    this.#uncommitted = []
    this.#seen.clear()
    this.#needs.counters.total -= forgotten.length
    for (const request of forgotten) this.#letGo(request)
    this.#needs.log.info({ clientId: this.displayId, batchId, forgotten: forgotten.length }, 'a new batch replaces unflushed requests')
    await this.#needs.store.discard(this.key, this.#committedSeq)
    this.changed.tell()
  }

  #letGo (request: BrokerRequest): void {
    if (this.#needs.isDurable) this.#needs.cache.used -= request.envelope?.body.length ?? 0
    request.envelope = undefined
  }

  /**
   * Flush and EndRequests: waits until exactly `count` requests have arrived since the last one, then commits them in one step with the end mark.
   * The time limit starts again with every arrival; when it passes nothing is rolled back ([broker-behaviour] 2.3).
   * @param count requests since the last successful Flush, 0 only with `endOfMessages`
   */
  commit (count: number, options: { batchId: number, endOfMessages: boolean, timeoutMs: number, signal: AbortSignal }): Promise<void> {
    const turn = this.#flushing.then(() => this.#commit(count, options))
    this.#flushing = turn.catch(() => undefined)
    return turn
  }

  async #commit (count: number, { batchId, endOfMessages, timeoutMs, signal }: { batchId: number, endOfMessages: boolean, timeoutMs: number, signal: AbortSignal }): Promise<void> {
    const { isDurable, store, requests, clock } = this.#needs
    if (this.#endOfMessages) throw new SoaError('Broker_EOMReject_EndRequests', {})
    if (endOfMessages && count === 0 && this.#nextSeq === 1) throw new SoaError('Broker_EOMReject_NoRequest', {})
    if (isDurable && batchId >= 0 && batchId < this.#batchId) return // an older batch: succeeds and does nothing ([broker-behaviour] 2.3)
    const name = endOfMessages ? 'EndRequests' : 'Flush'
    const isReached = (): boolean => this.#uncommitted.length === count && (!isDurable || batchId <= this.#batchId || count === 0)
    while (!isReached()) {
      const { count: refused, last } = this.#refusals
      if (refused > 0 && this.#uncommitted.length + refused >= count) {
        this.#refusals = { count: 0, last: undefined }
        throw last
      }
      if (!await this.changed.next(clock, timeoutMs, signal)) {
        signal.throwIfAborted()
        throw new SoaError('OperationTimeout', { operation: `${name}: ${this.#uncommitted.length} requests arrived since the last flush, ${count} were announced; waiting for more`, timeoutMs })
      }
    }
    const batch = this.#uncommitted
    const seq = batch.at(-1)?.seq ?? this.#committedSeq
    await store.commit(this.key, this.displayId, { seq, committed: this.#committed + count, endOfMessages, batchId: this.#batchId })
    this.#uncommitted = this.#uncommitted.slice(batch.length)
    this.#committed += count
    this.#committedSeq = seq
    this.#refusals = { count: 0, last: undefined }
    if (endOfMessages) { this.#endOfMessages = true; this.#seen.clear() }
    if (isDurable) {
      this.#outstanding += batch.length
      for (const request of batch) requests.put(request)
    }
    this.changed.tell()
  }

  /** Fills in a request that is only in the store, and the ones behind it in the same round trip. False: it is gone. */
  async load (request: BrokerRequest): Promise<boolean> {
    if (request.envelope !== undefined) return true
    const { store, requests } = this.#needs
    const wanted = [request, ...requests.peek(this.key, 63).filter(next => next.envelope === undefined && next.seq > 0)]
    const rows = new Map((await store.requests(this.key, wanted.map(next => next.seq))).map((row: StoredRequest) => [row.seq, row]))
    for (const next of wanted) {
      const envelope = rows.get(next.seq)?.envelope
      if (envelope === undefined || next.envelope !== undefined) continue
      next.envelope = envelope
      this.#needs.cache.used += envelope.body.length
    }
    return request.envelope !== undefined
  }

  /** Stores the answer of a request; the first one wins. Resolves when a reader may have it. */
  async complete (request: BrokerRequest, response: Envelope, isFault: boolean, requestAction: string): Promise<void> {
    const { settler, counters, isDurable } = this.#needs
    const at = await settler.settle({ clientId: this.key, seq: request.seq, response, isFault, requestAction })
    if (isDurable) this.#letGo(request)
    else request.envelope = undefined
    if (at === undefined) { counters.duplicates++; return }
    // Responses are raised before outstanding is lowered: a reader must never see "all processed" with a response missing ([broker-behaviour] 3.1).
    this.#responses = Math.max(this.#responses, at + 1)
    if (isFault) { this.#faults++; counters.faulted++ }
    counters.processed++
    this.#outstanding--
    this.changed.tell()
  }

  read (from: number, count: number, maxBytes: number): Promise<StoredResponse[]> {
    return this.#needs.store.read(this.key, from, count, maxBytes)
  }

  /** Interactive: delivered responses up to and with place `through` are freed. */
  release (through: number): Promise<void> { return this.#needs.store.release(this.key, through) }

  /** Forgets everything of this client; totals stay in the session's counters. */
  async purge (): Promise<void> {
    const dropped = this.#needs.requests.drop(this.key)
    for (const request of dropped) request.isDropped = true
    // In an interactive session what is not flushed may be at an instance already: its envelope is still needed there.
    for (const request of this.#needs.isDurable ? [...dropped, ...this.#uncommitted] : dropped) this.#letGo(request)
    this.#uncommitted = []
    await this.#appender.settled()
    await this.#needs.store.purge(this.key)
    this.changed.tell()
  }

  /** What is shown of it, beside what only its client knows. */
  view (state: ClientView['state'], status: ClientView['status']): ClientView {
    return { clientId: this.displayId, state, status, total: this.total, flushed: this.#committed, processed: this.#responses, faulted: this.#faults, endRequests: this.#endOfMessages }
  }
}
