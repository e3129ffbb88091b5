/**
 * How a head reaches the sockets of another machine's workers: over TCP to a head there, which passes the bytes on. One connection here is one connection there, so
 * what is said on it (SOAP, net.tcp, a head's orders, the introduction in front) is as if the socket were here.
 *
 *     ◀ SOA-PEER/1 <nonce>\r\n                          32 hex digits, new for each connection
 *     ▶ <worker> <http|netTcp|control> <proof>\r\n      proof: HMAC-SHA256 of "nonce worker kind" under the secret of the head that is called
 *     ◀▶ bytes
 *
 * The secret lies in the directory of heads in Redis, so it is known to those who are trusted wholly anyway, and it never goes over the wire. A proof that
 * is wrong is answered by the end of the connection.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Logger } from '../core/log.ts'
import { allClosed } from './all-closed.ts'
import { pass } from './pass.ts'

/** The sockets that a worker has. */
export type PeerSocket = 'http' | 'netTcp' | 'control'
const KINDS: ReadonlySet<string> = new Set<PeerSocket>(['http', 'netTcp', 'control'])

const GREETING = /^SOA-PEER\/1 ([0-9a-f]{32})$/
const MAX_LINE_BYTES = 512
/** Both ends have said their line within this time. */
const HANDSHAKE_MS = 5000
const CONNECT_MS = 3000
const KEEP_ALIVE_DELAY_MS = 10_000
const MOST_CONNECTIONS = 20_000

const proofOf = (secret: string, nonce: string, worker: string, kind: string): Buffer => createHmac('sha256', secret).update(`${nonce} ${worker} ${kind}`).digest()

export interface PeerListenerOptions {
  readonly host: string
  /** 0 picks a free one. */
  readonly port: number
  readonly secret: string
  /** Unix socket of a worker of this machine; undefined: it is not here. */
  socketOf (worker: string, kind: PeerSocket): Promise<string | undefined>
  readonly log: Logger
}

export interface PeerListener {
  readonly port: number
  close (): Promise<void>
}

/** Passes connections of other heads on to workers here. */
export async function peerListener ({ host, port, secret, socketOf, log }: PeerListenerOptions): Promise<PeerListener> {
  const ours = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }, socket => {
    ours.add(socket)
    socket.once('close', () => ours.delete(socket))
    socket.on('error', error => log.trace({ err: error }, 'a peer\'s connection broke')) // it ends in 'close'
    take(socket).catch(error => {
      log.warn({ err: error as Error, from: socket.remoteAddress }, 'a peer\'s connection could not be given to anybody')
      socket.destroy()
    })
  })
  server.maxConnections = MOST_CONNECTIONS

  async function take (socket: Socket): Promise<void> {
    const nonce = randomBytes(16).toString('hex')
    socket.write(`SOA-PEER/1 ${nonce}\r\n`)
    const [worker = '', kind = '', proof = '', ...more] = (await readLine(socket))?.split(' ') ?? []
    if (socket.destroyed) return
    const said = Buffer.from(proof, 'hex')
    const right = proofOf(secret, nonce, worker, kind)
    if (more.length > 0 || !KINDS.has(kind) || said.length !== right.length || !timingSafeEqual(said, right)) {
      log.warn({ from: socket.remoteAddress }, 'a connection to the peer port was no head\'s of this cluster')
      socket.destroy()
      return
    }
    const path = await socketOf(worker, kind as PeerSocket)
    if (path === undefined || socket.destroyed) { socket.destroy(); return }
    pass(socket, path, { unreachable: () => socket.destroy(), log })
  }

  server.listen({ host, port })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close () {
      server.close()
      for (const socket of ours) socket.destroy()
      await allClosed(ours)
    }
  }
}

/** A connection to a worker's socket by the head at `address` (HOST:PORT). Paused: whoever gets it reads from the first byte. */
export async function dialPeer (address: string, secret: string, worker: string, kind: PeerSocket): Promise<Socket> {
  const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? []
  const socket = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS })
  let failure: Error | undefined
  socket.on('error', error => { failure = error }) // told below, or it ends in 'close'
  const late = setTimeout(() => socket.destroy(new Error(`no answer within ${CONNECT_MS} ms`)), CONNECT_MS)
  try {
    const line = await readLine(socket)
    const nonce = GREETING.exec(line ?? '')?.[1]
    if (nonce === undefined) throw failure ?? new Error(line === undefined ? 'it closed the connection' : 'no head of ours answers there')
    socket.write(`${worker} ${kind} ${proofOf(secret, nonce, worker, kind).toString('hex')}\r\n`)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(late)
  }
}

/** Bytes both ways between two sockets for the rest of their lives. Each may end its half first; one that breaks breaks the other. */
export function join (a: Socket, b: Socket): void {
  for (const [one, other] of [[a, b], [b, a]] as const) {
    one.on('error', () => other.destroy())
    one.once('close', () => { if (!one.readableEnded) other.destroy() })
    one.pipe(other)
  }
}

/** The first line, without its end; what follows is put back. undefined: the connection ended, was too late or said too much, and is closed. */
function readLine (socket: Socket): Promise<string | undefined> {
  return new Promise(resolve => {
    let bytes: Buffer = Buffer.alloc(0)
    const done = (line: string | undefined): void => {
      clearTimeout(timer)
      socket.off('readable', look)
      socket.off('end', ended)
      socket.off('close', ended)
      if (line === undefined) socket.destroy()
      resolve(line)
    }
    const ended = (): void => done(undefined)
    const timer = setTimeout(ended, HANDSHAKE_MS)
    const look = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
        const end = bytes.indexOf('\r\n')
        if (end < 0 && bytes.length <= MAX_LINE_BYTES) continue
        if (end < 0 || end > MAX_LINE_BYTES) { done(undefined); return }
        done(bytes.toString('latin1', 0, end))
        // Before anything else can happen: a stream that has given its last byte and seen the end takes nothing back.
        if (bytes.length > end + 2) socket.unshift(bytes.subarray(end + 2))
        return
      }
    }
    socket.on('readable', look)
    socket.once('end', ended)
    socket.once('close', ended)
  })
}
