import type { Decision, StateChange, StoredRequest } from '../../store/message-store.ts'
import { changesOf, type ChangesSource } from './changes.ts'

interface Waiting { row: StoredRequest, changes: readonly StateChange[] | undefined, done: () => void, failed: (error: unknown) => void }

/**
 * Writes one client's requests to the store in order of seq: one append outstanding, and the next batch is what arrived meanwhile.
 * Its bound is the number of senders: each waits for its own append, and the listener bounds the bytes being received.
 */
export class Appender {
  readonly #append: (batch: StoredRequest[], changes?: readonly StateChange[]) => Promise<void>
  readonly #source: ChangesSource | undefined
  readonly #maxBatch: number
  readonly #maxBatchBytes: number
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined

  /** @param source changes of a custom broker's state that go with any batch */
  constructor (append: (batch: StoredRequest[], changes?: readonly StateChange[]) => Promise<void>, source?: ChangesSource, limits = { maxBatch: 1000, maxBatchBytes: 8 * 1024 * 1024 }) {
    this.#append = append
    this.#source = source
    this.#maxBatch = limits.maxBatch
    this.#maxBatchBytes = limits.maxBatchBytes
  }

  append (row: StoredRequest, changes?: readonly StateChange[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, changes, done: resolve, failed: reject })
      this.#writing ??= this.#write()
    })
  }

  /** Resolves when everything given so far is written or has failed. */
  async settled (): Promise<void> { await this.#writing }

  #next (): Waiting[] {
    let bytes = 0
    let count = 0
    for (const { row } of this.#waiting) {
      bytes += row.envelope.body.length + madeBytes(row.decision)
      if (count > 0 && (count === this.#maxBatch || bytes > this.#maxBatchBytes)) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #write (): Promise<void> {
    // What arrives in this turn of the event loop goes into the first batch too.
    await new Promise<void>(resolve => setImmediate(resolve))
    while (this.#waiting.length > 0) {
      const batch = this.#next()
      let changes: StateChange[] | undefined
      try {
        changes = changesOf(batch, this.#source)
        await this.#append(batch.map(waiting => waiting.row), changes)
        for (const waiting of batch) waiting.done()
      } catch (error) {
        if (changes !== undefined) this.#source?.giveBack(changes)
        for (const waiting of batch) waiting.failed(error)
      }
    }
    this.#writing = undefined
  }
}

/** What a custom broker's decision adds to a request's row. */
function madeBytes (decision: Decision | undefined): number {
  if (decision === undefined) return 0
  let bytes = decision.answer?.body.length ?? 0
  for (const part of decision.scatter ?? []) bytes += part.body.length + part.action.length
  return bytes
}
