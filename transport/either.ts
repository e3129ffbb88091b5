import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { closeHttp, soapServer, type SoapOverHttp } from './http/listener.ts'
import { tcpServer, type SoapOverTcp } from './tcp/listener.ts'

export interface EitherListener {
  /** Takes no more, lets what is in hand finish for `graceMs` (default 0), then cuts. */
  close (graceMs?: number): Promise<void>
}

/** First byte of a net.tcp connection: its Version record. No HTTP request begins with it. */
const NET_TCP = 0
const KEEP_ALIVE_MS = 30_000

/** One port for SOAP over HTTP and over net.tcp: the first byte of a connection says which. */
export async function listenEither (options: { listen: { host: string, port: number }, http: SoapOverHttp, netTcp: SoapOverTcp, firstByteTimeoutMs?: number }): Promise<EitherListener> {
  const http = soapServer(options.http)
  const netTcp = tcpServer(options.netTcp)
  const undecided = new Set<Socket>()
  const listener = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }, socket => {
    undecided.add(socket)
    const ignore = (): void => {} // an error ends in 'close'
    socket.on('error', ignore)
    const decided = (): void => {
      clearTimeout(timer)
      undecided.delete(socket)
      socket.off('readable', look)
      socket.off('end', gone)
      socket.off('close', decided)
    }
    const gone = (): void => { decided(); socket.destroy() }
    const timer = setTimeout(gone, options.firstByteTimeoutMs ?? 120_000)
    const look = (): void => {
      const chunk = socket.read() as Buffer | null
      if (chunk === null) return
      decided()
      socket.off('error', ignore)
      // Before anything else can happen: a stream that has given its last byte and seen the end takes nothing back.
      socket.unshift(chunk)
      if (chunk[0] === NET_TCP) netTcp.take(socket)
      else http.emit('connection', socket)
      socket.resume()
    }
    socket.on('readable', look).once('end', gone).once('close', decided)
  })
  listener.listen(options.listen)
  await once(listener, 'listening')
  return {
    async close (graceMs = 0) {
      listener.close()
      for (const socket of undecided) socket.destroy()
      await Promise.all([closeHttp(http, graceMs), netTcp.close(graceMs)])
    }
  }
}
