/**
 * A service's contract, read from its WSDL 1.1: which operations there are, by which action and element they are called, and the types of all.
 *
 * Document/literal and rpc/literal (rpc.ts). SOAP encoding, MTOM, and with style document messages of several parts or of types instead of elements are
 * refused by name here.
 */
import { SoaError } from '../core/errors.ts'
import type { QName, SoapVersion } from '../wire/soap/envelope.ts'
import { qname, splitQName } from '../wire/xml/events.ts'
import type { XmlNode } from '../wire/xml/tree.ts'
import { headerParts, readBinding, SOAP_BINDINGS, type Binding, type Style } from './bindings.ts'
import { gather, WSDL, type Documents } from './imports.ts'
import { RpcWrappers } from './rpc.ts'
import { SchemaSet } from './schema/schema.ts'

export const WSA10 = 'http://www.w3.org/2005/08/addressing'
const ACTIONS = ['http://www.w3.org/2006/05/addressing/wsdl', 'http://www.w3.org/2007/05/addressing/metadata', WSA10].map(uri => qname(uri, 'Action'))
const MTOM = 'http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization'

export interface OperationFault { readonly name: string, readonly element: QName, readonly action: string }

export interface WsdlOperation {
  readonly name: string
  readonly portType: string
  /** WS-Addressing action of the request. */
  readonly action: string
  /** Every action that calls it: `action` and the SOAPActions of the bindings (never empty ones). */
  readonly actions: ReadonlySet<string>
  readonly style: Style
  /** Undefined: a message without parts, so an empty body. Of style rpc, where it never is, the wrapper. */
  readonly inputElement: QName | undefined
  readonly outputElement: QName | undefined
  readonly replyAction: string | undefined
  readonly faults: readonly OperationFault[]
  /** No reply is sent, not even a fault. */
  readonly oneWay: boolean
  /** SOAP versions that the WSDL's bindings offer it in; empty when it has no SOAP binding. */
  readonly soap: readonly SoapVersion[]
}

export interface WsdlPort { readonly name: string, readonly binding: string, readonly portType: string, readonly soap: SoapVersion, readonly address: string, readonly transport: string }

export interface WsdlDocument {
  readonly name: string
  readonly targetNamespace: string
  readonly portTypes: readonly string[]
  readonly operations: readonly WsdlOperation[]
  readonly services: ReadonlyArray<{ readonly name: string, readonly ports: readonly WsdlPort[] }>
  readonly schema: SchemaSet
}

/** Throws SoaError `badContract` with the document and what is wrong or not supported. */
export function loadWsdl (documents: Documents, main: string): WsdlDocument {
  const refuse = (why: string): never => { throw new SoaError('badContract', { document: main, why }) }
  const { definitions, schemas } = gather(documents, main)
  const root = definitions[0] ?? refuse('it is a schema, no WSDL')
  const target = (node: XmlNode): string => node.get('targetNamespace') ?? ''
  const named = (kind: string): Map<QName, XmlNode> => new Map(definitions.flatMap(d => d.all(WSDL, kind).map(n => [qname(target(d), n.get('name') ?? ''), n])))

  if (definitions.some(d => mentions(d, MTOM))) refuse('it asks for MTOM (OptimizedMimeSerialization), which is not supported')
  const messages = named('message')
  const bindings = [...named('binding')].flatMap(([name, node]) => readBinding(name, node, refuse))
  // Beside a contract for SOAP ASMX has one for GET and one for POST, with messages that are none of SOAP.
  const isForeign = (portType: QName): boolean => bindings.length > 0 && bindings.every(b => b.portType !== portType) && [...named('binding').values()].some(node => node.qname('type') === portType)
  const portTypes = new Map([...named('portType')].filter(([name]) => !isForeign(name)))
  const schema = new SchemaSet(schemas)

  const messageOf = (ref: XmlNode, of: string): { message: QName, parts: readonly XmlNode[] } => {
    const message = ref.qname('message') ?? refuse(`${of} names no message`)
    return { message, parts: (messages.get(message) ?? refuse(`${of} names message ${message}, which is not defined`)).all(WSDL, 'part') }
  }

  const headers = headerParts(bindings)
  const headersOf = (message: QName): ReadonlySet<string> => headers.get(message) ?? NONE
  const rpc = new RpcWrappers(schema, refuse)
  /** Elements of the schemas that are bodies or details, and of what. */
  const declared = new Map<QName, string>()
  const element = (ref: XmlNode | undefined, of: string, listed?: ReadonlySet<string>): QName | undefined => {
    if (!ref) return undefined
    const { message, parts } = messageOf(ref, of)
    if (parts.length === 0) return undefined
    // Parts beyond the first are headers where the binding says so; only those would be a body of several parts.
    const body = parts.length === 1 ? parts : parts.filter(part => listed?.has(part.get('name') ?? '') ?? !headersOf(message).has(part.get('name') ?? ''))
    if (body.length > 1) refuse(`message ${message} has a body of ${body.length} parts, which is not supported with style document`)
    const found = body[0]?.qname('element') ?? refuse(`message ${message} is made of a type instead of an element, which only messages of style rpc may be`)
    if (!schema.element(found)) refuse(`message ${message} is element ${found}, which no schema given defines`)
    declared.set(found, of)
    return found
  }

  const operations = [...portTypes].flatMap(([portType, node]) => node.all(WSDL, 'operation').map((op): WsdlOperation => {
    const name = op.get('name') ?? refuse(`an operation of ${portType} has no name`)
    const mine = bindings.filter(b => b.portType === portType)
    const bound = mine.flatMap(b => b.operations.get(name) ?? [])
    const style = bound[0]?.style ?? 'document'
    if (bound.length === 0 && isRpc(mine)) refuse(`operation ${name} of ${portType} is in none of its bindings (${mine.map(b => b.name).join(', ')}), so that nobody knows what its messages are called (WS-I Basic Profile R2718)`)
    for (const other of bound) if (other.style !== style) refuse(`${bound[0]?.label ?? ''} has style ${style}, and ${other.label} has style ${other.style}: their messages would not be the same`)
    const soapActions = bound.map(({ soapAction }) => soapAction).filter(action => action !== '')
    const input = op.first(WSDL, 'input') ?? refuse(`operation ${name} has no input (notifications are not supported)`)
    const output = op.first(WSDL, 'output')
    const { uri, local: type } = splitQName(portType)
    const separator = uri.startsWith('urn:') ? ':' : '/'
    const base = `${uri}${uri.endsWith(separator) ? '' : separator}${type}`
    // [WS-Addressing metadata] 4.4.4: names stand in for actions that are not said; a SOAPAction is one that is said.
    const action = actionOf(input) ?? soapActions[0] ?? `${base}${separator}${input.get('name') ?? `${name}${output ? 'Request' : ''}`}`
    const bodyOf = (way: 'input' | 'output', ref: XmlNode | undefined): QName | undefined => {
      const of = `the ${way} of ${name}`
      if (ref === undefined || style === 'document') return element(ref, of, bound.map(b => b[way].parts).find(parts => parts !== undefined))
      const { message, parts } = messageOf(ref, of)
      return rpc.add({ operation: name, way, message, parts, bound, headers: headersOf(message) })
    }
    return {
      name,
      portType: type,
      action,
      actions: new Set([action, ...soapActions]),
      style,
      inputElement: bodyOf('input', input),
      outputElement: bodyOf('output', output),
      replyAction: output && (actionOf(output) ?? (soapActions[0] !== undefined ? `${action}Response` : `${base}${separator}${output.get('name') ?? `${name}Response`}`)),
      faults: op.all(WSDL, 'fault').map(fault => {
        const faultName = fault.get('name') ?? refuse(`a fault of ${name} has no name`)
        const detail = element(fault, `fault ${faultName} of ${name}`) ?? refuse(`fault ${faultName} of ${name} has no detail`)
        return { name: faultName, element: detail, action: actionOf(fault) ?? `${base}${separator}${name}${separator}Fault${separator}${faultName}` }
      }),
      oneWay: output === undefined,
      soap: [...new Set(mine.map(b => b.soap))]
    }
  }))

  rpc.refuseTwins(declared)

  return {
    name: root.get('name') ?? '',
    targetNamespace: target(root),
    portTypes: [...portTypes.keys()].map(local),
    operations,
    services: [...named('service')].map(([name, node]) => ({
      name: local(name),
      ports: node.all(WSDL, 'port').flatMap(port => {
        const binding = bindings.find(b => b.name === port.qname('binding'))
        const address = SOAP_BINDINGS.flatMap(([uri]) => port.all(uri, 'address'))[0]?.get('location') ?? ''
        return binding ? [{ name: port.get('name') ?? '', binding: local(binding.name), portType: local(binding.portType), soap: binding.soap, address, transport: binding.transport }] : []
      })
    })),
    schema
  }
}

/** Messages of all that these bindings have are of style rpc. */
const isRpc = (bindings: readonly Binding[]): boolean => {
  const bound = bindings.flatMap(b => [...b.operations.values()].flat())
  return bound.length > 0 && bound.every(({ style }) => style === 'rpc')
}

const NONE: ReadonlySet<string> = new Set()

const local = (name: QName): string => splitQName(name).local

const actionOf = (node: XmlNode): string | undefined => ACTIONS.map(name => node.get(name)).find(value => value !== undefined && value !== '')

const mentions = (node: XmlNode, uri: string): boolean => node.uri === uri || node.children.some(child => mentions(child, uri))

/** The portType's name in that of a contract: a .NET interface's full name ends in it. */
export const localOfContract = (contract: string): string => contract.slice(Math.max(contract.lastIndexOf('.'), contract.lastIndexOf('}')) + 1)

/** The operations of one portType. `contract` is its name, or a .NET interface's full name that ends in it; empty: the only one there is. */
export function operationsOf (wsdl: WsdlDocument, contract: string): readonly WsdlOperation[] {
  const local = localOfContract(contract)
  const names = wsdl.portTypes
  const chosen = local === '' ? names.length === 1 ? names[0] : undefined : names.find(n => n === local)
  if (chosen === undefined) {
    throw new SoaError('badContract', { document: wsdl.name, why: local === '' ? `it has ${names.length} contracts (${names.join(', ')}): the registration must name one` : `it has no contract ${local}, only ${names.join(', ')}` })
  }
  return wsdl.operations.filter(op => op.portType === chosen)
}
