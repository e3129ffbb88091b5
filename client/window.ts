/**
 * How many things may be in flight, and a gate to close for a while.
 *
 * `flush` counts what was sent, and the broker compares that count exactly, so nothing may be sent while it is asked:
 * `quiet` waits until nothing is in flight, runs alone, and then lets the waiting ones in, in the order they came.
 */
export class Window {
  readonly #size: number
  #inFlight = 0
  #isClosed = false
  /** In the order they came; one that gave up stays in its place, marked, until its turn. */
  readonly #waiting: Array<{ enter: () => void, hasLeft: boolean }> = []
  #whenEmpty: (() => void) | undefined
  #alone: Promise<unknown> = Promise.resolve()

  /** @param size 1 … */
  constructor (size: number) { this.#size = size }

  get inFlight (): number { return this.#inFlight }

  /** Runs `work` as soon as there is room. Rejects with the signal's reason if it aborts while waiting. */
  async run<T> (work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#isClosed || this.#inFlight >= this.#size) await this.#wait(signal)
    else this.#inFlight++
    try {
      return await work()
    } finally {
      this.#inFlight--
      this.#admit()
    }
  }

  /** Runs `work` while nothing is in flight, one such at a time. */
  quiet<T> (work: () => Promise<T>): Promise<T> {
    const mine = this.#alone.then(async () => {
      this.#isClosed = true
      try {
        if (this.#inFlight > 0) await new Promise<void>(resolve => { this.#whenEmpty = resolve })
        return await work()
      } finally {
        this.#isClosed = false
        this.#admit()
      }
    })
    this.#alone = mine.catch(() => {}) // the caller of this one hears of its failure; the next one only waits for its end
    return mine
  }

  #wait (signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const place = { enter: (): void => { signal?.removeEventListener('abort', leave); resolve() }, hasLeft: false }
      const leave = (): void => { place.hasLeft = true; reject(signal?.reason as Error) }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(place)
    })
  }

  /** The place is taken here and not by the one let in: between the two somebody else could come. */
  #admit (): void {
    if (this.#inFlight === 0 && this.#whenEmpty) { const tell = this.#whenEmpty; this.#whenEmpty = undefined; tell() }
    while (!this.#isClosed && this.#inFlight < this.#size) {
      const next = this.#waiting.shift()
      if (!next) return
      if (next.hasLeft) continue
      this.#inFlight++
      next.enter()
    }
  }
}
