import type { SoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import type { ClientQueue } from './client-queue.ts'
import type { Throttle } from './throttle.ts'

/** Why reading cannot go on after what is stored: the session was canceled or failed. */
export type ReadEnd = () => SoaError | undefined
export type Position = 'Begin' | 'Current'

export interface PulledPage { responses: StoredResponse[], endOfMessages: boolean }

export interface ReaderNeeds {
  queue: Pick<ClientQueue, 'read' | 'release' | 'changed' | 'isAllProcessed' | 'responses'> & Partial<Pick<ClientQueue, 'released' | 'fetched' | 'handed'>>
  isDurable: boolean
  throttle: Pick<Throttle, 'remove'>
  clock: Clock
  /** Why this client is no more; undefined while it is there. */
  gone: () => SoaError | undefined
}

/** What was found from one place on, without waiting. */
export interface Look {
  /** Those that match, in order. */
  responses: StoredResponse[]
  /** Place behind the last one looked at, matching or not. */
  next: number
  /** Everything is processed and nothing lies behind `next`. */
  isEnd: boolean
}

/** One client's way through its stored responses: where it is, what it has acknowledged, and the wait for more. */
export class ResponseReader {
  readonly #needs: ReaderNeeds
  /** Place of the next response for position `Current`. */
  #cursor = 0
  /** Interactive: everything before this place has been acknowledged and freed. */
  #released = 0
  /** Interactive: acknowledged places behind `#released`: a filter by action left others between them, which a later Begin brings ([broker-behaviour] 2.7). */
  readonly #ahead = new Set<number>()
  /** Handed over, not yet acknowledged. */
  #handed: number[] = []
  /** The pull that came last is over. */
  #reading: Promise<void> = Promise.resolve()

  constructor (needs: ReaderNeeds) {
    this.#needs = needs
    // A client that comes back finds what the reader before this one has not freed.
    this.#released = this.#cursor = needs.queue.released ?? 0
  }

  /** Place of the next response that a reader would get. Begin: all that is still kept. */
  position (from: Position): number { return from === 'Begin' ? this.#released : this.#cursor }

  /** Goes back to the first response that is kept; what was handed over and not acknowledged comes again. */
  rewind (): number {
    this.#handed = []
    this.#cursor = this.#released
    return this.#cursor
  }

  /** These were handed over; the next look begins at `next`. */
  hand (responses: readonly StoredResponse[], next: number): void {
    this.#cursor = next
    this.#needs.queue.fetched?.(next)
    this.#needs.queue.handed?.(responses)
    if (!this.#needs.isDurable) for (const { at } of responses) this.#handed.push(at)
  }

  /** Interactive: what was handed over is freed, and sending may go on where it was throttled. */
  async acknowledge (): Promise<void> {
    const handed = this.#handed
    if (handed.length === 0) return
    this.#handed = []
    const before = this.#released
    for (const at of handed) this.#ahead.add(at)
    while (this.#ahead.delete(this.#released)) this.#released++
    if (this.#released > before) await this.#needs.queue.release(this.#released - 1)
    this.#needs.throttle.remove(handed.length)
  }

  /** Up to `count` responses to requests of `action` ('' for all) from `from` on, as many as are there now. */
  async look (from: number, count: number, action: string, maxBytes: number): Promise<Look> {
    const { queue } = this.#needs
    // Read before the rows are: what is stored in between is found in the next round.
    const isComplete = queue.isAllProcessed
    const responses: StoredResponse[] = []
    let next = from
    for (const response of await queue.read(from, count, maxBytes)) {
      next = response.at + 1
      if ((action === '' || response.requestAction === action) && !this.#ahead.has(response.at)) responses.push(response)
    }
    return { responses, next, isEnd: isComplete && next >= queue.responses }
  }

  /** Waits until there may be more than a look that ended at `next` found. The result says why no more will come, else it is undefined. */
  async more (next: number, end: ReadEnd, signal: AbortSignal): Promise<SoaError | undefined> {
    const { queue, clock, gone } = this.#needs
    const ended = gone() ?? end()
    if (ended !== undefined) return ended
    if (next < queue.responses || queue.isAllProcessed) return undefined // stored or ended while we read
    await queue.changed.next(clock, -1, signal)
    signal.throwIfAborted()
    return undefined
  }

  /**
   * Collects responses from the cursor on (PullResponses): waits until `count` are there, or the end. Fewer come back only with the end,
   * or when `maxBytes` is reached (at least one does).
   * @param position Begin: all again (interactive: those not yet acknowledged by a later call) · Current: after the last
   */
  pull (position: Position, count: number, action: string, options: { maxBytes: number, signal: AbortSignal, end: ReadEnd }): Promise<PulledPage> {
    // One reader at a time: several outstanding calls are served in turn, each with its own count ([broker-behaviour] 2.7).
    const turn = this.#reading.then(() => this.#pull(position, count, action, options))
    // Only that it is over: the promise itself would keep its page, which may be of 16 MiB, until the next call or as long as the client's channel is open.
    const over = (): void => {}
    this.#reading = turn.then(over, over)
    return turn
  }

  async #pull (position: Position, count: number, action: string, { maxBytes, signal, end }: { maxBytes: number, signal: AbortSignal, end: ReadEnd }): Promise<PulledPage> {
    // Asking for more is the acknowledgement of what came before: a page lost with its connection can be read again from Begin.
    if (position === 'Begin') this.rewind()
    else await this.acknowledge()
    const responses: StoredResponse[] = []
    let left = maxBytes
    let next = this.#cursor
    for (;;) {
      signal.throwIfAborted()
      const found = await this.look(next, count - responses.length, action, left)
      const isMoved = found.next > next
      next = found.next
      for (const response of found.responses) { left -= response.envelope.body.length; responses.push(response) }
      if (found.isEnd || responses.length >= count || (left <= 0 && responses.length > 0)) {
        this.hand(responses, next)
        return { responses, endOfMessages: found.isEnd }
      }
      if (isMoved) continue
      const ended = await this.more(next, end, signal)
      if (ended === undefined) continue
      if (responses.length === 0) throw ended
      this.hand(responses, next)
      return { responses, endOfMessages: false }
    }
  }
}
