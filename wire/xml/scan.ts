import { SoaError } from '../../core/errors.ts'
import type { Scope } from '../soap/envelope.ts'
import { CONTENT, decodeText, isChar, isName, isXmlDeclaration, lineEnds, NAME, referenced, VALUE } from './characters.ts'
import { Declarations, same } from './declarations.ts'

/**
 * One forward scan over the UTF-8 bytes of a document: says where elements and text begin and end, and makes no object for any of them.
 *
 * It refuses what a strict XML 1.0 + Namespaces reader would refuse (end tags that do not match, attributes given twice, prefixes that nobody
 * declared, characters and references that XML has not, text outside the root), so that bytes which passed here cannot spoil the document of
 * another peer that they are copied into. A DTD is refused, and with it every entity but XML's own five. The caller has checked that the bytes
 * are UTF-8. Depth is checked as it grows; attributes of one element are bounded.
 */
export const TOKEN = { eof: 0, start: 1, end: 2, text: 3, cdata: 4 } as const
export type Token = (typeof TOKEN)[keyof typeof TOKEN]

const EMPTY = Buffer.alloc(0)
const MOST_ATTRIBUTES = 1024
/** Above this many attributes a set finds the double, below it comparing all pairs is quicker. */
const FEW_ATTRIBUTES = 12
/** Cells of one row in the tables of integers below. */
const LEVEL = 3; const ATTRIBUTE = 5

export interface ScanOptions {
  /** Deepest nesting allowed, counted from inside `outerLevels`: with 2, a child of Body has depth 1. */
  maxDepth: number
  outerLevels?: number
  /** The bytes are content cut from a document: text beside elements is fine, and these declarations are in force. */
  fragmentOf?: Scope
  from?: number
  to?: number
}

export class XmlScanner {
  bytes: Buffer = EMPTY
  /** Offset behind the current token. */
  at = 0
  end = 0
  /** Offset of the current token's first byte; for text and CDATA the characters lie in `contentAt`…`contentEnd`. */
  start = 0
  contentAt = 0
  contentEnd = 0
  /** The text has references or carriage returns, so its bytes are not yet its value. */
  needsDecoding = false
  /** Open elements, the current start token's among them. An end token's own element is not. */
  depth = 0
  /** Name of the current start token; `colon` is 0 where it has no prefix. */
  nameAt = 0
  colon = 0
  nameEnd = 0
  attributeCount = 0

  #pendingEnd = false
  #rootSeen = false
  #fragment = false
  #maxDepth = 0
  #outerLevels = 0
  #levels = new Int32Array(LEVEL * 64) // nameAt, nameEnd, declarations in force outside
  readonly #declarations = new Declarations()
  #attributes = new Int32Array(ATTRIBUTE * 32) // nameAt, colon or 0, nameEnd, valueAt, valueEnd

  open (bytes: Uint8Array, options: ScanOptions): this {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.at = this.start = options.from ?? 0
    this.end = options.to ?? bytes.length
    this.depth = this.attributeCount = 0
    this.#pendingEnd = this.#rootSeen = false
    this.#fragment = options.fragmentOf !== undefined
    this.#declarations.open(this.bytes, options.fragmentOf ?? [])
    this.#maxDepth = options.maxDepth
    this.#outerLevels = options.outerLevels ?? 0
    const b = this.bytes
    if (!this.#fragment && b[this.at] === 0xef && b[this.at + 1] === 0xbb && b[this.at + 2] === 0xbf) this.at += 3
    if (b[this.at] === 0x3c && isXmlDeclaration(b, this.at, this.end)) this.at = b.indexOf('?>', this.at) + 2
    return this
  }

  /** Lets go of the bytes: a scanner that is kept for the next message must not keep the last one alive. */
  close (): void {
    this.bytes = EMPTY
    this.#declarations.open(EMPTY, [])
    if (this.#levels.length > LEVEL * 256) this.#levels = new Int32Array(LEVEL * 64)
  }

  /** The next token; comments and processing instructions are checked and passed over. `eof` comes only where a document may end. */
  next (): Token {
    if (this.#pendingEnd) { this.#pendingEnd = false; this.#leave(); this.start = this.at; return TOKEN.end }
    const b = this.bytes
    for (;;) {
      const i = this.at
      if (i >= this.end) {
        if (this.depth > 0 || (!this.#rootSeen && !this.#fragment)) throw this.bad('it ends too early')
        return TOKEN.eof
      }
      this.start = i
      if (b[i] !== 0x3c) {
        if (this.#text()) return TOKEN.text
      } else if (b[i + 1] === 0x2f) {
        this.#endTag()
        return TOKEN.end
      } else if (b[i + 1] === 0x21) {
        if (this.#declarationOrCdata()) return TOKEN.cdata
      } else if (b[i + 1] === 0x3f) this.#instruction()
      else { this.#startTag(); return TOKEN.start }
    }
  }

  /** From inside an element (its start token, or anything in it while `depth` is `level`) to behind its end tag. */
  skip (level: number): void { while (this.depth >= level) this.next() }

  local (): string { return this.bytes.toString('utf8', this.colon === 0 ? this.nameAt : this.colon + 1, this.nameEnd) }

  /** Namespace of the current start token's element. */
  namespace (): string { return this.colon === 0 ? this.#declarations.defaultNamespace() : this.#uri(this.nameAt, this.colon) }

  /** Value of an attribute of the current start token, references resolved. Namespace '' = an attribute without prefix. */
  attribute (namespace: string, local: string): string | undefined {
    for (let row = 0; row < this.attributeCount * ATTRIBUTE; row += ATTRIBUTE) {
      const nameAt = this.#attributes[row]!; const colon = this.#attributes[row + 1]!; const nameEnd = this.#attributes[row + 2]!
      const at = colon === 0 ? nameAt : colon + 1
      if (nameEnd - at !== local.length || this.bytes.toString('latin1', at, nameEnd) !== local) continue
      if ((colon === 0 ? '' : this.#uri(nameAt, colon)) === namespace) return decodeText(this.bytes.toString('utf8', this.#attributes[row + 3]!, this.#attributes[row + 4]!), true)
    }
    return undefined
  }

  /** The current start token's attributes that declare no namespace, as they stand in the source, each with a blank before it. */
  plainAttributes (): string {
    let out = ''
    for (let row = 0; row < this.attributeCount * ATTRIBUTE; row += ATTRIBUTE) {
      if (this.#declares(row)) continue
      out += ' ' + this.bytes.toString('utf8', this.#attributes[row]!, this.#attributes[row + 4]! + 1)
    }
    return out
  }

  /** Declarations that the current start token makes itself. */
  ownScope (): Scope { return this.#declarations.scope(this.#levels[(this.depth - 1) * LEVEL + 2]) }

  /** Declarations in force at the current token, innermost winning; those of `fragmentOf` are left out. */
  scope (): Scope { return this.#declarations.scope() }

  /** Namespace that a prefix stands for here ('' = the default namespace); undefined: nobody declared it. */
  resolve (prefix: string): string | undefined { return this.#declarations.resolve(prefix) }

  /** Value of the current text or CDATA token. */
  value (token: Token): string {
    const text = this.bytes.toString('utf8', this.contentAt, this.contentEnd)
    if (!this.needsDecoding) return text
    return token === TOKEN.cdata ? lineEnds(text) : decodeText(text, false)
  }

  /** Text of the element whose start token is current, up to behind its end tag. Elements in it are refused. */
  elementText (what: string, next: () => Token = () => this.next()): string {
    let text = ''
    for (;;) {
      const token = next()
      if (token === TOKEN.end) return text
      if (token === TOKEN.start) throw this.bad(`${what} has an element where only text may be`)
      text += this.value(token)
    }
  }

  bad (why: string): SoaError { return new SoaError('badEnvelope', { why: `${why} (byte ${this.start})` }) }

  #text (): boolean {
    const b = this.bytes; const end = this.end
    let i = this.at
    this.needsDecoding = false
    for (;; i++) {
      while (i < end && CONTENT[b[i]!] === 0) i++
      if (i >= end || b[i] === 0x3c) break
      switch (CONTENT[b[i]!]) {
        case 2: i = this.#reference(i, end); this.needsDecoding = true; break
        case 3: if (b[i - 1] === 0x5d && b[i - 2] === 0x5d && i - 2 >= this.start) throw this.#badAt(i, ']]> in text'); break
        case 4: throw this.#badAt(i, 'a character that XML does not have')
        case 5: if (!isChar(b, i)) throw this.#badAt(i, 'a character that XML does not have'); break
        case 6: this.needsDecoding = true; break
      }
    }
    this.contentAt = this.at
    this.contentEnd = this.at = i
    if (this.depth > 0 || this.#fragment) return true
    for (let at = this.start; at < i; at++) if (b[at]! > 0x20) throw this.#badAt(at, this.#rootSeen ? 'text behind the root element' : 'text before the root element')
    return false
  }

  #declarationOrCdata (): boolean {
    const b = this.bytes; const i = this.at
    if (b[i + 2] === 0x2d && b[i + 3] === 0x2d) {
      const close = b.indexOf('--', i + 4)
      if (close < 0 || close + 3 > this.end) throw this.bad('a comment without an end')
      if (b[close + 2] !== 0x3e) throw this.bad('-- in a comment')
      this.#characters(i + 4, close)
      this.at = close + 3
      return false
    }
    if (b.toString('latin1', i + 2, i + 9) === '[CDATA[' && (this.depth > 0 || this.#fragment)) {
      const close = b.indexOf(']]>', i + 9)
      if (close < 0 || close + 3 > this.end) throw this.bad('a CDATA section without an end')
      this.#characters(i + 9, close)
      this.contentAt = i + 9
      this.contentEnd = close
      this.needsDecoding = b.subarray(i + 9, close).includes(0x0d)
      this.at = close + 3
      return true
    }
    throw this.bad('a document type declaration or other markup declaration, which SOAP does not allow')
  }

  #instruction (): void {
    const b = this.bytes; const close = b.indexOf('?>', this.at + 2)
    if (close < 0 || close + 2 > this.end) throw this.bad('a processing instruction without an end')
    let i = this.at + 2
    while (i < close && NAME[b[i]!]! > 0) i++
    const target = b.toString('utf8', this.at + 2, i)
    if (!isName(target) || /^xml$/i.test(target) || target.includes(':') || (i < close && b[i]! > 0x20)) throw this.bad('a processing instruction that is not allowed here')
    this.#characters(i, close)
    this.at = close + 2
  }

  #endTag (): void {
    const b = this.bytes
    const row = (this.depth - 1) * LEVEL
    let i = this.at + 2
    if (this.depth === 0) throw this.bad('an end tag without a start tag')
    for (let from = this.#levels[row]!, to = this.#levels[row + 1]!; from < to; from++, i++) if (b[from] !== b[i]) throw this.#mismatch()
    while (i < this.end && (b[i] === 0x20 || b[i] === 0x0a || b[i] === 0x0d || b[i] === 0x09)) i++
    if (b[i] !== 0x3e || i >= this.end) throw this.#mismatch()
    this.at = i + 1
    this.#leave()
  }

  #mismatch (): SoaError {
    const row = (this.depth - 1) * LEVEL
    return this.bad(`an end tag that is not </${this.bytes.toString('utf8', this.#levels[row]!, this.#levels[row + 1]!).slice(0, 80)}>`)
  }

  #leave (): void {
    this.depth--
    this.#declarations.count = this.#levels[this.depth * LEVEL + 2]!
  }

  #startTag (): void {
    const b = this.bytes; const end = this.end
    if (this.depth === 0 && this.#rootSeen && !this.#fragment) throw this.bad('a second root element')
    this.#rootSeen = true
    const nameAt = this.at + 1
    let i = this.#name(nameAt)
    const colon = this.#colon
    this.#enter(nameAt, i)
    let attributes = 0; let prefixed = 0
    for (;;) {
      const before = i
      while (i < end && (b[i] === 0x20 || b[i] === 0x0a || b[i] === 0x0d || b[i] === 0x09)) i++
      const byte = i < end ? b[i]! : 0
      if (byte === 0x3e) break
      if (byte === 0x2f && b[i + 1] === 0x3e && i + 1 < end) { this.#pendingEnd = true; i++; break }
      if (i >= end) throw this.bad('a tag without an end')
      if (i === before) throw this.#badAt(i, 'a character that a tag cannot have here')
      // One attribute: name = "value"
      const at = i
      i = this.#name(i)
      const attributeColon = this.#colon; const attributeEnd = i
      while (i < end && b[i]! <= 0x20 && CONTENT[b[i]!] !== 4) i++
      if (b[i] !== 0x3d) throw this.#badAt(i, 'an attribute without a value')
      i++
      while (i < end && b[i]! <= 0x20 && CONTENT[b[i]!] !== 4) i++
      const quote = i < end ? b[i]! : 0
      if (quote !== 0x22 && quote !== 0x27) throw this.#badAt(i, 'an attribute value without quotes')
      const valueAt = i + 1
      i = this.#value(valueAt, quote)
      if (attributes === MOST_ATTRIBUTES) throw this.bad(`more than ${MOST_ATTRIBUTES} attributes on one element`)
      const row = attributes++ * ATTRIBUTE
      if (row === this.#attributes.length) this.#attributes = grown(this.#attributes)
      this.#attributes[row] = at; this.#attributes[row + 1] = attributeColon; this.#attributes[row + 2] = attributeEnd
      this.#attributes[row + 3] = valueAt; this.#attributes[row + 4] = i
      if (this.#declares(row)) this.#declare(row); else if (attributeColon !== 0) prefixed++
      i++
    }
    this.at = i + 1
    this.nameAt = nameAt; this.colon = colon; this.nameEnd = this.#levels[(this.depth - 1) * LEVEL + 1]!
    this.attributeCount = attributes
    // Declarations of a tag are in force for its own name and attributes too, so prefixes are looked up when all are known.
    if (colon !== 0 || prefixed > 0) this.#checkPrefixes(prefixed > 0)
    if (attributes > 1) this.#checkDoubles(prefixed > 1)
  }

  #enter (nameAt: number, nameEnd: number): void {
    const depth = this.depth + 1
    const inner = depth - this.#outerLevels
    if (inner > this.#maxDepth) throw new SoaError('overLimit', { setting: 'maxDepth', limit: this.#maxDepth, value: inner })
    const row = this.depth * LEVEL
    if (row === this.#levels.length) this.#levels = grown(this.#levels)
    this.#levels[row] = nameAt; this.#levels[row + 1] = nameEnd; this.#levels[row + 2] = this.#declarations.count
    this.depth = depth
  }

  #colon = 0
  #name (from: number): number {
    const b = this.bytes; const end = this.end
    let i = from; let colon = 0; let foreign = false
    for (; i < end; i++) {
      const kind = NAME[b[i]!]!
      if (kind === 0) break
      if (kind === 3) { if (colon !== 0) throw this.#badAt(i, 'a name with two colons'); colon = i } else if (kind === 4) foreign = true
    }
    const first = NAME[b[from]!]
    if (i === from || (first !== 1 && first !== 4) || colon === i - 1 || (colon !== 0 && NAME[b[colon + 1]!] === 2)) throw this.#badAt(from, 'something that is no name where a name is due')
    if (foreign && !b.toString('utf8', from, i).split(':').every(isName)) throw this.#badAt(from, 'a name with a character that names cannot have')
    this.#colon = colon
    return i
  }

  #value (from: number, quote: number): number {
    const b = this.bytes; const end = this.end
    for (let i = from; ; i++) {
      while (i < end && VALUE[b[i]!] === 0) i++
      if (i >= end) throw this.bad('a quote that is not closed')
      switch (VALUE[b[i]!]) {
        case 1: if (b[i] === quote) return i; break
        case 2: i = this.#reference(i, end); break
        case 3: throw this.#badAt(i, '< in an attribute value')
        case 4: throw this.#badAt(i, 'a character that XML does not have')
        case 5: if (!isChar(b, i)) throw this.#badAt(i, 'a character that XML does not have'); break
      }
    }
  }

  /** Offset of the reference's `;`. */
  #reference (at: number, end: number): number {
    const b = this.bytes
    // The longest that means anything is &#x10FFFF; leading zeros are allowed, within reason.
    const close = b.subarray(at, Math.min(at + 24, end)).indexOf(0x3b)
    if (close < 0 || referenced(b.toString('latin1', at + 1, at + close)) === undefined) throw this.#badAt(at, 'a reference to something else than a character or one of the five predefined entities')
    return at + close
  }

  #characters (from: number, to: number): void {
    const b = this.bytes
    for (let i = from; i < to; i++) {
      const kind = CONTENT[b[i]!]!
      if (kind === 4 || (kind === 5 && !isChar(b, i))) throw this.#badAt(i, 'a character that XML does not have')
    }
  }

  #declares (row: number): boolean {
    const b = this.bytes; const at = this.#attributes[row]!; const colon = this.#attributes[row + 1]!
    const length = (colon === 0 ? this.#attributes[row + 2]! : colon) - at
    return length === 5 && b[at] === 0x78 && b[at + 1] === 0x6d && b[at + 2] === 0x6c && b[at + 3] === 0x6e && b[at + 4] === 0x73
  }

  #declare (row: number): void {
    const nameEnd = this.#attributes[row + 2]!
    const wrong = this.#declarations.add((this.#attributes[row + 1]! || nameEnd - 1) + 1, nameEnd, this.#attributes[row + 3]!, this.#attributes[row + 4]!)
    if (wrong !== undefined) throw this.bad(wrong)
  }

  #checkPrefixes (attributesToo: boolean): void {
    if (this.colon !== 0) this.#find(this.nameAt, this.colon)
    if (!attributesToo) return
    for (let row = 0; row < this.attributeCount * ATTRIBUTE; row += ATTRIBUTE) {
      const colon = this.#attributes[row + 1]!
      if (colon !== 0 && !this.#declares(row)) this.#find(this.#attributes[row]!, colon)
    }
  }

  #checkDoubles (byNamespace: boolean): void {
    const count = this.attributeCount; const b = this.bytes; const rows = this.#attributes
    if (count <= FEW_ATTRIBUTES && !byNamespace) {
      for (let one = 1; one < count; one++) for (let two = 0; two < one; two++) if (same(b, rows[one * ATTRIBUTE]!, rows[one * ATTRIBUTE + 2]!, rows[two * ATTRIBUTE]!, rows[two * ATTRIBUTE + 2]!)) throw this.bad('an attribute given twice')
      return
    }
    const seen = new Set<string>()
    for (let row = 0; row < count * ATTRIBUTE; row += ATTRIBUTE) {
      const nameAt = rows[row]!; const colon = rows[row + 1]!; const nameEnd = rows[row + 2]!
      const name = colon === 0 || this.#declares(row) ? b.toString('utf8', nameAt, nameEnd) : `${this.#uri(nameAt, colon)} ${b.toString('utf8', colon + 1, nameEnd)}`
      if (seen.size === seen.add(name).size) throw this.bad('an attribute given twice')
    }
  }

  #find (from: number, to: number): number {
    const row = this.#declarations.find(from, to)
    if (row === undefined) throw this.#badAt(from, `prefix ${this.bytes.toString('utf8', from, Math.min(to, from + 80))} is not declared`)
    return row
  }

  #uri (from: number, to: number): string {
    const row = this.#find(from, to)
    return row >= 0 ? this.#declarations.uri(row) : this.#declarations.resolve(this.bytes.toString('utf8', from, to)) as string
  }

  #badAt (at: number, why: string): SoaError { this.start = at; return this.bad(why) }
}

function grown (table: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(table.length * 2)
  larger.set(table)
  return larger
}
