import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { FORWARDED_HEADERS, forwardedHeaders } from './base-url.ts'

/** Headers of one hop, which end here. [RFC 9110] 7.6.1 */
const HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'])

/** Connections to the far sides, kept for the next request; idle ones do not keep the process alive. Whoever makes one destroys it. */
export const forwardAgent = (): Agent => new Agent({ keepAlive: true, maxFreeSockets: 64 })
let shared: Agent | undefined

export interface ForwardOptions {
  /** Unix socket of the HTTP server that the request is for. */
  readonly socketPath: string
  /** The address that the caller used: the far process takes our word for it. */
  readonly baseUrl: string
  readonly agent?: Agent
}

/**
 * Hands one HTTP request to a server behind a Unix socket and its answer back, both as streams: nothing is held longer than it takes to pass it on,
 * a slow reader slows the sender, and whoever leaves ends the other side. Resolves when the exchange is over, however it ended.
 */
export function forward (request: IncomingMessage, response: ServerResponse, options: ForwardOptions): Promise<void> {
  return new Promise(resolve => {
    const headers = endToEnd(request.rawHeaders, request.headers.connection, FORWARDED_HEADERS)
    headers.push(...forwardedHeaders(options.baseUrl))
    if (request.headers['transfer-encoding'] !== undefined) headers.push('transfer-encoding', 'chunked')
    const away = httpRequest({
      socketPath: options.socketPath,
      agent: options.agent ?? (shared ??= forwardAgent()),
      method: request.method,
      path: request.url,
      headers,
      setHost: false
    })
    away.on('response', reply => {
      response.writeHead(reply.statusCode as number, reply.statusMessage, endToEnd(reply.rawHeaders, reply.headers.connection))
      response.flushHeaders()
      reply.pipe(response)
      // A reply that breaks off must not look complete to the client.
      reply.once('close', () => { if (!reply.complete) response.destroy() })
    })
    away.on('error', error => {
      request.unpipe(away)
      if (response.headersSent || response.destroyed) response.destroy()
      else goneAway(request, response, error)
    })
    response.once('close', () => {
      if (!response.writableFinished) away.destroy()
      resolve()
    })
    request.pipe(away)
  })
}

/** `application/problem+json` as REST gives it (surface.md). */
function goneAway (request: IncomingMessage, response: ServerResponse, error: Error): void {
  const body = Buffer.from(JSON.stringify({ title: 'Bad Gateway', status: 502, detail: `the process that serves this is gone or did not answer: ${(error as NodeJS.ErrnoException).code ?? error.message}` }))
  response.writeHead(502, { 'content-type': 'application/problem+json', 'content-length': body.length }).end(body)
  request.resume()
}

function endToEnd (rawHeaders: readonly string[], connection: string | undefined, without: ReadonlySet<string> = new Set()): string[] {
  const named = connection === undefined ? [] : connection.toLowerCase().split(',').map(name => name.trim())
  const kept: string[] = []
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    const lower = name.toLowerCase()
    if (!HOP.has(lower) && !named.includes(lower) && !without.has(lower)) kept.push(name, rawHeaders[i + 1] as string)
  }
  return kept
}
