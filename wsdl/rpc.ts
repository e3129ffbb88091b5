/**
 * rpc/literal messages as elements ([WS-I BP 1.1] 4.4, 4.7; adr/0030). Their body is an element that no schema declares: named after the operation
 * (a reply's with "Response" behind it), in the namespace that soap:body says, and in it one unqualified element for each part, of the part's type. It is
 * made here when the WSDL is read, so that whoever reads or writes bodies, prints types or looks for an operation sees what he sees of document/literal.
 */
import { SOAP11, SOAP12, type QName } from '../wire/soap/envelope.ts'
import { isName } from '../wire/xml/characters.ts'
import { qname, splitQName, XML_NAMESPACE } from '../wire/xml/events.ts'
import type { XmlNode } from '../wire/xml/tree.ts'
import type { BoundOperation } from './bindings.ts'
import type { ElementDecl, ElementParticle, Type } from './schema/model.ts'
import { ANY_TYPE, type SchemaSet } from './schema/schema.ts'
import { SOAP_ENCODINGS } from './schema/unsupported.ts'

type Refuse = (why: string) => never

/** Namespaces in which an element is no message, but something of SOAP or XML: an operation Fault would be a fault to everybody. */
const RESERVED: ReadonlySet<string> = new Set([XML_NAMESPACE, 'http://www.w3.org/2000/xmlns/', SOAP11, SOAP12])

/** A message of an operation of style rpc; `bound`: what each binding of its contract says. */
export interface RpcMessage {
  readonly operation: string
  readonly way: 'input' | 'output'
  readonly message: QName
  readonly parts: readonly XmlNode[]
  readonly bound: readonly BoundOperation[]
  /** Parts that are sent as headers. */
  readonly headers: ReadonlySet<string>
}

/** Makes the wrappers of a WSDL's messages and gives them to its schemas. */
export class RpcWrappers {
  readonly #schema: SchemaSet
  readonly #refuse: Refuse
  /** What each wrapper is for. */
  readonly #made = new Map<QName, string>()

  constructor (schema: SchemaSet, refuse: Refuse) {
    this.#schema = schema
    this.#refuse = refuse
  }

  add ({ operation, way, message, parts, bound, headers }: RpcMessage): QName {
    const { namespace, parts: listed } = this.#agreed(bound, way)
    const unknown = [...listed ?? []].find(part => !parts.some(p => p.get('name') === part))
    if (unknown !== undefined) this.#refuse(`${bound[0]?.label ?? operation} names part ${unknown}, which message ${message} does not have`)
    // In a schema these would be names; here they become names of elements, and whoever wrote others would write no XML.
    if (!isName(operation)) this.#refuse(`operation ${JSON.stringify(operation)} has style rpc, but its name is none that an element can have`)
    const wrapped = parts.filter(part => listed?.has(part.get('name') ?? '') ?? !headers.has(part.get('name') ?? ''))
    const wrapper = this.#wrapper(qname(namespace, way === 'input' ? operation : `${operation}Response`), message, wrapped)
    const of = `the ${way} of ${operation}`
    const other = this.#schema.wrapper(wrapper.name)
    if (other && !isSame(other, wrapper)) this.#refuse(`${this.#made.get(wrapper.name) ?? ''} and ${of} are both element ${wrapper.name}, with different parts, so that nobody can tell them apart`)
    this.#schema.addWrapper(wrapper)
    this.#made.set(wrapper.name, of)
    return wrapper.name
  }

  /** `declared`: elements of the schemas that are bodies or details too, and of what. */
  refuseTwins (declared: ReadonlyMap<QName, string>): void {
    for (const [name, of] of this.#made) {
      const other = declared.get(name)
      if (other !== undefined) this.#refuse(`${of} (style rpc) and ${other} are both element ${name}, so that nobody can tell them apart`)
    }
  }

  /** What a contract's bindings say of a body: the same, or it would be another message at each of its ports. */
  #agreed (bound: readonly BoundOperation[], way: 'input' | 'output'): { namespace: string, parts: ReadonlySet<string> | undefined } {
    const first = bound[0] as BoundOperation
    for (const { label, [way]: { namespace, parts } } of bound) {
      if (namespace === undefined || namespace === '') this.#refuse(`${label} has style rpc, but the soap:body of its ${way} has no namespace, so that nobody knows what its messages are called (WS-I Basic Profile R2717)`)
      if (RESERVED.has(namespace as string) || /[\s{}<>"]/.test(namespace as string)) this.#refuse(`${label} has namespace ${JSON.stringify(namespace)} in the soap:body of its ${way}, in which no message can be: it belongs to XML or SOAP, or is no URI`)
      if (namespace !== first[way].namespace) this.#refuse(`${first.label} has namespace ${first[way].namespace ?? ''} in the soap:body of its ${way}, and ${label} has ${namespace}: their messages would not be the same`)
      if (listOf(parts) !== listOf(first[way].parts)) this.#refuse(`${first.label} and ${label} have different parts in the soap:body of their ${way}: their messages would not be the same`)
    }
    return { namespace: first[way].namespace as string, parts: first[way].parts }
  }

  #wrapper (name: QName, message: QName, parts: readonly XmlNode[]): ElementDecl {
    const seen = new Set<string>()
    const items = parts.map((part): ElementParticle => {
      const local = part.get('name') ?? this.#refuse(`message ${message} has a part without a name`)
      if (!isName(local)) this.#refuse(`part ${JSON.stringify(local)} of message ${message} has a name that no element can have`)
      if (seen.has(local)) this.#refuse(`message ${message} has two parts ${local}`)
      seen.add(local)
      return { kind: 'element', element: declare(qname('', local), this.#type(part, `part ${local} of message ${message}`)), min: 1, max: 1 }
    })
    // xs:all: parts stand in the message's order (R2301), and are written in it; but they are told apart by their names, and some clients send them in
    // the order in which their callers gave them (adr/0030).
    return declare(name, {
      kind: 'complex', name: undefined, base: ANY_TYPE, isAbstract: false, isMixed: false, isAny: false, simple: undefined, content: items.length === 0 ? undefined : { kind: 'all', items, min: 1, max: 1 }, attributes: [], anyAttribute: undefined
    })
  }

  #type (part: XmlNode, what: string): Type {
    const element = part.qname('element')
    if (element !== undefined) this.#refuse(`${what} is element ${element}, but style rpc takes types (WS-I Basic Profile R2203)`)
    const name = part.qname('type') ?? this.#refuse(`${what} has no type`)
    if (SOAP_ENCODINGS.has(splitQName(name).uri)) this.#refuse(`${what} has type ${name} of SOAP encoding (rpc/encoded), which is not supported`)
    return this.#schema.type(name) ?? this.#refuse(`${what} has type ${name}, which no schema given defines`)
  }
}

const listOf = (parts: ReadonlySet<string> | undefined): string | undefined => parts && [...parts].sort().join(' ')

/** Neither a wrapper nor a part may be nil (R2211). */
const declare = (name: QName, type: Type): ElementDecl => ({ ...splitQName(name), name, type, isNillable: false, isAbstract: false, default: undefined, fixed: undefined })

function isSame (one: ElementDecl, other: ElementDecl): boolean {
  const [mine, theirs] = [partsOf(one), partsOf(other)]
  return mine.length === theirs.length && mine.every(({ local, type }, i) => local === theirs[i]?.local && type === theirs[i]?.type)
}

function partsOf ({ type }: ElementDecl): ElementDecl[] {
  const content = type.kind === 'complex' ? type.content : undefined
  return content?.kind === 'all' ? content.items.flatMap(item => item.kind === 'element' ? [item.element] : []) : []
}
