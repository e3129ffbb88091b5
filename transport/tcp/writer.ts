import type { Socket } from 'node:net'

/** Writes what comes within one turn of the event loop as one piece: many small messages, one packet and one system call. */
export class CoalescingWriter {
  readonly #socket: Socket
  #isCorked = false

  constructor (socket: Socket) { this.#socket = socket }

  /** Resolves when the kernel has all of it; rejects when the socket is gone first. */
  write (pieces: readonly Buffer[]): Promise<void> {
    const socket = this.#socket
    if (socket.destroyed || socket.writableEnded) return Promise.reject(new Error('the socket is closed'))
    if (!this.#isCorked) {
      this.#isCorked = true
      socket.cork()
      setImmediate(() => { this.#isCorked = false; socket.uncork() })
    }
    return new Promise((resolve, reject) => {
      const last = pieces.length - 1
      for (let i = 0; i < last; i++) socket.write(pieces[i] as Buffer)
      socket.write(pieces[last] as Buffer, error => { if (error) reject(error); else resolve() })
    })
  }
}
