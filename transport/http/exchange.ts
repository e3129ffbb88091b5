import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSoaError, SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { MSBIN1 } from '../../wire/framing/records.ts'
import { readBinaryEnvelope } from '../../wire/soap/binary.ts'
import { writeBinaryEnvelope } from '../../wire/soap/binary-write.ts'
import { contentTypeOf, httpAction, otherEncoding, parseContentType, soapOfMediaType } from '../../wire/soap/encoding.ts'
import { SOAP11, SOAP12, type Envelope, type Reading, type SoapVersion } from '../../wire/soap/envelope.ts'
import { hasFault } from '../../wire/soap/fault-body.ts'
import { toFault } from '../../wire/soap/fault.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope, writeParts } from '../../wire/soap/write.ts'
import type { SoapEndpoint, SoapReply } from '../channel.ts'
import { codingOf, sendBody, TAKEN_CODINGS } from './coding.ts'
import { announced, Gone, receive } from './receive.ts'
import type { ReceivingBytes } from './receiving-bytes.ts'

export interface ExchangeNeeds {
  readonly receiving: ReceivingBytes
  readonly receiveIdleTimeoutMs: number
  readonly paceGraceMs: number
  readonly gzipFromBytes: number
  readonly log: Logger
}

/** Where and how a request came in, for the handler. */
export interface Arrival { readonly path: string, readonly baseUrl: string, readonly expectsContinue: boolean }

/** A refused sender may still be sending: for so long what it sends is thrown away, so that it gets to read why, before the connection is closed. */
const LINGER_MS = 2000

/** Says when the caller has left before the answer. The signal is made when somebody asks for it: most requests are over before, and it is dear. */
class Caller {
  #gone = false
  #abort: AbortController | undefined

  constructor (response: ServerResponse) {
    response.once('close', () => {
      this.#gone = !response.writableFinished
      if (this.#gone) this.#abort?.abort(new Gone('the caller is gone'))
    })
  }

  get signal (): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#gone) this.#abort.abort(new Gone('the caller is gone'))
    }
    return this.#abort.signal
  }
}

/** One SOAP request over HTTP, from its headers to the last byte of the answer. Never throws. */
export async function exchange (request: IncomingMessage, response: ServerResponse, endpoint: SoapEndpoint, arrival: Arrival, needs: ExchangeNeeds): Promise<void> {
  const { log } = needs
  const caller = new Caller(response)

  const contentType = parseContentType(request.headers['content-type'] ?? '')
  const isBinary = contentType.type === MSBIN1
  const soap = isBinary ? 12 : soapOfMediaType(contentType.type)
  if (soap === undefined) {
    const other = otherEncoding(contentType)
    sentence(request, response, 415, new SoaError('badMediaType', { mediaType: contentType.type.slice(0, 100) || '(none)' }).message + (other === undefined ? '' : ` (${other})`))
    return
  }
  const coding = codingOf(request.headers['content-encoding'])
  if (coding === undefined) {
    response.setHeader('accept-encoding', TAKEN_CODINGS)
    sentence(request, response, 415, `content coding ${request.headers['content-encoding']?.slice(0, 100)} is not served here; send one of ${TAKEN_CODINGS}, or none`)
    return
  }

  let reading: Reading | undefined
  try {
    const { maxMessageSize } = endpoint.limits
    const room = await needs.receiving.take(announced(request, maxMessageSize), caller)
    if (arrival.expectsContinue) response.writeContinue()
    const bytes = await receive(request, { coding, maxMessageSize, idleMs: needs.receiveIdleTimeoutMs, paceGraceMs: needs.paceGraceMs, room }).finally(() => room.release())
    try {
      const soapAction = httpAction(contentType, headerText(request, 'soapaction'))
      reading = isBinary
        ? readBinaryEnvelope(bytes, undefined, { limits: endpoint.limits, soapAction })
        : readEnvelope(bytes, { limits: endpoint.limits, soap, soapAction, charset: contentType.parameters.get('charset') })
    } catch (error) {
      // Who never meant SOAP gets HTTP's own answer; who did gets a fault, for his software shows him nothing else.
      if (!isBinary && isSoaError(error, 'badEnvelope') && !mentionsSoap(bytes)) {
        sentence(request, response, 400, error.message)
        return
      }
      throw error
    }
    const reply = await endpoint.handle({ path: arrival.path, baseUrl: arrival.baseUrl, reading, get signal () { return caller.signal } })
    if (!response.destroyed) answer(request, response, reply, reading, isBinary, needs.gzipFromBytes)
  } catch (error) {
    if (error instanceof Gone || response.destroyed) {
      log.debug({ path: arrival.path, err: error }, 'the caller left before the answer')
      if (!response.destroyed) response.destroy()
      return
    }
    if (!isSoaError(error)) log.error({ path: arrival.path, action: reading?.envelope.action, err: error }, 'a request failed in a way it should not')
    else log.debug({ path: arrival.path, action: reading?.envelope.action, err: error }, 'a request was refused')
    refuse(request, response, error, reading, reading?.envelope.soap ?? soap, isBinary)
  }
}

function answer (request: IncomingMessage, response: ServerResponse, reply: SoapReply, reading: Reading, isBinary: boolean, gzipFromBytes: number): void {
  if ('oneWay' in reply) {
    response.writeHead(202, { 'content-length': 0 }).end()
    return
  }
  const { messageId, soap } = reading.envelope
  // Whatever the envelope was a reply to before, on this connection it is the reply to this request.
  const envelope = { ...reply.envelope, relatesTo: messageId }
  const isFault = reply.isFault ?? hasFault(envelope)
  const parts = isBinary ? [binary(envelope, reading.addressed, isFault)] : writeParts(envelope, { soap, addressing: reading.addressed ? 'wsa' : 'omit' })
  sendBody(request, response, isFault ? 500 : 200, { 'content-type': isBinary ? MSBIN1 : contentTypeOf(soap, envelope.action) }, parts, gzipFromBytes)
}

/** As WCF's binary encoder without a session. Who does not address gets no addressing back (its MessageVersion.Soap12). */
function binary (envelope: Envelope, addressed: boolean, isFault: boolean): Buffer {
  return addressed
    ? writeBinaryEnvelope(envelope, undefined, { isFault })
    : writeBinaryEnvelope({ ...envelope, action: '', messageId: undefined, relatesTo: undefined }, undefined, { isFault: false })
}

function refuse (request: IncomingMessage, response: ServerResponse, error: unknown, reading: Reading | undefined, soap: SoapVersion, isBinary: boolean): void {
  // What cannot be read is taken for what the encoding is mostly used with.
  const addressed = reading?.addressed ?? isBinary
  const fault = toFault(error, { soap, addressed, relatesTo: reading?.envelope.messageId, requestAction: reading?.envelope.action || undefined })
  const body = isBinary ? binary(fault, addressed, true) : writeEnvelope(fault, { soap, addressing: addressed ? 'wsa' : 'omit' })
  const contentType = isBinary ? MSBIN1 : contentTypeOf(soap, fault.action)
  if (!mayStillSend(request)) response.writeHead(500, { 'content-type': contentType, 'content-length': body.length }).end(body)
  else lastWord(request, response, 500, contentType, body)
}

/** An answer that is no SOAP: one sentence for whoever looks into it. */
export function sentence (request: IncomingMessage, response: ServerResponse, status: number, text: string): void {
  const body = Buffer.from(text + '\n')
  if (!mayStillSend(request)) response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': body.length }).end(body)
  else lastWord(request, response, status, 'text/plain; charset=utf-8', body)
}

const mayStillSend = (request: IncomingMessage): boolean => !request.complete && (request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0)

/**
 * The answer while the request is still coming in. Closing at once would reset the connection under the sender, who then sees an error and not the answer;
 * so the rest is thrown away for a moment. The response counts as complete to the sender, for all of its length is written.
 */
function lastWord (request: IncomingMessage, response: ServerResponse, status: number, contentType: string, body: Buffer): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': body.length, connection: 'close' })
  response.write(body)
  const finish = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(finish, LINGER_MS)
  request.once('end', finish)
  response.once('close', finish)
  // A sender that waits for "100 Continue" sends nothing, one that has begun goes on.
  request.resume()
}

/** Whether these bytes, which are no envelope, were meant to be one. */
function mentionsSoap (bytes: Buffer): boolean {
  const head = bytes.subarray(0, 65_536)
  return [SOAP11, SOAP12].some(namespace => head.includes(namespace) || head.includes(Buffer.from(namespace, 'utf16le')) || head.includes(Buffer.from(namespace, 'utf16le').swap16()))
}

const headerText = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name]
  return Array.isArray(value) ? value[0] : value
}
