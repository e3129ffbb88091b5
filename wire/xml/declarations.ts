import type { Scope } from '../soap/envelope.ts'
import { decodeText } from './characters.ts'

const XML = 'http://www.w3.org/XML/1998/namespace'
/** Cells of a row: prefixAt, prefixEnd, key of the prefix, uriAt, uriEnd. */
const ROW = 5
/** A prefix is searched for one by one, so their number is bounded; no honest document comes near. */
const MOST = 1024

/** The namespace declarations in force at one place of a document, as offsets into its bytes; innermost last. [Namespaces in XML 1.0] 2, 3, 6 */
export class Declarations {
  /** How many are in force; whoever leaves an element sets it back. */
  count = 0
  #bytes: Buffer = Buffer.alloc(0)
  #outer: Scope = []
  #rows = new Int32Array(ROW * 32)
  // Most prefixes and namespaces are asked for more than once, and making a string of bytes is the dearest step of reading a small message.
  readonly #prefixes: Array<string | undefined> = []
  readonly #uris: Array<string | undefined> = []

  open (bytes: Buffer, outer: Scope): void {
    this.#bytes = bytes
    this.#outer = outer
    this.count = 0
    this.#prefixes.length = this.#uris.length = 0
  }

  /** Takes a declaration in; what is wrong with it is the answer. The default namespace has an empty prefix. */
  add (prefixAt: number, prefixEnd: number, uriAt: number, uriEnd: number): string | undefined {
    if (this.count === MOST) return `more than ${MOST} namespace declarations in force`
    this.#prefixes[this.count] = this.#uris[this.count] = undefined
    const cell = this.count++ * ROW
    if (cell === this.#rows.length) {
      const larger = new Int32Array(cell * 2)
      larger.set(this.#rows)
      this.#rows = larger
    }
    const rows = this.#rows
    rows[cell] = prefixAt; rows[cell + 1] = prefixEnd; rows[cell + 2] = key(this.#bytes, prefixAt, prefixEnd)
    rows[cell + 3] = uriAt; rows[cell + 4] = uriEnd
    if (prefixAt === prefixEnd) return undefined
    if (uriAt === uriEnd) return 'a prefix declared with an empty namespace'
    if (this.#bytes[prefixAt] !== 0x78) return undefined
    const prefix = this.prefix(this.count - 1)
    return prefix === 'xmlns' || (prefix === 'xml' && this.uri(this.count - 1) !== XML) ? 'the prefixes xml and xmlns cannot be declared anew' : undefined
  }

  /** Row of the innermost declaration of the prefix in these bytes; -1: it is `xml` or declared outside the fragment; undefined: nobody declared it. */
  find (from: number, to: number): number | undefined {
    const wanted = key(this.#bytes, from, to); const rows = this.#rows
    for (let cell = (this.count - 1) * ROW; cell >= 0; cell -= ROW) {
      if (rows[cell + 2] === wanted && same(this.#bytes, from, to, rows[cell]!, rows[cell + 1]!)) return cell / ROW
    }
    const prefix = this.#bytes.toString('utf8', from, to)
    return prefix === 'xml' || this.#outer.some(([outer]) => outer === prefix) ? -1 : undefined
  }

  prefix (row: number): string { return (this.#prefixes[row] ??= this.#bytes.toString('utf8', this.#rows[row * ROW], this.#rows[row * ROW + 1])) }
  uri (row: number): string { return (this.#uris[row] ??= decodeText(this.#bytes.toString('utf8', this.#rows[row * ROW + 3], this.#rows[row * ROW + 4]), true)) }

  /** Namespace that a prefix stands for here (prefix '' = the default namespace, '' where there is none); undefined: nobody declared it. */
  resolve (prefix: string): string | undefined {
    for (let row = this.count - 1; row >= 0; row--) if (this.prefix(row) === prefix) return this.uri(row)
    if (prefix === 'xml') return XML
    return this.#outer.find(([outer]) => outer === prefix)?.[1] ?? (prefix === '' ? '' : undefined)
  }

  defaultNamespace (): string {
    for (let cell = (this.count - 1) * ROW; cell >= 0; cell -= ROW) if (this.#rows[cell] === this.#rows[cell + 1]) return this.uri(cell / ROW)
    return this.#outer.find(([prefix]) => prefix === '')?.[1] ?? ''
  }

  /** All in force, without those from outside the fragment; `from` leaves out what was declared before. */
  scope (from = 0): Scope {
    const found = new Map<string, string>()
    for (let row = from; row < this.count; row++) found.set(this.prefix(row), this.uri(row))
    found.delete('xml')
    return [...found]
  }
}

export function same (b: Buffer, from: number, to: number, otherFrom: number, otherTo: number): boolean {
  if (to - from !== otherTo - otherFrom) return false
  for (; from < to; from++, otherFrom++) if (b[from] !== b[otherFrom]) return false
  return true
}

function key (b: Buffer, from: number, to: number): number {
  let key = to - from
  for (; from < to; from++) key = (Math.imul(key, 31) + b[from]!) | 0
  return key
}
