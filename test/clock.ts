import type { Clock } from '../core/clock.ts'

/** A clock that is moved by hand: `await clock.advance(ms)` fires what is due, in order, and lets promises run in between. */
export class ManualClock implements Clock {
  #now = 1_000_000
  #timers = new Set<{ at: number, call: () => void }>()

  now (): number { return this.#now }

  after (ms: number, call: () => void): () => void {
    const timer = { at: this.#now + ms, call }
    this.#timers.add(timer)
    return () => { this.#timers.delete(timer) }
  }

  get pending (): number { return this.#timers.size }

  /** Time goes by and no timer fires, as for a process that is stopped; what is due fires with the next `advance`. */
  jump (ms: number): void { this.#now += ms }

  async advance (ms: number): Promise<void> {
    const until = this.#now + ms
    await settle()
    for (;;) {
      const next = [...this.#timers].filter(timer => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (next === undefined) break
      this.#now = Math.max(this.#now, next.at)
      this.#timers.delete(next)
      next.call()
      await settle()
    }
    this.#now = until
  }
}

/** Lets everything that is ready run: a few turns of the event loop. */
export async function settle (turns = 5): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise<void>(resolve => setImmediate(resolve))
}
