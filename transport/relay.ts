import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Logger } from '../core/log.ts'
import { allClosed } from './all-closed.ts'
import { introduction } from './introduction.ts'
import { endSoon, pass } from './pass.ts'

/** What is known of a connection when it has to be decided where it goes: its first request line, and what came with it. */
export interface ConnectionHead {
  readonly method: string
  /** Path of the request, without query. */
  readonly path: string
  /** All bytes read so far: the request line, and whatever of the headers and body came along. */
  readonly bytes: Buffer
}

/** The Unix socket that gets the connection for its whole life, told who is at its other end if `isIntroduced` (introduction.ts); or this process's own HTTP server. */
export type Destination = { readonly to: string, readonly isIntroduced?: boolean } | { readonly http: true }

export interface RelayOptions {
  readonly host: string
  readonly port: number
  /** Asked once for each connection, which is not read meanwhile. */
  decide (head: ConnectionHead): Promise<Destination>
  /**
   * Gets the connections that are not relayed, those that do not speak HTTP among them. It should listen on a Unix socket of its own: only a server that
   * listens minds its timeouts, and the far processes send it the requests that are not theirs there.
   */
  readonly httpServer: HttpServer
  readonly log: Logger
  /** Longest request line, with the bytes that came before it; default 16 KiB. */
  readonly maxHeadBytes?: number
  /** A connection whose request line is not there after so long is closed; default 2 min. */
  readonly firstByteTimeoutMs?: number
  /** Connections above this are closed as they come; default 10,000. */
  readonly maxConnections?: number
}

export interface RelayListener {
  /** `http://host:port` */
  readonly address: string
  readonly port: number
  /** Takes no more, lets relayed connections go on for `graceMs` (default 0), then cuts them. Those of the HTTP server are that server's to close. */
  close (graceMs?: number): Promise<void>
}

const KEEP_ALIVE_DELAY_MS = 30_000
const REQUEST_LINE = /^([A-Z]{1,32}) (\S+) HTTP\/1\.[01]\r?$/

/**
 * The front door: looks at the first request line of each connection and then passes on bytes, to the process that serves the session it names, without a look at them.
 * The far process sees the connection as the client opened it, and answers requests for other paths on it with the help of forward.ts.
 */
export async function relayListener (options: RelayOptions): Promise<RelayListener> {
  const { log } = options
  const ours = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, socket => {
    ours.add(socket)
    socket.once('close', () => ours.delete(socket))
    // An error ends in 'close', which is where all is tidied up; a client that resets its connection is no news.
    const ignore = (error: Error): void => { log.trace({ err: error }, 'a connection broke') }
    socket.on('error', ignore)
    take(socket, options).then(destination => {
      if (destination === undefined || socket.destroyed) return
      if ('to' in destination) { pass(socket, destination.to, { introduction: destination.isIntroduced === true ? introduction(socket) : undefined, unreachable: () => farewell(socket, '503 Service Unavailable'), log }); return }
      ours.delete(socket)
      socket.off('error', ignore)
      options.httpServer.emit('connection', socket)
      socket.resume()
    }).catch(error => {
      log.error({ err: error as Error }, 'a connection could not be given to anybody')
      farewell(socket, '503 Service Unavailable')
    })
  })
  server.maxConnections = options.maxConnections ?? 10_000
  server.on('drop', () => log.warn({ maxConnections: server.maxConnections }, 'too many connections: one was closed'))
  server.listen({ host: options.host, port: options.port })
  await once(server, 'listening')
  const { address, family, port } = server.address() as AddressInfo

  return {
    address: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    port,
    async close (graceMs = 0) {
      server.close()
      const cut = setTimeout(() => { for (const socket of ours) socket.destroy() }, graceMs)
      await allClosed(ours)
      clearTimeout(cut)
    }
  }
}

/** Reads until the request line is complete, asks where the connection goes. undefined: it was ended here. */
async function take (socket: Socket, options: RelayOptions): Promise<Destination | undefined> {
  const head = await readHead(socket, options.maxHeadBytes ?? 16_384, options.firstByteTimeoutMs ?? 120_000)
  if (head === undefined) return undefined
  const { bytes, line } = head
  const found = REQUEST_LINE.exec(line)
  // What is no HTTP gets the HTTP server's own answer to that.
  return found === null ? { http: true } : await options.decide({ method: found[1] as string, path: pathOf(found[2] as string), bytes })
}

/** The target without its query; a target may be a whole URL. */
const pathOf = (target: string): string => target.replace(/^https?:\/\/[^/?]*/i, '').replace(/[?#].*$/s, '') || '/'

/**
 * Reads in paused mode and puts all back: whoever has the socket next reads the connection from its first byte, and meanwhile a full buffer (64 KiB at most)
 * makes the sender wait. It is put back before anything else can happen, because a stream that has given its last byte and seen the end takes nothing back.
 */
function readHead (socket: Socket, maxHeadBytes: number, timeoutMs: number): Promise<{ bytes: Buffer, line: string } | undefined> {
  return new Promise(resolve => {
    let bytes: Buffer = Buffer.alloc(0)
    const done = (result: { bytes: Buffer, line: string } | undefined): void => {
      clearTimeout(timer)
      socket.off('readable', look)
      socket.off('end', ended)
      socket.off('close', ended)
      resolve(result)
    }
    const refuse = (status: string): void => {
      farewell(socket, status)
      done(undefined)
    }
    const timer = setTimeout(() => {
      if (bytes.length > 0) refuse('408 Request Timeout')
      else { socket.destroy(); done(undefined) }
    }, timeoutMs)
    const look = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
        // Empty lines before the request are allowed and mean nothing. [RFC 9112] 2.2
        let from = 0
        while (bytes[from] === 0x0d || bytes[from] === 0x0a) from++
        const end = bytes.indexOf(0x0a, from)
        if (end > maxHeadBytes || (end < 0 && bytes.length > maxHeadBytes)) { refuse('431 Request Header Fields Too Large'); return }
        if (end < 0) continue
        done({ bytes, line: bytes.toString('latin1', from, end) })
        socket.unshift(bytes)
        return
      }
    }
    const ended = (): void => {
      socket.destroy()
      done(undefined)
    }
    socket.on('readable', look)
    socket.once('end', ended)
    socket.once('close', ended)
  })
}

/** Says why in the one form that an HTTP client understands, and closes. */
function farewell (socket: Socket, status: string): void {
  if (socket.destroyed) return
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  socket.resume()
  endSoon(socket)
}
