import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { isSoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { allClosed } from '../all-closed.ts'
import { FrameDecoder } from '../../wire/framing/decoder.ts'
import { faultRecord } from '../../wire/framing/encoder.ts'
import { framingFault, type FramingFault } from '../../wire/framing/faults.ts'
import { endSoon, pass } from '../pass.ts'
import type { TcpServer } from './listener.ts'
import { limitSegments } from './segment-size.ts'
import { parseVia } from './via.ts'

/** The Unix socket that gets the connection for its whole life, or this process itself. */
export type TcpDestination = { readonly to: string } | { readonly here: true }

export interface TcpRelayOptions {
  readonly host: string
  readonly port: number
  /** Where the connections go that open this path; undefined: nothing is there. Asked once for each connection, which is not read meanwhile. */
  decide (path: string): Promise<TcpDestination | undefined>
  /** Gets the connections that stay here. */
  readonly server: TcpServer
  readonly log: Logger
  /** A via is there within this time; default 30 s. */
  readonly preambleTimeoutMs?: number
  /** Connections above this are told that the server is too busy; default 10,000. */
  readonly maxConnections?: number
  /** Connections whose via is not known yet; above this the oldest one has to go. Default 1,000. */
  readonly maxPending?: number
}

export interface TcpRelay {
  /** `net.tcp://host:port` */
  readonly address: string
  readonly port: number
  /** Relayed connections, and those whose via is not known yet. */
  readonly connections: number
  /** Takes no more, lets relayed connections go on for `graceMs` (default 0), then cuts them. Those that stay here are the server's to close. */
  close (graceMs?: number): Promise<void>
}

const KEEP_ALIVE_DELAY_MS = 30_000
const NO_LIMIT = 2 ** 31 - 1

/**
 * One port for all that is served over net.tcp: the via in a connection's preamble says who gets it, and from then on only bytes are passed on. TLS, which
 * comes behind the via, is the far process's affair.
 */
export async function tcpRelay (options: TcpRelayOptions): Promise<TcpRelay> {
  const { log, decide, maxConnections = 10_000, maxPending = 1000 } = options
  const ours = new Set<Socket>()
  const pending = new Set<Socket>()
  const listener = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, socket => {
    const ignore = (error: Error): void => { log.trace({ err: error }, 'a connection broke') }
    socket.on('error', ignore) // it ends in 'close', where all is tidied up
    if (ours.size >= maxConnections) {
      log.warn({ maxConnections }, 'too many net.tcp connections: one was refused')
      refuse(socket, 'ServerTooBusy')
      return
    }
    ours.add(socket)
    pending.add(socket)
    socket.once('close', () => { ours.delete(socket); pending.delete(socket) })
    const [oldest] = pending
    if (pending.size > maxPending && oldest !== undefined) {
      log.debug({ maxPending }, 'too many net.tcp connections without a via: the oldest one was closed')
      oldest.destroy()
    }
    take(socket).catch(error => {
      const fault = framingFault(error)
      if (isSoaError(error, 'badFrame')) log.info({ err: error }, 'a net.tcp connection was refused')
      else log.error({ err: error as Error }, 'a net.tcp connection could not be given to anybody')
      refuse(socket, isSoaError(error, 'badFrame') ? fault : 'EndpointUnavailable')
    })

    async function take (socket: Socket): Promise<void> {
      const via = await readVia(socket, options.preambleTimeoutMs ?? 30_000)
      pending.delete(socket)
      if (via === undefined || socket.destroyed) return
      const path = parseVia(via)?.path
      const destination = path === undefined ? undefined : await decide(path)
      if (socket.destroyed) return
      if (destination === undefined) {
        log.info({ via: via.slice(0, 200) }, 'a net.tcp connection to an address where nothing is')
        refuse(socket, 'EndpointNotFound')
      } else if ('to' in destination) pass(socket, destination.to, { unreachable: () => refuse(socket, 'EndpointUnavailable'), log })
      else {
        ours.delete(socket)
        socket.off('error', ignore)
        options.server.take(socket)
        socket.resume()
      }
    }
  })
  listener.listen({ host: options.host, port: options.port })
  await once(listener, 'listening')
  // Not waited for: who connects before it is done has large segments, and all else works.
  const limiting = limitSegments(listener).then(isSet => { if (!isSet) log.info('neither perl nor python3 could set the segment size: .NET clients on this machine read large messages slowly') })
  const { address, family, port } = listener.address() as AddressInfo

  return {
    address: `net.tcp://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    port,
    get connections () { return ours.size },
    async close (graceMs = 0) {
      listener.close()
      const cut = setTimeout(() => { for (const socket of ours) socket.destroy() }, graceMs)
      await allClosed(ours)
      clearTimeout(cut)
      await limiting // the program that does it holds the port
    }
  }
}

function refuse (socket: Socket, fault: FramingFault | undefined): void {
  if (socket.destroyed) return
  if (fault === undefined) { socket.destroy(); return }
  socket.end(faultRecord(fault))
  socket.resume()
  endSoon(socket)
}

/** Reads up to the encoding in paused mode and puts all back: whoever has the socket next reads it from its first byte. undefined: it ended, or took too long. */
function readVia (socket: Socket, timeoutMs: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const decoder = new FrameDecoder({ of: 'client', maxMessageSize: NO_LIMIT })
    let bytes: Buffer = Buffer.alloc(0)
    const done = (): void => {
      clearTimeout(timer)
      socket.off('readable', look)
      socket.off('end', ended)
      socket.off('close', ended)
    }
    const ended = (): void => { done(); socket.destroy(); resolve(undefined) }
    const timer = setTimeout(ended, timeoutMs)
    const look = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
        try {
          const frame = decoder.push(chunk).next()
          if (frame === undefined) continue
          done()
          // Before anything else can happen: a stream that has given its last byte and seen the end takes nothing back.
          socket.unshift(bytes)
          // In a client's first frame there is nothing else.
          resolve(frame.kind === 'preamble' ? frame.via : undefined)
        } catch (error) {
          done()
          reject(error as Error)
        }
        return
      }
    }
    socket.on('readable', look)
    socket.once('end', ended)
    socket.once('close', ended)
  })
}
