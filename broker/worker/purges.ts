import { isSoaError } from '../../core/errors.ts'
import { sleep, type Clock } from '../../core/clock.ts'
import type { ClientQueue } from './client-queue.ts'

/** Between two tries when the store is away. */
const AGAIN_MS = 1000

/** The purges under way in a session. A client of the same id waits for the one before it, and must not find its rows. */
export class Purges {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #under = new Map<string, Promise<void>>()

  /** @param signal aborted when the session ends */
  constructor (clock: Clock, signal: AbortSignal) {
    this.#clock = clock
    this.#signal = signal
  }

  under (key: string): Promise<void> | undefined { return this.#under.get(key) }

  /** Resolves when it is done; rejects when the store cannot do it now, and then it is tried again until it has been done. */
  async begin (queue: ClientQueue): Promise<void> {
    const first = queue.purge()
    const gone = this.#untilGone(queue, first).finally(() => { if (this.#under.get(queue.key) === gone) this.#under.delete(queue.key) })
    this.#under.set(queue.key, gone)
    await first
  }

  async #untilGone (queue: ClientQueue, purge: Promise<void>): Promise<void> {
    while (await purge.then(() => false, (error: unknown) => isSoaError(error, 'StorageServiceNotAvailble') && !this.#signal.aborted)) {
      await sleep(this.#clock, AGAIN_MS, this.#signal).catch(() => undefined)
      purge = queue.purge()
    }
  }
}
