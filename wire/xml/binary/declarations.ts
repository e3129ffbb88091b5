import type { Scope } from '../../soap/envelope.ts'
import { NO_STRINGS, type Strings } from './tables.ts'
import { utf8At } from './values.ts'

const XML = 'http://www.w3.org/XML/1998/namespace'
/** Cells of a row: prefix and namespace, two each (scan.ts says how a name is two cells). */
const ROW = 4
/** A prefix is searched for one by one, so their number is bounded; no honest document comes near. */
const MOST = 1024
/** Up to so many are compared with one another; of more, a map is made. */
const FEW = 12
const EMPTY = Buffer.alloc(0)

/** The namespace declarations in force at one place of a binary document; innermost last. What xml/declarations.ts is for text. */
export class BinaryDeclarations {
  /** How many are in force; whoever leaves an element sets it back. */
  count = 0
  #bytes: Buffer = EMPTY
  #strings: Strings = NO_STRINGS
  #outer: Scope = []
  #rows = new Int32Array(ROW * 32)
  // The same namespace is asked for by each element in it, and making a string of bytes is the dearest step.
  readonly #uris: Array<string | undefined> = []

  open (bytes: Buffer, strings: Strings, outer: Scope): void {
    this.#bytes = bytes
    this.#strings = strings
    this.#outer = outer
    this.count = this.#uris.length = 0
  }

  /** Takes a declaration in; what is wrong with it is the answer. @param own row where those of the same element begin */
  add (prefixA: number, prefixB: number, uriA: number, uriB: number, own: number): string | undefined {
    if (this.count === MOST) return `more than ${MOST} namespace declarations in force`
    const rows = this.#rows
    for (let row = own; row < this.count; row++) if (this.#isPrefix(row, prefixA, prefixB)) return 'a prefix declared twice on one element'
    this.#uris[this.count] = undefined
    const cell = this.count++ * ROW
    if (cell === rows.length) {
      this.#rows = new Int32Array(cell * 2)
      this.#rows.set(rows)
    }
    this.#rows[cell] = prefixA; this.#rows[cell + 1] = prefixB; this.#rows[cell + 2] = uriA; this.#rows[cell + 3] = uriB
    if (prefixA === prefixB) return undefined
    if (uriA >= 0 ? uriA === uriB : this.uri(this.count - 1) === '') return 'a prefix declared with an empty namespace'
    if (prefixA < 0 || this.#bytes[prefixA] !== 0x78) return undefined
    const prefix = this.prefixText(prefixA, prefixB)
    return prefix === 'xmlns' || (prefix === 'xml' && this.uri(this.count - 1) !== XML) ? 'the prefixes xml and xmlns cannot be declared anew' : undefined
  }

  /** Somebody declared the prefix, which is not empty. */
  has (a: number, b: number): boolean {
    for (let row = this.count - 1; row >= 0; row--) if (this.#isPrefix(row, a, b)) return true
    return this.#outside(this.prefixText(a, b)) !== undefined
  }

  /** Namespace of a prefix (a === b: of the default one, '' where there is none); undefined: nobody declared it. */
  uriOf (a: number, b: number): string | undefined {
    for (let row = this.count - 1; row >= 0; row--) if (this.#isPrefix(row, a, b)) return this.uri(row)
    return this.#outside(this.prefixText(a, b)) ?? (a === b ? '' : undefined)
  }

  resolve (prefix: string): string | undefined {
    for (let row = this.count - 1; row >= 0; row--) if (this.#prefix(row) === prefix) return this.uri(row)
    return this.#outside(prefix) ?? (prefix === '' ? '' : undefined)
  }

  uri (row: number): string { return (this.#uris[row] ??= this.#uri(this.#rows[row * ROW + 2]!, this.#rows[row * ROW + 3]!)) }
  #uri (a: number, b: number): string { return a < 0 ? this.#strings.text(-1 - a) as string : utf8At(this.#bytes, a, b) }
  prefixText (a: number, b: number): string { return a === b ? '' : a < 0 ? String.fromCharCode(-a) : utf8At(this.#bytes, a, b) }

  /** All in force, without those from outside the fragment; `from` leaves out what was declared before. */
  scope (from = 0): Scope {
    if (this.count - from > FEW) {
      const found = new Map<string, string>()
      for (let row = from; row < this.count; row++) found.set(this.#prefix(row), this.uri(row))
      found.delete('xml')
      return [...found]
    }
    const found: Array<readonly [string, string]> = []
    for (let row = from; row < this.count; row++) {
      const prefix = this.#prefix(row); const uri = this.uri(row)
      const known = found.findIndex(([other]) => other === prefix)
      if (known >= 0) found[known] = [prefix, uri]
      else if (prefix !== 'xml') found.push([prefix, uri])
    }
    return found
  }

  #prefix (row: number): string { return this.prefixText(this.#rows[row * ROW]!, this.#rows[row * ROW + 1]!) }

  #isPrefix (row: number, a: number, b: number): boolean {
    const c = this.#rows[row * ROW]!; const d = this.#rows[row * ROW + 1]!
    if (a === b || c === d) return a === b && c === d
    if (a < 0 || c < 0) return a === c
    return b - a === d - c && this.#bytes.compare(this.#bytes, a, b, c, d) === 0
  }

  #outside (prefix: string): string | undefined {
    return prefix === 'xml' ? XML : this.#outer.find(([outer]) => outer === prefix)?.[1]
  }
}
