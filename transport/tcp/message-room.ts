/**
 * How much of messages may be in hand at once, all connections of a listener together. Beyond it connections are not read, but for one message of each that has
 * none in hand: so a few that send much cannot shut out those that only ask.
 */
export class MessageRoom {
  readonly #maxBytes: number
  readonly #waiting = new Set<() => void>()
  #bytes = 0

  constructor (maxBytes: number) { this.#maxBytes = maxBytes }

  get bytes (): number { return this.#bytes }
  get isFull (): boolean { return this.#bytes >= this.#maxBytes }

  take (bytes: number): void { this.#bytes += bytes }

  give (bytes: number): void {
    this.#bytes -= bytes
    if (this.isFull || this.#waiting.size === 0) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const go of waiting) go()
  }

  /** Calls once when there is room again; the result takes it back. */
  whenFree (go: () => void): () => void {
    this.#waiting.add(go)
    return () => { this.#waiting.delete(go) }
  }
}
