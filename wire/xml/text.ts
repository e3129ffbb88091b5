/**
 * Text XML → events. saxes does the grammar (strict, with namespaces); this file says what is not accepted on a wire:
 * document types, entities but the five of XML itself, nesting deeper than asked for.
 */
import { SaxesParser, type SaxesTagNS } from 'saxes'
import { SoaError } from '../../core/errors.ts'
import type { Scope } from '../soap/envelope.ts'
import type { XmlAttribute, XmlHandler } from './events.ts'

export interface TextOptions {
  /** Declarations in force around a fragment. */
  readonly scope?: Scope
  /** A fragment (the inside of an element: any number of elements, also none) instead of a document with one root. */
  readonly fragment?: boolean
  /** Deepest nesting, in levels; a root is level 1. */
  readonly maxDepth?: number
  /** Called before each start and end with the place just behind its tag, in UTF-16 units: for splicing. */
  readonly at?: (behind: number) => void
}

const NONE: readonly never[] = []
const DECODER = new TextDecoder('utf-8', { fatal: true })

/** UTF-8 bytes as text; bytes that are no UTF-8 are refused, a byte order mark is dropped. */
export function decodeUtf8 (bytes: Uint8Array): string {
  try {
    return DECODER.decode(bytes)
  } catch (error) {
    throw new SoaError('badXml', { why: 'the bytes are not UTF-8' }, { cause: error })
  }
}

/** Reads all of `xml` into `handler`. Throws SoaError `badXml` with line and column, `overLimit` naming maxDepth, or whatever the handler throws. */
export function readText (xml: string | Uint8Array, handler: XmlHandler, options: TextOptions = {}): void {
  const text = typeof xml === 'string' ? xml : decodeUtf8(xml)
  const { maxDepth = 128, at } = options
  const parser = new SaxesParser({ xmlns: true as const, fragment: options.fragment ?? false, additionalNamespaces: scopeObject(options.scope) })
  const resolve = (prefix: string): string | undefined => parser.resolve(prefix)
  let depth = 0

  const refuse = (why: string): never => { throw new SoaError('badXml', { why: `line ${parser.line}, column ${parser.column}: ${why}` }) }
  // saxes never expands an entity of a document type, and says the name of one behind the prolog or in a fragment in its own words.
  parser.on('doctype', () => refuse('a document type is not accepted'))
  parser.on('error', error => refuse(error.message.replace(/^\d+:\d+: /, '').replace(/^inappropriately located doctype declaration\.$/, 'a document type is not accepted')))
  parser.on('opentag', tag => {
    if (++depth > maxDepth) throw new SoaError('overLimit', { setting: 'maxDepth', limit: maxDepth, value: `more than ${maxDepth}` })
    at?.(parser.position)
    const { prefix, local, uri } = tag
    handler.start({ prefix, local, uri, attributes: attributesOf(tag), declarations: declarationsOf(tag) }, resolve)
  })
  parser.on('closetag', () => { depth--; at?.(parser.position); handler.end() })
  const say = (value: string): void => handler.text(value)
  parser.on('text', say)
  parser.on('cdata', say)
  parser.write(text).close()
}

/** A prefix may be any name, also `__proto__`. */
function scopeObject (scope: Scope = NONE): Record<string, string> {
  const object: Record<string, string> = Object.create(null) as Record<string, string>
  for (const [prefix, uri] of scope) object[prefix] = uri
  return object
}

function attributesOf (tag: SaxesTagNS): readonly XmlAttribute[] {
  let found: XmlAttribute[] | undefined
  for (const name in tag.attributes) {
    const attribute = tag.attributes[name] as XmlAttribute
    if (attribute.prefix !== 'xmlns' && name !== 'xmlns') (found ??= []).push(attribute)
  }
  return found ?? NONE
}

function declarationsOf (tag: SaxesTagNS): Scope {
  let found: Array<readonly [string, string]> | undefined
  for (const prefix in tag.ns) (found ??= []).push([prefix, tag.ns[prefix] as string])
  return found ?? NONE
}
