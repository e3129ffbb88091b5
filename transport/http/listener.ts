import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from '../../core/log.ts'
import { allClosed } from '../all-closed.ts'
import type { SoapEndpoint } from '../channel.ts'
import { readIntroductions } from '../introduction.ts'
import { baseUrls } from './base-url.ts'
import { exchange, sentence } from './exchange.ts'
import { PACE_GRACE_MS } from './receive.ts'
import { ReceivingBytes } from './receiving-bytes.ts'
import { isForWebSocket, requestBytes } from './upgrade.ts'
import { webSocketDoor, type SoapOverWebSocket, type WebSocketDoor } from './web-socket.ts'

export interface SoapOverHttp {
  /** What is at a path (without query, as sent); undefined: not SOAP, or not here. */
  route (path: string): SoapEndpoint | undefined | Promise<SoapEndpoint | undefined>
  /** Takes requests for paths that `route` does not know; without one they get 404. */
  fallback? (request: IncomingMessage, response: ServerResponse): void
  /** What a caller is told that we are called (SoapRequest.baseUrl): base-url.ts. Default: what its Host header says, else the address that it reached. */
  baseUrl? (request: IncomingMessage): string
  readonly log: Logger
  /** Bytes of bodies on their way in at once, in all, and one message more at most; further ones wait unread. Default 256 MiB. */
  readonly maxReceivingBytes?: number
  /** A body of which no byte comes for so long is given up. Default 2 min. */
  readonly receiveIdleTimeoutMs?: number
  /** A body may be slower than 240 bytes a second for so long. Default 5 s. */
  readonly paceGraceMs?: number
  /** Replies of this size on are packed for callers that accept gzip; 0: none. Default 8 KiB. */
  readonly gzipFromBytes?: number
  /** Where WebSockets are served, and what becomes of those for other paths. Absent: nowhere. */
  readonly webSockets?: Pick<SoapOverWebSocket, 'route' | 'fallback'>
}

export interface HttpListener {
  /** What it listens on: `http://host:port`, or the path of the Unix socket. */
  readonly address: string
  /** Takes no more, lets what is in hand finish for `graceMs` (default 0), then cuts. */
  close (graceMs?: number): Promise<void>
}

/** Longer than proxies and clients keep a connection, so that it is they who close it, not we while a request is on its way. */
const KEEP_ALIVE_MS = 125_000
const HEADERS_MS = 60_000
const TCP_KEEP_ALIVE_MS = 30_000
/**
 * Of every server here. A call may take a day, and so may its answer: only headers are on a clock (and bodies, in receive.ts). TCP's own keep-alive finds
 * peers that are gone.
 */
export const CLOCKS = { keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS, keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: HEADERS_MS, requestTimeout: 0 } as const
/** How often a server that closes looks for connections that have turned idle. */
const SWEEP_MS = 20

/** Connections of servers made here, those that were handed in among them: a server knows only how many it accepted itself. */
const open = new WeakMap<Server, Set<Socket>>()
const doors = new WeakMap<Server, WebSocketDoor>()

export interface Listening {
  readonly listen: { path: string } | { host: string, port: number }
  /** Connections may begin with a line that says whose they are (introduction.ts): for Unix sockets that only processes of ours can open. */
  readonly takesIntroductions?: boolean
}

/** SOAP 1.1 and 1.2 over HTTP on an address of its own. */
export async function listenHttp (options: SoapOverHttp & Listening): Promise<HttpListener> {
  const server = soapServer(options)
  if (options.takesIntroductions ?? false) readIntroductions(server, HEADERS_MS)
  server.listen(options.listen)
  await once(server, 'listening')
  const at = server.address() as AddressInfo | string
  return {
    address: typeof at === 'string' ? at : `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`,
    close: graceMs => closeHttp(server, graceMs)
  }
}

/** The same without an address: for a relay that hands connections in. */
export function soapServer (options: SoapOverHttp): Server {
  const listener = soapRequestListener(options)
  const server = createServer(CLOCKS)
  server.on('request', (request, response) => listener(request, response, false))
  server.on('checkContinue', (request, response) => listener(request, response, true))
  const { webSockets, log, baseUrl, maxReceivingBytes } = options
  if (webSockets !== undefined) serveWebSockets(server, { ...webSockets, log, ...(baseUrl === undefined ? {} : { baseUrl }), ...(maxReceivingBytes === undefined ? {} : { maxReceivingBytes }) })
  const sockets = new Set<Socket>()
  open.set(server, sockets)
  server.on('connection', (socket: Socket) => { sockets.add(socket); socket.once('close', () => sockets.delete(socket)) })
  return server
}

/** Channels on a server of HTTP. They end with it when `closeHttp` closes it; who closes it otherwise closes the result. */
export function serveWebSockets (server: Server, options: SoapOverWebSocket): WebSocketDoor {
  const door = webSocketDoor(options)
  doors.set(server, door)
  server.on('upgrade', (request, socket, head) => {
    if (isForWebSocket(request)) { door.upgrade(request, socket, head); return }
    socket.unshift(requestBytes(request, head, { isUpgrade: false }))
    server.emit('connection', socket)
    socket.resume()
  })
  return door
}

/** Answers one request; `expectsContinue` when the client waits for "100 Continue" (a server's `checkContinue` event). */
export function soapRequestListener (options: SoapOverHttp): (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void {
  const { log, baseUrl = baseUrls({ advertise: '', trustedProxies: '' }) } = options
  const needs = {
    receiving: new ReceivingBytes(options.maxReceivingBytes ?? 268_435_456),
    receiveIdleTimeoutMs: options.receiveIdleTimeoutMs ?? 120_000,
    paceGraceMs: options.paceGraceMs ?? PACE_GRACE_MS,
    gzipFromBytes: options.gzipFromBytes ?? 8192,
    log
  }
  const serve = async (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): Promise<void> => {
    const { path, query } = target(request.url ?? '/')
    const found = options.route(path)
    const endpoint = found instanceof Promise ? await found : found
    if (endpoint === undefined) {
      if (options.fallback === undefined) { sentence(request, response, 404, `nothing is served at ${path.slice(0, 200)}`); return }
      if (expectsContinue) response.writeContinue()
      options.fallback(request, response)
    } else if (request.method === 'POST') {
      await exchange(request, response, endpoint, { path, baseUrl: baseUrl(request), expectsContinue }, needs)
    } else await look(request, response, endpoint, { path, query, baseUrl: baseUrl(request) })
  }
  return (request, response, expectsContinue) => {
    serve(request, response, expectsContinue).catch(error => {
      log.error({ path: request.url, err: error as Error }, 'a request failed in a way it should not')
      if (response.headersSent) response.destroy()
      else sentence(request, response, 500, 'internal error; the log of the server says more')
    })
  }
}

/** GET: the WSDL and the help page of an endpoint. */
async function look (request: IncomingMessage, response: ServerResponse, endpoint: SoapEndpoint, at: { path: string, query: string, baseUrl: string }): Promise<void> {
  const { path } = at
  if (endpoint.get === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) {
    response.setHeader('allow', endpoint.get === undefined ? 'POST' : 'GET, HEAD, POST')
    sentence(request, response, 405, `${request.method} is not served at ${path.slice(0, 200)}; SOAP requests are sent with POST`)
    return
  }
  const page = await endpoint.get(at)
  if (page === undefined) { sentence(request, response, 404, `nothing is served at ${path.slice(0, 200)}`); return }
  const body = Buffer.from(page.body)
  // It has addresses in it that are this caller's only.
  response.writeHead(page.status, { 'content-type': page.contentType, 'content-length': body.length, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }).end(body)
}

/** Path and query of a request line, whose target may be a whole URL. [RFC 9112] 3.2 */
function target (url: string): { path: string, query: string } {
  const local = url.replace(/^https?:\/\/[^/?]*/i, '')
  const at = local.indexOf('?')
  const path = at < 0 ? local : local.slice(0, at)
  return { path: path === '' ? '/' : path, query: at < 0 ? '' : local.slice(at + 1) }
}

/** Closes a server in stages: no new connection, idle ones closed, what is in hand gets `graceMs`. */
export async function closeHttp (server: Server, graceMs = 0): Promise<void> {
  const sockets = open.get(server) ?? new Set<Socket>()
  server.close(() => { /* a server that only had connections handed in was never open: nothing to close */ })
  void doors.get(server)?.close(graceMs)
  // A connection that is kept alive ends with its next answer; those that turn idle meanwhile are looked for.
  server.prependListener('request', (_, response: ServerResponse) => { if (!response.headersSent) response.setHeader('connection', 'close') })
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS)
  const cut = setTimeout(() => {
    server.closeAllConnections()
    for (const socket of sockets) socket.destroy() // those of which the server has not heard yet
  }, graceMs)
  try {
    await allClosed(sockets)
  } finally {
    clearInterval(sweep)
    clearTimeout(cut)
  }
}
