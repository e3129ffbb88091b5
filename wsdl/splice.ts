/**
 * Somebody else's WSDL, changed where a parser found what is to be changed; all other bytes stay as they are. Building the document anew from a tree would
 * reorder it or rename prefixes that QNames in values use ([libraries] 10).
 */
import { SoaError } from '../core/errors.ts'
import type { QName } from '../wire/soap/envelope.ts'
import { qname, splitQName, type XmlAttribute } from '../wire/xml/events.ts'
import { escapeAttribute } from '../wire/xml/text-writer.ts'
import { readText } from '../wire/xml/text.ts'

/** Replace `from` … `to` (UTF-16 units) by `by`. */
export interface Edit { readonly from: number, readonly to: number, readonly by: string }

/** Prefix → namespace, as in force somewhere; `''` is the default namespace. */
export type Prefixes = ReadonlyMap<string, string>

/** An element with the places of its tags: `tag` … `open` is the start tag, `close` … `behind` the end tag (the same one for an empty element). */
export interface Found {
  readonly uri: string
  readonly local: string
  /** As written: `xs`, or nothing. */
  readonly prefix: string
  readonly attributes: readonly XmlAttribute[]
  readonly parent: Found | undefined
  readonly children: Found[]
  /** In force here. */
  readonly scope: Prefixes
  /** Prefixes that are declared on this very element. */
  readonly declared: readonly string[]
  readonly tag: number
  readonly open: number
  close: number
  behind: number
}

/** A document and its elements, in the order of their start tags; the first is the root. */
export interface Parsed { readonly path: string, readonly text: string, readonly root: Found, readonly all: readonly Found[] }

/** Deepest nesting of elements in a WSDL or schema. */
const DEEPEST = 200

/** Throws SoaError `badContract` when the text is no XML. */
export function parse (text: string, path: string): Parsed {
  const all: Found[] = []
  let top: Found | undefined
  let at = 0
  const start = (behind: number): number => text.lastIndexOf('<', behind - 1) // a tag cannot hold another <
  try {
    readText(text, {
      start ({ uri, local, prefix, attributes, declarations }) {
        const outer: Prefixes = top?.scope ?? new Map<string, string>()
        const one: Found = {
          uri,
          local,
          prefix,
          attributes,
          parent: top,
          children: [],
          scope: declarations.length === 0 ? outer : new Map([...outer, ...declarations]),
          declared: declarations.map(([name]) => name),
          tag: start(at),
          open: at,
          close: 0,
          behind: 0
        }
        all.push(one)
        top?.children.push(one)
        top = one
      },
      text () {},
      end () {
        const one = top as Found
        one.behind = at
        one.close = start(at)
        top = one.parent
      }
    }, { at: behind => { at = behind }, maxDepth: DEEPEST })
  } catch (error) {
    throw new SoaError('badContract', { document: path, why: (error as Error).message }, { cause: error })
  }
  return { path, text, root: all[0] as Found, all }
}

/** The value of an attribute without prefix. */
export const get = (element: Found, attribute: string): string | undefined => element.attributes.find(a => a.uri === '' && a.local === attribute)?.value

/** The attribute's value as a QName; undefined when it is absent or its prefix is not declared. */
export function nameIn (element: Found, attribute: string): QName | undefined {
  const text = get(element, attribute)?.trim()
  if (text === undefined) return undefined
  const colon = text.indexOf(':')
  const uri = element.scope.get(colon < 0 ? '' : text.slice(0, colon))
  return uri === undefined && colon >= 0 ? undefined : qname(uri ?? '', text.slice(colon + 1))
}

export const childrenOf = (element: Found, uri: string, ...locals: string[]): Found[] => element.children.filter(child => child.uri === uri && (locals.length === 0 || locals.includes(child.local)))

export const isInside = (element: Found, outer: Found): boolean => element.tag >= outer.tag && element.behind <= outer.behind

/** The piece `from` … `to` of a text with the edits that lie in it; those that begin at its end too. */
export function apply (text: string, edits: readonly Edit[], from = 0, to = text.length): string {
  let out = ''
  let at = from
  for (const edit of edits.filter(edit => edit.from >= from && edit.to <= to).sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (edit.from < at) throw new Error(`edits overlap at ${edit.from}`)
    out += text.slice(at, edit.from) + edit.by
    at = edit.to
  }
  return out + text.slice(at, to)
}

const ATTRIBUTE = /\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')/g

/** Where an attribute, named as written, stands in a start tag: `from` … `to` with the blank before it, `value` its quoted value. */
function attributeAt (text: string, element: Found, name: string): { from: number, to: number, value: number } | undefined {
  for (const match of text.slice(element.tag, element.open).matchAll(ATTRIBUTE)) {
    if (match[1] !== name) continue
    const from = element.tag + match.index
    return { from, to: from + match[0].length, value: from + match[0].search(/["']/) }
  }
  return undefined
}

/** Gives an attribute without prefix another value; undefined: takes it out. */
export function replaceAttribute ({ text }: Pick<Parsed, 'text'>, element: Found, name: string, by: string | undefined): Edit[] {
  const place = attributeAt(text, element, name)
  if (!place) return by === undefined ? [] : [addAttributes(element, [[name, by]])]
  return [by === undefined ? { from: place.from, to: place.to, by: '' } : { from: place.value, to: place.to, by: `"${escapeAttribute(by)}"` }]
}

const tagName = ({ prefix, local }: Found): string => prefix === '' ? local : `${prefix}:${local}`

/** Attributes (or declarations) that the start tag does not have yet, behind its name. */
export function addAttributes (element: Found, attributes: ReadonlyArray<readonly [name: string, value: string]>): Edit {
  const at = element.tag + 1 + tagName(element).length
  return { from: at, to: at, by: attributes.map(([name, value]) => ` ${name}="${escapeAttribute(value)}"`).join('') }
}

/** The element's tags under another name, as written. */
export function renameTag (element: Found, name: string): Edit[] {
  const rename = (at: number): Edit => ({ from: at, to: at + tagName(element).length, by: name })
  return isEmpty(element) ? [rename(element.tag + 1)] : [rename(element.tag + 1), rename(element.close + 2)]
}

const isEmpty = (element: Found): boolean => element.close === element.tag

/** At the end of an element's content. An empty one gets an end tag. */
export function insertInside ({ text }: Pick<Parsed, 'text'>, element: Found, by: string): Edit {
  if (!isEmpty(element)) return { from: element.close, to: element.close, by }
  const slash = text.lastIndexOf('/', element.open - 1)
  return { from: slash, to: element.open, by: `>${by}</${tagName(element)}>` }
}

/** The markup in place of all that an element holds. */
export const replaceContent = (doc: Pick<Parsed, 'text'>, element: Found, by: string): Edit => isEmpty(element) ? insertInside(doc, element, by) : { from: element.open, to: element.close, by }

/** Blanks and line break before an element, so that what is put beside it looks like it. */
export const indentOf = ({ text }: Pick<Parsed, 'text'>, element: Found): string => /\s*$/.exec(text.slice(Math.max(0, element.tag - 200), element.tag))?.[0] ?? ''

/** Takes an element out, with the blanks before it. */
export const remove = (doc: Pick<Parsed, 'text'>, element: Found): Edit => ({ from: element.tag - indentOf(doc, element).length, to: element.behind, by: '' })

/** Declarations that an element needs where it is put: those in force at its old place that are others at the new one, as far as its text can use them. */
export function declarationsFor (slice: string, element: Found, there: Prefixes, defaultNamespace = element.scope.get('') ?? ''): Array<readonly [name: string, value: string]> {
  const needed: Array<readonly [string, string]> = []
  if (defaultNamespace !== (there.get('') ?? '') && !element.declared.includes('')) needed.push(['xmlns', defaultNamespace])
  for (const [prefix, uri] of element.scope) {
    if (prefix !== '' && !element.declared.includes(prefix) && there.get(prefix) !== uri && slice.includes(`${prefix}:`)) needed.push([`xmlns:${prefix}`, uri])
  }
  return needed
}

/** A prefix for a namespace: one that is in force, and not the default; undefined where there is none. */
export const prefixFor = (scope: Prefixes, uri: string): string | undefined => [...scope].find(([prefix, bound]) => prefix !== '' && bound === uri)?.[0]

export const localOf = (name: QName): string => splitQName(name).local
