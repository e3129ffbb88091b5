import { systemClock, type Clock } from '../../core/clock.ts'
import type { Counters, Figures } from '../contract.ts'

/** Whole seconds over which callsPerSecond is taken. */
const RATE_SECONDS = 5

/**
 * Totals of one session ([broker-behaviour] 9.1): total = processed + processing + queued, outstanding = total − processed − purgedTotal + purgedProcessed.
 * They never go down, except that total is lowered when unflushed requests are discarded, and faulted when a dead letter is answered after all.
 * A raised session begins with what its store knows.
 */
export class SessionCounters {
  total = 0
  /** Requests with a response. */
  processed = 0
  /** Requests at a service instance, at several ones or not. */
  processing = 0
  faulted = 0
  /** Answered in the same exchange, not stored; part of processed. */
  directlyReplied = 0
  /** Responses that readers have got, each once however often it is read; of this broker. */
  replyFetched = 0
  /** Requests that came too late or with an old batch id and were not taken. */
  refused = 0
  /** Responses that came when the request had one already. */
  duplicates = 0
  /** Requests sent to one more instance since the first one took long. */
  reemitted = 0
  /** Requests that were given up, ever. */
  deadLettered = 0
  /** Dead letters that are being run again; no part of the others, since they have their response. */
  replaying = 0
  /** Requests of purged clients: without a response, with one, and with a fault as one; part of the others. */
  abandoned = 0
  purgedProcessed = 0
  purgedFaulted = 0
  /** Calls in the same exchange whose caller went, or was sent away, before there was an answer. */
  droppedCalls = 0
  /** Requests that a Flush or EndRequests answered for; of this broker. */
  flushed = 0
  /** Unflushed requests that were forgotten: total was lowered by them. */
  discarded = 0
  /** Dead letters that were answered after all: faulted was lowered by them. */
  mended = 0
  /** Runs that came to nothing, and whose request waits for another one. */
  retried = 0
  /** Batches of responses that the store has taken, and the ms that it took over them. */
  storeBatches = 0
  storeMs = 0
  #calls = 0
  #callMs = 0
  readonly #clock: Clock
  readonly #since: number
  /** Answers by second, the current one and those before it, each where its number modulo the length says. */
  readonly #answers = new Float64Array(RATE_SECONDS + 1)
  #second: number

  constructor (clock: Clock = systemClock) {
    this.#clock = clock
    this.#since = clock.now()
    this.#second = Math.floor(this.#since / 1000)
  }

  /** Waiting for an instance; those that were purged without a response stay in it, as in HPC Pack, so that the sum comes out. */
  get queued (): number { return this.total - this.processed - this.processing }
  /** Requests that nobody asks about any more. */
  get purgedTotal (): number { return this.purgedProcessed + this.abandoned + this.droppedCalls }
  get outstanding (): number { return this.total - this.processed - this.purgedTotal + this.purgedProcessed }

  /** What clients had that were purged before this broker came. */
  purged ({ total, processed, faulted }: { total: number, processed: number, faulted: number }): void {
    this.total += total
    this.processed += processed
    this.faulted += faulted
    this.abandoned += total - processed
    this.purgedProcessed += processed
    this.purgedFaulted += faulted
  }

  /** A call was answered that the host worked on for so long. */
  took (ms: number): void {
    this.#calls++
    this.#callMs += ms
    this.#turn()
    this.#answers[this.#second % this.#answers.length] = (this.#answers[this.#second % this.#answers.length] as number) + 1
  }

  #turn (): void {
    const second = Math.floor(this.#clock.now() / 1000)
    for (let step = Math.max(this.#second + 1, second - RATE_SECONDS); step <= second; step++) this.#answers[step % this.#answers.length] = 0
    this.#second = Math.max(second, this.#second)
  }

  /** ms that a call takes at an instance, on average since this broker began; 0 before the first answer. */
  get callDurationMs (): number { return this.#calls === 0 ? 0 : this.#callMs / this.#calls }

  /** Answers a second, over the last five whole seconds and what has passed of this one, or since the broker began. */
  get callsPerSecond (): number {
    this.#turn()
    const now = this.#clock.now()
    const seconds = Math.min(RATE_SECONDS + (now / 1000 - this.#second), (now - this.#since) / 1000)
    const answers = this.#answers.reduce((sum, count) => sum + count, 0)
    return seconds <= 0 ? 0 : answers / Math.max(1, seconds)
  }

  /** What only grows, by name; of a raised session with what its store knew. */
  grown (): Figures['grown'] {
    const { total, processed, faulted, directlyReplied, replyFetched, flushed, discarded, mended, retried, reemitted, duplicates, refused, deadLettered, storeBatches } = this
    return {
      received: total + discarded,
      flushed,
      discarded,
      refused,
      stored: processed - directlyReplied,
      direct: directlyReplied,
      faults: faulted + mended,
      fetched: replyFetched,
      retried,
      resent: reemitted,
      duplicates,
      deadLetters: deadLettered,
      mended,
      calls: this.#calls,
      callSeconds: this.#callMs / 1000,
      storeBatches,
      storeSeconds: this.storeMs / 1000,
    }
  }

  view (): Counters {
    const { total, processed, processing, faulted, queued, outstanding } = this
    const { directlyReplied, replyFetched, reemitted, duplicates, refused, deadLettered, replaying, purgedTotal, purgedProcessed, purgedFaulted } = this
    return {
      total,
      processed,
      processing,
      faulted,
      queued,
      outstanding,
      directlyReplied,
      replyFetched,
      purgedTotal,
      purgedProcessed,
      purgedFaulted,
      reemitted,
      duplicates,
      refused,
      deadLettered,
      replaying,
      callDurationMs: Math.round(this.callDurationMs * 10) / 10,
      callsPerSecond: Math.round(this.callsPerSecond * 10) / 10,
    }
  }
}
