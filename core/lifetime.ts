/** What one object has opened. `close()` runs once, newest first; whoever calls it again waits for the same end. */
export class Lifetime {
  readonly #abort = new AbortController()
  readonly #closers: Array<() => unknown> = []
  #closing: Promise<void> | undefined

  /** Aborted when closing begins: loops finish the item in hand and take no other. */
  get signal (): AbortSignal { return this.#abort.signal }

  own<T> (thing: T, close: (thing: T) => unknown): T {
    this.#closers.push(() => close(thing))
    return thing
  }

  close (): Promise<void> { return (this.#closing ??= this.#run()) }

  async #run (): Promise<void> {
    this.#abort.abort()
    const failed: unknown[] = []
    // One closer that throws must not keep the others from running, or a broken socket would leak a Redis client.
    for (const close of this.#closers.reverse()) await Promise.resolve().then(close).catch(error => failed.push(error))
    if (failed.length > 0) throw new AggregateError(failed, `something did not close: ${failed.map(String).join('; ')}`)
  }
}
