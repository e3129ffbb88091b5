/**
 * What the policies of a WSDL's bindings ask for ([ws-policy] 1.2 and 1.5) and is not done here. What is served has no policies (ports.ts), so a demand
 * that a service can do without is a warning; one that changes what messages are or mean refuses the contract.
 */
import type { QName } from '../wire/soap/envelope.ts'
import { qname } from '../wire/xml/events.ts'
import type { XmlNode } from '../wire/xml/tree.ts'
import { WSDL } from './imports.ts'

export interface Demand { readonly why: string, readonly isRefused: boolean }

const POLICIES = ['http://schemas.xmlsoap.org/ws/2004/09/policy', 'http://www.w3.org/ns/ws-policy']
const IDS = [qname('http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd', 'Id'), qname('http://www.w3.org/XML/1998/namespace', 'id')]
const ADDRESSING = ['http://www.w3.org/2006/05/addressing/wsdl', 'http://www.w3.org/2007/05/addressing/metadata']

const refused = (why: string): Demand => ({ why, isRefused: true })
const warned = (why: string): Demand => ({ why, isRefused: false })

/** By namespace of the assertion; undefined: it asks for nothing that is missing here. */
const ASSERTIONS: Readonly<Record<string, (local: string) => Demand | undefined>> = {
  ...Object.fromEntries(['http://schemas.xmlsoap.org/ws/2005/07/securitypolicy', 'http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702'].map(uri => [uri, securityDemand])),
  ...Object.fromEntries(['http://schemas.xmlsoap.org/ws/2005/02/rm/policy', 'http://docs.oasis-open.org/ws-rx/wsrmp/200702'].map(uri => [uri, () => refused('reliable messaging')])),
  ...Object.fromEntries(['http://schemas.xmlsoap.org/ws/2004/10/wsat', 'http://docs.oasis-open.org/ws-tx/wsat/2006/06'].map(uri => [uri, () => refused('transactions (WS-AtomicTransaction)')])),
  'http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization': () => refused('MTOM'),
  'http://schemas.microsoft.com/net/2006/06/duplex': () => refused('a duplex contract, whose service calls its client back'),
  'http://schemas.xmlsoap.org/ws/2004/08/addressing/policy': () => refused('WS-Addressing of August 2004'),
  'http://schemas.microsoft.com/ws/06/2004/policy/http': local => warned(`authentication by HTTP (${local})`),
  'http://schemas.microsoft.com/ws/2006/05/framing/policy': local => local === 'Streamed' ? warned('streamed messages') : warned(`security of the connection (${local})`),
  'http://schemas.microsoft.com/ws/06/2004/mspolicy/netbinary1': () => undefined,
  [ADDRESSING[0] as string]: () => undefined,
  [ADDRESSING[1] as string]: local => local === 'NonAnonymousResponses' ? refused('replies to another address (wsam:NonAnonymousResponses)') : undefined
}

/** Parts of a security binding that say how, beside the one that says that. */
function securityDemand (local: string): Demand | undefined {
  if (local === 'TransportBinding') return warned('security of the connection (sp:TransportBinding)')
  return /^(?:SymmetricBinding|AsymmetricBinding|(?:Signed|Encrypted|Required)(?:Parts|Elements)|ContentEncryptedElements|.*Tokens)$/.test(local) ? refused(`security of messages (sp:${local})`) : undefined
}

/** The worst thing that each SOAP binding's policies ask for; undefined: nothing. `definitions`: every WSDL that the contract is made of. */
export function demandsOf (definitions: readonly XmlNode[]): ReadonlyMap<QName, Demand | undefined> {
  const byId = new Map(definitions.flatMap(everyPolicy).flatMap(node => IDS.flatMap(id => node.get(id) === undefined ? [] : [[node.get(id) as string, node] as const])))

  const demandOf = (node: XmlNode, seen: readonly XmlNode[] = []): Demand | undefined => {
    if (POLICIES.some(uri => node.name === qname(uri, 'PolicyReference'))) {
      const found = byId.get((node.get('URI') ?? '').replace(/^#/, ''))
      if (found === undefined || seen.includes(found)) return undefined // one of another document says nothing that can be checked
      return demandOf(found, [...seen, found])
    }
    const inside = (): Array<Demand | undefined> => node.children.map(child => demandOf(child, seen))
    if (POLICIES.includes(node.uri)) return node.local === 'ExactlyOne' ? worst(inside(), 'least') : worst(inside(), 'most')
    if (POLICIES.some(uri => ['true', '1'].includes(node.get(qname(uri, 'Optional'))?.trim() ?? ''))) return undefined
    const known = ASSERTIONS[node.uri]
    if (known === undefined) return warned(`${node.name}, which is not known here`)
    // Of what stands in an assertion only addressing's own changes anything.
    return known(node.local) ?? (ADDRESSING.includes(node.uri) ? worst(inside(), 'most') : undefined)
  }

  return new Map(definitions.flatMap(root => root.all(WSDL, 'binding').map(binding => {
    const name = qname(root.get('targetNamespace') ?? '', binding.get('name') ?? '')
    const attached = [binding, ...binding.all(WSDL, 'operation').flatMap(operation => [operation, ...operation.all(WSDL, 'input', 'output', 'fault')])]
    return [name, worst(attached.flatMap(at => POLICIES.flatMap(uri => at.all(uri, 'Policy', 'PolicyReference'))).map(policy => demandOf(policy)), 'most')] as const
  })))
}

function worst (demands: ReadonlyArray<Demand | undefined>, which: 'most' | 'least'): Demand | undefined {
  const rank = (demand: Demand | undefined): number => demand === undefined ? 0 : demand.isRefused ? 2 : 1
  return demands.length === 0 ? undefined : demands.reduce((one, other) => (rank(other) > rank(one)) === (which === 'most') && rank(other) !== rank(one) ? other : one)
}

function everyPolicy (node: XmlNode): XmlNode[] {
  return [...POLICIES.includes(node.uri) && node.local === 'Policy' ? [node] : [], ...node.children.flatMap(everyPolicy)]
}
