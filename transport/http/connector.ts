import { EventEmitter, setMaxListeners } from 'node:events'
import type { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import { SoaError } from '../../core/errors.ts'
import { contentTypeOf, parseContentType, soapOfMediaType } from '../../wire/soap/encoding.ts'
import type { Envelope, SoapVersion } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { messageIdHeader } from '../../wire/soap/hpc-headers.ts'
import { withoutMustUnderstand } from '../../wire/soap/must-understand.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import type { CallResult, SoapCaller } from '../channel.ts'
import { codingOf, unpacked } from './coding.ts'

export interface HttpCallerOptions {
  /** Connections at most; further calls wait for one, and their time runs meanwhile. */
  readonly connections: number
  /** Largest reply, bytes; refused as soon as it is known to be larger. */
  readonly maxMessageSize: number
  readonly maxHeaderBytes?: number
  readonly maxDepth?: number
  /** Default: WS-Addressing with SOAP 1.2, none with SOAP 1.1, whose action then is in HTTP's header only. */
  readonly addressing?: 'wsa' | 'omit'
  /** WS-Addressing To; default the URL. */
  readonly to?: string
  /** Unix socket to connect to; the URL then says path and Host only. */
  readonly socketPath?: string
  /** Longest time to connect, ms. Default 10 s. */
  readonly connectTimeoutMs?: number
}

/** Longest delay of one timer in Node, 24.8 days; a call that may take longer is not cut. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** How much of an answer that is no SOAP is repeated in the error. */
const SHOWN_CHARACTERS = 200

/** The call's own time is what counts; undici's clocks (5 min each) would cut what HPC Pack's users call a normal calculation. */
const NO_CLOCKS = { headersTimeout: 0, bodyTimeout: 0 } as const

/** Calls one SOAP endpoint over HTTP. Failures of a call are values; it throws nothing. */
export function httpCaller (url: string, options: HttpCallerOptions): SoapCaller {
  const { origin, pathname, search } = new URL(url)
  /** The one version that this endpoint speaks, once it has refused the other. */
  let only: SoapVersion | undefined
  const pool = new Pool(origin, {
    connections: options.connections,
    pipelining: 1,
    ...NO_CLOCKS,
    connect: { timeout: options.connectTimeoutMs ?? 10_000, ...options.socketPath === undefined ? {} : { socketPath: options.socketPath } }
  })
  const limits = { maxHeaderBytes: options.maxHeaderBytes ?? 65_536, maxDepth: options.maxDepth ?? 128 }

  async function call (envelope: Envelope, { timeoutMs, signal, soap = envelope.soap }: { timeoutMs: number, signal: AbortSignal, soap?: SoapVersion | undefined }): Promise<CallResult> {
    if (signal.aborted) return { outcome: 'aborted' }
    const stop = new EventEmitter() // costs less than an AbortController, and undici takes either
    const cancel = (): void => { stop.emit('abort') }
    let late = false
    const timer = setTimeout(() => { late = true; cancel() }, Math.min(timeoutMs, LONGEST_TIMER_MS))
    setMaxListeners(0, signal) // one signal for all calls to a host is how it is meant to be
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const spoken = only ?? soap
      const result = await exchange(envelope, spoken, stop)
      if (only !== undefined || !isOtherVersion(result)) return result
      // A host that speaks one version only (Java's often do) has not looked at the request: it is said again in the other one, and so is all that follows.
      const other = spoken === 12 ? 11 : 12
      const again = await exchange(envelope, other, stop)
      if (isOtherVersion(again) || (again.outcome !== 'answered' && again.outcome !== 'accepted')) return result
      only = other
      return again
    } catch (error) {
      if (late) return { outcome: 'timedOut' }
      if (signal.aborted) return { outcome: 'aborted' }
      if (error instanceof SoaError) return { outcome: 'badReply', error }
      return { outcome: failedToConnect(error) ? 'unreachable' : 'broken', error: error as Error }
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', cancel)
    }
  }

  async function exchange (envelope: Envelope, soap: SoapVersion, stop: EventEmitter): Promise<CallResult> {
    const addressing = options.addressing ?? (soap === 12 ? 'wsa' : 'omit')
    // Without addressing HPC's own header carries the message's id.
    const extraHeaders = addressing === 'omit' && envelope.messageId !== undefined ? [messageIdHeader(envelope.messageId)] : []
    const body = writeEnvelope(envelope, { soap, addressing, to: options.to ?? url, extraHeaders })
    return await readReply(await pool.request({
      method: 'POST',
      path: pathname + search,
      headers: { 'content-type': contentTypeOf(soap, envelope.action), ...soap === 11 ? { soapaction: `"${headerSafe(envelope.action)}"` } : {} },
      body,
      signal: stop
    }))
  }

  async function readReply ({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<CallResult> {
    const text = (name: string): string => String(headers[name] ?? '')
    const coding = codingOf(text('content-encoding'))
    if (coding === undefined) body.destroy(new SoaError('badEnvelope', { why: `content coding ${text('content-encoding').slice(0, 40)} is not known here` }))
    const bytes = await readAll(unpackedReply(body, coding ?? 'identity'), Number(text('content-length') || 0), options.maxMessageSize).catch(error => {
      // zlib's codes; what else went wrong is the connection's.
      throw /^(?:Z_|ERR__|ERR_BROTLI)/.test((error as NodeJS.ErrnoException).code ?? '') ? new SoaError('badEnvelope', { why: `its content coding does not hold what it says: ${(error as Error).message}` }, { cause: error }) : error
    })
    if (bytes.length === 0 && statusCode >= 200 && statusCode < 300) return { outcome: 'accepted' }
    const contentType = parseContentType(text('content-type'))
    const soap = soapOfMediaType(contentType.type)
    if (soap !== undefined) {
      const reading = readEnvelope(bytes, { limits, soap, soapAction: contentType.parameters.get('action'), charset: contentType.parameters.get('charset') })
      // SOAP 1.2 has statuses of its own for faults; one of them without a fault is not an answer.
      if (reading.isFault || (statusCode >= 200 && statusCode < 300)) {
        return { outcome: 'answered', reading: reading.mustUnderstand.length === 0 ? reading : { ...reading, envelope: withoutMustUnderstand(reading.envelope) } }
      }
    }
    const shown = bytes.toString('utf8', 0, SHOWN_CHARACTERS * 4).slice(0, SHOWN_CHARACTERS).replace(/\s+/g, ' ').trim()
    return { outcome: 'badReply', status: statusCode, error: new Error(`status ${statusCode}, ${contentType.type || 'no media type'}: ${shown || 'empty'}`) }
  }

  return { call, close: () => pool.destroy() }
}

/** Nothing here asks for a packed reply, and yet some servers send one. An error of either stream ends both. */
function unpackedReply (body: Dispatcher.ResponseData['body'], coding: Parameters<typeof unpacked>[1]): Readable {
  const source = unpacked(body, coding)
  if (source === body) return body
  body.on('error', error => source.destroy(error))
  source.on('error', () => body.destroy())
  return source
}

/** The endpoint knows only the other SOAP version: 415, as JAX-WS says it, or the fault for it. In neither case has a service seen the request. */
function isOtherVersion (result: CallResult): boolean {
  if (result.outcome === 'badReply') return result.status === 415
  if (result.outcome !== 'answered' || !result.reading.isFault) return false
  const { envelope } = result.reading
  // Looking for the word first spares ordinary faults of services the parsing.
  return Buffer.from(envelope.body.buffer, envelope.body.byteOffset, envelope.body.byteLength).includes('VersionMismatch') && readFault(envelope)?.code === 'VersionMismatch'
}

/** Throws overLimit before the memory for the excess is taken; the connection is then closed, for what is left of the reply is in the way. */
function readAll (body: Readable, announced: number, maxMessageSize: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = announced
    const check = (): void => {
      if (size > maxMessageSize) body.destroy(new SoaError('overLimit', { setting: 'maxMessageSize', limit: maxMessageSize, value: size }))
    }
    body.on('error', reject)
    check()
    size = 0
    body.on('data', (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      check()
    })
    body.on('end', () => resolve(chunks.length === 1 ? chunks[0] as Buffer : Buffer.concat(chunks, size)))
  })
}

/** The request never left: nobody was there, or there is no way. */
function failedToConnect (error: unknown): boolean {
  const { code, syscall, errors } = error as { code?: string, syscall?: string, errors?: unknown[] }
  if (Array.isArray(errors) && errors.length > 0) return errors.every(failedToConnect) // each address of a name was tried
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}

/** A header takes printable ASCII only, and this one stands in quotes. */
const headerSafe = (action: string): string => action.replace(/[^\x20-\x7e]+|["\\]/g, encodeURIComponent)
