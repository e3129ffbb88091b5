import { isUtf8 } from 'node:buffer'
import { SoaError } from '../../core/errors.ts'
import { declaredEncoding } from '../xml/characters.ts'
import type { SoapVersion } from './envelope.ts'

/** A Content-Type header, taken apart: type in lower case, parameter names in lower case, values without their quotes. */
export interface ContentType { readonly type: string, readonly parameters: ReadonlyMap<string, string> }

/** A client sends the same header with each request, so the last ones are remembered; not those that it can make up without end. */
const remembered = new Map<string, ContentType>()
const MOST_REMEMBERED = 64
const LONGEST_REMEMBERED = 256

/** [RFC 9110] 8.3.1, read kindly: quotes or none, any case, blanks around `=`, empty parameters, a value cut off. */
export function parseContentType (header: string): ContentType {
  const known = remembered.get(header)
  if (known !== undefined) return known
  const parsed = takeApart(header)
  if (header.length <= LONGEST_REMEMBERED) {
    if (remembered.size === MOST_REMEMBERED) remembered.clear()
    remembered.set(header, parsed)
  }
  return parsed
}

function takeApart (header: string): ContentType {
  const parameters = new Map<string, string>()
  for (const [, name, quoted, plain] of header.matchAll(/;\s*([^\s=;]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^\s;]*))/g)) {
    const key = (name as string).toLowerCase()
    if (!parameters.has(key)) parameters.set(key, quoted !== undefined ? quoted.replace(/\\(.)/g, '$1') : plain ?? '')
  }
  return { type: (header.split(';', 1)[0] as string).trim().toLowerCase(), parameters }
}

/** The SOAP version that a media type belongs to; undefined: none that is served. */
export function soapOfMediaType (type: string): SoapVersion | undefined {
  return type === 'text/xml' ? 11 : type === 'application/soap+xml' ? 12 : undefined
}

/** What a sender of these media types has to change to be served; undefined for any other type. */
export function otherEncoding ({ type, parameters }: ContentType): string | undefined {
  if (type === 'multipart/related' || type === 'application/xop+xml') {
    const mtom = type === 'application/xop+xml' || parameters.get('type')?.toLowerCase() === 'application/xop+xml'
    return `${mtom ? 'MTOM' : 'SOAP with attachments'} is not supported: binary values go as base64 inside the envelope; of WCF, messageEncoding="Text"`
  }
  if (/^application\/soap\+msbin1\+(?:gzip|deflate)$/.test(type)) return "WCF's packed binary encoding is not served: compressionFormat=\"None\" (HTTP's own Content-Encoding is)"
  if (type.startsWith('application/soap+msbinsession1')) return "WCF's binary encoding with a session's table needs a channel: net.tcp or a WebSocket; a request of its own is application/soap+msbin1"
  return undefined
}

/** The action that HTTP carries beside the message: SOAP 1.2's parameter, SOAP 1.1's header. Quotes come off; absent and `""` are undefined. */
export function httpAction (contentType: ContentType, soapActionHeader: string | undefined): string | undefined {
  const unquoted = (text: string | undefined): string | undefined => text?.trim().replace(/^"(.*)"$/s, '$1').trim() || undefined
  return unquoted(contentType.parameters.get('action')) ?? unquoted(soapActionHeader)
}

/** Content-Type of a message that we write. SOAP 1.2 names its action there, SOAP 1.1 in a header of its own. */
export function contentTypeOf (soap: SoapVersion, action?: string): string {
  if (soap === 11) return 'text/xml; charset=utf-8'
  // A parameter with a quote, backslash or anything that a header cannot carry would break the header, and the action stands in the envelope too.
  return action && /^[\x20-\x7e]+$/.test(action) && !/["\\]/.test(action) ? `application/soap+xml; charset=utf-8; action="${action}"` : 'application/soap+xml; charset=utf-8'
}

/** The bytes as UTF-8, transcoded once if need be. Throws badEnvelope for bytes that are not what they say, and for a charset that is not known. */
export function toUtf8 (bytes: Uint8Array, charset?: string): Uint8Array {
  const name = charsetOf(bytes, charset)
  if (/^(utf-?8|us-ascii|ascii)$/i.test(name)) {
    if (!isUtf8(bytes)) throw new SoaError('badEnvelope', { why: 'the bytes are not UTF-8, which they should be' })
    return bytes
  }
  let decoder: InstanceType<typeof TextDecoder>
  try {
    decoder = new TextDecoder(name, { fatal: true })
  } catch {
    throw new SoaError('badEnvelope', { why: `charset ${name.slice(0, 40)} is not known here` })
  }
  try {
    return Buffer.from(decoder.decode(bytes), 'utf8')
  } catch {
    throw new SoaError('badEnvelope', { why: `the bytes are not ${decoder.encoding}, which they should be` })
  }
}

/**
 * A byte order mark is the surest sign ([RFC 7303] 3.3), then the transport's word, then the document's own. A document without any of them is UTF-8,
 * unless its first `<` has a zero beside it: UTF-16 without a mark.
 */
function charsetOf (b: Uint8Array, charset: string | undefined): string {
  if (b[0] === 0xef && b[1] === 0xbb && b[2] === 0xbf) return 'utf-8'
  const utf16 = (b[0] === 0xff && b[1] === 0xfe) || (b[0] === 0x3c && b[1] === 0)
    ? 'utf-16le'
    : (b[0] === 0xfe && b[1] === 0xff) || (b[0] === 0 && b[1] === 0x3c) ? 'utf-16be' : undefined
  if (utf16 !== undefined) return utf16
  const said = charset?.replace(/^['"\s]+|['"\s]+$/g, '') // single quotes are no quotes in HTTP, and yet they come
  if (said) return said
  if (b[1] !== 0x3f) return 'utf-8' // no <?xml
  return declaredEncoding(Buffer.from(b.buffer, b.byteOffset, Math.min(b.length, 256)).toString('latin1')) || 'utf-8'
}
