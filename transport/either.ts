import { once } from 'node:events'
import type { Socket } from 'node:net'
import { closeHttp, soapServer, type SoapOverHttp } from './http/listener.ts'
import { tcpServer, type SoapOverTcp } from './tcp/listener.ts'

export interface EitherListener {
  /** Takes no more, lets what is in hand finish for `graceMs` (default 0), then cuts. */
  close (graceMs?: number): Promise<void>
}

/** First byte of a net.tcp connection: its Version record. No HTTP request begins with it. */
const NET_TCP = 0
const FIRST_BYTE_MS = 120_000

/** One port for SOAP over HTTP and over net.tcp: the first byte of a connection says which. */
export async function listenEither (options: { listen: { host: string, port: number }, http: SoapOverHttp, netTcp: SoapOverTcp }): Promise<EitherListener> {
  // It is HTTP's server that listens: only one that does minds its timeouts and can close its connections.
  const http = soapServer(options.http)
  const netTcp = tcpServer(options.netTcp)
  const [serve] = http.listeners('connection') as Array<(socket: Socket) => void>
  if (serve === undefined) throw new Error('a server that does not listen to its connections')
  http.off('connection', serve)
  const undecided = new Set<Socket>()
  http.on('connection', (socket: Socket) => {
    undecided.add(socket)
    decide(socket, isNetTcp => {
      undecided.delete(socket)
      if (socket.destroyed) return
      if (isNetTcp) netTcp.take(socket)
      else serve.call(http, socket)
      socket.resume()
    })
  })
  http.listen(options.listen)
  await once(http, 'listening')
  return {
    async close (graceMs = 0) {
      for (const socket of undecided) socket.destroy()
      await Promise.all([closeHttp(http, graceMs), netTcp.close(graceMs)])
    }
  }
}

/** Looks at the first byte and puts it back; a connection that ends before it, or sends none in time, is closed. */
function decide (socket: Socket, done: (isNetTcp: boolean) => void): void {
  const ignore = (): void => {} // an error ends in 'close'
  const settle = (chunk: Buffer | undefined): void => {
    clearTimeout(timer)
    for (const [event, hear] of [['error', ignore], ['readable', look], ['end', gone], ['close', gone]] as const) socket.off(event, hear)
    // Before anything else can happen: a stream that has given its last byte and seen the end takes nothing back.
    if (chunk !== undefined) socket.unshift(chunk)
    done(chunk?.[0] === NET_TCP)
  }
  const gone = (): void => { socket.destroy(); settle(undefined) }
  const look = (): void => {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) settle(chunk)
  }
  const timer = setTimeout(gone, FIRST_BYTE_MS)
  socket.on('error', ignore).on('readable', look).once('end', gone).once('close', gone)
}
