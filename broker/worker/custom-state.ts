import type { StateChange } from '../../store/message-store.ts'
import type { CustomState } from '../custom-broker.ts'

/**
 * A custom broker's durable map: read from memory, and every change noted until it is written. `recording` gives a view whose changes are kept apart, so that they
 * can be committed with the one request that they belong to.
 */
export class DurableMap {
  readonly #entries: Map<string, string>
  readonly #maxBytes: number
  #bytes = 0
  #n: number
  /** Changes that no batch has taken along yet. */
  #pending: StateChange[] = []

  /** @param maxBytes of all names and values as JSON (setting maxStateBytes) */
  constructor (kept: { entries: Map<string, string>, n: number }, maxBytes: number) {
    this.#entries = kept.entries
    this.#n = kept.n
    this.#maxBytes = maxBytes
    for (const [key, value] of kept.entries) this.#bytes += bytesOf(key, value)
  }

  /** Changes that are to go with the next batch; whoever takes them gives them back when it was not written. */
  take (): StateChange[] {
    if (this.#pending.length === 0) return []
    const taken = this.#pending
    this.#pending = []
    return taken
  }

  giveBack (changes: readonly StateChange[]): void { this.#pending.unshift(...changes) }

  /** A view that notes its changes in `changes`; without it they go with the next batch of anything. */
  recording (changes?: StateChange[]): CustomState {
    const entries = this.#entries
    const note = (key: string, value: string | undefined): void => { (changes ?? this.#pending).push({ key, n: ++this.#n, value }) }
    return {
      get: key => { const value = entries.get(key); return value === undefined ? undefined : JSON.parse(value) as unknown },
      has: key => entries.has(key),
      set: (key, value) => {
        const text = JSON.stringify(value) as string | undefined
        if (text === undefined) throw new TypeError(`state "${key}": a ${typeof value} is nothing that JSON can carry`)
        const before = entries.get(key)
        if (before === text) return
        const bytes = this.#bytes + bytesOf(key, text) - (before === undefined ? 0 : bytesOf(key, before))
        if (bytes > this.#maxBytes) throw new RangeError(`state would have ${bytes} bytes, the limit is ${this.#maxBytes} (maxStateBytes)`)
        this.#bytes = bytes
        entries.set(key, text)
        note(key, text)
      },
      delete: key => {
        const before = entries.get(key)
        if (before === undefined) return false
        this.#bytes -= bytesOf(key, before)
        entries.delete(key)
        note(key, undefined)
        return true
      },
      keys: () => [...entries.keys()],
      get size () { return entries.size },
    }
  }
}

const bytesOf = (key: string, value: string): number => Buffer.byteLength(key) + Buffer.byteLength(value)
