import type { Clock } from '../core/clock.ts'
import type { MessageRoom } from './tcp/message-room.ts'

interface Needs {
  /** Shared by all channels of a listener. */
  room: MessageRoom
  limits: { readonly maxInHand: number, readonly maxInHandBytes: number }
  /** Reads no further message, until `release`. */
  hold: () => void
  release: () => void
}

/**
 * Messages of one duplex channel that have come and are not settled, and the brake that they are: reading stops while too much is in hand here, or with all channels
 * together; who has nothing in hand is always read.
 */
export class MessagesInHand {
  readonly #needs: Needs
  #count = 0
  #bytes = 0
  #isHeld = false
  #isOver = false
  #leaveRoom: (() => void) | undefined
  #drained: (() => void) | undefined

  constructor (needs: Needs) { this.#needs = needs }

  get isHeld (): boolean { return this.#isHeld }

  take (bytes: number): void {
    this.#count++
    this.#bytes += bytes
    this.#needs.room.take(bytes)
    this.#brake()
  }

  give (bytes: number): void {
    this.#count--
    this.#bytes -= bytes
    this.#needs.room.give(bytes)
    if (this.#count === 0) this.#drained?.()
    this.#brake()
  }

  #brake (): void {
    const { limits, room, hold, release } = this.#needs
    const isTooMuch = !this.#isOver && this.#count > 0 && (this.#count >= limits.maxInHand || this.#bytes >= limits.maxInHandBytes || room.isFull)
    if (isTooMuch && room.isFull) this.#leaveRoom ??= room.whenFree(() => { this.#leaveRoom = undefined; this.#brake() })
    if (isTooMuch === this.#isHeld) return
    this.#isHeld = isTooMuch
    if (isTooMuch) hold()
    else release()
  }

  /** Resolves when nothing is in hand, or after so long, or when the signal aborts. */
  async drained (clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#count === 0) return
    let disarm = (): void => {}
    await new Promise<void>(resolve => {
      this.#drained = resolve
      disarm = clock.after(ms, resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    disarm()
  }

  /** The channel is over: what is still in hand holds nothing up any more. */
  over (): void {
    this.#isOver = true
    this.#leaveRoom?.()
    this.#brake()
  }
}
