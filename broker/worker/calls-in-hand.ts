import type { Clock } from '../../core/clock.ts'

/** One call at a service instance. */
export interface Call {
  readonly sentAt: number
  /** When the host began with it; undefined while it waits there for its turn. */
  beganAt: number | undefined
}

/**
 * The calls that one instance has, as its host works on them: `capacity` at a time, in the order in which they were sent; the others (prefetched) wait there.
 * It tells which ones can have been executing when the host died, and how long a call took without its wait.
 */
export class CallsInHand {
  readonly #capacity: number
  readonly #clock: Clock
  readonly #waiting: Call[] = []
  #executing = 0

  constructor (capacity: number, clock: Clock) {
    this.#capacity = capacity
    this.#clock = clock
  }

  sent (): Call {
    const sentAt = this.#clock.now()
    if (this.#executing >= this.#capacity) {
      const call = { sentAt, beganAt: undefined }
      this.#waiting.push(call)
      return call
    }
    this.#executing++
    return { sentAt, beganAt: sentAt }
  }

  /**
   * The call is over.
   * @param isCut its connection broke or its task has ended: then those behind it are gone too, and none of them begins
   */
  over (call: Call, isCut: boolean): void {
    if (call.beganAt === undefined) {
      this.#waiting.splice(this.#waiting.indexOf(call), 1)
      return
    }
    this.#executing--
    if (isCut) return
    const next = this.#waiting.shift()
    if (next === undefined) return
    next.beganAt = this.#clock.now()
    this.#executing++
  }
}
