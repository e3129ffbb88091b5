import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { systemClock, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { allClosed } from '../all-closed.ts'
import { faultRecord } from '../../wire/framing/encoder.ts'
import type { DuplexEndpoint } from '../channel.ts'
import { MessageRoom } from './message-room.ts'
import { TCP_LIMITS, type TcpLimits } from './limits.ts'
import { ServedConnection, type TlsOptions } from './served-connection.ts'

export interface SoapOverTcp {
  /** What is at the path of a via; undefined: nothing, and the client is told so. */
  route (path: string): DuplexEndpoint | undefined | Promise<DuplexEndpoint | undefined>
  readonly tls?: TlsOptions | undefined
  readonly log: Logger
  readonly clock?: Clock
  readonly limits?: Partial<TcpLimits>
  /** Bytes of messages in hand at once, all connections together. Default 256 MiB. */
  readonly maxReceivingBytes?: number
  /** Connections above this are told that the server is too busy. Default 10,000. */
  readonly maxConnections?: number
  /** Connections whose preamble is not complete; above this the oldest one has to go. Default 1,000. */
  readonly maxPending?: number
}

/** Serves connections that somebody accepted: a listener, or a relay that hands them in. */
export interface TcpServer {
  take (socket: Socket): void
  readonly connections: number
  /** Connections whose first preamble is not complete. */
  readonly pending: number
  /** Ends sessions in order, and cuts what is left after `graceMs` (default 0). */
  close (graceMs?: number): Promise<void>
}

export interface TcpListener {
  /** `net.tcp://host:port`, or the path of the Unix socket. */
  readonly address: string
  readonly port: number
  readonly server: TcpServer
  close (graceMs?: number): Promise<void>
}

const TCP_KEEP_ALIVE_MS = 30_000

export function tcpServer (options: SoapOverTcp): TcpServer {
  const { log, maxConnections = 10_000, maxPending = 1000 } = options
  const needs = { ...options, clock: options.clock ?? systemClock, room: new MessageRoom(options.maxReceivingBytes ?? 268_435_456), limits: { ...TCP_LIMITS, ...options.limits } }
  const open = new Map<Socket, ServedConnection>()
  /** In order of arrival: silent sockets must not keep out those that speak. */
  const pending = new Set<Socket>()

  return {
    get connections () { return open.size },
    get pending () { return pending.size },
    take (socket) {
      if (open.size >= maxConnections) {
        log.warn({ maxConnections }, 'too many net.tcp connections: one was refused')
        socket.on('error', () => { /* it is closed anyway */ })
        socket.end(faultRecord('ServerTooBusy'))
        socket.destroySoon()
        return
      }
      pending.add(socket)
      open.set(socket, new ServedConnection(socket, needs, () => pending.delete(socket)))
      socket.once('close', () => { open.delete(socket); pending.delete(socket) })
      const [oldest] = pending
      if (pending.size > maxPending && oldest !== undefined) {
        log.debug({ maxPending }, 'too many net.tcp connections without a preamble: the oldest one was closed')
        oldest.destroy()
      }
    },
    async close (graceMs = 0) {
      for (const connection of open.values()) connection.close()
      const cut = setTimeout(() => { for (const socket of open.keys()) socket.destroy() }, graceMs)
      await allClosed(open)
      clearTimeout(cut)
    }
  }
}

/** SOAP over net.tcp on an address of its own. */
export async function listenTcp (options: SoapOverTcp & { readonly listen: { path: string } | { host: string, port: number } }): Promise<TcpListener> {
  const server = tcpServer(options)
  const listener = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS, pauseOnConnect: false }, socket => server.take(socket))
  listener.listen(options.listen)
  await once(listener, 'listening')
  const at = listener.address() as AddressInfo | string
  return {
    address: typeof at === 'string' ? at : `net.tcp://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`,
    port: typeof at === 'string' ? 0 : at.port,
    server,
    async close (graceMs = 0) {
      listener.close()
      await server.close(graceMs)
    }
  }
}
