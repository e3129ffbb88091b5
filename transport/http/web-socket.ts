import { once } from 'node:events'
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { systemClock, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { MSBIN1, MSBINSESSION1 } from '../../wire/framing/records.ts'
import { parseContentType } from '../../wire/soap/encoding.ts'
import type { DuplexEndpoint } from '../channel.ts'
import { endSoon } from '../pass.ts'
import { codecFor, type MessageCodec } from '../tcp/codec.ts'
import { TCP_LIMITS, type TcpLimits } from '../tcp/limits.ts'
import { MessageRoom } from '../tcp/message-room.ts'
import { baseUrls } from './base-url.ts'
import { CLOSE_TIMEOUT_MS, SoapWebSocket, WebSocketChannel } from './web-socket-channel.ts'

export interface SoapOverWebSocket {
  /** What is at a path (without query, as sent); undefined: nothing. */
  route (path: string): DuplexEndpoint | undefined | Promise<DuplexEndpoint | undefined>
  /** Takes requests for paths that `route` does not know, with what came behind them; without one, or when it says false, they get 404. */
  fallback? (request: IncomingMessage, socket: Socket, head: Buffer): boolean | Promise<boolean>
  baseUrl? (request: IncomingMessage): string
  readonly log: Logger
  readonly clock?: Clock
  readonly limits?: Partial<Pick<TcpLimits, 'maxInHand' | 'maxInHandBytes'>>
  /** Bytes of messages in hand at once, all channels together. Default 256 MiB. */
  readonly maxReceivingBytes?: number
}

/** SOAP over WebSocket for an HTTP server ([MS-SWSB]; WCF's NetHttpBinding with WebSockets). */
export interface WebSocketDoor {
  /** A server's `upgrade` event. */
  upgrade (request: IncomingMessage, socket: Duplex, head: Buffer): void
  readonly channels: number
  /** Says Close on all channels, and cuts those whose clients have not answered after `graceMs` (default 0). */
  close (graceMs?: number): Promise<void>
}

/** The subprotocol, and the headers in which WCF's client says how it encodes. [MS-SWSB] 3.2 */
const SUBPROTOCOL = 'soap'
const CONTENT_TYPE = 'soap-content-type'
const TRANSFER_MODE = 'microsoft-binary-transfer-mode'

export function webSocketDoor (options: SoapOverWebSocket): WebSocketDoor {
  const { log, clock = systemClock, baseUrl = baseUrls({ advertise: '', trustedProxies: '' }) } = options
  const shared = { room: new MessageRoom(options.maxReceivingBytes ?? 268_435_456), limits: { ...TCP_LIMITS, ...options.limits }, clock, log }
  const open = new Set<WebSocketChannel>()

  const serve = async (request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> => {
    const path = (request.url ?? '/').replace(/^https?:\/\/[^/?]*/i, '').replace(/\?.*$/s, '') || '/'
    const endpoint = await options.route(path)
    if (endpoint === undefined) {
      if (await options.fallback?.(request, socket, head) !== true) refuse(socket, 404, `no WebSocket is served at ${path.slice(0, 200)}`)
      return
    }
    const { 'sec-websocket-protocol': offered = '' } = request.headers
    if (!offered.split(',').some(isSoap)) {
      refuse(socket, 426, `the subprotocol ${SUBPROTOCOL} is served here, not "${offered.slice(0, 100)}"`, { upgrade: 'websocket', 'sec-websocket-protocol': SUBPROTOCOL })
      return
    }
    const contentType = text(request, CONTENT_TYPE)
    const codec = contentType === undefined ? undefined : codecOf(contentType, text(request, TRANSFER_MODE) ?? 'Buffered', endpoint.limits)
    if (codec === undefined) {
      // The two headers are how WCF's client is told what would have been right.
      refuse(socket, 400, `header ${CONTENT_TYPE}: ${MSBINSESSION1} is served, ${MSBIN1}, or a type of SOAP as text, not "${(contentType ?? '').slice(0, 100)}"`, { [CONTENT_TYPE]: MSBINSESSION1, [TRANSFER_MODE]: 'Buffered' })
      return
    }
    const { maxMessageSize } = endpoint.limits
    const server = new WebSocketServer<typeof SoapWebSocket>({ ...ALWAYS, maxPayload: maxMessageSize })
    server.handleUpgrade(request, socket, head, webSocket => {
      webSocket.maxMessageSize = maxMessageSize
      const channel = new WebSocketChannel({ ...shared, socket: webSocket, connection: socket, endpoint, path, baseUrl: baseUrl(request), codec })
      open.add(channel)
      channel.signal.addEventListener('abort', () => open.delete(channel), { once: true })
    })
  }

  return {
    get channels () { return open.size },
    upgrade (request, stream, head) {
      const socket = stream as Socket // a server that listens on TCP or a Unix socket has no others
      const broke = (error: Error): void => { log.trace({ err: error }, 'a connection broke') }
      socket.on('error', broke)
      serve(request, socket, head).catch(error => {
        log.error({ path: request.url, err: error as Error }, 'a WebSocket failed in a way it should not')
        refuse(socket, 500, 'internal error; the log of the server says more')
      })
    },
    async close (graceMs = 0) {
      for (const channel of open) channel.leave()
      const cut = setTimeout(() => { for (const channel of open) channel.cut() }, graceMs)
      while (open.size > 0) await once(([...open][0] as WebSocketChannel).signal, 'abort')
      clearTimeout(cut)
    }
  }
}

/** Of each channel. Packing costs memory for each connection and time for each message, and WCF does not ask for it. */
const ALWAYS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  closeTimeout: CLOSE_TIMEOUT_MS,
  WebSocket: SoapWebSocket,
  handleProtocols: (names: Set<string>) => [...names].find(isSoap) ?? false as const
}

const isSoap = (name: string): boolean => name.trim().toLowerCase() === SUBPROTOCOL

function text (request: IncomingMessage, name: string): string | undefined {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}

/** The session's tables are used by who has each message whole; in a direction that is streamed WCF's messages have static ids only, whatever the type says. */
function codecOf (contentType: string, transferMode: string, limits: DuplexEndpoint['limits']): MessageCodec | undefined {
  const whole = codecFor(contentType, limits)
  if (whole === undefined || parseContentType(contentType).type !== MSBINSESSION1 || transferMode === 'Buffered') return whole
  const streamed = codecFor(MSBIN1, limits) as MessageCodec
  switch (transferMode) {
    case 'Streamed': return streamed
    case 'StreamedRequest': return { read: streamed.read, write: whole.write }
    case 'StreamedResponse': return { read: whole.read, write: streamed.write }
    default: return undefined
  }
}

/** An HTTP answer instead of a WebSocket: one sentence for whoever looks into it. */
function refuse (socket: Socket, status: number, why: string, headers: Readonly<Record<string, string>> = {}): void {
  if (socket.destroyed) return
  const lines = { ...headers, connection: headers.upgrade === undefined ? 'close' : 'Upgrade, close', 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(why) + 1 }
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${why}\n`)
  socket.resume()
  endSoon(socket)
}
