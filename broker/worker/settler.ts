import type { Clock } from '../../core/clock.ts'
import type { MessageStore, Settlement, StateChange } from '../../store/message-store.ts'
import { changesOf, type ChangesSource } from './changes.ts'
import type { SessionCounters } from './counters.ts'

interface Waiting { row: Settlement, changes: readonly StateChange[] | undefined, done: (at: number | undefined) => void, failed: (error: unknown) => void }

/**
 * Writes responses to the store, one batch outstanding: the next batch is what arrived meanwhile. A response is readable only after
 * its settle is acknowledged. `room()` is the back-pressure for dispatchers when the store is slower than the grid.
 */
export class Settler {
  readonly #store: MessageStore
  readonly #source: ChangesSource | undefined
  readonly #counted: { counters: Pick<SessionCounters, 'storeBatches' | 'storeMs'>, clock: Clock }
  readonly #maxBatch: number
  readonly #maxBacklog: number
  #waiting: Waiting[] = []
  #isWriting = false
  #inFlight = 0
  #roomWaiters: Array<() => void> = []

  /** @param source changes of a custom broker's state that go with any batch */
  constructor (store: MessageStore, source: ChangesSource | undefined, counted: { counters: Pick<SessionCounters, 'storeBatches' | 'storeMs'>, clock: Clock }, limits: { maxBatch: number, maxBacklog: number } = { maxBatch: 500, maxBacklog: 2000 }) {
    this.#store = store
    this.#source = source
    this.#counted = counted
    this.#maxBatch = limits.maxBatch
    this.#maxBacklog = limits.maxBacklog
  }

  get backlog (): number { return this.#waiting.length + this.#inFlight }

  /** Resolves to the response's place, or undefined when the request had a response already. */
  settle (row: Settlement, changes?: readonly StateChange[]): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, changes, done: resolve, failed: reject })
      if (!this.#isWriting) void this.#write()
    })
  }

  async room (): Promise<void> {
    while (this.backlog >= this.#maxBacklog) await new Promise<void>(resolve => this.#roomWaiters.push(resolve))
  }

  /** Resolves when nothing is on its way to the store. */
  async drained (): Promise<void> {
    while (this.backlog > 0) await new Promise<void>(resolve => this.#roomWaiters.push(resolve))
  }

  async #write (): Promise<void> {
    this.#isWriting = true
    const { counters, clock } = this.#counted
    // What arrives in this turn of the event loop goes into the first batch too.
    await new Promise<void>(resolve => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#maxBatch)
      this.#inFlight = batch.length
      let changes: StateChange[] | undefined
      try {
        changes = changesOf(batch, this.#source)
        const since = clock.now()
        const kept = await this.#store.settle(batch.map(waiting => waiting.row), changes)
        counters.storeBatches++
        counters.storeMs += clock.now() - since
        const places = new Map(kept.map(row => [`${row.seq} ${row.clientId}`, row.at]))
        for (const waiting of batch) waiting.done(places.get(`${waiting.row.seq} ${waiting.row.clientId}`))
      } catch (error) {
        if (changes !== undefined) this.#source?.giveBack(changes)
        for (const waiting of batch) waiting.failed(error)
      }
      this.#inFlight = 0
      for (const go of this.#roomWaiters.splice(0)) go()
    }
    this.#isWriting = false
  }
}
