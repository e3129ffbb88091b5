import type { Clock } from '../../core/clock.ts'

/** "Something changed, look again": wakes all who wait. It carries nothing, so no one can miss more than a look. */
export class Signal {
  #waiters = new Set<(told: boolean) => void>()

  tell (): void {
    const waiters = this.#waiters
    if (waiters.size === 0) return
    this.#waiters = new Set()
    for (const wake of waiters) wake(true)
  }

  /** True when told, false when `ms` passed or the abort signal came first. `ms` -1: no limit. */
  next (clock: Clock, ms: number, abort?: AbortSignal): Promise<boolean> {
    if (abort?.aborted === true) return Promise.resolve(false)
    return new Promise(resolve => {
      const cancel = ms < 0 ? () => {} : clock.after(ms, () => wake(false))
      const stop = (): void => wake(false)
      const wake = (told: boolean): void => {
        cancel()
        this.#waiters.delete(wake)
        abort?.removeEventListener('abort', stop)
        resolve(told)
      }
      this.#waiters.add(wake)
      abort?.addEventListener('abort', stop, { once: true })
    })
  }
}
