/**
 * Values → bodies, by the schema: elements in its order and namespaces, types and facets checked. The first thing that does not fit throws `badValue`
 * with its path ("Total is missing at /FindResponse/FindResult/Order[1]"), so a service never sends what a strict client refuses.
 *
 * Takes what the reader gives, and a little more: numbers for bigints, one item for an array of one, text for numbers. Never writes into the caller's value.
 * Different elements of a group that repeats come in turns, unless the value's `$order` says how they stand.
 */
import { SoaError } from '../../core/errors.ts'
import type { QName } from '../../wire/soap/envelope.ts'
import { qname, splitQName, XSD, XSI } from '../../wire/xml/events.ts'
import { XmlWriter } from '../../wire/xml/text-writer.ts'
import { readText } from '../../wire/xml/text.ts'
import { contentOf, step } from './content.ts'
import type { ComplexType, ContentModel, ElementDecl, Leaf, Member, Position, SimpleType, Type } from './model.ts'
import { Mismatch, NO_PREFIXES } from './primitives.ts'
import { checkRaw } from './raw.ts'
import { BodyReader, type Members } from './reader.ts'
import type { SchemaSet } from './schema.ts'
import { isSame } from './simple.ts'
import { walk, type Supply } from './turns.ts'

/**
 * Where a body is written to, in namespaces instead of prefixes. `use` declares a namespace that the children need, `raw` takes markup that needs nothing
 * from outside: a writer of another encoding reads it with `readText`.
 */
export interface BodySink {
  start (uri: string, local: string): unknown
  use (uri: string): unknown
  attribute (uri: string, local: string, value: string): unknown
  /** The text of a QName in a value of the element just started, with its prefix declared. */
  qname (name: QName): string
  text (value: string): unknown
  raw (xml: string): unknown
  end (): unknown
}

/** The members of one object on their way out. `taken`: how many are written so far, where members come in several places. */
class Bag implements Supply {
  readonly #value: Members
  readonly #write: ValueWriter
  readonly taken: Map<string, number> | undefined

  constructor (value: Members, write: ValueWriter, isPlain: boolean) {
    this.#value = value
    this.#write = write
    this.taken = isPlain ? undefined : new Map()
  }

  left ({ key, isArray }: Member): number {
    const value = Object.hasOwn(this.#value, key) ? this.#value[key] : undefined
    if (value === undefined) return 0
    // A list type's value is an array too; only a member that repeats is one of items.
    return (isArray && Array.isArray(value) ? value.length : 1) - (this.taken?.get(key) ?? 0)
  }

  take (leaf: Leaf, { key, isArray }: Member, n: number): void {
    const value = this.#value[key]
    const from = this.taken?.get(key) ?? 0
    if (!isArray) this.#write.item(leaf, value, key)
    else for (let i = from; i < from + n; i++) this.#write.item(leaf, Array.isArray(value) ? value[i] as unknown : value, `${key}[${i + 1}]`)
    this.taken?.set(key, from + n)
  }
}

/** Types that an untyped value is sent as where the schema says xs:anyType. Text goes without a type. */
function guess (value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? 'int' : 'double'
  if (typeof value === 'bigint') return 'long'
  if (typeof value === 'boolean') return 'boolean'
  if (value instanceof Date) return 'dateTime'
  return value instanceof Uint8Array ? 'base64Binary' : undefined
}

const OWN_KEYS: ReadonlySet<string> = new Set(['$type', '$attributes', '$value', '$xml', '$order'])
const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Uint8Array)

class ValueWriter {
  readonly out: BodySink
  readonly #schema: SchemaSet
  readonly #path: string[] = []

  constructor (schema: SchemaSet, out: BodySink) {
    this.#schema = schema
    this.out = out
  }

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
    if (fixed !== undefined) this.#fixed(type, text, fixed)
    this.#escaping(() => this.out.text(text))
  }

  #fixed (type: SimpleType, text: string, fixed: string): void {
    if (text !== fixed && !isSame(type, type.parse(text, NO_PREFIXES), type.parse(fixed, NO_PREFIXES))) this.#fail(`must be ${JSON.stringify(fixed)}`)
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
      // The content alone; xs:anyType is checked as far as its elements are known.
      this.#markup(xml as string, { ...element, type })
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
      if (use.fixed !== undefined) this.#fixed(use.type, text, use.fixed)
      this.#escaping(() => this.out.attribute(use.uri, use.local, text))
      this.#path.pop()
    }
    for (const key of Object.keys(values)) {
      if (values[key] === undefined || type.attributes.some(a => a.key === key)) continue
      const { uri, local } = splitQName(key)
      if (!type.anyAttribute?.(uri)) this.#fail(`has attribute ${key}, which the contract does not know`)
      this.#escaping(() => this.out.attribute(uri, local, String(values[key])))
    }
  }

  #content (type: ComplexType, value: Members): void {
    const model = contentOf(type)
    for (const key of Object.keys(value)) {
      if (value[key] !== undefined && !model.keys.has(key) && key !== '$type' && key !== '$attributes' && key !== '$order') {
        this.#fail(`has ${key}, which the contract does not know`)
      }
    }
    for (const uri of model.namespaces) this.out.use(uri)
    const order = Object.hasOwn(value, '$order') && !model.keys.has('$order') ? value.$order : undefined
    if (!type.content) return
    const bag = new Bag(value, this, model.isPlain)
    if (order !== undefined && bag.taken) this.#inOrder(bag, model, order)
    else {
      try {
        walk(type.content, model, bag)
      } catch (error) {
        if (error instanceof Mismatch) this.#fail(error.message)
        throw error
      }
    }
    if (!bag.taken) return
    for (const member of model.members.values()) {
      const left = bag.left(member)
      if (left > 0) this.#fail(`has ${left} ${member.key} more than the contract has places for`)
    }
  }

  /** As `$order` says, each step checked against the schema. */
  #inOrder (bag: Bag, model: ContentModel, order: unknown): void {
    if (!Array.isArray(order) || !order.every(key => typeof key === 'string')) this.#fail('has an $order that is no array of keys')
    let [at, count] = [model.start, 0]
    for (const key of order as string[]) {
      const next = stepTo(at, count, key)
      if (!next) this.#fail(`has an $order with ${key.slice(0, 60)} where the contract has none`)
      const { to } = next as { to: Position }
      if (bag.left(to.member) === 0) this.#fail(`has an $order with more ${key} than there are`)
      bag.take(to.leaf as Leaf, to.member, 1)
      ;[at, count] = [to, (next as { count: number }).count]
    }
    if (!at.canEnd || count < at.min) this.#fail('has an $order that ends too early')
  }

  /** One item of a member, or the only one. One that is undefined is a hole in an array; a nil is the nearest thing that keeps the others in their places. */
  item (leaf: Leaf, value: unknown, label: string): void {
    if (leaf.kind === 'element') this.element(leaf.element, value === undefined ? null : value, label)
    else if (typeof value === 'string') this.#markup(value, undefined, leaf)
    else this.#fail('has an $xml that is no text')
  }

  /** Puts in markup: the inside of `element`, or one element that `wildcard` lets through. Both are checked as far as the contract knows them. */
  #markup (xml: string, element: ElementDecl | undefined, wildcard?: Extract<Leaf, { kind: 'any' }>): void {
    try {
      checkRaw(xml)
      const reader = wildcard?.isChecked === false ? undefined : new BodyReader(this.#schema, {}, `/${this.#path.join('/')}`)
      if (element) reader?.begin(element)
      let [depth, tops] = [0, 0]
      readText(xml, {
        start: (start, resolve) => {
          if (depth++ === 0 && wildcard && (++tops > 1 || !wildcard.allows(start.uri))) throw new Mismatch(tops > 1 ? 'has an $xml that is more or less than one element' : `has an $xml of namespace ${start.uri || '(none)'}, which the contract does not allow here`)
          reader?.start(start, resolve)
        },
        text: text => {
          if (wildcard && depth === 0 && text.trim() !== '') throw new Mismatch('has an $xml that is more or less than one element')
          reader?.text(text)
        },
        end: () => { depth--; reader?.end() }
      }, { fragment: true, maxDepth: 1000 })
      if (element) reader?.end()
      if (wildcard && tops === 0) throw new Mismatch('has an $xml that is more or less than one element')
    } catch (error) {
      this.#fail(error instanceof SoaError && error.fault === 'badBody' ? `has an $xml that does not fit: ${error.message}` : (error as Error).message)
    }
    this.out.raw(xml)
  }

  #fail (why: string): never {
    throw new SoaError('badValue', { why: `/${this.#path.join('/')} ${why}` })
  }
}

/** The place that the member `key` may take behind `from`. */
function stepTo (from: Position, count: number, key: string): { to: Position, count: number } | undefined {
  for (const [local, edges] of from.next) {
    for (const { uri, to } of edges) if (to.member.key === key) return step(from, count, uri, local)
  }
  for (const { to } of from.wild) if (to.member.key === key && (to !== from ? count >= from.min : count < from.max)) return { to, count: to === from ? count + 1 : 1 }
  return undefined
}

/** The global element (or rpc wrapper) `name` with this value, as text that needs no declaration from outside. Throws SoaError `badValue` that names the path. */
export function writeElement (schema: SchemaSet, name: QName, value: unknown): string {
  const writer = new XmlWriter()
  writeElementTo(writer, schema, name, value)
  return String(writer)
}

/** The same into anything that takes it; after a throw it holds a part. */
export function writeElementTo (sink: BodySink, schema: SchemaSet, name: QName, value: unknown): void {
  const element = schema.bodyElement(name)
  if (!element) throw new SoaError('badValue', { why: `the contract has no element ${name}` })
  const writer = new ValueWriter(schema, sink)
  try {
    writer.element(element, value)
  } catch (error) {
    if (error instanceof RangeError) throw new SoaError('badValue', { why: 'it contains itself, or is nested too deep' }, { cause: error })
    throw error
  }
}
