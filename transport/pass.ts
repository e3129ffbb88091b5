import { connect, type Socket } from 'node:net'
import type { Logger } from '../core/log.ts'

export interface Passing {
  /** Line in front of the connection's bytes: who is at its other end (introduction.ts). */
  readonly introduction?: string | undefined
  /** The far process cannot be reached: says so to the client, in its protocol, and ends the connection. */
  unreachable (): void
  readonly log: Logger
}

/** How long a client may take to close its side of a connection that is over. */
const LINGER_MS = 2000

/** Bytes both ways for the rest of the connection's life. Each side may end its half first; an error on one side is an error on the other. */
export function pass (socket: Socket, path: string, { introduction, unreachable, log }: Passing): void {
  const far = connect({ path, allowHalfOpen: true })
  // It leaves with the first bytes of the connection, in one piece.
  if (introduction !== undefined) far.write(introduction, 'latin1')
  let connected = false
  far.once('connect', () => { connected = true })
  far.on('error', error => {
    if (!connected) {
      log.warn({ path, err: error }, 'the process that a connection is for cannot be reached')
      socket.unpipe(far)
      unreachable()
    } else if (far.readableEnded) {
      // It has said all it had to say and does not listen any more: the client shall get that, not a reset.
      socket.unpipe(far)
      socket.resume()
    } else socket.resetAndDestroy()
  })
  far.once('end', () => endSoon(socket))
  far.once('close', () => { if (connected && !far.readableEnded) socket.destroy() })
  socket.once('close', () => far.destroy())
  socket.pipe(far)
  far.pipe(socket)
}

/**
 * Nothing more will be said on this socket. The client may still be sending, and closing under it would take the last words away, so it gets a moment
 * from when they have left.
 */
export function endSoon (socket: Socket): void {
  let timer: NodeJS.Timeout | undefined
  const begin = (): void => { timer = setTimeout(() => socket.destroy(), LINGER_MS) }
  if (socket.writableFinished) begin()
  else socket.once('finish', begin)
  socket.once('close', () => clearTimeout(timer))
}
