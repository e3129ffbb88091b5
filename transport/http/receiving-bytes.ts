/** Room is given out in pieces of this size, as a body comes: a sender holds what it has sent and little more, whatever it announces. */
export const STEP_BYTES = 65_536

/** Room of one body. */
export interface Room {
  /** The body has so many bytes now. A promise when there is no room for more of it yet: it resolves when there is, and rejects when the room was given back. */
  hold (bytes: number): Promise<void> | undefined
  /** Gives all back; again: nothing happens. */
  release (): void
}

interface Held { bytes: number, readonly order: number, released: boolean }
interface Turn { readonly held: Held, readonly bytes: number, readonly admit: () => void, readonly refuse: () => void }

/**
 * Bytes of bodies that may be on their way in at once. Who does not fit waits in line with its socket unread. Bodies that have begun come before new ones,
 * those that began first before others; and so that bodies that all wait for more can never wait for each other, one at a time may go beyond the limit:
 * what is held is the limit and one message at most.
 */
export class ReceivingBytes {
  readonly #limit: number
  #held = 0
  #count = 0
  readonly #entering: Turn[] = []
  /** In the order in which they were let in. */
  readonly #growing: Turn[] = []
  /** Who may go beyond the limit now. */
  #beyond: Held | undefined

  constructor (limit: number) { this.#limit = limit }

  /** Bytes given out. */
  get held (): number { return this.#held }

  /** Resolves once there is room for the first piece of a body of so many bytes. Rejects with the signal's reason. */
  async take (announced: number, caller: { readonly signal: AbortSignal }): Promise<Room> {
    const held: Held = { bytes: 0, order: this.#count++, released: false }
    const bytes = Math.min(announced, STEP_BYTES, this.#limit)
    if (this.#entering.length > 0 || this.#growing.length > 0 || this.#held + bytes > this.#limit) await this.#enter(held, bytes, caller.signal)
    else this.#give(held, bytes)
    return { hold: bytes => this.#hold(held, bytes), release: () => this.#release(held) }
  }

  #give (held: Held, bytes: number): void {
    held.bytes += bytes
    this.#held += bytes
  }

  #enter (held: Held, bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn: Turn = { held, bytes, admit: () => { signal.removeEventListener('abort', leave); resolve() }, refuse: () => {} }
      const leave = (): void => {
        this.#entering.splice(this.#entering.indexOf(turn), 1)
        this.#admit()
        reject(signal.reason as Error)
      }
      if (signal.aborted) { reject(signal.reason as Error); return }
      signal.addEventListener('abort', leave, { once: true })
      this.#entering.push(turn)
    })
  }

  #hold (held: Held, bytes: number): Promise<void> | undefined {
    if (bytes <= held.bytes || held.released) return undefined
    const more = Math.ceil((bytes - held.bytes) / STEP_BYTES) * STEP_BYTES
    if (this.#beyond === held || (this.#growing.length === 0 && this.#held + more <= this.#limit)) {
      this.#give(held, more)
      return undefined
    }
    return new Promise((resolve, reject) => {
      const turn: Turn = { held, bytes: more, admit: resolve, refuse: () => reject(new Error('the room was given back')) }
      const at = this.#growing.findIndex(other => other.held.order > held.order)
      this.#growing.splice(at < 0 ? this.#growing.length : at, 0, turn)
      this.#admit()
    })
  }

  #release (held: Held): void {
    if (held.released) return
    held.released = true
    this.#held -= held.bytes
    if (this.#beyond === held) this.#beyond = undefined
    const at = this.#growing.findIndex(turn => turn.held === held)
    if (at >= 0) this.#growing.splice(at, 1)[0]?.refuse()
    this.#admit()
  }

  #admit (): void {
    for (let next = this.#growing[0]; next !== undefined; next = this.#growing[0]) {
      if (this.#held + next.bytes > this.#limit) {
        if (this.#beyond !== undefined) return
        this.#beyond = next.held
      }
      this.#growing.shift()
      this.#give(next.held, next.bytes)
      next.admit()
    }
    for (let next = this.#entering[0]; next !== undefined && this.#held + next.bytes <= this.#limit; next = this.#entering[0]) {
      this.#entering.shift()
      this.#give(next.held, next.bytes)
      next.admit()
    }
  }
}
