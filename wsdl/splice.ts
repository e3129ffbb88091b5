/**
 * A WSDL for somebody else's address: addresses and locations are replaced in the text where a parser found them, all other bytes stay as they are.
 * Building the document anew from a tree would reorder it or rename prefixes that QNames in values use ([libraries] 10).
 */
import { SoaError } from '../core/errors.ts'
import { XSD } from '../wire/xml/events.ts'
import { escapeAttribute } from '../wire/xml/text-writer.ts'
import { readText } from '../wire/xml/text.ts'
import { SOAP_BINDINGS, WSA10 } from './document.ts'
import { resolveLocation, WSDL, type Documents } from './imports.ts'

/** Replace `from` … `to` (UTF-16 units) by `by`. */
interface Edit { readonly from: number, readonly to: number, readonly by: string }

function apply (text: string, edits: readonly Edit[]): string {
  let out = ''
  let at = 0
  for (const { from, to, by } of [...edits].sort((a, b) => a.from - b.from)) {
    out += text.slice(at, from) + by
    at = to
  }
  return out + text.slice(at)
}

/** An element with the places of its tags: `tag` … `open` is the start tag, `close` … `behind` the end tag (the same one for an empty element). */
interface Found {
  readonly uri: string
  readonly local: string
  /** Local name of the element around it. */
  readonly parent: string
  readonly get: (attribute: string) => string | undefined
  readonly tag: number
  readonly open: number
  close: number
  behind: number
}

function elements (text: string, document: string): Found[] {
  const found: Found[] = []
  const stack: Found[] = []
  let at = 0
  const start = (behind: number): number => text.lastIndexOf('<', behind - 1) // a tag cannot hold another <
  try {
    readText(text, {
      start ({ uri, local, attributes }) {
        const get = (name: string): string | undefined => attributes.find(a => a.uri === '' && a.local === name)?.value
        const one: Found = { uri, local, parent: stack[stack.length - 1]?.local ?? '', get, tag: start(at), open: at, close: 0, behind: 0 }
        found.push(one)
        stack.push(one)
      },
      text () {},
      end () {
        const one = stack.pop() as Found
        one.behind = at
        one.close = start(at)
      }
    }, { at: behind => { at = behind }, maxDepth: 200 })
  } catch (error) {
    throw new SoaError('badContract', { document, why: (error as Error).message }, { cause: error })
  }
  return found
}

const ATTRIBUTE = /\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')/g

/** Where an attribute without prefix stands in a start tag: `from` … `to` with the blank before it, `value` its quoted value. */
function attributeAt (text: string, element: Found, name: string): { from: number, to: number, value: number } | undefined {
  for (const match of text.slice(element.tag, element.open).matchAll(ATTRIBUTE)) {
    if (match[1] !== name) continue
    const from = element.tag + match.index
    return { from, to: from + match[0].length, value: from + match[0].search(/["']/) }
  }
  return undefined
}

function replaceAttribute (text: string, element: Found, name: string, by: string | undefined): Edit[] {
  const place = attributeAt(text, element, name)
  if (!place) return []
  return [by === undefined ? { from: place.from, to: place.to, by: '' } : { from: place.value, to: place.to, by: `"${escapeAttribute(by)}"` }]
}

export interface Changes {
  /** New address of a port; the same text: unchanged. */
  readonly address?: (old: string) => string
  /** New schemaLocation or location of an import or include. */
  readonly location?: (old: string) => string
}

/** Throws SoaError `badContract` when the document is no XML. */
export function spliceWsdl (text: string, changes: Changes, document = 'wsdl'): string {
  const edits: Edit[] = []
  for (const element of elements(text, document)) {
    const { uri, local, parent } = element
    if (local === 'address' && SOAP_BINDINGS.some(([soap]) => soap === uri)) {
      const old = element.get('location')
      if (old !== undefined && changes.address) edits.push(...replaceAttribute(text, element, 'location', changes.address(old)))
    } else if (local === 'Address' && uri === WSA10 && parent === 'EndpointReference' && changes.address && element.close >= element.open) {
      edits.push({ from: element.open, to: element.close, by: escapeAttribute(changes.address(text.slice(element.open, element.close).trim().replaceAll('&amp;', '&'))) })
    } else if (changes.location && ((uri === XSD && ['import', 'include', 'redefine'].includes(local)) || (uri === WSDL && local === 'import'))) {
      const name = uri === XSD ? 'schemaLocation' : 'location'
      const old = element.get(name)
      if (old !== undefined) edits.push(...replaceAttribute(text, element, name, changes.location(old)))
    }
  }
  return apply(text, edits)
}

/**
 * One document instead of many (`?singleWsdl`): every schema reached by import or include is put into wsdl:types, as it is but for its own locations.
 * Throws `badContract` where one document cannot say it: another WSDL imported, or a schema without targetNamespace included.
 */
export function singleWsdl (documents: Documents, main: string, changes: Pick<Changes, 'address'> = {}): string {
  const textOf = (path: string): string => (documents instanceof Map ? documents.get(path) : (documents as Record<string, string>)[path]) ?? ''
  const seen = new Set<string>()
  const schemas: string[] = []

  /** The text with all locations taken out; what they led to is added to `schemas`. */
  const inline = (path: string): { text: string, edits: Edit[], found: Found[] } => {
    const text = textOf(path)
    const found = elements(text, path)
    const edits: Edit[] = []
    for (const element of found) {
      if (element.uri === WSDL && element.local === 'import') throw new SoaError('badContract', { document: path, why: 'it imports another WSDL, so it cannot be one document' })
      const location = element.uri === XSD && (element.local === 'import' || element.local === 'include') ? element.get('schemaLocation') : undefined
      if (location === undefined) continue
      // An include says no more once the other schema of the same namespace stands beside it.
      edits.push(...element.local === 'include' ? [{ from: element.tag, to: element.behind, by: '' }] : replaceAttribute(text, element, 'schemaLocation', undefined))
      const target = resolveLocation(documents, path, location)
      if (target === undefined || seen.has(target)) continue
      seen.add(target)
      const inner = inline(target)
      const root = inner.found[0] as Found
      if (element.local === 'include' && root.get('targetNamespace') === undefined) throw new SoaError('badContract', { document: target, why: 'it is included and has no targetNamespace, so it cannot stand in one document' })
      // Without prolog: only from the root's tag on.
      schemas.push(apply(inner.text, inner.edits.concat({ from: 0, to: root.tag, by: '' }, { from: root.behind, to: inner.text.length, by: '' })))
    }
    return { text, edits, found }
  }

  const whole = inline(main)
  const types = whole.found.find(e => e.uri === WSDL && e.local === 'types')
  if (schemas.length > 0) {
    if (!types) throw new SoaError('badContract', { document: main, why: 'it has no wsdl:types' })
    whole.edits.push({ from: types.close, to: types.close, by: `${schemas.join('\n')}\n` })
  }
  const single = apply(whole.text, whole.edits)
  return changes.address ? spliceWsdl(single, changes, main) : single
}
