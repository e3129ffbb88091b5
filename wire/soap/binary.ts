import { SoaError } from '../../core/errors.ts'
import { qname } from '../xml/events.ts'
import { resolveSession } from '../xml/binary/resolve.ts'
import { BinaryScanner, TOKEN, type BinaryToken } from '../xml/binary/scan.ts'
import type { ReaderTables } from '../xml/binary/tables.ts'
import { elementToText, TextOutput } from '../xml/binary/to-text.ts'
import { SOAP11, SOAP12, WSA, type QName, type Reading, type Scope } from './envelope.ts'
import { nothingFound, readingOf, takeHeader, type Found, type HeaderElement } from './headers.ts'
import { declaration, mentions } from './prefixes.ts'

export interface BinaryReadOptions {
  readonly limits: { readonly maxHeaderBytes: number, readonly maxDepth: number }
  /** What HTTP carried beside the message. */
  readonly soapAction?: string | undefined
}

/** One for all messages, since reading is synchronous: its tables are then allocated once. */
const scanner = new BinaryScanner()
const text = new TextOutput()

/**
 * The payload of an envelope's frame → envelope and the facts of this hop. One scan, no object for the body. With a session the payload begins with its string table
 * (application/soap+msbinsession1), without one it is the document alone (application/soap+msbin1).
 *
 * The body stays binary (`nbfx-static`): a view of the payload, or, where it has ids of the session, a copy with these resolved. Headers that are passed on
 * become text, as docs/adr/0015 says. Throws SoaError: badEnvelope, versionMismatch, overLimit (maxHeaderBytes, maxDepth, string tables), badValue (a header that no text
 * can say); nothing else, whatever the bytes. After a bad table the session is over; after any other error later messages can be read.
 */
export function readBinaryEnvelope (payload: Uint8Array, session: ReaderTables | undefined, options: BinaryReadOptions): Reading {
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
  const from = session === undefined ? 0 : session.load(bytes)
  try {
    scanner.open(bytes, { maxDepth: options.limits.maxDepth, outerLevels: 2, strings: session, from })
    return read(session, options)
  } finally {
    scanner.close()
  }
}

function read (session: ReaderTables | undefined, options: BinaryReadOptions): Reading {
  let token = scanner.next()
  while (token === TOKEN.comment || token === TOKEN.text) token = scanner.next()
  if (token !== TOKEN.start) throw scanner.bad('it has no root element')
  const namespace = scanner.namespace()
  if (scanner.local() !== 'Envelope') throw scanner.bad(`its root element is ${scanner.local().slice(0, 80)}`)
  if (namespace !== SOAP11 && namespace !== SOAP12) throw new SoaError('versionMismatch', { namespace: namespace.slice(0, 200) })

  const found = nothingFound()
  let part = child(namespace)
  if (part === 'Header') {
    readHeader(namespace, options.limits.maxHeaderBytes, found)
    part = child(namespace)
  }
  if (part !== 'Body') throw scanner.bad(part === undefined ? 'it has no Body' : `an element ${part.slice(0, 80)} where Body is due`)

  const prefixesInScope = scanner.scope().filter(([prefix, uri]) => prefix !== '' || uri !== '')
  const from = scanner.at
  scanner.patchCount = 0
  let bodyElement: QName | undefined
  let lastText = -1; let to = from
  while (scanner.depth >= 2) {
    const token = scanner.next()
    switch (token) {
      case TOKEN.start: case TOKEN.array:
        bodyElement ??= qname(scanner.namespace(), scanner.local())
        if (token === TOKEN.start) scanner.skip(3)
        break
      case TOKEN.text: if (scanner.endsElement) { lastText = scanner.start; to = scanner.at } break
      case TOKEN.end: if (lastText < 0) to = scanner.start
    }
  }
  const body = resolveSession(scanner, from, to, lastText, session)
  const behind = child(namespace)
  if (behind !== undefined) throw scanner.bad(`an element ${behind.slice(0, 80)} behind Body`)
  while (scanner.next() !== TOKEN.eof);
  return readingOf(found, { soap: namespace === SOAP11 ? 11 : 12, enc: 'nbfx-static', soapAction: options.soapAction, prefixesInScope, body, bodyElement, isFault: bodyElement === `{${namespace}}Fault` })
}

/** The next element in Envelope: its local name if it is SOAP's own, else its whole name; undefined at Envelope's end. */
function child (namespace: string): string | undefined {
  for (;;) {
    const token = scanner.next()
    if (token === TOKEN.end) return undefined
    if (token === TOKEN.array) throw scanner.bad('an array where Header or Body is due')
    if (token === TOKEN.start) return scanner.namespace() === namespace ? scanner.local() : qname(scanner.namespace(), scanner.local())
  }
}

function readHeader (soapNamespace: string, maxHeaderBytes: number, found: Found): void {
  const from = scanner.start
  const overLimit = (value: number): SoaError => new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: maxHeaderBytes, value })
  const next = (): BinaryToken => {
    const token = scanner.next()
    if (scanner.at - from > maxHeaderBytes) throw overLimit(headerSize(from))
    return token
  }
  if (scanner.at - from > maxHeaderBytes) throw overLimit(headerSize(from))
  const element = new BinaryHeader(next, maxHeaderBytes)
  while (scanner.depth >= 2) {
    const token = next()
    if (token === TOKEN.array) throw scanner.bad('an array where a header is due')
    if (token === TOKEN.start) takeHeader(element, soapNamespace, found)
  }
}

/** How big the block is in all, for the one who has to make it smaller; as far as it can be read. */
function headerSize (from: number): number {
  try {
    scanner.skip(2)
  } catch { /* what is wrong behind the limit is not what the sender is told */ }
  return scanner.at - from
}

/** The header element whose start is the scanner's current token. */
class BinaryHeader implements HeaderElement {
  /** In force around: asked for when the first header is kept, for many messages have none to keep. */
  #outer: Scope | undefined
  readonly #next: () => BinaryToken
  readonly #maxHeaderBytes: number
  constructor (next: () => BinaryToken, maxHeaderBytes: number) { this.#next = next; this.#maxHeaderBytes = maxHeaderBytes }

  namespace (): string { return scanner.namespace() }
  local (): string { return scanner.local() }
  attribute (namespace: string, local: string): string | undefined { return scanner.attribute(namespace, local) }
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

  /** What it needs from outside is put into its start tag; a prefix may be meant by a value too (`i:type="x:int"`), so whatever looks like one counts. */
  whole (hear?: (text: string) => void): Uint8Array {
    const own = scanner.declaresHere ? scanner.ownScope() : []
    // Ids may stand for much longer strings, and the header block's limit is meant for what is kept.
    text.open(this.#maxHeaderBytes, 'maxHeaderBytes')
    elementToText(scanner, this.#next, text, hear)
    const bytes = text.out.take()
    let added = ''
    // The element has been left, so what is in force is what was around it.
    this.#outer ??= scanner.scope()
    for (const [prefix, uri] of this.#outer) {
      if (own.some(([redeclared]) => redeclared === prefix) || (prefix === '' ? uri === '' : !mentions(bytes, prefix))) continue
      added += declaration(prefix, uri)
    }
    return added === '' ? bytes : Buffer.concat([bytes.subarray(0, text.nameEnd), Buffer.from(added), bytes.subarray(text.nameEnd)])
  }
}
