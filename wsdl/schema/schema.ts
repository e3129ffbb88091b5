/**
 * XML Schema documents → the model that reader and writer use ([xmlschema-1]). All references are resolved here, so what is missing or not
 * supported is said when a contract is loaded and not by the first message.
 *
 * Not supported, and refused by name: xs:redefine, SOAP encoded arrays, object references of the DataContractSerializer (ser:Id, ser:Ref), and what is no
 * XML Schema 1.0. Read, but not checked in messages, and told in `notes`: key, keyref and unique, block, groups that repeat too often to be counted.
 */
import { SoaError } from '../../core/errors.ts'
import { qname, splitQName, XML_NAMESPACE, XSD } from '../../wire/xml/events.ts'
import type { QName } from '../../wire/soap/envelope.ts'
import type { XmlNode } from '../../wire/xml/tree.ts'
import { isUncounted } from './content.ts'
import { derives, UNBOUNDED, type AttributeUse, type ComplexType, type ElementDecl, type GroupParticle, type Particle, type SimpleType, type Type } from './model.ts'
import { BUILTINS, listOf, restrict, unionOf } from './simple.ts'
import { SERIALIZATION, SOAP_ENCODINGS } from './unsupported.ts'

/** One xs:schema. `targetNamespace` is the includer's where the document itself has none (a chameleon include). */
export interface SchemaDocument { readonly node: XmlNode, readonly document: string, readonly targetNamespace: string, readonly isChameleon: boolean }

type Kind = 'element' | 'type' | 'group' | 'attributeGroup' | 'attribute'
interface Global { readonly node: XmlNode, readonly schema: SchemaDocument }

/** xs:anyType: the inside is kept as text. */
export const ANY_TYPE: ComplexType = { kind: 'complex', name: qname(XSD, 'anyType'), base: undefined, isAbstract: false, isMixed: true, isAny: true, simple: undefined, content: undefined, attributes: [], anyAttribute: () => true }
/** The element that a DataSet sends its own schema in. Nobody ships the schema of schemas, so its inside is open. */
const SCHEMA_ELEMENT: ElementDecl = { uri: XSD, local: 'schema', name: qname(XSD, 'schema'), type: ANY_TYPE, isNillable: false, isAbstract: false, default: undefined, fixed: undefined }
const PARTICLES = ['element', 'any', 'sequence', 'choice', 'all', 'group']

/** The schemas of one contract: global elements and types by name. */
export class SchemaSet {
  readonly #globals: Readonly<Record<Kind, Map<QName, Global>>> = { element: new Map(), type: new Map(), group: new Map(), attributeGroup: new Map(), attribute: new Map() }
  readonly #elements = new Map<QName, ElementDecl>([[SCHEMA_ELEMENT.name, SCHEMA_ELEMENT]])
  readonly #types = new Map<QName, Type>([...BUILTINS].map(([name, type]) => [qname(XSD, name), type]))
  readonly #wrappers = new Map<QName, ElementDecl>()
  /** Members of substitution groups by their head. */
  readonly #substitutes = new Map<QName, QName[]>()
  readonly #notes = new Set<string>()

  constructor (schemas: readonly SchemaDocument[]) {
    this.#types.set(ANY_TYPE.name as QName, ANY_TYPE)
    for (const schema of schemas) this.#register(schema)
    try {
      for (const name of this.#globals.type.keys()) this.#type(name, undefined)
      for (const name of this.#globals.element.keys()) this.#element(name, undefined)
    } catch (error) {
      // Groups and simple types that contain themselves are no schema; looking for that at each step would cost more than the stack does.
      if (error instanceof RangeError) this.#refuse(undefined, 'its definitions go in a circle, or are nested too deep')
      throw error
    }
    for (const type of this.#types.values()) this.#endsSomewhere(type)
    for (const schema of schemas) this.#note(schema.node, schema.document)
  }

  #note (node: XmlNode, document: string): void {
    if (node.uri === XSD) {
      if (['key', 'keyref', 'unique'].includes(node.local)) this.#notes.add(`${document}: xs:${node.local} ${node.get('name') ?? ''} is not checked in messages`)
      for (const attribute of ['block', 'blockDefault']) if ((node.get(attribute) ?? '') !== '') this.#notes.add(`${document}: ${attribute}="${node.get(attribute) ?? ''}" is not checked in messages`)
    }
    for (const child of node.children) this.#note(child, document)
  }

  /** A type that is derived from itself would let every question for its bases run for ever. */
  #endsSomewhere (type: Type): void {
    const seen = new Set<Type>()
    for (let t: Type | undefined = type; t; t = t.base) {
      if (seen.has(t)) this.#refuse(undefined, `type ${type.name ?? ''} is derived from itself`)
      seen.add(t)
    }
  }

  element (name: QName): ElementDecl | undefined { return this.#elements.get(name) }

  /** What the body of an rpc message is. No schema declares it, so none refers to it, and a wildcard does not mean it. */
  wrapper (name: QName): ElementDecl | undefined { return this.#wrappers.get(name) }

  addWrapper (element: ElementDecl): void { this.#wrappers.set(element.name, element) }

  /** What a body, or a fault's detail, may be. */
  bodyElement (name: QName): ElementDecl | undefined { return this.#wrappers.get(name) ?? this.#elements.get(name) }

  type (name: QName): Type | undefined { return this.#types.get(name) }

  /** What the schemas say and messages are not checked for. */
  get notes (): readonly string[] { return [...this.#notes] }

  get elementNames (): Iterable<QName> { return this.#elements.keys() }

  #register (schema: SchemaDocument): void {
    const { node, targetNamespace } = schema
    for (const child of node.all(XSD)) {
      if (child.local === 'redefine') this.#refuse(schema, 'xs:redefine is not supported')
      if (child.local === 'override') this.#refuse(schema, 'xs:override (XML Schema 1.1) is not supported')
      const kind: Kind | undefined = child.local === 'simpleType' || child.local === 'complexType' ? 'type' : Object.hasOwn(this.#globals, child.local) ? child.local as Kind : undefined
      const local = child.get('name')
      if (kind === undefined || local === undefined) continue
      const name = qname(targetNamespace, local)
      // The first wins: WCF repeats whole schemas in one WSDL, and includes reach a document by several ways.
      if (!this.#globals[kind].has(name)) this.#globals[kind].set(name, { node: child, schema })
      const head = kind === 'element' ? this.#reference(child, 'substitutionGroup', schema) : undefined
      if (head !== undefined) this.#substitutes.set(head, [...this.#substitutes.get(head) ?? [], name])
    }
  }

  #refuse (schema: SchemaDocument | undefined, why: string): never { throw new SoaError('badContract', { document: schema?.document ?? 'schema', why }) }

  #reference (node: XmlNode, attribute: string, schema: SchemaDocument): QName | undefined {
    const name = node.qname(attribute)
    return name !== undefined && schema.isChameleon && !name.startsWith('{') ? qname(schema.targetNamespace, name) : name
  }

  #global (kind: Kind, name: QName, from: SchemaDocument | undefined): Global {
    return this.#globals[kind].get(name) ?? this.#refuse(from, `${kind} ${name} is not defined by any schema given`)
  }

  // Types

  #type (name: QName, from: SchemaDocument | undefined): Type {
    const known = this.#types.get(name)
    if (known) return known
    const { node, schema } = this.#global('type', name, from)
    if (node.local === 'complexType') return this.#complex(node, schema, name)
    const type = this.#simple(node, schema, name)
    this.#types.set(name, type)
    return type
  }

  #simpleNamed (name: QName, from: SchemaDocument): SimpleType {
    const type = this.#type(name, from)
    return type.kind === 'simple' ? type : this.#refuse(from, `${name} is used as a simple type, but it is a complex one`)
  }

  #simple (node: XmlNode, schema: SchemaDocument, name?: QName): SimpleType {
    const inline = (of: XmlNode): SimpleType[] => of.all(XSD, 'simpleType').map(n => this.#simple(n, schema))
    const restriction = node.first(XSD, 'restriction')
    if (restriction) {
      const base = this.#reference(restriction, 'base', schema)
      return this.#restricted(base !== undefined ? this.#simpleNamed(base, schema) : inline(restriction)[0], restriction, schema, name)
    }
    const list = node.first(XSD, 'list')
    if (list) {
      const item = this.#reference(list, 'itemType', schema)
      return listOf(item !== undefined ? this.#simpleNamed(item, schema) : inline(list)[0] ?? this.#refuse(schema, 'an xs:list without item type'), name, BUILTINS.get('anySimpleType'))
    }
    const union = node.first(XSD, 'union') ?? this.#refuse(schema, `simple type ${name ?? 'without name'} has neither restriction, list nor union`)
    const named = (union.get('memberTypes') ?? '').split(/\s+/).filter(word => word !== '').map(word => {
      const at = word.indexOf(':')
      const uri = union.resolve(at < 0 ? '' : word.slice(0, at)) ?? ''
      return this.#simpleNamed(qname(uri === '' && schema.isChameleon ? schema.targetNamespace : uri, word.slice(at + 1)), schema)
    })
    return unionOf([...named, ...inline(union)], name)
  }

  #restricted (base: SimpleType | undefined, node: XmlNode, schema: SchemaDocument, name?: QName): SimpleType {
    if (!base) return this.#refuse(schema, 'a restriction without base')
    try {
      return restrict(base, node, name)
    } catch (error) {
      return this.#refuse(schema, `simple type ${name ?? 'without name'}: ${(error as Error).message}`)
    }
  }

  #complex (node: XmlNode, schema: SchemaDocument, name?: QName): ComplexType {
    const type: ComplexType = {
      kind: 'complex', name, base: ANY_TYPE, isAbstract: flag(node, 'abstract'), isMixed: flag(node, 'mixed'), isAny: false, simple: undefined, content: undefined, attributes: [], anyAttribute: undefined
    }
    // Known before its content is read: types contain themselves.
    if (name !== undefined) this.#types.set(name, type)
    const derivation = node.all(XSD, 'simpleContent', 'complexContent')[0]
    const step = derivation?.all(XSD, 'extension', 'restriction')[0]
    if (!derivation || !step) {
      this.#own(type, node, schema, undefined)
      return type
    }
    const baseName = this.#reference(step, 'base', schema) ?? this.#refuse(schema, `${name ?? 'a type'} has a ${step.local} without base`)
    if (SOAP_ENCODINGS.has(splitQName(baseName).uri)) this.#refuse(schema, `type ${name ?? ''} is a SOAP encoded array (rpc/encoded), which is not supported`)
    const base = this.#type(baseName, schema)
    type.base = base
    if (derivation.local === 'simpleContent') {
      const inherited = base.kind === 'simple' ? base : base.simple
      const inner = step.first(XSD, 'simpleType')
      if (!inherited && !inner) this.#refuse(schema, `${name ?? 'a type'}: simpleContent on a base without text`)
      type.simple = step.local === 'restriction' ? this.#restricted(inner ? this.#simple(inner, schema) : inherited, step, schema) : inherited
      this.#attributes(type, step, schema, base.kind === 'complex' ? base : undefined)
      return type
    }
    if (derivation.get('mixed') !== undefined) type.isMixed = flag(derivation, 'mixed')
    if (base.kind === 'simple') return this.#refuse(schema, `${name ?? 'a type'}: complexContent on a simple type`)
    this.#own(type, step, schema, base, step.local === 'extension')
    return type
  }

  /** Content and attributes; `extends`: behind those of the base. */
  #own (type: ComplexType, node: XmlNode, schema: SchemaDocument, base: ComplexType | undefined, isExtension = false): void {
    const own = node.all(XSD, ...PARTICLES)[0]
    const content = own && this.#particle(own, schema)
    const inherited = isExtension && base && !base.isAny ? base.content : undefined
    if (base?.isMixed && !base.isAny) type.isMixed = true
    type.content = inherited && content ? { kind: 'sequence', items: [inherited, content], min: 1, max: 1 } : inherited ?? content
    if (hasAllInside(type.content)) this.#refuse(schema, `type ${type.name ?? 'without name'}: an xs:all beside or inside other content, which XML Schema 1.0 does not have`)
    if (isUncounted(type.content)) this.#notes.add(`${schema.document}: type ${type.name ?? 'without name'} has a group with so large a minOccurs or maxOccurs that it is not counted in messages`)
    this.#attributes(type, node, schema, base?.isAny ? undefined : base)
  }

  // Elements and groups

  #element (name: QName, from: SchemaDocument | undefined): ElementDecl {
    const known = this.#elements.get(name)
    if (known) return known
    const { node, schema } = this.#global('element', name, from)
    return this.#declare(node, schema, schema.targetNamespace, declared => this.#elements.set(name, declared))
  }

  #declare (node: XmlNode, schema: SchemaDocument, uri: string, keep: (declared: ElementDecl) => void = () => {}): ElementDecl {
    const local = node.get('name') ?? this.#refuse(schema, 'an xs:element without name')
    const declared: ElementDecl = {
      uri, local, name: qname(uri, local), type: ANY_TYPE, isNillable: flag(node, 'nillable'), isAbstract: flag(node, 'abstract'), default: node.get('default'), fixed: node.get('fixed')
    }
    keep(declared)
    const typeName = this.#reference(node, 'type', schema)
    const inline = node.all(XSD, 'simpleType', 'complexType')[0]
    const head = this.#reference(node, 'substitutionGroup', schema)
    if (typeName !== undefined) declared.type = this.#type(typeName, schema)
    else if (inline) declared.type = inline.local === 'simpleType' ? this.#simple(inline, schema) : this.#complex(inline, schema)
    else if (head !== undefined) declared.type = this.#element(head, schema).type
    return declared
  }

  #particle (node: XmlNode, schema: SchemaDocument): Particle | undefined {
    const min = count(node.get('minOccurs'), 1)
    const max = count(node.get('maxOccurs'), 1)
    if (max === 0) return undefined
    switch (node.local) {
      case 'element': {
        const ref = this.#reference(node, 'ref', schema)
        if (ref !== undefined) return this.#substitutable(this.#element(ref, schema), min, max, schema)
        return { kind: 'element', element: this.#declare(node, schema, this.#isQualified(node, schema, 'elementFormDefault') ? schema.targetNamespace : ''), min, max }
      }
      case 'any':
        return { kind: 'any', min, max, isChecked: node.get('processContents') !== 'skip', allows: allowed(node.get('namespace') ?? '##any', schema.targetNamespace) }
      case 'group': {
        const name = this.#reference(node, 'ref', schema) ?? this.#refuse(schema, 'an xs:group without ref')
        const group = this.#global('group', name, schema)
        const inner = group.node.all(XSD, 'sequence', 'choice', 'all')[0]
        const particle = inner && this.#particle(inner, group.schema)
        return particle && (min === 1 && max === 1 ? particle : { kind: 'sequence', items: [particle], min, max })
      }
      default:
        return counted(node.local as 'sequence' | 'choice' | 'all', node.all(XSD, ...PARTICLES).map(n => this.#particle(n, schema)).filter(p => p !== undefined), min, max)
    }
  }

  /** A reference to the head of a substitution group stands for any of its members. */
  #substitutable (head: ElementDecl, min: number, max: number, schema: SchemaDocument): Particle {
    const members: ElementDecl[] = head.isAbstract ? [] : [head]
    const add = (name: QName): void => {
      for (const one of this.#substitutes.get(name) ?? []) {
        const element = this.#element(one, schema)
        if (!element.isAbstract && !members.includes(element)) members.push(element)
        add(one)
      }
    }
    add(head.name)
    if (members.length === 1 && members[0] === head) return { kind: 'element', element: head, min, max }
    return { kind: 'choice', items: members.map(element => ({ kind: 'element' as const, element, min: 1, max: 1 })), min, max }
  }

  #isQualified (node: XmlNode, schema: SchemaDocument, byDefault: string): boolean {
    return (node.get('form') ?? schema.node.get(byDefault) ?? 'unqualified') === 'qualified'
  }

  // Attributes

  #attributes (type: ComplexType, node: XmlNode, schema: SchemaDocument, base: ComplexType | undefined): void {
    const uses = new Map<QName, Omit<AttributeUse, 'key'>>(base?.attributes.map(a => [qname(a.uri, a.local), a]))
    if (base?.anyAttribute) type.anyAttribute = base.anyAttribute
    this.#collectAttributes(type, node, schema, uses)
    const taken = new Set<string>()
    type.attributes = [...uses.values()].map(use => {
      const key = taken.has(use.local) ? qname(use.uri, use.local) : use.local
      taken.add(key)
      return { ...use, key }
    })
  }

  #collectAttributes (type: ComplexType, node: XmlNode, schema: SchemaDocument, uses: Map<QName, Omit<AttributeUse, 'key'>>): void {
    const any = node.first(XSD, 'anyAttribute')
    if (any) type.anyAttribute = either(type.anyAttribute, allowed(any.get('namespace') ?? '##any', schema.targetNamespace))
    for (const group of node.all(XSD, 'attributeGroup')) {
      const name = this.#reference(group, 'ref', schema) ?? this.#refuse(schema, 'an xs:attributeGroup without ref')
      const found = this.#global('attributeGroup', name, schema)
      this.#collectAttributes(type, found.node, found.schema, uses)
    }
    for (const attribute of node.all(XSD, 'attribute')) {
      const ref = this.#reference(attribute, 'ref', schema)
      const { uri, local } = ref !== undefined ? splitQName(ref) : { uri: this.#isQualified(attribute, schema, 'attributeFormDefault') ? schema.targetNamespace : '', local: attribute.get('name') ?? '' }
      const name = qname(uri, local)
      if (uri === SERIALIZATION && (local === 'Id' || local === 'Ref')) this.#refuse(schema, `type ${type.name ?? ''} uses object references (IsReference, ser:${local}), which are not supported`)
      if (SOAP_ENCODINGS.has(uri)) this.#refuse(schema, `type ${type.name ?? ''} uses ${name} (rpc/encoded), which is not supported`)
      if (attribute.get('use') === 'prohibited') { uses.delete(name); continue }
      const global = ref !== undefined && uri !== XML_NAMESPACE ? this.#global('attribute', ref, schema) : undefined
      const at = global ?? { node: attribute, schema }
      const typeName = this.#reference(at.node, 'type', at.schema)
      const inline = at.node.first(XSD, 'simpleType')
      uses.set(name, {
        uri,
        local,
        type: typeName !== undefined ? this.#simpleNamed(typeName, at.schema) : inline ? this.#simple(inline, at.schema) : BUILTINS.get(ref !== undefined ? 'string' : 'anySimpleType') as SimpleType,
        isRequired: attribute.get('use') === 'required',
        default: attribute.get('default') ?? at.node.get('default'),
        fixed: attribute.get('fixed') ?? at.node.get('fixed')
      })
    }
  }

  /** Named types that are derived from this one, and so may stand in for it. */
  derivedFrom (base: Type): ComplexType[] {
    return [...this.#types.values()].filter(type => type.kind === 'complex').filter(type => type !== base && !type.isAny && derives(type, base))
  }

  /** The type that xsi:type names, if it may stand in for `declared`. */
  substitute (name: QName, declared: Type): Type | 'unknown' | 'unrelated' {
    const type = this.#types.get(name)
    if (!type) return 'unknown'
    return derives(type, declared) ? type : 'unrelated'
  }
}

const flag = (node: XmlNode, attribute: string): boolean => ['true', '1'].includes(node.get(attribute)?.trim() ?? '')
type Allows = (uri: string) => boolean
const either = (one: Allows | undefined, other: Allows): Allows => one === undefined ? other : uri => one(uri) || other(uri)

/** A repeating group of one plain element is that element, repeating: then it is counted exactly, however often that is. */
function counted (kind: GroupParticle['kind'], items: readonly Particle[], min: number, max: number): Particle {
  const [only, more] = items
  return only?.kind === 'element' && more === undefined && kind !== 'all' && only.min === 1 && only.max === 1 ? { ...only, min, max } : { kind, items, min, max }
}

/** xs:all stands alone: at the top, perhaps wrapped by a group reference or by an extension of an empty base. */
function hasAllInside (content: Particle | undefined, isTop = true): boolean {
  if (content === undefined || content.kind === 'element' || content.kind === 'any') return false
  if (content.kind === 'all' && (!isTop || content.max > 1)) return true
  const isWrapper = isTop && content.kind === 'sequence' && content.items.length === 1 && content.max === 1
  return content.items.some(item => hasAllInside(item, isWrapper))
}

const count = (said: string | undefined, otherwise: number): number => said === undefined ? otherwise : said === 'unbounded' ? UNBOUNDED : Number(said)

function allowed (namespaces: string, target: string): Allows {
  if (namespaces === '##any') return () => true
  if (namespaces === '##other') return uri => uri !== target && uri !== ''
  const list = new Set(namespaces.split(/\s+/).map(n => n === '##targetNamespace' ? target : n === '##local' ? '' : n))
  return uri => list.has(uri)
}
