/** Simple types: the built-in ones, and restrictions with their facets, lists and unions made from them. */
import { qname, XSD } from '../../wire/xml/events.ts'
import type { XmlNode } from '../../wire/xml/tree.ts'
import type { SimpleType } from './model.ts'
import { compilePattern } from './pattern.ts'
import { LISTS, Mismatch, NO_PREFIXES, PRIMITIVES, treatWhiteSpace, type Primitive } from './primitives.ts'

const show = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)

function builtin (primitive: Primitive, base: SimpleType | undefined): SimpleType {
  const { whiteSpace } = primitive
  return {
    kind: 'simple',
    name: qname(XSD, primitive.name),
    base,
    whiteSpace,
    parse: (text, prefixes) => primitive.parse(treatWhiteSpace(text, whiteSpace), prefixes),
    format: (value, name) => primitive.format(value, name)
  }
}

export const BUILTINS: ReadonlyMap<string, SimpleType> = (() => {
  const types = new Map<string, SimpleType>()
  const make = (name: string): SimpleType => {
    const known = types.get(name)
    if (known) return known
    const primitive = PRIMITIVES.get(name) as Primitive
    const type = builtin(primitive, primitive.base === undefined ? (name === 'anySimpleType' ? undefined : make('anySimpleType')) : make(primitive.base))
    types.set(name, type)
    return type
  }
  for (const name of PRIMITIVES.keys()) make(name)
  for (const [name, item] of LISTS) types.set(name, { ...listOf(make(item), qname(XSD, name), make('anySimpleType')) })
  return types
})()

/** The primitive at the root of a type: says how facets compare. Lists and unions have none. */
function primitiveOf (type: SimpleType): Primitive | undefined {
  for (let t: SimpleType | undefined = type; t; t = t.base) {
    if (t.name?.startsWith(`{${XSD}}`) && t.name !== qname(XSD, 'anySimpleType')) return PRIMITIVES.get(t.name.slice(XSD.length + 2))
  }
  return undefined
}

export function listOf (item: SimpleType, name: SimpleType['name'], base: SimpleType | undefined): SimpleType {
  return {
    kind: 'simple',
    name,
    base,
    item,
    whiteSpace: 'collapse',
    parse: (text, prefixes) => text.split(/[ \t\n\r]+/).filter(word => word !== '').map(word => item.parse(word, prefixes)),
    format: (value, names) => {
      if (!Array.isArray(value)) throw new Mismatch('a list is an array')
      return value.map(one => {
        const word = item.format(one, names)
        if (word === '' || /\s/.test(word)) throw new Mismatch(`${show(word)} cannot be an item of a list`)
        return word
      }).join(' ')
    }
  }
}

export function unionOf (members: readonly SimpleType[], name: SimpleType['name']): SimpleType {
  const first = <T>(act: (type: SimpleType) => T): T => {
    let why: Mismatch | undefined
    for (const member of members) {
      try { return act(member) } catch (error) { if (!(error instanceof Mismatch)) throw error; why ??= error }
    }
    throw why ?? new Mismatch('the union has no members')
  }
  return { kind: 'simple', name, base: BUILTINS.get('anySimpleType'), members, whiteSpace: 'preserve', parse: (text, prefixes) => first(m => m.parse(text, prefixes)), format: (value, names) => first(m => m.format(value, names)) }
}

/** Throws Mismatch. `text` has its whitespace treated. */
type Facet = (value: unknown, text: string) => void

/** One value as a key: where a type has no order, equal values have equal keys. */
const key = (value: unknown): string => value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value instanceof Date ? value.toISOString() : Array.isArray(value) ? value.map(key).join(' ') : String(value)
const lengthOf = (value: unknown, text: string): number => value instanceof Uint8Array ? value.length : Array.isArray(value) ? value.length : [...text].length

/** Whether two values of one type are equal, as `fixed` and enumerations mean it: 1.0 and 1, or one instant in two time zones. */
export function isSame (type: SimpleType, a: unknown, b: unknown): boolean {
  const compare = primitiveOf(type)?.compare
  return compare ? compare(a, b) === 0 : key(a) === key(b)
}

/** A restriction with the facets that are children of `node`. Throws SyntaxError for a pattern that JavaScript has no counterpart for, Mismatch for a facet that does not fit the base. */
export function restrict (base: SimpleType, node: XmlNode, name: SimpleType['name']): SimpleType {
  const primitive = primitiveOf(base)
  const prefixes = { resolve: (prefix: string) => node.resolve(prefix) }
  const values = (facet: string): string[] => node.all(XSD, facet).map(n => n.get('value') ?? '')
  const facets: Facet[] = []
  const limit = (facet: string, holds: (order: number) => boolean): void => {
    const { compare } = primitive ?? {}
    for (const said of values(facet)) {
      if (!compare) throw new Mismatch(`${facet} on ${primitive?.name ?? 'a list or union'}, which has no order, is not supported`)
      const bound = base.parse(said, prefixes)
      facets.push((value, text) => { if (!holds(compare(value, bound))) throw new Mismatch(`${show(text)} is outside ${facet} ${said}`) })
    }
  }
  const measure = (facet: string, of: (value: unknown, text: string) => number, holds: (n: number, bound: number) => boolean): void => {
    for (const said of values(facet)) facets.push((value, text) => { if (!holds(of(value, text), Number(said))) throw new Mismatch(`${show(text)} has not ${facet} ${said}`) })
  }

  const allowed = values('enumeration')
  if (allowed.length > 0) {
    const parsed = allowed.map(said => base.parse(said, prefixes))
    const keys = new Set(parsed.map(key))
    facets.push((value, text) => { if (!keys.has(key(value)) && !(primitive?.compare && parsed.some(one => isSame(base, one, value)))) throw new Mismatch(`${show(text)} is none of ${allowed.slice(0, 10).join(', ')}${allowed.length > 10 ? ', …' : ''}`) })
  }
  // Patterns of one step are alternatives; steps add up, because the base's are checked by the base.
  const patterns = values('pattern').map(compilePattern)
  if (patterns.length > 0) facets.push((_, text) => { if (!patterns.some(p => p.test(text))) throw new Mismatch(`${show(text)} does not match the pattern ${values('pattern').join(' | ')}`) })
  limit('minInclusive', order => order >= 0)
  limit('maxInclusive', order => order <= 0)
  limit('minExclusive', order => order > 0)
  limit('maxExclusive', order => order < 0)
  measure('length', lengthOf, (n, bound) => n === bound)
  measure('minLength', lengthOf, (n, bound) => n >= bound)
  measure('maxLength', lengthOf, (n, bound) => n <= bound)
  measure('totalDigits', (_, text) => text.replace(/(\.\d*?)0+$/, '$1').replace(/^[+-]?0*/, '').replace('.', '').length, (n, bound) => n <= bound)
  measure('fractionDigits', (_, text) => (/\.(\d*?)0*$/.exec(text)?.[1] ?? '').length, (n, bound) => n <= bound)

  const whiteSpace = (values('whiteSpace')[0] ?? base.whiteSpace) as Primitive['whiteSpace']
  const check = (value: unknown, text: string): void => { for (const facet of facets) facet(value, text) }
  return {
    kind: 'simple',
    name,
    base,
    ...(allowed.length > 0 ? { words: allowed } : {}),
    ...(base.item ? { item: base.item } : {}),
    ...(base.members ? { members: base.members } : {}),
    whiteSpace,
    parse: (text, names) => {
      const treated = treatWhiteSpace(text, whiteSpace)
      const value = base.parse(treated, names)
      check(value, treated)
      return value
    },
    format: (value, names) => {
      const text = base.format(value, names)
      if (facets.length > 0) check(primitive?.name === 'QName' ? value : base.parse(text, NO_PREFIXES), treatWhiteSpace(text, whiteSpace))
      return text
    }
  }
}
