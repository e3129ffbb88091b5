/** XML as a small tree, for documents that are read whole and once (WSDL, schemas, contracts of ours); bodies of services are never read this way. */
import { qname, resolveQName, type XmlStart } from './events.ts'
import { readText, type TextOptions } from './text.ts'
import { SoaError } from '../../core/errors.ts'
import type { QName, Scope } from '../soap/envelope.ts'

export class XmlNode {
  readonly uri: string
  readonly local: string
  readonly name: QName
  readonly attributes: ReadonlyMap<QName, string>
  readonly parent: XmlNode | undefined
  readonly children: XmlNode[] = []
  /** All text directly in this element, pieces joined. */
  text = ''
  readonly #declarations: Scope
  readonly #outside: Scope

  constructor (start: XmlStart, parent: XmlNode | undefined, outside: Scope) {
    this.uri = start.uri
    this.local = start.local
    this.name = qname(start.uri, start.local)
    this.attributes = new Map(start.attributes.map(a => [qname(a.uri, a.local), a.value]))
    this.parent = parent
    this.#declarations = start.declarations
    this.#outside = outside
  }

  get (attribute: QName): string | undefined { return this.attributes.get(attribute) }

  /** Children with this namespace and, if given, one of these names. */
  all (uri: string, ...locals: string[]): XmlNode[] {
    return this.children.filter(child => child.uri === uri && (locals.length === 0 || locals.includes(child.local)))
  }

  first (uri: string, local: string): XmlNode | undefined {
    return this.children.find(child => child.uri === uri && child.local === local)
  }

  /** Namespace of a prefix here; `''` asks for the default one. */
  resolve (prefix: string): string | undefined {
    if (prefix === 'xml') return 'http://www.w3.org/XML/1998/namespace'
    const here = this.#declarations.find(([p]) => p === prefix)
    if (here) return here[1]
    return this.parent ? this.parent.resolve(prefix) : this.#outside.find(([p]) => p === prefix)?.[1]
  }

  /** The attribute's value as a QName; undefined when the attribute is absent. Throws `badXml` on an undeclared prefix. */
  qname (attribute: QName): QName | undefined {
    const text = this.attributes.get(attribute)?.trim()
    if (text === undefined) return undefined
    const name = resolveQName(text, prefix => this.resolve(prefix))
    if (name === undefined) throw new SoaError('badXml', { why: `the prefix of ${attribute}="${text}" in ${this.local} is not declared` })
    return name
  }
}

/** The roots of a document (one) or fragment (any number). Throws as `readText` does. */
export function readTree (xml: string | Uint8Array, options: TextOptions = {}): XmlNode[] {
  const roots: XmlNode[] = []
  const scope = options.scope ?? []
  let top: XmlNode | undefined
  readText(xml, {
    start (element) {
      const node: XmlNode = new XmlNode(element, top, scope)
      ;(top ? top.children : roots).push(node)
      top = node
    },
    text (value) { if (top) top.text += value },
    end () { top = top?.parent }
  }, options)
  return roots
}
