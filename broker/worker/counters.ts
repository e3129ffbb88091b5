import type { Counters } from '../contract.ts'

/**
 * Totals of one session ([broker-behaviour] 9.1): total = processed + processing + queued. They never go down, except that total is
 * lowered when unflushed requests are discarded.
 */
export class SessionCounters {
  total = 0
  processed = 0
  processing = 0
  faulted = 0
  /** Answered in the same exchange, not stored; part of processed. */
  directlyReplied = 0
  /** Requests that came too late or with an old batch id and were not taken. */
  refused = 0
  /** Responses that came when the request had one already. */
  duplicates = 0

  get queued (): number { return this.total - this.processed - this.processing }
  get outstanding (): number { return this.total - this.processed }

  view (): Counters {
    return { total: this.total, processed: this.processed, processing: this.processing, faulted: this.faulted }
  }
}
