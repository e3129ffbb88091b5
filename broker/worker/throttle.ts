import { within, type Clock } from '../../core/clock.ts'
import { SoaError } from '../../core/errors.ts'

/**
 * Message throttling of interactive sessions ([broker-behaviour] 2.5): counts requests and unread responses of all clients together.
 * Above `start` reading pauses, below `stop` it goes on. Nothing is refused: whoever sends waits, back to the socket.
 */
export class Throttle {
  readonly #start: number
  readonly #stop: number
  readonly #waiters = new Set<() => void>()
  #backlog = 0
  #isClosed = false

  /** @param thresholds in messages; start Infinity never throttles (durable sessions). */
  constructor (thresholds: { start: number, stop: number }) {
    this.#start = thresholds.start
    this.#stop = thresholds.stop
  }

  get backlog (): number { return this.#backlog }
  get isThrottling (): boolean { return this.#isClosed }

  add (messages = 1): void {
    this.#backlog += messages
    if (this.#backlog > this.#start) this.#isClosed = true
  }

  remove (messages = 1): void {
    this.#backlog = Math.max(0, this.#backlog - messages)
    if (!this.#isClosed || this.#backlog >= this.#stop) return
    this.#isClosed = false
    for (const go of [...this.#waiters]) go()
  }

  /** Resolves when requests are taken; rejects with the signal's reason when it aborts first. */
  async open (signal: AbortSignal): Promise<void> {
    while (this.#isClosed) {
      signal.throwIfAborted()
      await new Promise<void>(resolve => {
        const go = (): void => { this.#waiters.delete(go); signal.removeEventListener('abort', go); resolve() }
        this.#waiters.add(go)
        signal.addEventListener('abort', go, { once: true })
      })
      signal.throwIfAborted()
    }
  }

  /** The same, at most so long. @param timeoutMs -1: no limit · @throws OperationTimeout */
  async openWithin (clock: Clock, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const open = this.open(signal)
    if (timeoutMs < 0) { await open; return }
    await within(clock, timeoutMs, open, () => new SoaError('OperationTimeout', { operation: 'waiting for throttled requests', timeoutMs }))
  }
}
