/**
 * Who is at the far end of a connection that one process of ours took and another one serves: a line in front of its bytes, as reverse proxies write it
 * (the PROXY protocol, version 1, https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt):
 *
 *     PROXY TCP4 192.0.2.7 10.0.0.1 51324 8080\r\n      the caller's address, the one that it reached, and their ports
 *     PROXY UNKNOWN\r\n                                 a caller that was gone before it could be looked at
 *
 * Only the front door writes it, and always: a client cannot, because its own first bytes come behind. A connection without it was opened by a process of
 * ours, for nobody else can open the socket.
 */
import { isIP, type Server, type Socket } from 'node:net'

/** The far end of a connection. */
export interface Caller {
  /** IP address; undefined: unknown. */
  readonly peer?: string | undefined
  /** What it connected to, as it stands in a URL: `10.0.0.1:8080`, `[::1]:8080`. */
  readonly reached?: string | undefined
  /** A process of ours, which speaks for a caller that it has looked at. */
  readonly isOurs: boolean
}

/** [proxy-protocol] 2.1: the longest line, its end included. */
const MAX_LINE_BYTES = 107
const SIGNATURE = Buffer.from('PROXY ')
const LINE = /^PROXY (?:UNKNOWN(?: .*)?|TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5}))$/

const introduced = new WeakMap<Socket, Caller>()

/** An IPv4 address in IPv6's dress is told as what it is. */
const plain = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
const authority = (address: string, port: number | string): string => isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`

/** What was said of a connection, else what can be seen of it. */
export function callerOf (socket: Socket): Caller {
  const said = introduced.get(socket)
  if (said !== undefined) return said
  const { remoteAddress, localAddress, localPort } = socket
  // A Unix socket has no addresses; one of TCP whose caller has just reset it still has its own.
  if (remoteAddress === undefined || localAddress === undefined || localPort === undefined) return { isOurs: localAddress === undefined && !socket.destroyed }
  return { peer: plain(remoteAddress), reached: authority(plain(localAddress), localPort), isOurs: false }
}

/** The line for a connection that is passed on. */
export function introduction ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  if (remoteAddress === undefined || localAddress === undefined) return 'PROXY UNKNOWN\r\n'
  const [from, to] = [plain(remoteAddress), plain(localAddress)]
  return isIP(from) !== isIP(to) ? 'PROXY UNKNOWN\r\n' : `PROXY TCP${isIP(from)} ${from} ${to} ${remotePort} ${localPort}\r\n`
}

/**
 * Reads the line off a connection that has just come, if there is one, and puts back what follows: whoever has the socket next reads it from the caller's
 * own first byte, and `callerOf` knows who that is. Resolves to false when the connection was ended meanwhile: it said no line in time, or a wrong one.
 */
export function takeIntroduction (socket: Socket, timeoutMs: number): Promise<boolean> {
  return new Promise(resolve => {
    let bytes: Buffer = Buffer.alloc(0)
    const done = (isAlive: boolean): void => {
      clearTimeout(timer)
      socket.off('readable', look)
      socket.off('end', ended)
      socket.off('close', ended)
      if (!isAlive) socket.destroy()
      resolve(isAlive)
    }
    const ended = (): void => done(false)
    const timer = setTimeout(ended, timeoutMs)
    const look = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null) {
        bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk])
        const start = bytes.subarray(0, SIGNATURE.length)
        if (start.equals(SIGNATURE.subarray(0, start.length))) {
          const end = bytes.indexOf('\r\n')
          if (end < 0 && bytes.length < MAX_LINE_BYTES) continue
          const caller = end < 0 || end + 2 > MAX_LINE_BYTES ? undefined : callerIn(bytes.toString('latin1', 0, end))
          if (caller === undefined) { done(false); return }
          introduced.set(socket, caller)
          bytes = bytes.subarray(end + 2)
        }
        done(true)
        // Before anything else can happen: a stream that has given its last byte and seen the end takes nothing back.
        if (bytes.length > 0) socket.unshift(bytes)
        return
      }
    }
    socket.on('readable', look)
    socket.once('end', ended)
    socket.once('close', ended)
  })
}

/** The server's own listener hears of a connection when its first line, if it has one, is read. For servers on Unix sockets that only processes of ours can open. */
export function readIntroductions (server: Server, timeoutMs: number): void {
  const [serve] = server.listeners('connection') as Array<(socket: Socket) => void>
  if (serve === undefined) throw new Error('a server that does not listen to its connections')
  server.off('connection', serve)
  server.on('connection', (socket: Socket) => {
    const ignore = (): void => {} // an error ends in 'close'
    socket.on('error', ignore)
    void takeIntroduction(socket, timeoutMs).then(isAlive => {
      socket.off('error', ignore)
      if (!isAlive || socket.destroyed) return
      serve.call(server, socket)
      socket.resume()
    })
  })
}

function callerIn (line: string): Caller | undefined {
  const found = LINE.exec(line)
  if (found === null) return undefined
  const [, family, peer = '', reached = '', , port = ''] = found
  if (family === undefined) return { isOurs: false }
  return isIP(peer) === Number(family) && isIP(reached) === Number(family) ? { peer, reached: authority(reached, port), isOurs: false } : undefined
}
