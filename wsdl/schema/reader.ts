/**
 * Bodies → values, by the schema: every name with its namespace, order, number, type and facet is checked, and the first thing that is not allowed is
 * refused with its path. Feeds on events, so binary XML needs no text in between.
 *
 * Values ([libraries] 8): members by local name; absent = undefined, nil = null, an empty element with members = {}; what may repeat is always an array;
 * `$attributes`, `$value` (text beside attributes), `$xml` (what the schema leaves open), `$type` = `{ns}Name` where the sender said xsi:type, `$order`
 * (keys) where a group repeats and its elements came in another order than in turns.
 */
import { SoaError } from '../../core/errors.ts'
import type { QName, Scope } from '../../wire/soap/envelope.ts'
import { qname, resolveQName, XSI, type XmlAttribute, type XmlHandler, type XmlStart } from '../../wire/xml/events.ts'
import { readText } from '../../wire/xml/text.ts'
import { contentOf, expected, step } from './content.ts'
import type { ComplexType, ContentModel, ElementDecl, Member, Particle, Position, SimpleType, Type } from './model.ts'
import { Mismatch } from './primitives.ts'
import { RawXml } from './raw.ts'
import { ANY_TYPE, type SchemaSet } from './schema.ts'
import { isSame } from './simple.ts'
import { isInTurn } from './turns.ts'
import { unsupportedAttribute, unsupportedElement } from './unsupported.ts'

export interface ReadOptions {
  /**
   * Elements and attributes that the type does not have are skipped, as WCF does, instead of refused. What it has and what stands in the wrong place is
   * refused all the same: WCF drops such a member without a word, and the service would compute with its default.
   */
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
  /** Keys of the members in the order in which they came, where that may be another than the schema's. */
  readonly order: string[] | undefined
  raw: RawXml | undefined
}

/** An element that is kept as text, in hand: where its text goes, as which member (mixed content has none), and who checks it meanwhile. */
interface Kept { readonly raw: RawXml, readonly outside: number, readonly frame: Frame, readonly member: Member | undefined, readonly checker: BodyReader | undefined }

/** A plain property whatever its name is: `__proto__` is a legal name of an element. */
export function setMember (value: Members, key: string, member: unknown): void {
  if (key === '__proto__') Object.defineProperty(value, key, { value: member, enumerable: true, configurable: true, writable: true })
  else value[key] = member
}

const isBlank = (text: string): boolean => /^[ \t\r\n]*$/.test(text)

/** Reads one global element, from whatever says the events. `result` is there when its end was heard. */
export class BodyReader implements XmlHandler {
  result: { readonly name: QName, readonly value: unknown } | undefined
  readonly #schema: SchemaSet
  readonly #options: ReadOptions
  readonly #isLenient: boolean
  readonly #stack: Frame[] = []
  /** Path of what this reader checks for another one; undefined: it reads for itself. */
  readonly #checkedAt: string | undefined
  #resolve: Resolve = () => undefined
  /** Levels inside an element that is skipped. */
  #skipping = 0
  #kept: Kept | undefined

  constructor (schema: SchemaSet, options: ReadOptions = {}, checkedAt?: string) {
    this.#schema = schema
    this.#options = options
    this.#isLenient = options.isLenient ?? false
    this.#checkedAt = checkedAt
  }

  start (element: XmlStart, resolve: Resolve): void {
    this.#resolve = resolve
    if (this.#skipping > 0) { this.#skipping++; return }
    if (this.#kept) {
      this.#kept.raw.start(element, resolve)
      this.#kept.checker?.start(element, resolve)
      return
    }
    const parent = this.#stack[this.#stack.length - 1]
    if (!parent) { this.#root(element); return }
    if (parent.isNil) this.#fail('it is nil and has content')
    if (parent.type.kind === 'simple' || parent.type.simple) this.#fail(unsupportedElement(element) ?? `element ${qname(element.uri, element.local)} where only text may be`)
    if (parent.type.kind === 'complex' && parent.type.isAny) { this.#openContent(parent, element, undefined); return }
    const position = this.#follow(parent, element)
    if (position) this.#child(parent, position, element)
    else if (parent.raw) this.#keep(parent, element, parent.raw, undefined, undefined)
    else this.#skipping = 1
  }

  text (value: string): void {
    if (this.#skipping > 0) return
    if (this.#kept) {
      this.#kept.raw.text(value)
      this.#kept.checker?.text(value)
      return
    }
    const frame = this.#stack[this.#stack.length - 1]
    if (!frame) {
      if (!isBlank(value)) this.#fail('text beside the element of the body')
    } else if (frame.raw) frame.raw.text(value)
    else if (frame.type.kind === 'simple' || frame.type.simple || frame.isNil) frame.text += value
    else if (!isBlank(value) && !frame.type.isMixed) this.#fail('text where only elements may be')
  }

  end (): void {
    if (this.#skipping > 0) { this.#skipping--; return }
    if (this.#kept) {
      const { raw, outside, frame, member, checker } = this.#kept
      raw.end()
      checker?.end()
      if (raw.depth > outside) return
      this.#kept = undefined
      if (member) this.#put(frame, member, String(raw))
      return
    }
    const frame = this.#stack[this.#stack.length - 1] as Frame
    const value = this.#finish(frame)
    this.#stack.pop()
    const parent = this.#stack[this.#stack.length - 1]
    if (!parent) this.result = { name: frame.element.name, value }
    else if (frame.member) this.#put(parent, frame.member, value)
  }

  /** Begins with this element, whatever the contract says of its name; without `start`, inside of it. */
  begin (element: ElementDecl, start: XmlStart = { prefix: '', local: element.local, uri: element.uri, attributes: [], declarations: [] }, resolve: Resolve = this.#resolve): this {
    this.#resolve = resolve
    this.#open(element, start, undefined, undefined)
    return this
  }

  #put (frame: Frame, member: Member, value: unknown): void {
    frame.order?.push(member.key)
    if (!member.isArray) { setMember(frame.value, member.key, value); return }
    const list = Object.hasOwn(frame.value, member.key) ? frame.value[member.key] as unknown[] : undefined
    if (list) list.push(value)
    else setMember(frame.value, member.key, [value])
  }

  #root (start: XmlStart): void {
    const name = qname(start.uri, start.local)
    if (this.result) throw new SoaError('badBody', { path: `/${start.local}`, why: 'the body has more than one element' })
    const element = this.#checkedAt === undefined ? this.#schema.bodyElement(name) : this.#schema.element(name)
    if (this.#checkedAt !== undefined) this.#open(element ?? openElement(start), start, undefined, undefined)
    else if (element) this.#open(element, start, undefined, undefined)
    else throw new SoaError('badBody', { path: `/${start.local}`, why: unsupportedElement(start) ?? `the contract has no element ${name}` })
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
      return this.#unknown(name, false, [...model.all.keys()].filter(n => !frame.seen?.has(n)).join(', ') || 'the end')
    }
    const next = step(frame.position as Position, frame.count, uri, local)
    if (!next) {
      const name = qname(uri, local)
      return this.#unknown(name, model.names.has(name), expected(frame.position as Position, frame.count))
    }
    frame.position = next.to
    frame.count = next.count
    return next.to
  }

  #unknown (name: QName, isMember: boolean, expected: string): undefined {
    if (!this.#isLenient || isMember) this.#fail(`element ${name}, expected ${expected}`)
    return undefined
  }

  #child (parent: Frame, position: Position, start: XmlStart): void {
    const { element, member } = position
    if (element && !parent.raw) this.#open(element, start, member, parent)
    else if (element) this.#keep(parent, start, parent.raw as RawXml, undefined, element)
    else this.#openContent(parent, start, position)
  }

  /** An element that the schema leaves open: kept as text, and checked as far as the contract knows it. A checker keeps nothing. */
  #openContent (parent: Frame, start: XmlStart, position: Position | undefined): void {
    const known = position?.isChecked ?? true ? this.#schema.element(qname(start.uri, start.local)) ?? openElement(start) : undefined
    if (this.#checkedAt === undefined) this.#keep(parent, start, parent.raw ?? new RawXml(), parent.raw ? undefined : position?.member, known)
    else if (known) this.#open(known, start, undefined, parent)
    else this.#skipping = 1
  }

  #keep (frame: Frame, start: XmlStart, raw: RawXml, member: Member | undefined, element: ElementDecl | undefined): void {
    const checker = element && new BodyReader(this.#schema, this.#options, this.#path())
    this.#kept = { raw, outside: raw.depth, frame, member, checker }
    raw.start(start, this.#resolve)
    checker?.begin(element as ElementDecl, start, this.#resolve)
  }

  #open (element: ElementDecl, start: XmlStart, member: Member | undefined, parent: Frame | undefined): void {
    const before = member?.isArray && parent && Object.hasOwn(parent.value, member.key) ? (parent.value[member.key] as unknown[]).length : 0
    const { attributes } = start
    const nil = attributes.length > 0 ? said(attributes, 'nil')?.trim() : undefined
    const typeText = attributes.length > 0 ? said(attributes, 'type') : undefined
    const fail = (why: string): never => this.#fail(why, `/${start.local}${member?.isArray ? `[${before + 1}]` : ''}`)
    let type = element.type
    let typeName: QName | undefined
    if (typeText !== undefined) {
      typeName = resolveQName(typeText.trim(), this.#resolve) ?? fail(`the prefix of xsi:type ${typeText} is not declared`)
      const found = this.#schema.substitute(typeName, type)
      type = found === 'unknown' ? fail(`the contract has no type ${typeName}`) : found === 'unrelated' ? fail(`type ${typeName} is not derived from ${element.type.name ?? 'the type declared'}`) : found
    }
    if (nil !== undefined && !/^(?:true|false|0|1)$/.test(nil)) fail(`xsi:nil is true or false, not ${JSON.stringify(nil.slice(0, 60))}`)
    const isNil = nil === 'true' || nil === '1'
    if (isNil && !element.isNillable) fail('it may not be nil')
    if (!isNil && (element.isAbstract || (type.kind === 'complex' && type.isAbstract))) fail(`${type.name ?? element.name} is abstract: xsi:type must say which`)
    const complex = type.kind === 'complex' ? type : undefined
    const model = complex && !complex.isAny && !complex.simple ? contentOf(complex) : undefined
    const isOpen = complex?.isMixed === true && !isNil
    const frame: Frame = {
      name: start.local,
      element,
      type,
      member,
      index: member?.isArray ? before + 1 : undefined,
      value: {},
      isNil,
      typeName,
      text: '',
      model,
      position: model?.start,
      count: 0,
      seen: undefined,
      order: model && !model.isPlain && !isOpen ? [] : undefined,
      raw: isOpen && this.#checkedAt === undefined ? new RawXml() : undefined
    }
    this.#stack.push(frame)
    // $type comes first, so that a value prints as one reads it.
    if (typeName !== undefined && complex) frame.value.$type = typeName
    if (attributes.length > 0 || (complex && complex.attributes.length > 0)) this.#attributes(frame, attributes)
  }

  #attributes (frame: Frame, given: readonly XmlAttribute[]): void {
    const uses = frame.type.kind === 'complex' ? frame.type.attributes : []
    const values: Members = {}
    const has = new Set<string>()
    for (const attribute of given) {
      const { uri, local, value } = attribute
      if (uri === XSI) continue
      const use = uses.find(a => a.local === local && a.uri === uri)
      const no = use ? undefined : unsupportedAttribute(attribute, this.#isLenient)
      if (no !== undefined) this.#fail(no)
      if (use) {
        const read = this.#parse(use.type, value, `/@${local}`)
        setMember(values, use.key, read)
        if (use.fixed !== undefined && !this.#isSame(use.type, read, use.fixed)) this.#fail(`it must be ${JSON.stringify(use.fixed)}`, `/@${local}`)
        has.add(use.key)
      } else if (frame.type.kind === 'complex' && frame.type.anyAttribute?.(uri)) setMember(values, qname(uri, local), value)
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

  #isSame (type: SimpleType, value: unknown, fixed: string): boolean { return isSame(type, value, this.#parse(type, fixed)) }

  /** For the types: namespace of a prefix here. */
  resolve (prefix: string): string | undefined { return this.#resolve(prefix) }

  #finish (frame: Frame): unknown {
    const { type, element, value } = frame
    if (frame.isNil) {
      if (!isBlank(frame.text)) this.#fail('it is nil and has content')
      return null
    }
    const simple = type.kind === 'simple' ? type : type.simple
    if (simple) {
      const read = this.#parse(simple, frame.text === '' ? element.default ?? element.fixed ?? '' : frame.text)
      if (element.fixed !== undefined && !this.#isSame(simple, read, element.fixed)) this.#fail(`it must be ${JSON.stringify(element.fixed)}`)
      if (type.kind === 'complex') { value.$value = read; return value }
      // Only where the schema says nothing of the type must the value say it.
      return frame.typeName !== undefined && element.type.kind === 'complex' ? { $type: frame.typeName, $value: read } : read
    }
    if (frame.model) this.#complete(frame, frame.model)
    if (frame.raw) return open(frame.raw, value, type as ComplexType)
    if (frame.order && frame.order.length > 1 && !isInTurn((type as ComplexType).content as Particle, frame.model as ContentModel, frame.order)) value.$order = frame.order
    return value
  }

  #complete (frame: Frame, model: ContentModel): void {
    if (model.all) {
      if (frame.seen || (frame.type as ComplexType).content?.min !== 0) {
        for (const [name, position] of model.all) if (position.min > 0 && !frame.seen?.has(name)) this.#fail(`element ${name} is missing`)
      }
    } else if (!(frame.position as Position).canEnd || frame.count < (frame.position as Position).min) this.#fail(`it ends too early, expected ${expected(frame.position as Position, frame.count)}`)
  }

  #path (): string { return `${this.#checkedAt ?? ''}${this.#stack.map(f => `/${f.name}${f.index === undefined ? '' : `[${f.index}]`}`).join('')}` }

  #fail (why: string, more = ''): never {
    throw new SoaError('badBody', { path: `${this.#path()}${more}` || '/', why })
  }
}

/** An element that no schema describes. */
const openElement = ({ uri, local }: XmlStart): ElementDecl => ({ uri, local, name: qname(uri, local), type: ANY_TYPE, isNillable: true, isAbstract: false, default: undefined, fixed: undefined })

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
