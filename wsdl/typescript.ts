/**
 * A contract as TypeScript: what `soa service types` prints, for `BrokerClient<IOptionPricer>`. Each portType becomes an interface with
 * `{ args, result }` for each operation, each named complex type an interface; the types are those of the values that reader and writer speak
 * ([libraries] 8). What the schema leaves open, and lists and unions, are `unknown`.
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
const keyOf = (key: string): string => IDENTIFIER.test(key) ? key : `'${key.replace(/['\\]/g, '\\$&')}'`
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
  readonly #taken: Set<string>

  constructor (wsdl: WsdlDocument) {
    this.#wsdl = wsdl
    this.#taken = new Set(wsdl.portTypes)
  }

  contract (portType: string, operations: readonly WsdlOperation[]): string {
    const rows = operations.map(({ name, inputElement, outputElement }) => `${keyOf(name)}: {\n    args: ${indent(indent(this.#body(inputElement, 'Record<string, never>')))}\n    result: ${indent(indent(this.#body(outputElement, 'undefined')))}\n  }`)
    return `export interface ${this.#identifier(portType)} {\n  ${rows.join('\n  ')}\n}\n`
  }

  types (): string[] { return [...this.#names].map(([type, name]) => `/** ${type.replaceAll('*/', '* /')} */\nexport interface ${name} ${this.#texts.get(type) ?? '{}'}\n`) }

  #body (element: QName | undefined, none: string): string {
    const declared = element === undefined ? undefined : this.#wsdl.schema.element(element)
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
    const known = this.#names.get(type.name)
    if (known !== undefined) return known
    const name = this.#name(type.name)
    this.#names.set(type.name, name)
    this.#texts.set(type.name, this.#members(type))
    return name
  }

  #members (type: ComplexType): string {
    const rows: string[] = []
    // A value of an abstract type says which one it is, and has that one's members.
    if (type.isAbstract) rows.push('$type: string', '[member: string]: unknown')
    if (type.attributes.length > 0) {
      const attributes = type.attributes.map(({ key, type, isRequired, default: supplied }) => `${keyOf(key)}${isRequired || supplied !== undefined ? '' : '?'}: ${simple(type)}`)
      rows.push(`$attributes${type.attributes.some(attribute => attribute.isRequired) ? '' : '?'}: { ${attributes.join(', ')} }`)
    }
    if (type.simple) rows.push(`$value: ${simple(type.simple)}`)
    else if (type.isMixed) rows.push('$xml?: string')
    else rows.push(...this.#content(type))
    return rows.length === 0 ? 'Record<string, never>' : `{\n  ${rows.map(indent).join('\n  ')}\n}`
  }

  #content (type: ComplexType): string[] {
    const { members } = contentOf(type)
    const found = new Map<string, { types: Set<string>, isArray: boolean, isOptional: boolean }>()
    for (const { leaf, isOptional } of leaves(type.content, false)) {
      const { key, isArray } = members.get(leaf) ?? { key: '$xml', isArray: false }
      const text = leaf.kind === 'element' ? this.#element(leaf.element) : 'string'
      const before = found.get(key)
      before?.types.add(text)
      if (before) before.isOptional &&= isOptional
      else found.set(key, { types: new Set([text]), isArray, isOptional })
    }
    return [...found].map(([key, { types, isArray, isOptional }]) => {
      const text = types.has('unknown') ? 'unknown' : [...types].join(' | ')
      return `${keyOf(key)}${isOptional ? '?' : ''}: ${isArray ? `Array<${text}>` : text}`
    })
  }

  #name (type: QName): string { return this.#identifier(splitQName(type).local) }

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
  for (let t: SimpleType | undefined = type; t; t = t.base) {
    const { uri, local } = t.name === undefined ? { uri: '', local: '' } : splitQName(t.name)
    if (uri === XSD) return Object.hasOwn(BUILTIN, local) ? BUILTIN[local] as string : t.name === qname(XSD, 'anySimpleType') ? 'unknown' : 'string'
  }
  return 'unknown'
}
