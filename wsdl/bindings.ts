/** What the SOAP bindings of a WSDL say of its operations: style, SOAPAction, and what their bodies are made of. */
import type { QName, SoapVersion } from '../wire/soap/envelope.ts'
import type { XmlNode } from '../wire/xml/tree.ts'
import { WSDL } from './imports.ts'

export const SOAP_BINDINGS: ReadonlyArray<readonly [uri: string, soap: SoapVersion]> = [['http://schemas.xmlsoap.org/wsdl/soap/', 11], ['http://schemas.xmlsoap.org/wsdl/soap12/', 12]]

export type Style = 'document' | 'rpc'

/** A soap:body. */
export interface BoundBody {
  /** Of an rpc wrapper; undefined: not said. */
  readonly namespace: string | undefined
  /** Names of the parts that it is made of; undefined: all that are no headers. */
  readonly parts: ReadonlySet<string> | undefined
}

export interface BoundOperation {
  /** For messages: `operation Add of binding {urn:t}B`. */
  readonly label: string
  readonly style: Style
  /** Empty: none. */
  readonly soapAction: string
  readonly input: BoundBody
  readonly output: BoundBody
}

export interface Binding {
  readonly node: XmlNode
  readonly name: QName
  readonly portType: QName
  readonly soap: SoapVersion
  readonly transport: string
  /** By name. Several of one name: overloads, or somebody's mistake. */
  readonly operations: ReadonlyMap<string, readonly BoundOperation[]>
}

/** One binding, or none when it is not of SOAP. Refuses use="encoded" and styles that WSDL 1.1 does not have. */
export function readBinding (name: QName, node: XmlNode, refuse: (why: string) => never): Binding[] {
  const found = SOAP_BINDINGS.map(([uri, soap]) => ({ uri, soap, binding: node.first(uri, 'binding') })).find(f => f.binding)
  // Other bindings (plain HTTP GET and POST of ASMX) are not ours to judge.
  if (!found?.binding) return []
  const { uri, soap, binding } = found
  const operations = new Map<string, BoundOperation[]>()
  for (const op of node.all(WSDL, 'operation')) {
    const operation = op.first(uri, 'operation')
    const label = `operation ${op.get('name') ?? ''} of binding ${name}`
    for (const part of [...op.all(WSDL, 'input', 'output', 'fault')].flatMap(p => p.all(uri, 'body', 'fault', 'header'))) {
      if ((part.get('use') ?? 'literal') !== 'literal') refuse(`${label} has use="encoded", which is not supported (document/literal and rpc/literal are)`)
    }
    const style = operation?.get('style') ?? binding.get('style') ?? 'document'
    if (style !== 'document' && style !== 'rpc') refuse(`${label} has style ${style}; there are document and rpc`)
    const bodyOf = (way: string): BoundBody => {
      const body = op.first(WSDL, way)?.first(uri, 'body')
      return { namespace: body?.get('namespace'), parts: namesIn(body?.get('parts')) }
    }
    const bound: BoundOperation = { label, style: style as Style, soapAction: operation?.get('soapAction') ?? '', input: bodyOf('input'), output: bodyOf('output') }
    const same = operations.get(op.get('name') ?? '')
    if (same) same.push(bound)
    else operations.set(op.get('name') ?? '', [bound])
  }
  return [{ node, name, portType: node.qname('type') ?? refuse(`binding ${name} has no portType`), soap, transport: binding.get('transport') ?? '', operations }]
}

const namesIn = (list: string | undefined): ReadonlySet<string> | undefined => list === undefined ? undefined : new Set(list.split(/\s+/).filter(name => name !== ''))

/** By message, the parts that some binding sends as headers. */
export function headerParts (bindings: readonly Binding[]): Map<QName, Set<string>> {
  const parts = new Map<QName, Set<string>>()
  for (const { node } of bindings) {
    for (const header of node.all(WSDL, 'operation').flatMap(op => op.all(WSDL, 'input', 'output')).flatMap(io => SOAP_BINDINGS.flatMap(([uri]) => io.all(uri, 'header')))) {
      const message = header.qname('message') ?? ''
      parts.set(message, (parts.get(message) ?? new Set()).add(header.get('part') ?? ''))
    }
  }
  return parts
}
