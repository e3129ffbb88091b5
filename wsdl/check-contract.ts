/** Whether a contract can be served: asked when a service is added, so that nothing of it is found out by the first message. */
import { SoaError } from '../core/errors.ts'
import type { QName } from '../wire/soap/envelope.ts'
import type { XmlNode } from '../wire/xml/tree.ts'
import { SOAP_BINDINGS } from './bindings.ts'
import { loadWsdl, operationsOf, type WsdlOperation } from './document.ts'
import { gather, WSDL, type Documents } from './imports.ts'
import { demandsOf } from './policy.ts'

export interface ContractCheck {
  /** portType */
  readonly contract: string
  readonly operations: readonly WsdlOperation[]
  /** What its messages are not checked for, and what its policies ask for in vain. */
  readonly warnings: readonly string[]
}

/** Of the contract that a registration names (`operationsOf`). Throws SoaError `badContract`: what is wrong, missing or not supported, by name. */
export function checkContract (documents: Documents, main: string, contract: string): ContractCheck {
  const refuse = (why: string): never => { throw new SoaError('badContract', { document: main, why }) }
  const wsdl = loadWsdl(documents, main)
  const operations = operationsOf(wsdl, contract)
  const portType = operations[0]?.portType ?? refuse(`contract ${contract || wsdl.portTypes[0] || ''} has no operations`)
  const names = new Set<string>()
  const byAction = new Map<string, string>()
  for (const { name, actions } of operations) {
    if (names.has(name)) refuse(`operation ${name} is there twice (overloads have one method between them), which is not supported`)
    names.add(name)
    for (const action of actions) {
      const twin = byAction.get(action)
      if (twin !== undefined) refuse(`operations ${twin} and ${name} have the same action, so that nobody can tell them apart`)
      byAction.set(action, name)
    }
  }

  const { definitions } = gather(documents, main)
  const demands = demandsOf(definitions)
  const bindings = definitions.flatMap(root => root.all(WSDL, 'binding')).filter(node => isSoap(node) && localOf(node.qname('type')) === portType)
  const asked = bindings.map(node => ({ node, demand: demands.get(nameOf(node)) }))
  const first = asked[0]?.demand
  // One binding that can be served is enough: what is published is made of it.
  if (first !== undefined && asked.every(({ demand }) => demand?.isRefused)) {
    refuse(`every binding of ${portType} asks for what is not supported, ${nameOf(bindings[0] as XmlNode)} for ${first.why}; export the WSDL from an endpoint without it, or take the policy out`)
  }
  const warnings = [
    ...asked.flatMap(({ node, demand }) => demand === undefined ? [] : [`binding ${nameOf(node)} asks for ${demand.why}: the service is served without it`]),
    ...headersOf(bindings).map(name => `message header ${name} is not handed to the service`),
    ...sameElements(operations),
    ...wsdl.schema.notes
  ]
  return { contract: portType, operations, warnings: [...new Set(warnings)] }
}

const localOf = (name: QName | undefined): string => name === undefined ? '' : name.slice(name.lastIndexOf('}') + 1)
const nameOf = (node: XmlNode): QName => `{${node.parent?.get('targetNamespace') ?? ''}}${node.get('name') ?? ''}`
const isSoap = (binding: XmlNode): boolean => SOAP_BINDINGS.some(([uri]) => binding.first(uri, 'binding') !== undefined)

function headersOf (bindings: readonly XmlNode[]): string[] {
  const inputs = bindings.flatMap(binding => binding.all(WSDL, 'operation').flatMap(operation => operation.all(WSDL, 'input')))
  return inputs.flatMap(input => SOAP_BINDINGS.flatMap(([uri]) => input.all(uri, 'header'))).map(header => header.get('part') ?? '')
}

function sameElements (operations: readonly WsdlOperation[]): string[] {
  const firsts = new Map<QName | undefined, string>()
  return operations.flatMap(({ name, inputElement }) => {
    const twin = firsts.get(inputElement)
    if (twin === undefined) firsts.set(inputElement, name)
    return twin !== undefined ? [`operations ${twin} and ${name} take the same element: a message without an action is for ${name}`] : []
  })
}
