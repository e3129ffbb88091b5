/**
 * A contract as TypeScript: what `soa service types` prints, for `BrokerClient<IOptionPricer>`. Each portType becomes an interface with
 * `{ args, result }` for each operation, each named complex type an interface; the types are those of the values that reader and writer speak
 * ([libraries] 8). An enumeration is a union of its words; a type that others are derived from is a union of them all, told apart by `$type`. What the
 * schema leaves open is `unknown`.
 */
import { qname, splitQName, XSD } from '../wire/xml/events.ts'
import type { QName } from '../wire/soap/envelope.ts'
import type { WsdlDocument, WsdlOperation } from './document.ts'
import { contentOf } from './schema/content.ts'
import type { ComplexType, ElementDecl, Particle, SimpleType, Type } from './schema/model.ts'

/** Values of the built-in types; those not named here are text. */
const BUILTIN: Readonly<Record<string, string>> = {
  boolean: 'boolean',
  ...Object.fromEntries(['float', 'double', 'byte', 'short', 'int', 'unsignedByte', 'unsignedShort', 'unsignedInt'].map(name => [name, 'number'])),
  ...Object.fromEntries(['long', 'unsignedLong', 'integer', 'nonNegativeInteger', 'positiveInteger', 'nonPositiveInteger', 'negativeInteger'].map(name => [name, 'bigint'])),
  ...Object.fromEntries(['base64Binary', 'hexBinary'].map(name => [name, 'Uint8Array'])),
  ...Object.fromEntries(['NMTOKENS', 'IDREFS', 'ENTITIES'].map(name => [name, 'string[]'])),
  dateTime: 'Date | string',
  anySimpleType: 'unknown'
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/
const keyOf = (key: string): string => IDENTIFIER.test(key) ? key : quoted(key)
const quoted = (text: string): string => `'${text.replace(/['\\]/g, '\\$&').replace(/[\n\r\u2028\u2029]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`
const indent = (text: string): string => text.replace(/\n/g, '\n  ')

export function typescriptOf (wsdl: WsdlDocument, source: string): string {
  const printer = new Printer(wsdl)
  const contracts = wsdl.portTypes.map(portType => printer.contract(portType, wsdl.operations.filter(operation => operation.portType === portType)))
  return [`// Made from ${source.replace(/[\r\n]/g, ' ')} by "soa service types": change that, not this file.\n`, ...contracts, ...printer.types()].join('\n')
}

class Printer {
  readonly #wsdl: WsdlDocument
  /** Interface names by type, in the order in which they were first needed; the texts come later, for types contain themselves. */
  readonly #names = new Map<QName, string>()
  readonly #texts = new Map<QName, string>()
  /** Names of the unions of a type and those derived from it, and their texts. */
  readonly #families = new Map<QName, string>()
  readonly #unions = new Map<string, string>()
  readonly #taken: Set<string>

  constructor (wsdl: WsdlDocument) {
    this.#wsdl = wsdl
    this.#taken = new Set(wsdl.portTypes)
  }

  contract (portType: string, operations: readonly WsdlOperation[]): string {
    const rows = operations.map(({ name, inputElement, outputElement }) => `${keyOf(name)}: {\n    args: ${indent(indent(this.#body(inputElement, 'Record<string, never>')))}\n    result: ${indent(indent(this.#body(outputElement, 'undefined')))}\n  }`)
    return `export interface ${this.#identifier(portType)} {\n  ${rows.join('\n  ')}\n}\n`
  }

  types (): string[] {
    return [
      ...[...this.#names].map(([type, name]) => `/** ${type.replaceAll('*/', '* /')} */\nexport interface ${name} ${this.#texts.get(type) ?? '{}'}\n`),
      ...[...this.#unions].map(([name, union]) => `export type ${name} =${union}\n`)
    ]
  }

  #body (element: QName | undefined, none: string): string {
    const declared = element === undefined ? undefined : this.#wsdl.schema.bodyElement(element)
    return declared ? this.#element(declared) : none
  }

  #element ({ type, isNillable }: ElementDecl): string {
    const text = this.#type(type)
    return isNillable && text !== 'unknown' ? `${text} | null` : text
  }

  #type (type: Type): string {
    if (type.kind === 'simple') return simple(type)
    if (type.isAny) return 'unknown'
    if (type.name === undefined) return this.#members(type)
    const derived = this.#wsdl.schema.derivedFrom(type).filter(one => !one.isAbstract && one.name !== undefined)
    return derived.length === 0 ? this.#interface(type, type.name) : this.#family(type, type.name, derived)
  }

  /** The type or one of those derived from it. */
  #family (type: ComplexType, of: QName, derived: readonly ComplexType[]): string {
    const known = this.#families.get(of)
    if (known !== undefined) return known
    const name = this.#identifier(`Any${splitQName(of).local}`)
    this.#families.set(of, name)
    const own = type.isAbstract ? [] : [this.#interface(type, of)]
    const others = derived.map(one => `${this.#interface(one, one.name as QName)} & { $type: ${quoted(one.name as QName)} }`)
    this.#unions.set(name, [...own, ...others].map(one => `\n  | ${one}`).join(''))
    return name
  }

  #interface (type: ComplexType, of: QName): string {
    const known = this.#names.get(of)
    if (known !== undefined) return known
    const name = this.#identifier(splitQName(of).local)
    this.#names.set(of, name)
    this.#texts.set(of, this.#members(type))
    return name
  }

  #members (type: ComplexType): string {
    const rows: string[] = []
    if (type.attributes.length > 0) {
      const attributes = type.attributes.map(({ key, type, isRequired, default: supplied }) => `${keyOf(key)}${isRequired || supplied !== undefined ? '' : '?'}: ${simple(type)}`)
      const more = type.anyAttribute ? ', [other: string]: unknown' : ''
      rows.push(`$attributes${type.attributes.some(attribute => attribute.isRequired) ? '' : '?'}: { ${attributes.join(', ')}${more} }`)
    } else if (type.anyAttribute) rows.push('$attributes?: Record<string, unknown>')
    if (type.simple) rows.push(`$value: ${simple(type.simple)}`)
    else if (type.isMixed) rows.push('$xml?: string')
    else rows.push(...this.#content(type))
    return rows.length === 0 ? 'Record<string, never>' : `{\n  ${rows.map(indent).join('\n  ')}\n}`
  }

  #content (type: ComplexType): string[] {
    const { members, isPlain } = contentOf(type)
    const found = new Map<string, { types: Set<string>, isArray: boolean, isOptional: boolean }>()
    for (const { leaf, isOptional } of leaves(type.content, false)) {
      const { key, isArray } = members.get(leaf) ?? { key: '$xml', isArray: false }
      const text = leaf.kind === 'element' ? this.#element(leaf.element) : 'string'
      const before = found.get(key)
      before?.types.add(text)
      if (before) before.isOptional &&= isOptional
      else found.set(key, { types: new Set([text]), isArray, isOptional })
    }
    const order = isPlain || found.size < 2 ? [] : [`$order?: Array<${[...found.keys()].map(quoted).join(' | ')}>`]
    const rows = [...found].map(([key, { types, isArray, isOptional }]) => {
      const text = types.has('unknown') ? 'unknown' : [...types].join(' | ')
      return `${keyOf(key)}${isOptional ? '?' : ''}: ${isArray ? `Array<${text}>` : text}`
    })
    return [...rows, ...order]
  }

  /** Two types of one name in different namespaces: the second is called Name2. */
  #identifier (wanted: string): string {
    const plain = wanted.replace(/[^\w$]/g, '_').replace(/^(?=\d)/, '_')
    if (this.#taken.delete(wanted)) { this.#used.add(plain); return plain }
    for (let n = 1; ; n++) {
      const name = n === 1 ? plain : `${plain}${n}`
      if (this.#used.has(name) || this.#taken.has(name)) continue
      this.#used.add(name)
      return name
    }
  }

  /** Names that TypeScript has a meaning for are not given to a type of the contract. */
  readonly #used = new Set(['Array', 'Date', 'Record', 'Uint8Array', 'String', 'Number', 'Boolean', 'Object', 'any', 'unknown', 'never', 'string', 'number', 'boolean', 'bigint', 'object', 'symbol', 'undefined', 'null', 'void'])
}

type Leaf = Extract<Particle, { kind: 'element' | 'any' }>

/** Every place for an element, and whether it may be left out. What a group repeats is optional only where the group is. */
function * leaves (particle: Particle | undefined, isOptional: boolean): Generator<{ leaf: Leaf, isOptional: boolean }> {
  if (!particle) return
  const mayMiss = isOptional || particle.min === 0
  if (particle.kind === 'element' || particle.kind === 'any') yield { leaf: particle, isOptional: mayMiss }
  else for (const item of particle.items) yield * leaves(item, mayMiss || (particle.kind === 'choice' && particle.items.length > 1))
}

function simple (type: SimpleType): string {
  if (type.item) return `Array<${simple(type.item)}>`
  if (type.members) {
    const members = new Set(type.members.map(simple))
    return members.has('unknown') ? 'unknown' : [...members].join(' | ')
  }
  const base = builtin(type)
  if (base !== 'string') return base
  // Each step of a restriction narrows the last; its words are those of the step that has any.
  for (let t: SimpleType | undefined = type; t; t = t.base) if (t.words) return t.words.map(quoted).join(' | ')
  return base
}

function builtin (type: SimpleType): string {
  for (let t: SimpleType | undefined = type; t; t = t.base) {
    const { uri, local } = t.name === undefined ? { uri: '', local: '' } : splitQName(t.name)
    if (uri === XSD) return Object.hasOwn(BUILTIN, local) ? BUILTIN[local] as string : t.name === qname(XSD, 'anySimpleType') ? 'unknown' : 'string'
  }
  return 'unknown'
}
