import { SoaError } from '../../../core/errors.ts'
import type { Scope } from '../../soap/envelope.ts'
import { BinaryCursor, grown, hex, PATCH } from './cursor.ts'
import { BinaryDeclarations } from './declarations.ts'
import { ITEM_BYTES, KIND, KINDS, RECORD, TEXT } from './records.ts'
import { STATIC, type Strings } from './tables.ts'
import { textOf, utf8At } from './values.ts'

/**
 * One forward scan over binary XML, as xml/scan.ts is over text: says where elements and values begin and end, and makes no object for any of them.
 *
 * It refuses what Microsoft's reader refuses, wherever that stands, and names that are no XML names, which that reader lets pass: a body that went
 * through here unread can be read by any peer, and be written as text. Depth is checked as it grows.
 */
export const TOKEN = { eof: 0, start: 1, end: 2, text: 3, comment: 4, array: 5 } as const
export type BinaryToken = (typeof TOKEN)[keyof typeof TOKEN]

const EMPTY = Buffer.alloc(0)
const MOST_ATTRIBUTES = 1024
/** Cells of a row in the tables of integers. */
const LEVEL = 5; const ATTRIBUTE = 7

export interface BinaryScanOptions {
  /** Deepest nesting allowed, counted from inside `outerLevels`: with 2, a child of Body has depth 1. */
  readonly maxDepth: number
  readonly outerLevels?: number
  /** The records are content cut from a document, with these declarations in force. */
  readonly fragmentOf?: Scope | undefined
  /** What ids stand for; default: the static strings. */
  readonly strings?: Strings | undefined
  readonly from?: number
  readonly to?: number
  /** What is thrown; default: badEnvelope. */
  readonly fault?: 'badEnvelope' | 'badXml'
}

export class BinaryScanner extends BinaryCursor {
  /** Open elements, the current start token's among them. An array's own element is not. */
  depth = 0
  /** Of the current start or array token. */
  attributeCount = 0
  /** Of an array: code of its items (odd), how many, and where they begin. */
  itemCode = 0
  itemCount = 0
  itemsAt = 0

  #pendingEnd = false
  #rootSeen = false
  #fragment = false
  #maxDepth = 0
  #outerLevels = 0
  #levels = new Int32Array(LEVEL * 64) // prefix, local, declarations in force outside
  #attributes = new Int32Array(ATTRIBUTE * 16) // prefix, local, code, value
  readonly #declarations = new BinaryDeclarations()

  open (bytes: Uint8Array, options: BinaryScanOptions): this {
    this.bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.at = this.start = options.from ?? 0
    this.end = options.to ?? bytes.length
    this.depth = this.attributeCount = this.patchCount = 0
    this.#popTo = -1
    this.#pendingEnd = this.#rootSeen = false
    this.#fragment = options.fragmentOf !== undefined
    this.strings = options.strings ?? STATIC
    this.#declarations.open(this.bytes, this.strings, options.fragmentOf ?? [])
    this.#maxDepth = options.maxDepth
    this.#outerLevels = options.outerLevels ?? 0
    this.fault = options.fault ?? 'badEnvelope'
    return this
  }

  /** Lets go of the bytes: a scanner that is kept for the next message must not keep the last one alive. */
  close (): void {
    this.bytes = EMPTY
    this.strings = STATIC
    this.#declarations.open(EMPTY, STATIC, [])
    if (this.#levels.length > LEVEL * 256) this.#levels = new Int32Array(LEVEL * 64)
    if (this.patches.length > PATCH * 4096) this.patches = new Int32Array(PATCH * 64)
  }

  /** The next token. `eof` comes only where a document may end. */
  next (): BinaryToken {
    if (this.#popTo >= 0) { this.#declarations.count = this.#popTo; this.#popTo = -1 }
    if (this.#pendingEnd) { this.#pendingEnd = false; this.#leave(); return TOKEN.end }
    const at = this.at
    if (at >= this.end) {
      if (this.depth > 0) throw this.bad('it ends too early')
      return TOKEN.eof
    }
    this.start = at
    const code = this.bytes[at]!
    switch (KINDS[code]) {
      case KIND.element: this.#root(); this.#element(at, true); return TOKEN.start
      case KIND.text: this.#text(code); return TOKEN.text
      case KIND.endElement:
        if (this.depth === 0) throw this.bad('an end without an element')
        this.at = at + 1
        this.#leave()
        return TOKEN.end
      case KIND.comment: this.at = at + 1; this.valueAt = this.takeBytes(); this.valueEnd = this.at; this.checkUtf8(this.valueAt, this.at); return TOKEN.comment
      case KIND.array: this.#root(); this.#array(at); return TOKEN.array
      default: throw this.bad(KINDS[code] === KIND.none ? `0x${hex(code)} is no record` : 'an attribute where none can be')
    }
  }

  /** From inside an element (its start token, or anything in it while `depth` is `level`) to behind its end. */
  skip (level: number): void { while (this.depth >= level) this.next() }

  local (): string { return this.name(this.localA, this.localB) }
  prefix (): string { return this.#declarations.prefixText(this.prefixA, this.prefixB) }
  namespace (): string { return this.#declarations.uriOf(this.prefixA, this.prefixB) ?? '' }

  /** The text of two cells. */
  name (a: number, b: number): string { return a < 0 ? this.strings.text(-1 - a) as string : utf8At(this.bytes, a, b) }
  /** The bytes of two cells. */
  nameBytes (a: number, b: number): Buffer { return a < 0 ? this.strings.utf8(-1 - a) as Buffer : this.bytes.subarray(a, b) }

  /** Value of an attribute of the current start token. Namespace '' = an attribute without prefix. */
  attribute (namespace: string, local: string): string | undefined {
    for (let i = 0; i < this.attributeCount; i++) if (this.attributeLocal(i) === local && this.attributeNamespace(i) === namespace) return this.attributeValue(i)
    return undefined
  }

  /** Cell of an attribute: 0 and 1 its prefix, 2 and 3 its local name, 4 the code of its value, 5 and 6 where that lies. */
  attributeCell (i: number, cell: number): number { return this.#attributes[i * ATTRIBUTE + cell]! }
  attributeLocal (i: number): string { return this.name(this.#attributes[i * ATTRIBUTE + 2]!, this.#attributes[i * ATTRIBUTE + 3]!) }
  attributePrefix (i: number): string { return this.#declarations.prefixText(this.#attributes[i * ATTRIBUTE]!, this.#attributes[i * ATTRIBUTE + 1]!) }
  attributeNamespace (i: number): string {
    const a = this.#attributes[i * ATTRIBUTE]!; const b = this.#attributes[i * ATTRIBUTE + 1]!
    return a === b ? '' : this.#declarations.uriOf(a, b) ?? ''
  }

  attributeValue (i: number): string {
    const row = i * ATTRIBUTE
    return textOf(this.bytes, this.#attributes[row + 4]!, this.#attributes[row + 5]!, this.#attributes[row + 6]!, this.strings)
  }

  /** Value of the current text; pieces of base64 are not joined. */
  value (): string { return textOf(this.bytes, this.textCode, this.valueAt, this.valueEnd, this.strings) }

  /** Text of the element whose start token is current, up to behind its end. Elements in it are refused. */
  elementText (what: string, next: () => BinaryToken = () => this.next()): string {
    let text = ''
    for (;;) {
      const token = next()
      if (token === TOKEN.end) return text
      if (token === TOKEN.text) text = text === '' ? this.value() : text + this.value()
      else if (token !== TOKEN.comment) throw this.bad(`${what} has an element where only text may be`)
    }
  }

  /** The current text has ended its element too: the next token is that end. */
  get endsElement (): boolean { return this.#pendingEnd }

  get declaresHere (): boolean { return this.#declarations.count > this.#ownFrom }
  /** Declarations that the current start or array token makes itself. */
  ownScope (): Scope { return this.#declarations.scope(this.#ownFrom) }
  /** Declarations in force at the current token, innermost winning; those of `fragmentOf` are left out. */
  scope (): Scope { return this.#declarations.scope() }
  /** Namespace that a prefix stands for here ('' = the default namespace); undefined: nobody declared it. */
  resolve (prefix: string): string | undefined { return this.#declarations.resolve(prefix) }

  #ownFrom = 0
  /** Behind an array: where its element's declarations end being in force. */
  #popTo = -1

  #root (): void {
    if (this.depth > 0 || this.#fragment) return
    if (this.#rootSeen) throw this.bad('a second root element')
    this.#rootSeen = true
  }

  #leave (): void {
    const row = --this.depth * LEVEL; const levels = this.#levels
    this.prefixA = levels[row]!; this.prefixB = levels[row + 1]!; this.localA = levels[row + 2]!; this.localB = levels[row + 3]!
    this.#declarations.count = levels[row + 4]!
  }

  #element (at: number, enters: boolean): void {
    const b = this.bytes; const code = b[at]!
    const inner = this.depth + 1 - this.#outerLevels
    if (inner > this.#maxDepth) throw new SoaError('overLimit', { setting: 'maxDepth', limit: this.#maxDepth, value: inner })
    this.at = at + 1
    this.takeName(at, code, RECORD.shortDictionaryElement, RECORD.prefixDictionaryElement, RECORD.prefixElement)
    const before = this.#declarations.count
    this.#ownFrom = before
    this.attributeCount = 0
    if (KINDS[b[this.at]!] === KIND.attribute || KINDS[b[this.at]!] === KIND.xmlns) this.#attributesOf()
    if (this.prefixA !== this.prefixB && !this.#declarations.has(this.prefixA, this.prefixB)) throw this.#undeclared(this.prefixA, this.prefixB)
    if (!enters) return
    const row = this.depth * LEVEL
    if (row === this.#levels.length) this.#levels = grown(this.#levels)
    const levels = this.#levels
    levels[row] = this.prefixA; levels[row + 1] = this.prefixB; levels[row + 2] = this.localA; levels[row + 3] = this.localB; levels[row + 4] = before
    this.depth++
  }

  #attributesOf (): void {
    const b = this.bytes
    const { prefixA, prefixB, localA, localB } = this
    const before = this.#declarations.count
    let attributes = 0; let prefixed = false
    for (;;) {
      const at = this.at; const code = at < this.end ? b[at]! : 0
      if (KINDS[code] === KIND.xmlns) { this.start = at; this.#xmlns(at, code, before); continue }
      if (KINDS[code] !== KIND.attribute) break
      this.start = at
      this.at = at + 1
      this.takeName(at, code, RECORD.shortDictionaryAttribute, RECORD.prefixDictionaryAttribute, RECORD.prefixAttribute)
      if (this.prefixA === this.prefixB && this.name(this.localA, this.localB) === 'xmlns') throw this.bad('a namespace declared by an ordinary attribute')
      if (this.at >= this.end) throw this.bad('it ends too early')
      const textCode = b[this.at]!
      if (KINDS[textCode] !== KIND.text || (textCode & 1) === 1 || textCode === TEXT.endList) throw this.bad(`0x${hex(textCode)} where an attribute's value is due`)
      this.takeValue(this.at)
      if (attributes === MOST_ATTRIBUTES) throw this.bad(`more than ${MOST_ATTRIBUTES} attributes on one element`)
      const row = attributes++ * ATTRIBUTE
      if (row === this.#attributes.length) this.#attributes = grown(this.#attributes)
      const rows = this.#attributes
      rows[row] = this.prefixA; rows[row + 1] = this.prefixB; rows[row + 2] = this.localA; rows[row + 3] = this.localB
      rows[row + 4] = this.textCode; rows[row + 5] = this.valueAt; rows[row + 6] = this.valueEnd
      if (this.prefixA !== this.prefixB) prefixed = true
    }
    this.prefixA = prefixA; this.prefixB = prefixB; this.localA = localA; this.localB = localB
    this.attributeCount = attributes
    // A declaration may stand behind the attribute that needs it, so prefixes are looked up when all are known.
    if (prefixed) {
      for (let row = 0; row < attributes * ATTRIBUTE; row += ATTRIBUTE) {
        const a = this.#attributes[row]!; const end = this.#attributes[row + 1]!
        if (a !== end && !this.#declarations.has(a, end)) throw this.#undeclared(a, end)
      }
    }
    if (attributes > 1) this.#checkDoubles()
  }

  #xmlns (at: number, code: number, before: number): void {
    this.at = at + 1
    this.prefixA = this.prefixB = 0
    if ((code & 1) === 1) this.takePrefix()
    let uriA: number; let uriB = 0
    if (code >= RECORD.shortDictionaryXmlns) uriA = this.takeId(at)
    else { uriA = this.takeBytes(); uriB = this.at; this.checkUtf8(uriA, uriB) }
    const wrong = this.#declarations.add(this.prefixA, this.prefixB, uriA, uriB, before)
    if (wrong !== undefined) throw this.bad(wrong)
  }

  #array (at: number): void {
    this.at = at + 1
    if (this.at >= this.end || KINDS[this.bytes[this.at]!] !== KIND.element) throw this.bad('an array without an element')
    this.#element(this.at, false)
    this.start = at
    if (this.takeByte() !== RECORD.endElement) throw this.bad('an array whose element has content')
    const code = this.takeByte(); const bytes = ITEM_BYTES[code]!
    if (bytes === 0) throw this.bad(`an array of 0x${hex(code)}, which arrays do not have`)
    const count = this.takeSize()
    if (count === 0) throw this.bad('an array without items')
    if (count * bytes > this.end - this.at) throw this.bad('it ends too early')
    this.itemCode = code; this.itemCount = count; this.itemsAt = this.at
    if (code === TEXT.decimal + 1 || code === TEXT.dateTime + 1) {
      for (let item = 0; item < count; item++) this.checkNumber(code - 1, this.at + item * bytes)
    }
    this.at += count * bytes
    this.#popTo = this.#ownFrom
  }

  #text (code: number): void {
    const closes = (code & 1) === 1
    if (this.depth === 0 && (closes || !this.#fragment)) {
      if (closes || code === TEXT.endList) throw this.bad('a text that ends an element where none is open')
      this.takeValue(this.at)
      if (!/^[ \t\r\n]*$/.test(this.value())) throw this.bad(this.#rootSeen ? 'text behind the root element' : 'text before the root element')
      return
    }
    this.takeValue(this.at)
    this.#pendingEnd = closes
  }

  #checkDoubles (): void {
    const count = this.attributeCount
    const seen = new Set<string>()
    for (let i = 0; i < count; i++) {
      if (seen.size === seen.add(`${this.attributeNamespace(i)} ${this.attributeLocal(i)}`).size) throw this.bad('an attribute given twice')
    }
  }

  #undeclared (a: number, b: number): SoaError { return this.bad(`prefix ${this.#declarations.prefixText(a, b).slice(0, 80)} is not declared`) }
}
