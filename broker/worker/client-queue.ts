import { SoaError, isSoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { Decision, MessageStore, StateChange, StoredClient, StoredRequest, StoredResponse } from '../../store/message-store.ts'
import type { ClientView } from '../contract.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { Accepted, CustomWork } from './custom-work.ts'
import type { Settler } from './settler.ts'
import type { Throttle } from './throttle.ts'
import { Appender } from './appender.ts'
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
  #released = 0
  #faults = 0
  #fetched = 0
  #outstanding = 0
  /** Interactive: requests that were taken, less the responses that were acknowledged. */
  #unread = 0
  #flushing: Promise<unknown> = Promise.resolve()
  /** A new batch is on its way: what the last one did not flush is being forgotten. */
  #starting: Promise<void> | undefined
  /** It has begun, and the store has not heard that the last one is over. */
  #mustForget = false
  /** By seq, what the store was to keep when it went away: it may have, or not. */
  readonly #unsure = new Map<number, BrokerRequest>()
  #lookingUp: Promise<void> | undefined
  /** A commit that is on its way to the store. */
  #committing: Promise<unknown> = Promise.resolve()
  /** The last commit's answer was lost: it may have been done. */
  #isCommitUnsure = false
  #isGone = false
  /** Responses on their way to the store. */
  #settling = 0
  /** Requests of this batch that were refused where their sender could not see it, and why the last one was. */
  #refusals: { count: number, last: unknown } = { count: 0, last: undefined }
  /** Message ids of this batch. Emptied by EndRequests: nothing is taken after it. */
  readonly #seen = new Set<string>()
  /** Message ids that a custom broker is asked about. */
  readonly #deciding = new Map<string, Promise<unknown>>()
  /** Told when a request was kept, a response stored or the end came. */
  readonly changed = new Signal()

  constructor (needs: QueueNeeds, displayId: string, stored?: StoredClient) {
    this.#needs = needs
    this.displayId = displayId
    this.key = displayId.toLowerCase()
    this.#appender = new Appender((batch, changes) => needs.store.append(this.key, displayId, batch, changes), needs.custom)
    if (stored !== undefined) this.#recover(stored)
  }

  get committed (): number { return this.#committed }
  get committedSeq (): number { return this.#committedSeq }
  /** Something of it is flushed, for all that is known. */
  get isFlushed (): boolean { return this.#committed > 0 || this.#isCommitUnsure }
  get endOfMessages (): boolean { return this.#endOfMessages }
  /** Place of the first response that is still kept. */
  get released (): number { return this.#released }
  get responses (): number { return this.#responses }
  get faults (): number { return this.#faults }
  get outstanding (): number { return this.#outstanding }
  get uncommitted (): number { return this.#uncommitted.length }
  get total (): number { return this.#responses + this.#outstanding + (this.#needs.isDurable ? this.#uncommitted.length : 0) }
  /** EOM received, something committed and nothing pending ([broker-behaviour] 3.1). */
  get isAllProcessed (): boolean { return this.#endOfMessages && this.#outstanding === 0 }

  #recover (stored: StoredClient): void {
    const { custom, counters } = this.#needs
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
      const request: BrokerRequest = { clientKey: this.key, owner: this, seq, tries: 0, envelope: undefined, decision: custom === undefined ? undefined : 'unread' }
      if (seq > stored.committedSeq) { this.#uncommitted.push(request); continue }
      this.#outstanding++
      this.#goes(request)
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
    const { isDurable, counters } = this.#needs
    await this.#needs.predecessorGone
    if (this.#endOfMessages) return 'ended'
    if (isDurable) {
      // HPC's client counts its batches from 0 in each process. Where the old process may be gone, a lower id is a new one's; an equal one too, if it cannot know what has arrived.
      const isNewProcess = !this.#isBatchOurs && (batchId < this.#batchId || (batchId === this.#batchId && !isAcknowledged))
      if (batchId < this.#batchId && !isNewProcess) return 'olderBatch'
      this.#isBatchOurs = true
      // Whoever brings the new batch id first clears the way; the others of that batch wait until what they send cannot be taken for the old one.
      if (batchId > this.#batchId || isNewProcess || (this.#mustForget && this.#starting === undefined)) this.#start(batchId)
      do {
        await this.#starting
        await this.#lookUp()
      } while (this.#starting !== undefined)
    }
    const messageId = envelope.messageId as string
    while (this.#seen.has(messageId)) {
      await this.#appender.settled()
      await this.#deciding.get(messageId)
      if (this.#seen.has(messageId)) return undefined
      await this.#lookUp() // the first of the two failed, and may be there all the same
    }
    // While it waited the batch may have ended, or its client.
    if (this.#isGone) throw new SoaError('ClientPurged', {})
    if (isDurable && batchId < this.#batchId) return 'olderBatch'
    if (this.#endOfMessages) return 'ended'
    this.#seen.add(messageId)
    let decision: Decision | undefined
    let changes: readonly StateChange[] | undefined
    if (this.#needs.custom?.decides === true) {
      ({ envelope, decision, changes } = await this.#decide(envelope, this.#needs.custom))
      // While it was asked the batch may have ended.
      if (this.#isGone) throw new SoaError('ClientPurged', {})
      if (isDurable && batchId < this.#batchId) return 'olderBatch'
      if (this.#endOfMessages) return 'ended'
    }
    const request: BrokerRequest = { clientKey: this.key, owner: this, seq: this.#nextSeq++, tries: 0, envelope, decision, receivedAt: this.#needs.trace?.now }
    try {
      await this.#appender.append({ seq: request.seq, envelope, batchId, decision, receivedAt: request.receivedAt }, changes)
    } catch (error) {
      this.#seen.delete(messageId)
      if (isDurable && isSoaError(error, 'StorageServiceNotAvailble')) this.#unsure.set(request.seq, request)
      throw error
    }
    counters.total++
    this.#uncommitted.push(request)
    if (this.#isGone) throw new SoaError('ClientPurged', {})
    if (isDurable) this.#keepInMemory(request)
    else {
      this.#outstanding++
      this.#unread++
      this.#needs.throttle.add()
      this.#goes(request)
    }
    this.changed.tell()
    return undefined
  }

  async #decide (envelope: Envelope, custom: Pick<CustomWork, 'accept'>): Promise<Accepted> {
    const messageId = envelope.messageId as string
    const deciding = custom.accept(envelope, this.displayId)
    this.#deciding.set(messageId, deciding.catch(() => undefined))
    try {
      return await deciding
    } catch (error) {
      this.#seen.delete(messageId)
      throw error
    } finally {
      this.#deciding.delete(messageId)
    }
  }

  /** It may be worked on. */
  #goes (request: BrokerRequest): void {
    request.queuedAt = this.#needs.trace?.now
    if (this.#needs.custom === undefined) this.#needs.requests.put(request)
    else this.#needs.custom.route(request)
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
    if (this.#isGone || this.#uncommitted.length + this.#unsure.size === 0) return
    if (this.#needs.isDurable) {
      this.#start(-1).catch(error => this.#needs.log.warn({ clientId: this.displayId, err: error as Error }, 'unflushed requests could not be removed yet'))
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
    if (cache.used + bytes <= cache.max) { cache.used += bytes; return }
    request.envelope = undefined
    if (request.decision !== undefined) request.decision = 'unread'
  }

  #start (batchId: number): Promise<void> {
    const starting = this.#startBatch(batchId).finally(() => { if (this.#starting === starting) this.#starting = undefined })
    this.#starting = starting
    return starting
  }

  /** A higher batch id: the client starts again after a failed flush, so what it did not flush is forgotten ([broker-behaviour] 2.3). */
  async #startBatch (batchId: number): Promise<void> {
    this.#batchId = batchId
    this.#refusals = { count: 0, last: undefined }
    const isAgain = this.#mustForget
    this.#mustForget = true
    this.changed.tell()
    await this.#committing
    await this.#lookingUp?.catch(() => undefined)
    await this.#appender.settled()
    if (this.#isCommitUnsure) await this.#lookUpCommit()
    if (!isAgain && this.#uncommitted.length + this.#unsure.size === 0) { this.#mustForget = false; this.#seen.clear(); return }
    const forgotten = this.#uncommitted
    this.#uncommitted = []
    this.#seen.clear()
    this.#needs.counters.total -= forgotten.length
    for (const request of forgotten) this.#letGo(request)
    this.#needs.log.info({ clientId: this.displayId, batchId, forgotten: forgotten.length }, 'a new batch replaces unflushed requests')
    await this.#needs.store.discard(this.key, this.#committedSeq)
    this.#unsure.clear()
    this.#mustForget = false
    this.changed.tell()
  }

  /** What the store was to keep when it went away is asked for before anything is built on it: what is there has arrived. */
  async #lookUp (): Promise<void> {
    if (this.#unsure.size === 0 || this.#mustForget) return
    this.#lookingUp ??= this.#findUnsure().finally(() => { this.#lookingUp = undefined })
    await this.#lookingUp
  }

  async #findUnsure (): Promise<void> {
    await this.#appender.settled()
    const asked = [...this.#unsure.keys()]
    const found = await this.#needs.store.requests(this.key, asked)
    for (const { seq } of found) {
      const request = this.#unsure.get(seq)
      if (request === undefined) continue
      this.#seen.add(request.envelope?.messageId as string)
      this.#needs.counters.total++
      this.#keepInMemory(request)
      this.#uncommitted.push(request)
    }
    this.#uncommitted.sort((a, b) => a.seq - b.seq)
    for (const seq of asked) this.#unsure.delete(seq)
    this.changed.tell()
  }

  /** Whether the commit whose answer was lost was done: then what it covers is flushed, and not to be forgotten. */
  async #lookUpCommit (): Promise<void> {
    const stored = (await this.#needs.store.load()).find(({ clientId }) => clientId === this.key)
    this.#isCommitUnsure = false
    if (stored === undefined || (stored.committedSeq <= this.#committedSeq && !stored.endOfMessages)) return
    this.#flushed(stored.committedSeq, stored.committed, stored.endOfMessages)
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
    const { isDurable, store, clock } = this.#needs
    if (this.#endOfMessages) throw new SoaError('Broker_EOMReject_EndRequests', {})
    if (endOfMessages && count === 0 && this.#nextSeq === 1) throw new SoaError('Broker_EOMReject_NoRequest', {})
    const isOver = (): boolean => isDurable && batchId >= 0 && batchId < this.#batchId
    const name = endOfMessages ? 'EndRequests' : 'Flush'
    const isReached = (): boolean => this.#uncommitted.length === count && !this.#mustForget && (!isDurable || batchId <= this.#batchId || count === 0)
    for (;;) {
      await this.#lookUp()
      if (this.#isGone) throw new SoaError('ClientPurged', {})
      if (isOver()) return // an older batch: succeeds and does nothing ([broker-behaviour] 2.3)
      if (isReached()) break
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
    const seq = this.#uncommitted.at(-1)?.seq ?? this.#committedSeq
    const committed = this.#committed + count
    const committing = store.commit(this.key, this.displayId, { seq, committed, endOfMessages, batchId: this.#batchId })
    this.#committing = committing.catch(error => { this.#isCommitUnsure ||= isSoaError(error, 'StorageServiceNotAvailble') })
    await committing
    this.#isCommitUnsure = false
    this.#flushed(seq, committed, endOfMessages)
  }

  /** All requests up to `seq` are committed: those of a durable session run from now on. */
  #flushed (seq: number, committed: number, endOfMessages: boolean): void {
    const { isDurable } = this.#needs
    const through = this.#uncommitted.findLastIndex(request => request.seq <= seq) + 1
    const batch = this.#uncommitted.slice(0, through)
    this.#uncommitted = this.#uncommitted.slice(through)
    this.#committed = committed
    this.#committedSeq = seq
    this.#needs.trace?.flushed(this.key, seq)
    this.#refusals = { count: 0, last: undefined }
    if (endOfMessages) { this.#endOfMessages = true; this.#seen.clear() }
    if (isDurable) {
      this.#outstanding += batch.length
      for (const request of batch) this.#goes(request)
    }
    this.changed.tell()
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
    const at = await settler.settle({ clientId: this.key, seq: request.seq, response, isFault, requestAction, letter: request.letter, trace: this.#needs.trace?.facts(request) }, changes).catch(error => {
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
      // In an interactive session what is not flushed may be at an instance already: its envelope is still needed there.
      for (const request of isDurable ? [...dropped, ...this.#uncommitted] : dropped) this.#letGo(request)
      if (!isDurable) this.#uncommitted = [] // outstanding has them
      this.changed.tell()
    }
    await this.#needs.predecessorGone
    await this.#starting?.catch(() => undefined)
    await this.#committing
    await this.#appender.settled()
    // Behind the purge they would answer requests of the next client of this id.
    while (this.#settling > 0) await this.changed.next(this.#needs.clock, -1)
    await store.purge(this.key)
    counters.abandoned += this.#outstanding + this.#uncommitted.length
    counters.purgedProcessed += this.#responses
    counters.purgedFaulted += this.#faults
    this.#uncommitted = []
    this.acknowledged(this.#unread) // what nobody will read holds nobody up
    this.changed.tell()
  }

  /** What is shown of it, beside what only its client knows. */
  view (state: ClientView['state'], status: ClientView['status']): ClientView {
    return { clientId: this.displayId, state, status, total: this.total, flushed: this.#committed, processed: this.#responses, faulted: this.#faults, endRequests: this.#endOfMessages }
  }
}
