/**
 * Events → text XML. The writer owns the prefixes: callers speak in namespaces and never see a prefix, unless a value holds a QName.
 *
 * Elements in a namespace always have a prefix, so elements in none need no `xmlns=""` and a piece written by somebody else can be put in as it is.
 * What is written is self-contained: it needs no declaration from outside.
 */
import { SoaError } from '../../core/errors.ts'
import { splitQName, XML_NAMESPACE, XSD, XSI } from './events.ts'
import type { QName } from '../soap/envelope.ts'

/** Code points that XML 1.0 has no way to write, lone surrogates included ([xml] 2.2). */
// eslint-disable-next-line no-control-regex
const FORBIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/
// A carriage return would be read as a line feed, and in attributes every kind of space as a blank, unless written as a reference ([xml] 2.11, 3.3.3).
const IN_TEXT = /[&<>\r]/g
const IN_ATTRIBUTE = /[&<>"\r\n\t]/g
const REFERENCE: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#xD;', '\n': '&#xA;', '\t': '&#x9;' }

/** The value; throws badValue for a character that XML has no way to write. */
export function check (value: string): string {
  const bad = FORBIDDEN.exec(value)
  if (bad) throw new SoaError('badValue', { why: `character U+${bad[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')} cannot be written in XML` })
  return value
}

export const escapeText = (value: string): string => check(value).replace(IN_TEXT, c => REFERENCE[c] as string)
export const escapeAttribute = (value: string): string => check(value).replace(IN_ATTRIBUTE, c => REFERENCE[c] as string)

/** xsi and xsd get the letters that WCF gives them; the others a, b, c …, each namespace the same one throughout a document. */
const KNOWN: ReadonlyArray<readonly [uri: string, prefix: string]> = [[XSI, 'i'], [XSD, 'x'], [XML_NAMESPACE, 'xml']]
const LETTERS = 'abcdefghjklmnopqrstuvwyz'

export class XmlWriter {
  #out = ''
  /** The start tag is not closed yet: attributes and declarations may still come. */
  #isOpen = false
  readonly #prefixes = new Map<string, string>(KNOWN)
  readonly #inScope = new Set<string>(['', XML_NAMESPACE])
  readonly #open: Array<{ tag: string, declared: string[] | undefined }> = []

  start (uri: string, local: string): this {
    this.#closeStartTag()
    const tag = uri === '' ? local : `${this.#prefix(uri)}:${local}`
    this.#out += `<${tag}`
    this.#isOpen = true
    this.#open.push({ tag, declared: undefined })
    return this.use(uri)
  }

  /** Declares the namespace on the element just started if it is not in scope: done once on a parent, it saves a declaration on each child. */
  use (uri: string): this {
    if (this.#inScope.has(uri)) return this
    this.#inScope.add(uri)
    const element = this.#open[this.#open.length - 1] as { declared: string[] | undefined }
    ;(element.declared ??= []).push(uri)
    this.#out += ` xmlns:${this.#prefix(uri)}="${escapeAttribute(uri)}"`
    return this
  }

  attribute (uri: string, local: string, value: string): this {
    this.use(uri)
    this.#out += ` ${uri === '' ? local : `${this.#prefix(uri)}:${local}`}="${escapeAttribute(value)}"`
    return this
  }

  /** The text of a QName for a value of the element just started; its namespace is declared there. A name in no namespace has no prefix. */
  qname (name: QName): string {
    const { uri, local } = splitQName(name)
    this.use(uri)
    return uri === '' ? local : `${this.#prefix(uri)}:${local}`
  }

  text (value: string): this {
    if (value === '') return this
    this.#closeStartTag()
    this.#out += escapeText(value)
    return this
  }

  /** Puts in markup as it is. The caller answers for its being well-formed and self-contained. */
  raw (xml: string): this {
    if (xml === '') return this
    this.#closeStartTag()
    this.#out += xml
    return this
  }

  end (): this {
    const element = this.#open.pop()
    if (!element) throw new Error('end without start')
    this.#out += this.#isOpen ? '/>' : `</${element.tag}>`
    this.#isOpen = false
    if (element.declared) for (const uri of element.declared) this.#inScope.delete(uri)
    return this
  }

  toString (): string { return this.#out }

  #closeStartTag (): void {
    if (!this.#isOpen) return
    this.#out += '>'
    this.#isOpen = false
  }

  #prefix (uri: string): string {
    let prefix = this.#prefixes.get(uri)
    if (prefix === undefined) {
      const n = this.#prefixes.size - KNOWN.length
      prefix = n < LETTERS.length ? LETTERS[n] as string : `n${n}`
      this.#prefixes.set(uri, prefix)
    }
    return prefix
  }
}
