/**
 * Values → bodies, by the schema: elements in its order and namespaces, types and facets checked. The first thing that does not fit throws `badValue`
 * with its path ("Total is missing at /FindResponse/FindResult/Order[1]"), so a service never sends what a strict client refuses.
 *
 * Takes what the reader gives, and a little more: numbers for bigints, one item for an array of one, text for numbers. Never writes into the caller's value.
 * Not kept: the order *between* different elements of a group that repeats (they come in turns).
 */
import { SoaError } from '../../core/errors.ts'
import type { QName } from '../../wire/soap/envelope.ts'
import { qname, splitQName, XSD, XSI } from '../../wire/xml/events.ts'
import { XmlWriter } from '../../wire/xml/text-writer.ts'
import { contentOf } from './content.ts'
import type { AnyParticle, ComplexType, ContentModel, ElementDecl, ElementParticle, Member, Particle, SimpleType, Type } from './model.ts'
import { Mismatch } from './primitives.ts'
import { checkRaw } from './raw.ts'
import type { Members } from './reader.ts'
import type { SchemaSet } from './schema.ts'

/** What of one object is written so far, where members come in several places. */
interface Bag { readonly value: Members, readonly model: ContentModel, readonly taken: Map<string, number> | undefined }

/** Types that an untyped value is sent as where the schema says xs:anyType. Text goes without a type. */
function guess (value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? 'int' : 'double'
  if (typeof value === 'bigint') return 'long'
  if (typeof value === 'boolean') return 'boolean'
  if (value instanceof Date) return 'dateTime'
  return value instanceof Uint8Array ? 'base64Binary' : undefined
}

const OWN_KEYS = new Set(['$type', '$attributes', '$value', '$xml'])
const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Uint8Array)

class ValueWriter {
  readonly out = new XmlWriter()
  readonly #schema: SchemaSet
  readonly #path: string[] = []

  constructor (schema: SchemaSet) { this.#schema = schema }

  element (element: ElementDecl, value: unknown, step = element.local): void {
    this.#path.push(step)
    this.out.start(element.uri, element.local)
    if (value === null) {
      if (!element.isNillable) this.#fail('is null, but may not be nil')
      this.out.attribute(XSI, 'nil', 'true')
    } else this.#typed(element, value)
    this.out.end()
    this.#path.pop()
  }

  #typed (element: ElementDecl, value: unknown): void {
    const said = isObject(value) && Object.hasOwn(value, '$type') ? value.$type : undefined
    const isOpen = element.type.kind === 'complex' && element.type.isAny
    const guessed = isOpen && said === undefined ? guess(value) : undefined
    const typeName = guessed !== undefined ? qname(XSD, guessed) : said
    let type: Type = element.type
    if (typeName !== undefined) {
      if (typeof typeName !== 'string') this.#fail('has a $type that is no text')
      const found = this.#schema.substitute(typeName as QName, type)
      if (found === 'unknown') this.#fail(`has $type ${typeName}, which the contract does not know`)
      if (found === 'unrelated') this.#fail(`has $type ${typeName}, which is not derived from ${element.type.name ?? 'the type declared'}`)
      type = found as Type
      this.out.attribute(XSI, 'type', this.out.qname(typeName as QName))
    }
    if (type.kind === 'simple') this.#text(type, isObject(value) ? value.$value : value, element.fixed)
    else this.#complex(type, value, element)
  }

  #text (type: SimpleType, value: unknown, fixed?: string): void {
    if (value === undefined) this.#fail('is undefined')
    const text = this.#format(type, value)
    if (fixed !== undefined && text !== fixed) this.#fail(`must be ${JSON.stringify(fixed)}`)
    this.#escaping(() => this.out.text(text))
  }

  /** Characters that XML cannot carry are found by the writer of text, which knows no path. */
  #escaping (write: () => void): void {
    try { write() } catch (error) { this.#fail(`is wrong: ${error instanceof SoaError ? error.context[0] : String(error)}`) }
  }

  #format (type: SimpleType, value: unknown): string {
    try {
      return type.format(value, name => this.out.qname(name))
    } catch (error) {
      if (error instanceof Mismatch) this.#fail(`is wrong: ${error.message}`)
      throw error
    }
  }

  #complex (type: ComplexType, value: unknown, element: ElementDecl): void {
    if (type.isAbstract) this.#fail(`needs a $type: ${type.name ?? 'its type'} is abstract`)
    if (!isObject(value)) {
      if (type.simple && type.attributes.every(a => !a.isRequired)) this.#text(type.simple, value, element.fixed)
      else if (type.isAny && typeof value === 'string') this.#escaping(() => this.out.text(value))
      else this.#fail(`is ${Array.isArray(value) ? 'an array' : typeof value}, not an object`)
      return
    }
    this.#attributes(type, value)
    if (type.simple) { this.#text(type.simple, value.$value, element.fixed); return }
    if (type.isMixed) {
      const xml = Object.hasOwn(value, '$xml') ? value.$xml : ''
      if (typeof xml !== 'string') this.#fail('has an $xml that is no text')
      if (type.isAny && !Object.hasOwn(value, '$xml') && Object.keys(value).some(k => !OWN_KEYS.has(k))) this.#fail('needs a $type or $xml: the contract leaves it open')
      this.out.raw(this.#markup(xml as string))
      return
    }
    this.#content(type, value)
  }

  #attributes (type: ComplexType, value: Members): void {
    const given = Object.hasOwn(value, '$attributes') && value.$attributes !== undefined ? value.$attributes : {}
    if (!isObject(given)) this.#fail('has $attributes that are no object')
    const values = given as Members
    for (const use of type.attributes) {
      const one = Object.hasOwn(values, use.key) ? values[use.key] : undefined
      if (one === undefined || one === null) {
        if (use.isRequired) this.#fail(`lacks attribute ${use.key}`)
        continue
      }
      this.#path.push(`@${use.key}`)
      const text = this.#format(use.type, one)
      if (use.fixed !== undefined && text !== use.fixed) this.#fail(`must be ${JSON.stringify(use.fixed)}`)
      this.#escaping(() => this.out.attribute(use.uri, use.local, text))
      this.#path.pop()
    }
    for (const key of Object.keys(values)) {
      if (values[key] === undefined || type.attributes.some(a => a.key === key)) continue
      if (!type.allowsAnyAttribute) this.#fail(`has attribute ${key}, which the contract does not know`)
      const { uri, local } = splitQName(key)
      this.#escaping(() => this.out.attribute(uri, local, String(values[key])))
    }
  }

  #content (type: ComplexType, value: Members): void {
    const model = contentOf(type)
    for (const key of Object.keys(value)) {
      if (value[key] !== undefined && !model.keys.has(key) && key !== '$type' && key !== '$attributes') {
        this.#fail(`has ${key}, which the contract does not know`)
      }
    }
    for (const uri of model.namespaces) this.out.use(uri)
    if (!type.content) return
    const bag: Bag = { value, model, taken: model.isPlain ? undefined : new Map() }
    this.#particle(type.content, bag)
    if (!bag.taken) return
    for (const key of model.keys) {
      const left = this.#items(bag, key).length
      if (left > 0) this.#fail(`has ${left} ${key} more than the contract has places for`)
    }
  }

  /** What of a member is not yet written. */
  #items (bag: Bag, key: string): readonly unknown[] {
    const value = Object.hasOwn(bag.value, key) ? bag.value[key] : undefined
    if (value === undefined) return []
    const items = this.#isArray(bag, key, value) ? value as readonly unknown[] : [value]
    const from = bag.taken?.get(key) ?? 0
    return from === 0 ? items : items.slice(from)
  }

  /** A list type's value is an array too; only a member that repeats is one of items. */
  #isArray (bag: Bag, key: string, value: unknown): boolean {
    if (!Array.isArray(value)) return false
    for (const member of bag.model.members.values()) if (member.key === key) return member.isArray
    return false
  }

  #particle (particle: Particle, bag: Bag): void {
    if (particle.kind === 'element' || particle.kind === 'any') { this.#leaf(particle, bag); return }
    const { min, max } = particle
    if (max === 1) {
      if (min > 0 || this.#has(particle, bag)) this.#once(particle, bag)
      return
    }
    let times = 0
    for (; times < max && this.#has(particle, bag); times++) this.#once(particle, bag)
    for (; times < min; times++) this.#once(particle, bag)
  }

  #once (particle: Exclude<Particle, ElementParticle | AnyParticle>, bag: Bag): void {
    if (particle.kind !== 'choice') {
      for (const item of particle.items) this.#particle(item, bag)
      return
    }
    const chosen = particle.items.filter(item => this.#has(item, bag))
    if (chosen.length > 1 && !bag.taken) this.#fail(`has ${chosen.map(c => this.#names(c, bag)).join(' and ')}, but only one of them is allowed`)
    const one = chosen[0] ?? particle.items.find(item => canBeEmpty(item))
    if (one) this.#particle(one, bag)
    else if (particle.items.length > 0) this.#fail(`lacks one of ${particle.items.map(c => this.#names(c, bag)).join(', ')}`)
  }

  #names (particle: Particle, bag: Bag): string {
    return particle.kind === 'element' || particle.kind === 'any' ? (bag.model.members.get(particle) as Member).key : particle.items.map(i => this.#names(i, bag)).join('/')
  }

  #has (particle: Particle, bag: Bag): boolean {
    if (particle.kind !== 'element' && particle.kind !== 'any') return particle.items.some(item => this.#has(item, bag))
    const { key } = bag.model.members.get(particle) as Member
    return bag.taken ? this.#items(bag, key).length > 0 : Object.hasOwn(bag.value, key) && bag.value[key] !== undefined
  }

  #leaf (particle: ElementParticle | AnyParticle, bag: Bag): void {
    const { key, isArray } = bag.model.members.get(particle) as Member
    const { min, max } = particle
    const items = this.#items(bag, key)
    const n = bag.taken ? Math.min(items.length, max) : items.length
    if (n < min) this.#fail(n === 0 ? `lacks ${key}` : `has ${n} ${key}, but needs ${min}`)
    if (n > max) this.#fail(`has ${n} ${key}, but ${max} ${max === 1 ? 'is' : 'are'} the most`)
    const before = bag.taken?.get(key) ?? 0
    for (let i = 0; i < n; i++) {
      if (particle.kind === 'element') this.#item(particle.element, items[i], key, isArray ? before + i + 1 : undefined)
      else if (typeof items[i] === 'string') this.out.raw(this.#markup(items[i] as string))
      else this.#fail('has an $xml that is no text')
    }
    bag.taken?.set(key, before + n)
  }

  #item (element: ElementDecl, value: unknown, key: string, index: number | undefined): void {
    // An item that is undefined is a hole in an array; a nil is the nearest thing that keeps the others in their places.
    this.element(element, value === undefined ? null : value, index === undefined ? key : `${key}[${index}]`)
  }

  #markup (xml: string): string {
    try { return checkRaw(xml) } catch (error) { return this.#fail((error as Error).message) }
  }

  #fail (why: string): never {
    throw new SoaError('badValue', { why: `/${this.#path.join('/')} ${why}` })
  }
}

function canBeEmpty (particle: Particle): boolean {
  if (particle.min === 0) return true
  if (particle.kind === 'element' || particle.kind === 'any') return false
  return particle.kind === 'choice' ? particle.items.some(canBeEmpty) : particle.items.every(canBeEmpty)
}

/** The global element `name` with this value, as text that needs no declaration from outside. Throws SoaError `badValue` that names the path. */
export function writeElement (schema: SchemaSet, name: QName, value: unknown): string {
  const element = schema.element(name)
  if (!element) throw new SoaError('badValue', { why: `the contract has no element ${name}` })
  const writer = new ValueWriter(schema)
  try {
    writer.element(element, value)
  } catch (error) {
    if (error instanceof RangeError) throw new SoaError('badValue', { why: 'it contains itself, or is nested too deep' }, { cause: error })
    throw error
  }
  return String(writer.out)
}
