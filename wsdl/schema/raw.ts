/**
 * Elements kept as text: what xs:any, xs:anyType and mixed content let through. Each piece carries the declarations that it needs, those for QNames
 * in attribute values and in texts that look like one included, so it can be put anywhere.
 */
import { SoaError } from '../../core/errors.ts'
import type { XmlStart } from '../../wire/xml/events.ts'
import { escapeAttribute, escapeText } from '../../wire/xml/text-writer.ts'
import { readText } from '../../wire/xml/text.ts'

type Resolve = (prefix: string) => string | undefined

const LOOKS_LIKE_QNAME = /^\s*([\p{L}_][\p{L}\p{N}_.\-·]*):[\p{L}_][\p{L}\p{N}_.\-·]*\s*$/u

interface Top { tag: string, attributes: string, inside: string, needs: Map<string, string> }

export class RawXml {
  /** No element, attribute or comment so far: only text. */
  isText = true
  /** The text alone, as long as there is nothing else. */
  plain = ''
  #out = ''
  #resolve: Resolve = () => undefined
  readonly #tags: Array<{ name: string, declared: Set<string> | undefined }> = []
  /** The element at the top of the piece in hand: its tag is finished last, when all needs are known. */
  #top: Top | undefined

  get depth (): number { return this.#tags.length }

  start (element: XmlStart, resolve: Resolve): void {
    this.isText = false
    this.#resolve = resolve
    const name = element.prefix === '' ? element.local : `${element.prefix}:${element.local}`
    const declared = element.declarations.length > 0 ? new Set(element.declarations.map(([prefix]) => prefix)) : undefined
    let tag = `<${name}`
    for (const [prefix, uri] of element.declarations) tag += ` xmlns${prefix === '' ? '' : `:${prefix}`}="${escapeAttribute(uri)}"`
    let attributes = ''
    for (const a of element.attributes) attributes += ` ${a.prefix === '' ? a.local : `${a.prefix}:${a.local}`}="${escapeAttribute(a.value)}"`
    if (this.#top) this.#top.inside += `${tag}${attributes}>`
    else this.#top = { tag, attributes, inside: '', needs: new Map() }
    this.#tags.push({ name, declared })
    this.#need(element.prefix)
    for (const a of element.attributes) {
      if (a.prefix !== '') this.#need(a.prefix)
      this.#needOf(a.value)
    }
  }

  text (value: string): void {
    if (this.isText) this.plain += value
    if (!this.#top) { this.#out += escapeText(value); return }
    this.#needOf(value)
    this.#top.inside += escapeText(value)
  }

  end (): void {
    const { name } = this.#tags.pop() as { name: string }
    const top = this.#top as Top
    if (this.#tags.length > 0) { top.inside += `</${name}>`; return }
    const needs = [...top.needs].map(([prefix, uri]) => ` xmlns${prefix === '' ? '' : `:${prefix}`}="${escapeAttribute(uri)}"`).join('')
    this.#out += top.inside === '' ? `${top.tag}${needs}${top.attributes}/>` : `${top.tag}${needs}${top.attributes}>${top.inside}</${name}>`
    this.#top = undefined
  }

  toString (): string { return this.#out }

  #needOf (value: string): void {
    const prefix = value.length < 1000 ? LOOKS_LIKE_QNAME.exec(value)?.[1] : undefined
    if (prefix !== undefined) this.#need(prefix)
  }

  #need (prefix: string): void {
    if (prefix === 'xml' || this.#tags.some(tag => tag.declared?.has(prefix))) return
    const uri = this.#resolve(prefix)
    if (uri !== undefined && !(prefix === '' && uri === '')) this.#top?.needs.set(prefix, uri)
  }
}

/** Passes on a caller's markup if it can stand anywhere: well-formed, all prefixes declared in it, no document type. Throws `badValue`. */
export function checkRaw (xml: string): string {
  try {
    readText(xml, { start () {}, text () {}, end () {} }, { fragment: true, maxDepth: 1000 })
  } catch (error) {
    throw new SoaError('badValue', { why: `$xml is no self-contained XML: ${(error as Error).message}` }, { cause: error })
  }
  return xml
}
