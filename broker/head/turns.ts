import { SoaError } from '../../core/errors.ts'

/** One at a time for each key, in the order of asking; different keys do not wait for one another. Holds nothing of a key that nobody uses. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Somebody is at it, or waits to be. */
  isTaken (key: string): boolean { return this.#last.has(key) }

  async run<T> (key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key)
    const mine = (async () => { await before?.catch(() => {}); return work() })() // the one before told its own caller how it went
    this.#last.set(key, mine)
    try { return await mine } finally { if (this.#last.get(key) === mine) this.#last.delete(key) }
  }
}

/** One run for each key at a time, whose result all who ask meanwhile share. */
export class Shared<T> {
  readonly #running = new Map<string, Promise<T>>()

  run (key: string, work: () => Promise<T>): Promise<T> {
    let running = this.#running.get(key)
    if (running === undefined) {
      running = work().finally(() => this.#running.delete(key))
      this.#running.set(key, running)
    }
    return running
  }
}

/** At most `width` at work and `depth` waiting; whoever comes after that is refused at once with `refused`. */
export class Gate {
  readonly #name: string
  readonly #width: number
  readonly #depth: number
  readonly #waiting: Array<() => void> = []
  #busy = 0

  constructor (name: string, limits: { width: number, depth: number }) {
    this.#name = name
    this.#width = limits.width
    this.#depth = limits.depth
  }

  async run<T> (work: () => Promise<T>): Promise<T> {
    if (this.#busy >= this.#width) {
      if (this.#waiting.length >= this.#depth) throw new SoaError('refused', { why: `${this.#name}: ${this.#width} under way and ${this.#depth} waiting, which is the limit; try again in a moment` })
      await new Promise<void>(resolve => this.#waiting.push(resolve)) // whoever leaves hands its place over, so nobody can slip in between
    } else {
      this.#busy++
    }
    try { return await work() } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#busy--; else next()
    }
  }
}
