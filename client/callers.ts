import type { SoapCaller } from '../transport/channel.ts'

interface Kept { readonly caller: SoapCaller, calls: number, isLeaving: boolean }

/** Callers by key, each made by its first call and closed when it is let go of; the next call makes another one. */
export class Callers {
  readonly #make: (key: string | undefined) => SoapCaller
  readonly #kept = new Map<string | undefined, Kept>()
  /** Let go of, with calls that are not answered yet. */
  readonly #leaving = new Set<Kept>()

  constructor (make: (key: string | undefined) => SoapCaller) { this.#make = make }

  async call (key: string | undefined, ...[envelope, options]: Parameters<SoapCaller['call']>): ReturnType<SoapCaller['call']> {
    let kept = this.#kept.get(key)
    if (kept === undefined) this.#kept.set(key, kept = { caller: this.#make(key), calls: 0, isLeaving: false })
    kept.calls++
    try {
      return await kept.caller.call(envelope, options)
    } finally {
      if (--kept.calls === 0 && kept.isLeaving) { this.#leaving.delete(kept); await kept.caller.close() }
    }
  }

  /** Its connections are closed as soon as nobody waits for an answer on them. Resolves when that is done; where somebody waits, at once. */
  async release (key: string | undefined): Promise<void> {
    const kept = this.#kept.get(key)
    if (kept === undefined) return
    this.#kept.delete(key)
    if (kept.calls === 0) { await kept.caller.close(); return }
    kept.isLeaving = true
    this.#leaving.add(kept)
  }

  /** None of them is of use any more: each key's next call makes another one. */
  async renew (): Promise<void> { await Promise.all([...this.#kept.keys()].map(key => this.release(key))) }

  /** All of them, calls that wait too. */
  async close (): Promise<void> {
    const all = [...this.#kept.values(), ...this.#leaving]
    this.#kept.clear()
    this.#leaving.clear()
    await Promise.all(all.map(({ caller }) => caller.close()))
  }
}
