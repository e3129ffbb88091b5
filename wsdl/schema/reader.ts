/**
 * Bodies → values, by the schema: every name with its namespace, order, number, type and facet is checked, and the first thing that is not allowed is
 * refused with its path. Feeds on events, so binary XML needs no text in between.
 *
 * Values ([libraries] 8): members by local name; absent = undefined, nil = null, an empty element with members = {}; what may repeat is always an array;
 * `$attributes`, `$value` (text beside attributes), `$xml` (what the schema leaves open), `$type` = `{ns}Name` where the sender said xsi:type.
 */
import { SoaError } from '../../core/errors.ts'
import type { QName, Scope } from '../../wire/soap/envelope.ts'
import { qname, resolveQName, XSI, type XmlAttribute, type XmlHandler, type XmlStart } from '../../wire/xml/events.ts'
import { readText } from '../../wire/xml/text.ts'
import { contentOf, expected, step } from './content.ts'
import type { ComplexType, ContentModel, ElementDecl, Member, Position, SimpleType, Type } from './model.ts'
import { Mismatch } from './primitives.ts'
import { RawXml } from './raw.ts'
import type { SchemaSet } from './schema.ts'

export interface ReadOptions {
  /** Unknown elements and attributes are skipped, as WCF does, instead of refused. */
  readonly isLenient?: boolean
}

export type Members = Record<string, unknown>
type Resolve = (prefix: string) => string | undefined

interface Frame {
  readonly name: string
  readonly element: ElementDecl
  readonly type: Type
  readonly member: Member | undefined
  readonly index: number | undefined
  readonly value: Members
  readonly isNil: boolean
  /** xsi:type as given. */
  readonly typeName: QName | undefined
  text: string
  model: ContentModel | undefined
  position: Position | undefined
  count: number
  /** Elements of an xs:all met so far. */
  seen: Set<string> | undefined
  raw: RawXml | undefined
}

/** A plain property whatever its name is: `__proto__` is a legal name of an element. */
export function setMember (value: Members, key: string, member: unknown): void {
  if (key === '__proto__') Object.defineProperty(value, key, { value: member, enumerable: true, configurable: true, writable: true })
  else value[key] = member
}

const isBlank = (text: string): boolean => /^[ \t\r\n]*$/.test(text)

/** Reads one global element. `result` is there when its end was heard. */
export class BodyReader implements XmlHandler {
  result: { readonly name: QName, readonly value: unknown } | undefined
  readonly #schema: SchemaSet
  readonly #isLenient: boolean
  readonly #stack: Frame[] = []
  #resolve: Resolve = () => undefined
  /** Levels inside an element that is skipped. */
  #skipping = 0
  /** A wildcard's element in hand, and where it goes. */
  #wild: { raw: RawXml, frame: Frame, member: Member } | undefined

  constructor (schema: SchemaSet, options: ReadOptions = {}) {
    this.#schema = schema
    this.#isLenient = options.isLenient ?? false
  }

  start (element: XmlStart, resolve: Resolve): void {
    this.#resolve = resolve
    if (this.#skipping > 0) { this.#skipping++; return }
    if (this.#wild) { this.#wild.raw.start(element, resolve); return }
    const parent = this.#stack[this.#stack.length - 1]
    if (!parent) { this.#root(element); return }
    if (parent.raw) { parent.raw.start(element, resolve); return }
    if (parent.isNil) this.#fail('it is nil and has content')
    if (parent.type.kind === 'simple' || parent.type.simple) {
      if (!this.#isLenient) this.#fail(`element ${qname(element.uri, element.local)} where only text may be`)
      this.#skipping = 1
      return
    }
    const position = this.#follow(parent, element)
    if (position) this.#child(parent, position, element)
    else this.#skipping = 1
  }

  text (value: string): void {
    if (this.#skipping > 0) return
    if (this.#wild) { this.#wild.raw.text(value); return }
    const frame = this.#stack[this.#stack.length - 1]
    if (!frame) {
      if (!isBlank(value)) this.#fail('text beside the element of the body')
    } else if (frame.raw) frame.raw.text(value)
    else if (frame.type.kind === 'simple' || frame.type.simple) frame.text += value
    else if (!isBlank(value)) this.#fail('text where only elements may be')
  }

  end (): void {
    if (this.#skipping > 0) { this.#skipping--; return }
    if (this.#wild) {
      const { raw, frame, member } = this.#wild
      raw.end()
      if (raw.depth === 0) { this.#wild = undefined; this.#put(frame, member, String(raw)) }
      return
    }
    const frame = this.#stack[this.#stack.length - 1] as Frame
    if (frame.raw && frame.raw.depth > 0) { frame.raw.end(); return }
    const value = this.#finish(frame)
    this.#stack.pop()
    const parent = this.#stack[this.#stack.length - 1]
    if (parent) this.#put(parent, frame.member as Member, value)
    else this.result = { name: frame.element.name, value }
  }

  #put (frame: Frame, member: Member, value: unknown): void {
    if (!member.isArray) { setMember(frame.value, member.key, value); return }
    const list = Object.hasOwn(frame.value, member.key) ? frame.value[member.key] as unknown[] : undefined
    if (list) list.push(value)
    else setMember(frame.value, member.key, [value])
  }

  #root (start: XmlStart): void {
    const name = qname(start.uri, start.local)
    if (this.result) throw new SoaError('badBody', { path: `/${start.local}`, why: 'the body has more than one element' })
    const element = this.#schema.element(name)
    if (!element) throw new SoaError('badBody', { path: `/${start.local}`, why: `the contract has no element ${name}` })
    this.#open(element, start, undefined, undefined)
  }

  /** Where the child stands; undefined: it is unknown and lenient reading skips it. */
  #follow (frame: Frame, start: XmlStart): Position | undefined {
    const { uri, local } = start
    const model = frame.model as ContentModel
    if (model.all) {
      const name = qname(uri, local)
      const position = model.all.get(name)
      if (position && !frame.seen?.has(name)) {
        (frame.seen ??= new Set()).add(name)
        return position
      }
      if (position) this.#fail(`element ${name} stands there twice`)
      return this.#unknown(`element ${name}, expected ${[...model.all.keys()].filter(n => !frame.seen?.has(n)).join(', ') || 'the end'}`)
    }
    const next = step(frame.position as Position, frame.count, uri, local)
    if (!next) return this.#unknown(`element ${qname(uri, local)}, expected ${expected(frame.position as Position, frame.count)}`)
    frame.position = next.to
    frame.count = next.count
    return next.to
  }

  #unknown (why: string): undefined {
    if (!this.#isLenient) this.#fail(why)
    return undefined
  }

  #child (parent: Frame, position: Position, start: XmlStart): void {
    if (position.element) { this.#open(position.element, start, position.member, parent); return }
    const raw = new RawXml()
    raw.start(start, this.#resolve)
    this.#wild = { raw, frame: parent, member: position.member }
  }

  #open (element: ElementDecl, start: XmlStart, member: Member | undefined, parent: Frame | undefined): void {
    const before = member?.isArray && parent && Object.hasOwn(parent.value, member.key) ? (parent.value[member.key] as unknown[]).length : 0
    const { attributes } = start
    const nil = attributes.length > 0 ? said(attributes, 'nil') : undefined
    const typeText = attributes.length > 0 ? said(attributes, 'type') : undefined
    const fail = (why: string): never => this.#fail(why, `/${start.local}${member?.isArray ? `[${before + 1}]` : ''}`)
    let type = element.type
    let typeName: QName | undefined
    if (typeText !== undefined) {
      typeName = resolveQName(typeText.trim(), this.#resolve) ?? fail(`the prefix of xsi:type ${typeText} is not declared`)
      const found = this.#schema.substitute(typeName, type)
      type = found === 'unknown' ? fail(`the contract has no type ${typeName}`) : found === 'unrelated' ? fail(`type ${typeName} is not derived from ${element.type.name ?? 'the type declared'}`) : found
    }
    const isNil = nil !== undefined && ['true', '1'].includes(nil.trim())
    if (isNil && !element.isNillable) fail('it may not be nil')
    if (!isNil && (element.isAbstract || (type.kind === 'complex' && type.isAbstract))) fail(`${type.name ?? element.name} is abstract: xsi:type must say which`)
    const isComplex = type.kind === 'complex'
    const model = isComplex && !(type as ComplexType).isMixed && !(type as ComplexType).simple ? contentOf(type as ComplexType) : undefined
    const raw = isComplex && (type as ComplexType).isMixed && !isNil ? new RawXml() : undefined
    const index = member?.isArray ? before + 1 : undefined
    const frame: Frame = { name: start.local, element, type, member, index, value: {}, isNil, typeName, text: '', model, position: model?.start, count: 0, seen: undefined, raw }
    this.#stack.push(frame)
    // $type comes first, so that a value prints as one reads it.
    if (typeName !== undefined && isComplex) frame.value.$type = typeName
    if (attributes.length > 0 || (isComplex && (type as ComplexType).attributes.length > 0)) this.#attributes(frame, attributes)
  }

  #attributes (frame: Frame, given: readonly XmlAttribute[]): void {
    const uses = frame.type.kind === 'complex' ? frame.type.attributes : []
    const values: Members = {}
    const has = new Set<string>()
    for (const { uri, local, value } of given) {
      if (uri === XSI) continue
      const use = uses.find(a => a.local === local && a.uri === uri)
      if (use) {
        setMember(values, use.key, this.#parse(use.type, value, `/@${local}`))
        if (use.fixed !== undefined && value !== use.fixed) this.#fail(`it must be ${JSON.stringify(use.fixed)}`, `/@${local}`)
        has.add(use.key)
      } else if (frame.type.kind === 'complex' && frame.type.allowsAnyAttribute) setMember(values, qname(uri, local), value)
      else if (!this.#isLenient) this.#fail(`attribute ${qname(uri, local)} is not known`)
    }
    for (const use of uses) {
      if (has.has(use.key)) continue
      const supplied = use.default ?? use.fixed
      if (supplied !== undefined) setMember(values, use.key, this.#parse(use.type, supplied, `/@${use.local}`))
      else if (use.isRequired && !frame.isNil) this.#fail(`attribute ${use.local} is missing`)
    }
    if (Object.keys(values).length > 0) frame.value.$attributes = values
  }

  #parse (type: SimpleType, text: string, at = ''): unknown {
    try {
      return type.parse(text, this)
    } catch (error) {
      if (error instanceof Mismatch) this.#fail(error.message, at)
      throw error
    }
  }

  /** For the types: namespace of a prefix here. */
  resolve (prefix: string): string | undefined { return this.#resolve(prefix) }

  #finish (frame: Frame): unknown {
    const { type, element, value } = frame
    if (frame.isNil) {
      if (!isBlank(frame.text)) this.#fail('it is nil and has content')
      return null
    }
    if (frame.raw) return open(frame.raw, value, type as ComplexType)
    const simple = type.kind === 'simple' ? type : type.simple
    if (simple) {
      const text = frame.text === '' ? element.default ?? element.fixed ?? '' : frame.text
      const read = this.#parse(simple, text)
      if (element.fixed !== undefined && text !== element.fixed) this.#fail(`it must be ${JSON.stringify(element.fixed)}`)
      if (type.kind === 'complex') { value.$value = read; return value }
      // Only where the schema says nothing of the type must the value say it.
      return frame.typeName !== undefined && element.type.kind === 'complex' ? { $type: frame.typeName, $value: read } : read
    }
    const model = frame.model as ContentModel
    if (model.all) {
      if (frame.seen || (type as ComplexType).content?.min !== 0) {
        for (const [name, position] of model.all) if (position.min > 0 && !frame.seen?.has(name)) this.#fail(`element ${name} is missing`)
      }
    } else if (!(frame.position as Position).canEnd || frame.count < (frame.position as Position).min) this.#fail(`it ends too early, expected ${expected(frame.position as Position, frame.count)}`)
    return value
  }

  #fail (why: string, more = ''): never {
    const path = this.#stack.map(f => `/${f.name}${f.index === undefined ? '' : `[${f.index}]`}`).join('')
    throw new SoaError('badBody', { path: `${path}${more}` || '/', why })
  }
}

function said (attributes: readonly XmlAttribute[], local: string): string | undefined {
  for (const a of attributes) if (a.uri === XSI && a.local === local) return a.value
  return undefined
}

/** The value of open content: just the text if there is no more to it and the type is xs:anyType. */
function open (raw: RawXml, value: Members, type: ComplexType): unknown {
  if (raw.isText && type.isAny && Object.keys(value).length === 0) return raw.plain
  value.$xml = String(raw)
  return value
}

/**
 * The one element of a body as a value; undefined for an empty body. `body` is the inside of the Body element, `scope` the declarations around it.
 * Throws SoaError: `badBody` with path and reason, `badXml`, `overLimit` (maxDepth).
 */
export function readBody (schema: SchemaSet, body: string | Uint8Array, scope: Scope, options: ReadOptions & { maxDepth?: number } = {}): BodyReader['result'] {
  const reader = new BodyReader(schema, options)
  readText(body, reader, { fragment: true, scope, ...(options.maxDepth === undefined ? {} : { maxDepth: options.maxDepth }) })
  return reader.result
}
