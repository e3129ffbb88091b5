/**
 * XML as events: what the readers of text and of binary XML both say, so that whoever reads bodies need not know which of the two came in.
 *
 * Names are pairs (namespace, local); prefixes appear only because QNames in values (xsi:type) and pieces that are passed on as they are need them.
 */
import type { QName, Scope } from '../soap/envelope.ts'

export const XSI = 'http://www.w3.org/2001/XMLSchema-instance'
export const XSD = 'http://www.w3.org/2001/XMLSchema'
export const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace'

export interface XmlAttribute {
  readonly prefix: string
  readonly local: string
  /** Empty: no namespace (an attribute without prefix never has one). */
  readonly uri: string
  readonly value: string
}

export interface XmlStart {
  readonly prefix: string
  readonly local: string
  /** Empty: no namespace. */
  readonly uri: string
  /** Without the namespace declarations. */
  readonly attributes: readonly XmlAttribute[]
  /** Declared on this very element; an empty uri undeclares the default namespace. */
  readonly declarations: Scope
}

/**
 * Hears the events of one document or fragment in order. A throw ends the reading and reaches the caller as it is.
 * Text comes in any number of pieces (entities, CDATA and comments cut it); whitespace between elements is text too.
 */
export interface XmlHandler {
  /** `resolve` is good while `start`, or the `end` of an element without children, runs: the namespace of a prefix in scope, `''` asking for the default one. */
  start (element: XmlStart, resolve: (prefix: string) => string | undefined): void
  text (value: string): void
  end (): void
}

export const qname = (uri: string, local: string): QName => uri === '' ? local : `{${uri}}${local}`

export function splitQName (name: QName): { uri: string, local: string } {
  const end = name.startsWith('{') ? name.lastIndexOf('}') : -1
  return end < 0 ? { uri: '', local: name } : { uri: name.slice(1, end), local: name.slice(end + 1) }
}

/** A QName as written in a value (`q1:Order`), resolved; undefined when its prefix is not declared. Without a prefix the default namespace counts ([xmlschema-2] 3.2.18). */
export function resolveQName (text: string, resolve: (prefix: string) => string | undefined): QName | undefined {
  const at = text.indexOf(':')
  const uri = resolve(at < 0 ? '' : text.slice(0, at))
  if (uri === undefined && at >= 0) return undefined
  return qname(uri ?? '', text.slice(at + 1))
}
