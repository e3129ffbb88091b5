/** So many at a time, and urgent ones first. Who waits has what it waits with in hand already, so the line needs no bound of its own. */
export class Turns {
  readonly #urgent: Array<() => void> = []
  readonly #others: Array<() => void> = []
  #free: number

  constructor (atATime: number) { this.#free = atATime }

  async run<T> (isUrgent: boolean, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>(resolve => (isUrgent ? this.#urgent : this.#others).push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#urgent.shift() ?? this.#others.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
