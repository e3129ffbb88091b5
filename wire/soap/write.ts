import { escapeText } from '../xml/characters.ts'
import { withTextBody } from './body-form.ts'
import { SOAP11, SOAP12, WSA, WSA_NONE, type Envelope, type SoapVersion } from './envelope.ts'
import { convertSoap } from './fault-body.ts'
import { clientIdHeader } from './hpc-headers.ts'
import { declaration, freePrefix } from './prefixes.ts'

export interface WriteOptions {
  /** Version to write; undefined: that of the envelope. A fault changes its shape with the version, any other body stays as it is. */
  readonly soap?: SoapVersion | undefined
  /**
   * `wsa`: WS-Addressing 1.0 headers. `omit`: none, the action travels in HTTP. `none`: only the Action header that WCF writes for a message
   * without addressing outside HTTP, as in the envelopes that PullResponses brings ([wire-contract] 2.7).
   */
  readonly addressing: 'wsa' | 'none' | 'omit'
  /** WS-Addressing To, with `wsa` only. */
  readonly to?: string | undefined
  /** Self-contained elements, written behind the envelope's own headers. */
  readonly extraHeaders?: readonly Uint8Array[] | undefined
}

/**
 * The message as bytes, UTF-8 without an XML declaration, so that it can also stand inside another document. mustUnderstand is set on Action only, where WCF sets it.
 * Written are action, messageId, relatesTo and `to` as the addressing says, clientId, userData, otherHeaders, extraHeaders and the body's bytes, as they are if they are text.
 * Throws badValue for a binary body with characters that text XML has no way to write, overLimit for one that would be larger than 64 MiB as text.
 */
export function writeEnvelope (envelope: Envelope, options: WriteOptions): Buffer {
  const pieces = writeParts(envelope, options)
  return Buffer.concat(pieces)
}

/** The same in pieces, the body's bytes among them uncopied: for a writer that sends piece by piece. */
export function writeParts (envelope: Envelope, options: WriteOptions): Buffer[] {
  const soap = options.soap ?? envelope.soap
  const wsa = options.addressing === 'wsa'
  if (soap !== envelope.soap) envelope = convertSoap(envelope, soap, wsa)
  envelope = withTextBody(envelope)
  const scope = envelope.prefixesInScope
  const namespace = soap === 11 ? SOAP11 : SOAP12
  const s = freePrefix('s', namespace, scope)
  const a = freePrefix('a', WSA, scope)

  let head = `<${s}:Envelope${declaration(s, namespace)}${wsa ? declaration(a, WSA) : ''}>`
  let headers = ''
  if (wsa) {
    // SOAP 1.1 peers without WCF choke on it more often than they need it.
    if (envelope.action !== '') headers += `<${a}:Action${soap === 12 ? ` ${s}:mustUnderstand="1"` : ''}>${escapeText(envelope.action)}</${a}:Action>`
    if (envelope.messageId !== undefined) headers += `<${a}:MessageID>${escapeText(envelope.messageId)}</${a}:MessageID>`
    if (envelope.relatesTo !== undefined) headers += `<${a}:RelatesTo>${escapeText(envelope.relatesTo)}</${a}:RelatesTo>`
    if (options.to !== undefined) headers += `<${a}:To>${escapeText(options.to)}</${a}:To>`
  } else if (options.addressing === 'none' && envelope.action !== '') {
    headers += `<Action ${s}:mustUnderstand="1" xmlns="${WSA_NONE}">${escapeText(envelope.action)}</Action>`
  }
  const elements = [...envelope.otherHeaders, ...options.extraHeaders ?? []]
  if (envelope.userData !== undefined) elements.unshift(envelope.userData)
  if (envelope.clientId !== undefined) elements.unshift(clientIdHeader(envelope.clientId))

  // The body's bytes may refer to what was in force where they came from, so Body says it again, but for what Envelope says anyway.
  let body = `<${s}:Body`
  for (const [prefix, uri] of scope) if (!(prefix === s || (wsa && prefix === a))) body += declaration(prefix, uri)
  const empty = envelope.body.length === 0
  body += empty ? '/>' : '>'
  const tail = `${empty ? '' : `</${s}:Body>`}</${s}:Envelope>`

  if (headers === '' && elements.length === 0) return pack(head + body, envelope.body, tail)
  head += `<${s}:Header>${headers}`
  if (elements.length === 0) return pack(`${head}</${s}:Header>${body}`, envelope.body, tail)
  return [Buffer.from(head), ...elements.map(viewOf), ...pack(`</${s}:Header>${body}`, envelope.body, tail)]
}

const pack = (before: string, body: Uint8Array, after: string): Buffer[] => body.length === 0 ? [Buffer.from(before + after)] : [Buffer.from(before), viewOf(body), Buffer.from(after)]
const viewOf = (bytes: Uint8Array): Buffer => Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
