import type { Clock } from '../core/clock.ts'

export interface ProgressNeeds {
  /** ms without a call, after the first one was answered; under 0: never. */
  readonly idleMs: number
  /** ms in which calls are in hand and none comes or is answered; under 0: never. */
  readonly hangMs: number
  readonly clock: Clock
  readonly idle: () => void
  readonly hung: () => void
  /** Told each step, for a watcher outside this thread: how many steps so far, and calls in hand. */
  readonly stepped?: ((steps: number, calls: number) => void) | undefined
}

/**
 * A host's two clocks ([broker-behaviour] 7.4). A call that comes stops the idle clock and starts the hang clock anew; an answer starts the hang clock anew
 * while others are in hand, else the idle clock. A host that never had a call is never idle: it may have been started ahead of need.
 */
export class Progress {
  readonly #needs: ProgressNeeds
  #calls = 0
  #steps = 0
  #lastAt = 0
  /** When the timer goes off; Infinity: none runs. */
  #looksAt = Infinity
  #disarm = (): void => {}
  #isOver = false

  constructor (needs: ProgressNeeds) { this.#needs = needs }

  received (): void { this.#calls++; this.#step() }

  answered (): void { this.#calls--; this.#step() }

  /** No clock runs any more. */
  stop (): void {
    this.#isOver = true
    this.#disarm()
  }

  #step (): void {
    const { clock, stepped } = this.#needs
    this.#lastAt = clock.now()
    stepped?.(++this.#steps, this.#calls)
    const limit = this.#limit()
    // One timer for any number of steps: it looks how long ago the last one was. It is set anew only when it would come too late.
    if (!this.#isOver && limit >= 0 && this.#lastAt + limit < this.#looksAt) this.#arm(limit)
  }

  #limit (): number { return this.#calls > 0 ? this.#needs.hangMs : this.#needs.idleMs }

  #arm (ms: number): void {
    const { clock } = this.#needs
    this.#disarm()
    this.#looksAt = clock.now() + ms
    this.#disarm = clock.after(ms, () => { this.#look() }, { unref: true })
  }

  #look (): void {
    const { clock, idle, hung } = this.#needs
    this.#looksAt = Infinity
    const limit = this.#limit()
    if (this.#isOver || limit < 0) return
    const left = limit - (clock.now() - this.#lastAt)
    if (left > 0) { this.#arm(left); return }
    this.stop()
    if (this.#calls > 0) hung(); else idle()
  }
}
