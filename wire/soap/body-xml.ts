import { SoaError } from '../../core/errors.ts'
import { readEnvelope } from './read.ts'
import { withTextBody } from './body-form.ts'
import { SOAP12, type Envelope } from './envelope.ts'
import { declaration, mentions } from './prefixes.ts'

/** A body as markup that stands on its own, and back. */

type Body = Pick<Envelope, 'enc' | 'body' | 'prefixesInScope'>

/** Reads the markup inside a SOAP Body by the one reader of all ways in: well-formed, no DTD, within the limits. Throws overLimit and as `readEnvelope` does. */
export function readBodyXml (xml: string, limits: { maxMessageSize: number, maxHeaderBytes: number, maxDepth: number }): Body {
  const bytes = Buffer.byteLength(xml)
  if (bytes > limits.maxMessageSize) throw new SoaError('overLimit', { setting: 'maxMessageSize', limit: limits.maxMessageSize, value: bytes })
  const { envelope: { enc, body, prefixesInScope } } = readEnvelope(Buffer.from(`<s:Envelope xmlns:s="${SOAP12}"><s:Body>${xml}</s:Body></s:Envelope>`), { limits })
  return { enc, body, prefixesInScope }
}

/** The body as text; what it may refer to and does not declare itself is declared on its first element. Empty for an empty body. */
export function bodyXml (envelope: Envelope): string {
  const { body, prefixesInScope } = withTextBody(envelope)
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const text = bytes.toString('utf8')
  const start = /<[^!?/][^\s/>]*/.exec(text) // behind comments and processing instructions
  if (start === null || prefixesInScope.length === 0) return text
  const at = start.index + start[0].length
  const own = text.slice(at, endOfTag(text, at))
  let declared = ''
  for (const [prefix, uri] of prefixesInScope) {
    const isOwn = new RegExp(`\\sxmlns${prefix === '' ? '' : `:${prefix.replaceAll('.', '\\.')}`}\\s*=`).test(own)
    if (!isOwn && (prefix === '' ? uri !== '' : mentions(bytes, prefix))) declared += declaration(prefix, uri)
  }
  return text.slice(0, at) + declared + text.slice(at)
}

function endOfTag (text: string, from: number): number {
  let quote = ''
  for (let at = from; at < text.length; at++) {
    const char = text[at] as string
    if (quote !== '') { if (char === quote) quote = '' } else if (char === '"' || char === "'") quote = char
    else if (char === '>') return at
  }
  return text.length
}
