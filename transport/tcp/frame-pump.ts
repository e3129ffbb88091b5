import type { Socket } from 'node:net'
import type { Frame, FrameDecoder } from '../../wire/framing/decoder.ts'

export interface FramePumpNeeds {
  decoder: FrameDecoder
  /** One frame. While a promise is open nothing more is read, neither from the decoder nor from the socket. */
  take (frame: Frame): void | Promise<void>
  /** The bytes are no frames, or `take` failed. Nothing is read any more. */
  failed (error: unknown): void
  /** The peer has ended its side; all frames before that were taken. */
  ended (): void
}

/** Socket → frames, one at a time, with a brake. Errors of the socket are its owner's. */
export class FramePump {
  readonly #needs: FramePumpNeeds
  #socket: Socket
  #holds = 0
  #isPumping = false
  #isOver = false
  #hasEnded = false

  constructor (socket: Socket, needs: FramePumpNeeds) {
    this.#socket = socket
    this.#needs = needs
    this.#listen()
  }

  /** Reads no further frame until `release` was called as often. */
  hold (): void {
    this.#holds++
    this.#socket.pause()
  }

  release (): void {
    this.#holds--
    this.#pump()
  }

  /** No further frame, whatever comes. */
  stop (): void {
    this.#isOver = true
    this.#unlisten()
  }

  /** Lets go of the socket, for an upgrade: what has come behind the upgrade's record is put back on it. */
  detach (): void {
    this.#unlisten()
    this.#socket.pause()
    const rest = this.#needs.decoder.takeRest()
    if (rest.length > 0) this.#socket.unshift(rest)
  }

  /** Goes on with what carries the frames now. */
  attach (socket: Socket): void {
    this.#socket = socket
    this.#listen()
    if (this.#holds > 0) socket.pause()
  }

  readonly #data = (chunk: Buffer): void => {
    this.#needs.decoder.push(chunk)
    this.#pump()
  }

  readonly #end = (): void => {
    this.#hasEnded = true
    this.#pump()
  }

  #listen (): void { this.#socket.on('data', this.#data).once('end', this.#end) }
  #unlisten (): void { this.#socket.off('data', this.#data).off('end', this.#end) }

  #pump (): void {
    if (this.#isPumping || this.#isOver) return
    this.#isPumping = true
    try {
      while (this.#holds === 0 && !this.#isOver) {
        const frame = this.#needs.decoder.next()
        if (frame === undefined) break
        const taken = this.#needs.take(frame)
        if (taken instanceof Promise) {
          this.hold()
          taken.then(() => this.release(), error => this.#fail(error))
        }
      }
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isPumping = false
    }
    if (this.#holds > 0 || this.#isOver) return
    if (this.#hasEnded) { this.stop(); this.#needs.ended() } else if (this.#socket.isPaused()) this.#socket.resume()
  }

  #fail (error: unknown): void {
    if (this.#isOver) return
    this.stop()
    this.#needs.failed(error)
  }
}
