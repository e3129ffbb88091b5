/**
 * Time as a dependency: every wait in the house goes through a Clock, so a test moves time instead of sleeping.
 * `systemClock` is the real one; `test/helpers.ts` has one that is moved by hand.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now (): number
  /** Calls back once after `ms`; the result cancels it. Real timers keep the process alive unless `unref`. */
  after (ms: number, call: () => void, options?: { unref?: boolean }): () => void
}

/** Longest delay of one timer in Node: 2^31-1 ms; longer waits (a 24 h operation timeout fits, 30 days does not) are cut here and re-armed. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  after (ms, call, options) {
    let timer: NodeJS.Timeout
    const arm = (left: number): void => {
      const step = Math.min(left, LONGEST_TIMER_MS)
      timer = setTimeout(() => { if (left > step) arm(left - step); else call() }, step)
      if (options?.unref) timer.unref()
    }
    arm(Math.max(0, ms))
    return () => clearTimeout(timer)
  }
}

/** Resolves after `ms`, rejects with the signal's reason when it aborts first. */
export function sleep (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) { reject(signal.reason as Error); return }
    const stop = (): void => { cancel(); reject(signal?.reason as Error) }
    const cancel = clock.after(ms, () => { signal?.removeEventListener('abort', stop); resolve() })
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** The promise, or a rejection made by `late` when `ms` pass first. What the promise does afterwards is its own affair. */
export function within<T> (clock: Clock, ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(late()))
    promise.then(value => { cancel(); resolve(value) }, error => { cancel(); reject(error as Error) })
  })
}
