import { SoaError } from '../../core/errors.ts'
import { qname } from '../xml/events.ts'
import { TOKEN, XmlScanner, type Token } from '../xml/scan.ts'
import { toUtf8 } from './encoding.ts'
import { SOAP11, SOAP12, WSA, type QName, type Reading, type Scope, type SoapVersion } from './envelope.ts'
import { nothingFound, readingOf, takeHeader, type Found, type HeaderElement } from './headers.ts'
import { declaration, mentions } from './prefixes.ts'

const NOBODY: Scope = []

export interface ReadOptions {
  readonly limits: { readonly maxHeaderBytes: number, readonly maxDepth: number }
  /** The action that HTTP carried, without quotes (encoding.ts `httpAction`); WS-Addressing's wins. */
  readonly soapAction?: string | undefined
  /** What the media type says; an envelope of the other version is refused. */
  readonly soap?: SoapVersion | undefined
  /** Of the media type; see encoding.ts `toUtf8`. */
  readonly charset?: string | undefined
}

/** One for all messages, since reading is synchronous: its tables are then allocated once. */
const scanner = new XmlScanner()

/**
 * Bytes of one SOAP 1.1 or 1.2 message → envelope and the facts of this hop. One scan, no object for the body; the reading's byte fields are views of the input.
 * Headers under `mustUnderstand` are those aimed at us that nothing here reads: Action, To, HPC Pack's and Security are not among them.
 * Throws SoaError: badEnvelope, versionMismatch, overLimit (maxHeaderBytes, maxDepth); nothing else, whatever the bytes.
 */
export function readEnvelope (bytes: Uint8Array, options: ReadOptions): Reading {
  try {
    return read(toUtf8(bytes, options.charset), options)
  } finally {
    scanner.close()
  }
}

function read (bytes: Uint8Array, options: ReadOptions): Reading {
  scanner.open(bytes, { maxDepth: options.limits.maxDepth, outerLevels: 2 })
  scanner.next()
  const namespace = scanner.namespace()
  if (scanner.local() !== 'Envelope') throw scanner.bad(`its root element is ${scanner.local().slice(0, 80)}`)
  if (namespace !== SOAP11 && namespace !== SOAP12) throw new SoaError('versionMismatch', { namespace: namespace.slice(0, 200) })
  const soap: SoapVersion = namespace === SOAP11 ? 11 : 12
  if (options.soap !== undefined && options.soap !== soap) {
    throw scanner.bad(`the media type is that of SOAP ${options.soap === 11 ? '1.1' : '1.2'}, the envelope's namespace that of SOAP ${soap === 11 ? '1.1' : '1.2'}`)
  }

  const found = nothingFound()
  let part = child(namespace)
  if (part === 'Header') {
    readHeader(namespace, options.limits.maxHeaderBytes, found)
    part = child(namespace)
  }
  if (part !== 'Body') throw scanner.bad(part === undefined ? 'it has no Body' : `an element ${part.slice(0, 80)} where Body is due`)

  const prefixesInScope = scanner.scope().filter(([prefix, uri]) => prefix !== '' || uri !== '')
  const from = scanner.at
  let bodyElement: QName | undefined
  let isFault = false
  while (scanner.depth >= 2) {
    if (scanner.next() !== TOKEN.start) continue
    bodyElement = qname(scanner.namespace(), scanner.local())
    isFault = bodyElement === `{${namespace}}Fault`
    scanner.skip(2)
  }
  const body = scanner.bytes.subarray(from, scanner.start)
  const behind = child(namespace)
  if (behind !== undefined) throw scanner.bad(`an element ${behind.slice(0, 80)} behind Body`)
  scanner.next()

  return readingOf(found, { soap, enc: 'utf8', soapAction: options.soapAction, prefixesInScope, body, bodyElement, isFault })
}

/** The next element in Envelope: its local name if it is SOAP's own, else its whole name; undefined at Envelope's end. */
function child (namespace: string): string | undefined {
  for (;;) {
    const token = scanner.next()
    if (token === TOKEN.end) return undefined
    if (token === TOKEN.start) return scanner.namespace() === namespace ? scanner.local() : qname(scanner.namespace(), scanner.local())
  }
}

function readHeader (soapNamespace: string, maxHeaderBytes: number, found: Found): void {
  const from = scanner.start
  const outer = scanner.scope()
  const next = (): Token => {
    const token = scanner.next()
    if (scanner.at - from > maxHeaderBytes) throw new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: maxHeaderBytes, value: headerSize(from) })
    return token
  }
  // The tag itself counts too, and it may be all that there is.
  if (scanner.at - from > maxHeaderBytes) throw new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: maxHeaderBytes, value: headerSize(from) })
  const element = new TextHeader(outer, next)
  while (scanner.depth >= 2) if (next() === TOKEN.start) takeHeader(element, soapNamespace, found)
}

/** How big the block is in all, for the one who has to make it smaller; as far as it can be read. */
function headerSize (from: number): number {
  try {
    scanner.skip(2)
  } catch { /* what is wrong behind the limit is not what the sender is told */ }
  return scanner.at - from
}

/** The header element whose start tag is the scanner's current token. */
class TextHeader implements HeaderElement {
  readonly #outer: Scope
  readonly #next: () => Token
  constructor (outer: Scope, next: () => Token) { this.#outer = outer; this.#next = next }

  namespace (): string { return scanner.namespace() }
  local (): string { return scanner.local() }
  attribute (namespace: string, local: string): string | undefined { return scanner.attributeCount === 0 ? undefined : scanner.attribute(namespace, local) }
  bad (why: string): SoaError { return scanner.bad(why) }
  text (): string { return scanner.elementText(`header ${scanner.local()}`, this.#next) }
  skip (): void { while (scanner.depth >= 3) this.#next() }

  address (): string | undefined {
    let address: string | undefined
    while (scanner.depth >= 3) {
      if (this.#next() === TOKEN.start && scanner.depth === 4 && scanner.namespace() === WSA && scanner.local() === 'Address') address = scanner.elementText('Address', this.#next).trim()
    }
    return address
  }

  whole (hear?: (text: string) => void): Uint8Array {
    return selfContained(this.#outer, () => {
      while (scanner.depth >= 3) {
        const token = this.#next()
        if (hear !== undefined && (token === TOKEN.text || token === TOKEN.cdata)) hear(scanner.value(token))
      }
    })
  }
}

/**
 * The current element with all it needs from outside in its own start tag, so that it can stand anywhere. A prefix may be meant by a value too
 * (`xsi:type="x:int"`), so whatever looks like one counts. Headers that use none come out byte for byte as they went in.
 */
function selfContained (outer: Scope, toItsEnd: () => void): Uint8Array {
  const from = scanner.start
  const nameEnd = scanner.nameEnd
  const own = scanner.attributeCount === 0 ? NOBODY : scanner.ownScope()
  toItsEnd()
  const bytes = scanner.bytes.subarray(from, scanner.at)
  let added = ''
  for (const [prefix, uri] of outer) {
    if (own.some(([redeclared]) => redeclared === prefix) || (prefix === '' ? uri === '' : !mentions(bytes, prefix))) continue
    added += declaration(prefix, uri)
  }
  return added === '' ? bytes : Buffer.concat([bytes.subarray(0, nameEnd - from), Buffer.from(added), bytes.subarray(nameEnd - from)])
}
