/**
 * The ports of a WSDL that is served: for each contract one at each address that we have, and no other. A port of the user's stays where its binding says
 * what we do, with our address; the others go. What lacks is added: a binding of the other SOAP version or of another transport is cloned, and where there
 * is none it is written anew from the contract.
 */
import type { QName, SoapVersion } from '../wire/soap/envelope.ts'
import { qname, splitQName } from '../wire/xml/events.ts'
import { escapeAttribute } from '../wire/xml/text-writer.ts'
import { SOAP_BINDINGS } from './bindings.ts'
import { WSA10, type WsdlOperation } from './document.ts'
import { WSDL } from './imports.ts'
import {
  addAttributes, apply, childrenOf, get, indentOf, insertInside, isInside, localOf, nameIn, prefixFor, remove, renameTag, replaceAttribute, replaceContent, type Edit, type Found, type Parsed
} from './splice.ts'

export type PortKind = 'Soap11' | 'Soap12'

/** Where a kind of port is. The kind ends the names of what is added: `IOrders_Soap12`. */
export interface PortAddress { readonly kind: PortKind, readonly address: string }

interface KindFacts { readonly soap: SoapVersion, readonly uri: string, readonly prefix: string, readonly transports: readonly string[] }

const uriOf = (soap: SoapVersion): string => SOAP_BINDINGS.find(([, version]) => version === soap)?.[0] ?? ''
const HTTP = ['http://schemas.xmlsoap.org/soap/http', 'http://www.w3.org/2003/05/soap/bindings/HTTP/']

const KINDS: Readonly<Record<PortKind, KindFacts>> = {
  Soap11: { soap: 11, uri: uriOf(11), prefix: 'soap', transports: HTTP },
  Soap12: { soap: 12, uri: uriOf(12), prefix: 'soap12', transports: HTTP }
}

const POLICIES = ['http://schemas.xmlsoap.org/ws/2004/09/policy', 'http://www.w3.org/ns/ws-policy']
const UTILITY = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd'
/** Assertions about what we do: WS-Addressing 1.0 may be used. */
const HARMLESS = ['http://www.w3.org/2006/05/addressing/wsdl', 'http://www.w3.org/2007/05/addressing/metadata']

interface Binding {
  readonly doc: Parsed
  readonly element: Found
  readonly name: QName
  readonly portType: QName
  readonly soap: SoapVersion
  readonly transport: string
  /** No policy asks for what is not served here (security, binary messages, reliable messaging …). */
  readonly isPlain: boolean
}

export interface PortsWanted {
  readonly addresses: readonly PortAddress[]
  /** The contract that is served; undefined: every one that the WSDL has a port for. */
  readonly portType?: string | undefined
  /** Of all contracts, for bindings that are written anew. */
  readonly operations: readonly WsdlOperation[]
}

/** What has to be changed, by document. `docs`: WSDLs, the main one first. */
export function portEdits (docs: readonly Parsed[], wanted: PortsWanted): ReadonlyMap<Parsed, readonly Edit[]> {
  return new PortWriter(docs, wanted).run()
}

/** A service with what happens to it; `before` are bindings to write in front of it. */
interface ServicePlan { readonly doc: Parsed, readonly element: Found, before: string, added: string, readonly gone: readonly Found[], readonly kept: number }

class PortWriter {
  readonly #docs: readonly Parsed[]
  readonly #wanted: PortsWanted
  readonly #bindings: readonly Binding[]
  readonly #names: Set<string>
  readonly #edits = new Map<Parsed, Edit[]>()

  constructor (docs: readonly Parsed[], wanted: PortsWanted) {
    this.#docs = docs
    this.#wanted = wanted
    this.#bindings = docs.flatMap(doc => childrenOf(doc.root, WSDL, 'binding').flatMap(element => readBinding(doc, element)))
    this.#names = new Set(docs.flatMap(doc => doc.all.filter(e => e.uri === WSDL && ['port', 'binding', 'service'].includes(e.local)).map(e => get(e, 'name') ?? '')))
  }

  run (): ReadonlyMap<Parsed, readonly Edit[]> {
    const served = new Set<QName>()
    const plans = this.#docs.flatMap(doc => childrenOf(doc.root, WSDL, 'service').map(element => this.#plan(doc, element, served)))
    // Contracts that no service has a port for that we could begin with.
    if (served.size === 0) {
      const portTypes = this.#docs.flatMap(doc => childrenOf(doc.root, WSDL, 'portType').map(element => nameOf(doc, element))).filter(name => this.#isWanted(name))
      const first = plans[0]
      if (first !== undefined) for (const portType of portTypes) this.#addPorts(first, first.element, portType)
      else if (portTypes.length > 0) this.#addService(portTypes)
    }
    const hasPorts = plans.some(({ kept, added }) => kept > 0 || added !== '')
    for (const { doc, element, before, added, gone, kept } of plans) {
      // A client takes the first service: one without ports would be of no use to it.
      if (hasPorts && kept === 0 && added === '') { this.#edit(doc, remove(doc, element)); continue }
      this.#edit(doc, ...gone.map(port => remove(doc, port)))
      if (before !== '') this.#edit(doc, { from: element.tag, to: element.tag, by: before + indentOf(doc, element) })
      if (added !== '') this.#edit(doc, addTo(doc, element, added))
    }
    return this.#edits
  }

  #plan (doc: Parsed, element: Found, served: Set<QName>): ServicePlan {
    const ports = childrenOf(element, WSDL, 'port').map(port => ({ port, binding: this.#bindings.find(({ name }) => name === nameIn(port, 'binding')) }))
    const portTypes = new Set(ports.flatMap(({ binding }) => binding !== undefined && this.#isWanted(binding.portType) && !served.has(binding.portType) ? [binding.portType] : []))
    const kept = new Set<Found>()
    const plan = { doc, element, before: '', added: '', gone: [] as Found[], kept: 0 }
    for (const portType of portTypes) {
      served.add(portType)
      for (const at of this.#wanted.addresses) {
        const found = ports.find(({ binding }) => binding?.portType === portType && fits(binding, at.kind))
        if (found === undefined) this.#addPort(plan, element, portType, at)
        else { kept.add(found.port); this.#edit(doc, ...addressEdits(doc, found.port, at)) }
      }
    }
    return { ...plan, gone: ports.map(({ port }) => port).filter(port => !kept.has(port)), kept: kept.size }
  }

  #edit (doc: Parsed, ...edits: Edit[]): void {
    const all = this.#edits.get(doc) ?? []
    this.#edits.set(doc, all)
    all.push(...edits)
  }

  #isWanted (portType: QName): boolean { return this.#wanted.portType === undefined || localOf(portType) === this.#wanted.portType }

  #newName (wanted: string): string {
    let name = wanted
    for (let n = 2; this.#names.has(name); n++) name = `${wanted}_${n}`
    this.#names.add(name)
    return name
  }

  #addPorts (plan: Pick<ServicePlan, 'doc' | 'before' | 'added'>, near: Found, portType: QName): void {
    for (const at of this.#wanted.addresses) this.#addPort(plan, near, portType, at)
  }

  /** One more port for a service, and its binding where there is none yet. `near`: an element with the prefixes in force there. */
  #addPort (plan: Pick<ServicePlan, 'doc' | 'before' | 'added'>, near: Found, portType: QName, { kind, address }: PortAddress): void {
    const facts = KINDS[kind]
    const mine = this.#bindings.filter(binding => binding.portType === portType)
    const ready = mine.find(binding => fits(binding, kind))
    // One that is nearest to what is wanted: over HTTP, and without what we do not do.
    const model = mine.find(({ transport, isPlain }) => isPlain && HTTP.includes(transport)) ?? mine.find(({ transport }) => HTTP.includes(transport)) ?? mine[0]
    let binding = ready?.name
    if (binding === undefined) {
      const name = this.#newName(`${localOf(portType)}_${kind}Binding`)
      if (model !== undefined) {
        const { doc, element } = model
        this.#edit(doc, { from: element.behind, to: element.behind, by: indentOf(doc, element) + cloned(model, facts, name) })
      } else plan.before += bindingText(near, name, portType, facts, this.#wanted.operations.filter(operation => operation.portType === localOf(portType)))
      binding = qname(targetOf(model?.doc ?? plan.doc), name)
    }
    const tag = tagIn(near, 'port')
    const { text, declaration } = qualified(near, binding)
    const name = this.#newName(`${localOf(portType)}_${kind}`)
    plan.added += `${indentIn(plan.doc, near)}<${tag} name="${escapeAttribute(name)}" binding="${text}"${declaration}><${facts.prefix}:address location="${escapeAttribute(address)}" xmlns:${facts.prefix}="${facts.uri}"/></${tag}>`
  }

  /** A service at the end of the main document, for a WSDL that has none. */
  #addService (portTypes: readonly QName[]): void {
    const doc = this.#docs[0] as Parsed
    const plan = { doc, before: '', added: '' }
    for (const portType of portTypes) this.#addPorts(plan, doc.root, portType)
    const tag = tagIn(doc.root, 'service')
    const name = this.#newName(get(doc.root, 'name') ?? `${localOf(portTypes[0] as QName)}Service`)
    this.#edit(doc, insertInside(doc, doc.root, `${plan.before}<${tag} name="${escapeAttribute(name)}">${plan.added}</${tag}>\n`))
  }
}

const targetOf = (doc: Parsed): string => get(doc.root, 'targetNamespace') ?? ''
const nameOf = (doc: Parsed, element: Found): QName => qname(targetOf(doc), get(element, 'name') ?? '')

/** The name of an element of WSDL, with the prefix that this one of WSDL's has. */
const tagIn = (near: Found, local: string): string => near.prefix === '' ? local : `${near.prefix}:${local}`

/** Like the ports that are there. */
function indentIn (doc: Parsed, near: Found): string {
  const port = childrenOf(near, WSDL, 'port')[0]
  return port === undefined ? '' : indentOf(doc, port)
}

const addTo = (doc: Parsed, service: Found, ports: string): Edit => {
  const last = service.children[service.children.length - 1]
  return last === undefined ? insertInside(doc, service, ports) : { from: last.behind, to: last.behind, by: ports }
}

/** A QName as it can be written here, with a declaration where it needs one. */
function qualified (near: Found, name: QName): { text: string, declaration: string } {
  const { uri, local } = splitQName(name)
  const prefix = prefixFor(near.scope, uri)
  return prefix !== undefined ? { text: `${prefix}:${escapeAttribute(local)}`, declaration: '' } : { text: `own:${escapeAttribute(local)}`, declaration: ` xmlns:own="${escapeAttribute(uri)}"` }
}

const fits = ({ soap, transport, isPlain }: Binding, kind: PortKind): boolean => isPlain && soap === KINDS[kind].soap && KINDS[kind].transports.includes(transport)

function readBinding (doc: Parsed, element: Found): Binding[] {
  const found = SOAP_BINDINGS.flatMap(([uri, soap]) => childrenOf(element, uri, 'binding').map(binding => ({ soap, transport: get(binding, 'transport') ?? '' })))[0]
  const portType = nameIn(element, 'type')
  return found === undefined || portType === undefined ? [] : [{ doc, element, name: nameOf(doc, element), portType, ...found, isPlain: isPlain(doc, element) }]
}

/** Every policy that the binding has or refers to asks for nothing but addressing. */
function isPlain (doc: Parsed, binding: Found): boolean {
  const inside = doc.all.filter(element => isInside(element, binding) && POLICIES.includes(element.uri))
  const referred = inside.filter(({ local }) => local === 'PolicyReference').map(reference => {
    const id = get(reference, 'URI')?.replace(/^#/, '')
    return doc.all.find(element => POLICIES.includes(element.uri) && element.attributes.some(a => a.local === 'Id' && a.uri === UTILITY && a.value === id))
  })
  const policies = [...referred, ...inside.filter(({ local }) => local === 'Policy')]
  return policies.every(policy => policy !== undefined && doc.all.every(element => !isInside(element, policy) || POLICIES.includes(element.uri) || HARMLESS.includes(element.uri)))
}

/** Our address in a port that stays: where SOAP's binding has it, and WS-Addressing's reference. */
function addressEdits (doc: Parsed, port: Found, { kind, address }: PortAddress): Edit[] {
  const soap = childrenOf(port, KINDS[kind].uri, 'address')
  const references = childrenOf(port, WSA10, 'EndpointReference').flatMap(reference => childrenOf(reference, WSA10, 'Address'))
  const { prefix, uri } = KINDS[kind]
  return [
    ...soap.flatMap(element => replaceAttribute(doc, element, 'location', address)),
    ...soap.length === 0 ? [insertInside(doc, port, `<${prefix}:address location="${escapeAttribute(address)}" xmlns:${prefix}="${uri}"/>`)] : [],
    ...references.map(element => replaceContent(doc, element, escapeAttribute(address)))
  ]
}

/** A binding's text as one of another SOAP version, over HTTP, without its policies. */
function cloned ({ doc, element, soap }: Binding, { uri, prefix: wanted, soap: version }: KindFacts, name: string): string {
  const inside = doc.all.filter(one => isInside(one, element))
  const gone = inside.filter(one => POLICIES.includes(one.uri) && !POLICIES.includes(one.parent?.uri ?? ''))
  // A prefix that means this version's namespace, or nothing yet, everywhere in the binding.
  const isTaken = (prefix: string): boolean => inside.some(one => (one.scope.get(prefix) ?? uri) !== uri)
  let prefix = prefixFor(element.scope, uri) ?? wanted
  for (let n = 2; isTaken(prefix); n++) prefix = `${wanted}_${n}`
  const edits = inside.filter(one => one.uri === uriOf(soap) && !gone.some(policy => isInside(one, policy))).flatMap(one => [
    ...renameTag(one, `${prefix}:${one.local}`),
    ...one.local === 'binding' && !HTTP.includes(get(one, 'transport') ?? '') ? replaceAttribute(doc, one, 'transport', HTTP[0]) : [],
    ...one.local === 'operation' && version === 11 ? replaceAttribute(doc, one, 'soapActionRequired', undefined) : []
  ])
  if (element.scope.get(prefix) !== uri) edits.push(addAttributes(element, [[`xmlns:${prefix}`, uri]]))
  return apply(doc.text, [...edits, ...replaceAttribute(doc, element, 'name', name), ...gone.map(policy => remove(doc, policy))], element.tag, element.behind)
}

/** A binding for a contract that has none: document/literal, by the contract's own actions. */
function bindingText (near: Found, name: string, portType: QName, { uri, prefix, transports }: KindFacts, operations: readonly WsdlOperation[]): string {
  const tag = (local: string): string => tagIn(near, local)
  const { text, declaration } = qualified(near, portType)
  const one = ({ name, action, oneWay, faults }: WsdlOperation): string => {
    const body = `<${prefix}:body use="literal"/>`
    const output = oneWay ? '' : `<${tag('output')}>${body}</${tag('output')}>`
    const fault = faults.map(({ name }) => `<${tag('fault')} name="${escapeAttribute(name)}"><${prefix}:fault name="${escapeAttribute(name)}" use="literal"/></${tag('fault')}>`).join('')
    return `<${tag('operation')} name="${escapeAttribute(name)}"><${prefix}:operation soapAction="${escapeAttribute(action)}" style="document"/><${tag('input')}>${body}</${tag('input')}>${output}${fault}</${tag('operation')}>`
  }
  return `<${tag('binding')} name="${escapeAttribute(name)}" type="${text}"${declaration} xmlns:${prefix}="${uri}"><${prefix}:binding transport="${transports[0] ?? ''}"/>${operations.map(one).join('')}</${tag('binding')}>\n`
}
