import { registrationRow, rowNames } from './registration-table.ts'

/** An element as xml2js gives it: attributes under `$`, text under `_`, children by name, always as arrays. */
export type Element = { readonly $?: Readonly<Record<string, string>>, readonly [child: string]: unknown }

/** xml2js gives an element that has text only as a string. */
function childrenOf (element: Element | null | undefined, name: string): Element[] {
  const found = element?.[name]
  return (Array.isArray(found) ? found as unknown[] : []).map(child => typeof child === 'object' && child !== null ? child as Element : {})
}

interface Needs {
  readonly element: Element | undefined
  readonly path: string
  readonly warnings: string[]
  readonly refuse: (why: string) => never
  /** Environment variables in a path; `at` says where, for the warning. */
  readonly expand: (text: string, at: string) => string
}

/**
 * One element of a registration file, read attribute by attribute. What nobody has asked for when `finish` is called gets a warning with its path and, from
 * the table, why it has no effect; or that nobody knows it: HPC Pack ignores it silently, and a misspelt timeout then looks like one that does not work.
 */
export class Section {
  readonly #needs: Needs
  readonly #asked = new Set<string>()

  constructor (needs: Needs) {
    this.#needs = needs
    // .NET would read another file, or decrypt this one: read as it stands, the section would be empty.
    if (this.has('configSource')) needs.refuse(`${this.#at('configSource')}: a section in another file is not read; put it in here`)
    if (this.has('configProtectionProvider')) needs.refuse(`${this.#at('configProtectionProvider')}: an encrypted section cannot be read`)
  }

  get path (): string { return this.#needs.path }
  get refuse (): (why: string) => never { return this.#needs.refuse }
  get isAbsent (): boolean { return this.#needs.element === undefined }

  has (attribute: string): boolean { return this.#attributes()[attribute] !== undefined }

  text (attribute: string, fallback = ''): string {
    this.#asked.add(`@${attribute}`)
    return this.#attributes()[attribute] ?? fallback
  }

  /** Text with environment variables expanded. */
  expanded (attribute: string): string {
    return this.#needs.expand(this.text(attribute).trim(), this.#at(attribute))
  }

  /** A whole number of 32 bits, as .NET reads it. */
  integer (attribute: string, fallback: number, min: number): number {
    const text = this.text(attribute, String(fallback)).trim()
    const value = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : NaN
    return value >= min && value < 2 ** 31 ? value : this.refuse(`${this.#at(attribute)}: a whole number, ${min < -1 ? 'any' : `${min} or more`}, not ${quoted(text)}`)
  }

  boolean (attribute: string, fallback: boolean): boolean {
    const text = this.text(attribute, String(fallback)).trim().toLowerCase()
    return text === 'true' || (text === 'false' ? false : this.refuse(`${this.#at(attribute)}: true or false, not ${quoted(text)}`))
  }

  oneOf<const W extends string> (attribute: string, words: readonly W[], fallback: W): W {
    const text = this.text(attribute, fallback).trim()
    return words.find(word => word.toLowerCase() === text.toLowerCase()) ?? this.refuse(`${this.#at(attribute)}: one of ${words.join(', ')}, not ${quoted(text)}`)
  }

  /** The only child of this name, or undefined. Two of them: refused, since either could be meant. */
  take (name: string): Element | undefined {
    const found = this.takeAll(name)
    if (found.length > 1) this.refuse(`${this.path}/${name} is there ${found.length} times`)
    return found[0]
  }

  takeAll (name: string): Element[] {
    this.#asked.add(name)
    return childrenOf(this.#needs.element, name)
  }

  child (name: string): Section { return new Section({ ...this.#needs, element: this.take(name), path: `${this.path}/${name}` }) }

  /** Every child, whatever it is called; each name once, as with `child`. */
  kinds (): Section[] { return this.#children().map(name => this.child(name)) }

  children (name: string): Section[] {
    return this.takeAll(name).map((element, i) => new Section({ ...this.#needs, element, path: `${this.path}/${name}[${i + 1}]` }))
  }

  /** Warns of what is there and has no effect, with the table's reason. */
  idle (at: string): void {
    this.#asked.add(at)
    const isThere = at.startsWith('@') ? this.has(at.slice(1)) : childrenOf(this.#needs.element, at).length > 0
    const row = registrationRow(this.path, at)
    if (isThere && row?.does === 'warned') this.#needs.warnings.push(`${this.path}/${at}: has no effect here: ${row.says}`)
  }

  finish (): void {
    const asked = [...this.#asked]
    for (const name of [...Object.keys(this.#attributes()).map(name => `@${name}`), ...this.#children()]) {
      if (this.#asked.has(name) || name === '@xmlns' || name.startsWith('@xmlns:')) continue
      if (registrationRow(this.path, name)) { this.idle(name); continue }
      const near = [...asked, ...rowNames(this.path)].find(known => known.toLowerCase() === name.toLowerCase())
      this.#needs.warnings.push(`${this.path}/${name}: unknown, ignored${near === undefined ? '' : `; did you mean ${near}?`}`)
    }
  }

  #children (): string[] { return Object.keys(this.#needs.element ?? {}).filter(name => name !== '$' && name !== '_') }
  #attributes (): Readonly<Record<string, string>> { return this.#needs.element?.$ ?? {} }
  #at (attribute: string): string { return `${this.path}/@${attribute}` }
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 100))
