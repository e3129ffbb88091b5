import { SoaError, isSoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { Decision, MessageStore, StateChange, StoredClient } from '../../store/message-store.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { SessionCounters } from './counters.ts'
import type { Accepted, CustomWork } from './custom-work.ts'
import { Appender } from './appender.ts'
import type { Signal } from './signal.ts'
import type { SessionTrace } from './trace.ts'

/** Why a request was not taken: the caller answers with a fault where it can, and it is counted and logged. */
export type Refusal = 'olderBatch' | 'ended'

/** `timeoutMs`: -1 waits without a limit. */
export interface CommitOptions { batchId: number, endOfMessages: boolean, timeoutMs: number, signal: AbortSignal }

interface Needs {
  store: MessageStore
  isDurable: boolean
  counters: SessionCounters
  /** Decides what becomes of requests before they are stored. */
  custom?: Pick<CustomWork, 'decides' | 'accept' | 'takeChanges' | 'giveBack'> | undefined
  clock: Clock
  /** Undefined: traceMessages is 0. */
  trace?: SessionTrace | undefined
  /** A purged queue of the same client id, until its last row is gone from the store: its purge must not take rows of this one along. */
  predecessorGone?: Promise<void> | undefined
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void }
  key: string
  displayId: string
  /** The queue that requests belong to. */
  owner: object
  /** Told when a request was kept or the end came. */
  changed: Signal
  /** Durable: kept, and to stay in memory while there is room. Interactive: it may be worked on. */
  kept: (request: BrokerRequest) => void
  /** Durable: these were flushed, and may be worked on. */
  flushed: (batch: readonly BrokerRequest[]) => void
  /** Forgotten: its memory is free. */
  letGo: (request: BrokerRequest) => void
}

/** How a client's requests come in: batch ids, duplicates, Flush and EndRequests, and what is not known while the store is away ([broker-behaviour] 2.3). */
export class Intake {
  readonly #needs: Needs
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
  /** That commit had the end mark. */
  #isEndUnsure = false
  #isGone = false
  /** Requests of this batch that were refused where their sender could not see it, and why the last one was. */
  #refusals: { count: number, last: unknown } = { count: 0, last: undefined }
  /** Message ids of this batch. Emptied by EndRequests: nothing is taken after it. */
  readonly #seen = new Set<string>()
  /** Message ids that a custom broker is asked about. */
  readonly #deciding = new Map<string, Promise<unknown>>()

  constructor (needs: Needs) {
    this.#needs = needs
    this.#appender = new Appender((batch, changes) => needs.store.append(needs.key, needs.displayId, batch, changes), needs.custom)
  }

  get committed (): number { return this.#committed }
  get committedSeq (): number { return this.#committedSeq }
  /** Something of it is flushed, for all that is known. */
  get isFlushed (): boolean { return this.#committed > 0 || this.#isCommitUnsure }
  get endOfMessages (): boolean { return this.#endOfMessages }
  get uncommitted (): readonly BrokerRequest[] { return this.#uncommitted }

  /** As a broker before this one has left it. `waiting`: those that were not flushed. */
  recover (stored: StoredClient, waiting: BrokerRequest[]): void {
    this.#nextSeq = stored.appended + 1
    this.#committed = stored.committed
    this.#committedSeq = stored.committedSeq
    this.#endOfMessages = stored.endOfMessages
    this.#batchId = stored.batchId
    this.#isBatchOurs = false
    this.#uncommitted = waiting
    for (const id of stored.uncommittedMessageIds) this.#seen.add(id)
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
    const request: BrokerRequest = { clientKey: this.#needs.key, owner: this.#needs.owner, seq: this.#nextSeq++, tries: 0, envelope, decision, receivedAt: this.#needs.trace?.now }
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
    this.#needs.kept(request)
    this.#needs.changed.tell()
    return undefined
  }

  async #decide (envelope: Envelope, custom: Pick<CustomWork, 'accept'>): Promise<Accepted> {
    const messageId = envelope.messageId as string
    const deciding = custom.accept(envelope, this.#needs.displayId)
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

  /** Whoever waits for a request that was refused learns why instead of waiting for its time limit. */
  refused (error: unknown): void {
    this.#refusals = { count: this.#refusals.count + 1, last: error }
    this.#needs.changed.tell()
  }

  /** The next batch may be another process's, whatever its id. */
  restart (): void { this.#isBatchOurs = false }

  /** Its sender has left without having flushed, and cannot know what has arrived: a durable queue forgets it, an interactive one counts anew ([broker-behaviour] 2.6). */
  desert (): void {
    this.restart()
    if (this.#isGone || this.#uncommitted.length + this.#unsure.size === 0) return
    if (this.#needs.isDurable) {
      this.#start(-1).catch(error => this.#needs.log.warn({ clientId: this.#needs.displayId, err: error as Error }, 'unflushed requests could not be removed yet'))
    } else {
      this.#committed += this.#uncommitted.length
      this.#committedSeq = this.#uncommitted.at(-1)?.seq ?? this.#committedSeq
      this.#uncommitted = []
    }
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
    this.#needs.changed.tell()
    await this.#committing
    await this.#lookingUp?.catch(() => undefined)
    await this.#appender.settled()
    if (this.#isCommitUnsure) await this.#lookUpCommit()
    if (!isAgain && this.#uncommitted.length + this.#unsure.size === 0) { this.#mustForget = false; this.#seen.clear(); return }
    const forgotten = this.#uncommitted
    this.#uncommitted = []
    this.#seen.clear()
    this.#needs.counters.total -= forgotten.length
    this.#needs.counters.discarded += forgotten.length
    for (const request of forgotten) this.#needs.letGo(request)
    this.#needs.log.info({ clientId: this.#needs.displayId, batchId, forgotten: forgotten.length }, 'a new batch replaces unflushed requests')
    await this.#needs.store.discard(this.#needs.key, this.#committedSeq)
    this.#unsure.clear()
    this.#mustForget = false
    this.#needs.changed.tell()
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
    const found = await this.#needs.store.requests(this.#needs.key, asked)
    for (const { seq } of found) {
      const request = this.#unsure.get(seq)
      if (request === undefined) continue
      this.#seen.add(request.envelope?.messageId as string)
      this.#needs.counters.total++
      this.#needs.kept(request)
      this.#uncommitted.push(request)
    }
    this.#uncommitted.sort((a, b) => a.seq - b.seq)
    for (const seq of asked) this.#unsure.delete(seq)
    this.#needs.changed.tell()
  }

  /** Whether the commit whose answer was lost was done: then what it covers is flushed, and not to be forgotten. */
  async #lookUpCommit (): Promise<void> {
    const stored = await this.#load()
    this.#isCommitUnsure = this.#isEndUnsure = false
    if (stored === undefined || (stored.committedSeq <= this.#committedSeq && !stored.endOfMessages)) return
    this.#flushed(stored.committedSeq, stored.committed, stored.endOfMessages)
  }

  /** Whether the end mark whose answer was lost is stored. If it is not, the commit itself stays in doubt: its caller may say it again, with its count. */
  async #lookUpEnd (): Promise<void> {
    const stored = await this.#load()
    this.#isEndUnsure = false
    if (stored?.endOfMessages !== true) return
    this.#isCommitUnsure = false
    this.#flushed(stored.committedSeq, stored.committed, true)
  }

  async #load (): Promise<StoredClient | undefined> {
    return (await this.#needs.store.load()).find(({ clientId }) => clientId === this.#needs.key)
  }

  /**
   * Flush and EndRequests: waits until exactly `count` requests have arrived since the last one, then commits them in one step with the end mark.
   * The time limit starts again with every arrival; when it passes nothing is rolled back ([broker-behaviour] 2.3).
   * @param count requests since the last successful Flush, 0 only with `endOfMessages`
   */
  commit (count: number, options: CommitOptions): Promise<void> {
    const turn = this.#flushing.then(() => this.#commit(count, options))
    this.#flushing = turn.catch(() => undefined)
    return turn
  }

  async #commit (count: number, { batchId, endOfMessages, timeoutMs, signal }: CommitOptions): Promise<void> {
    const { isDurable, store, clock } = this.#needs
    if (endOfMessages && count === 0 && this.#nextSeq === 1) throw new SoaError('Broker_EOMReject_NoRequest', {})
    const isOver = (): boolean => isDurable && batchId >= 0 && batchId < this.#batchId
    const name = endOfMessages ? 'EndRequests' : 'Flush'
    const isReached = (): boolean => this.#uncommitted.length === count && !this.#mustForget && (!isDurable || batchId <= this.#batchId || count === 0)
    for (;;) {
      await this.#lookUp()
      // An EndRequests said again only repeats what may be done; a Flush would go past an end mark that is stored.
      if (this.#isEndUnsure && !endOfMessages) await this.#lookUpEnd()
      if (this.#isGone) throw new SoaError('ClientPurged', {})
      if (this.#endOfMessages) throw new SoaError('Broker_EOMReject_EndRequests', {})
      if (isOver()) return // an older batch: succeeds and does nothing ([broker-behaviour] 2.3)
      if (isReached()) break
      const { count: refused, last } = this.#refusals
      if (refused > 0 && this.#uncommitted.length + refused >= count) {
        this.#refusals = { count: 0, last: undefined }
        throw last
      }
      if (!await this.#needs.changed.next(clock, timeoutMs, signal)) {
        signal.throwIfAborted()
        throw new SoaError('OperationTimeout', { operation: `${name}: ${this.#uncommitted.length} requests arrived since the last flush, ${count} were announced; waiting for more`, timeoutMs })
      }
    }
    const seq = this.#uncommitted.at(-1)?.seq ?? this.#committedSeq
    const committed = this.#committed + count
    const committing = store.commit(this.#needs.key, this.#needs.displayId, { seq, committed, endOfMessages, batchId: this.#batchId })
    this.#committing = committing.catch(error => {
      if (!isSoaError(error, 'StorageServiceNotAvailble')) return
      this.#isCommitUnsure = true
      this.#isEndUnsure ||= endOfMessages
    })
    await committing
    this.#isCommitUnsure = this.#isEndUnsure = false
    this.#flushed(seq, committed, endOfMessages)
  }

  /** All requests up to `seq` are committed: those of a durable session run from now on. */
  #flushed (seq: number, committed: number, endOfMessages: boolean): void {
    const { isDurable } = this.#needs
    const through = this.#uncommitted.findLastIndex(request => request.seq <= seq) + 1
    const batch = this.#uncommitted.slice(0, through)
    this.#uncommitted = this.#uncommitted.slice(through)
    this.#needs.counters.flushed += committed - this.#committed
    this.#committed = committed
    this.#committedSeq = seq
    this.#needs.trace?.flushed(this.#needs.key, seq)
    this.#refusals = { count: 0, last: undefined }
    if (endOfMessages) { this.#endOfMessages = true; this.#seen.clear() }
    if (isDurable) this.#needs.flushed(batch)
    this.#needs.changed.tell()
  }

  /** Nothing is taken any more. What was taken and not flushed is given back. */
  end (): readonly BrokerRequest[] {
    this.#isGone = true
    const left = this.#uncommitted
    if (!this.#needs.isDurable) this.#uncommitted = [] // those are at work already
    this.#needs.changed.tell()
    return left
  }

  /** Resolves when nothing of it is on its way to the store. */
  async quiet (): Promise<void> {
    await this.#needs.predecessorGone
    await this.#starting?.catch(() => undefined)
    await this.#committing
    await this.#appender.settled()
  }

  /** Its rows are gone from the store. */
  forgotten (): void { this.#uncommitted = [] }
}
