/** Binary XML → text XML with the same prefixes. */
import type { Scope } from '../../soap/envelope.ts'
import { CONTENT } from '../characters.ts'
import { check, escapeAttribute, escapeText } from '../text-writer.ts'
import { ByteOutput } from './output.ts'
import { Base64, isBytes } from './read.ts'
import { ITEM_BYTES, TEXT } from './records.ts'
import { BinaryScanner, TOKEN, type BinaryToken } from './scan.ts'
import type { Strings } from './tables.ts'
import { textOf } from './values.ts'

/** An array of one byte each may stand for elements with names of kilobytes, so what is written has a bound. */
export const MOST_TEXT_BYTES = 64 * 1024 * 1024

/** Writes what a scanner sees, token by token. */
export class TextOutput {
  readonly out = new ByteOutput()
  /** Where the name of the first element ends: declarations can be put in there. */
  nameEnd = 0
  #tagIsOpen = false
  readonly #base64 = new Base64(text => this.#plain(text))

  open (most = MOST_TEXT_BYTES, what = 'size of the message as text'): this {
    this.out.open(most, what)
    this.nameEnd = 0
    this.#tagIsOpen = false
    return this
  }

  /** @param hear hears each text. */
  token (token: BinaryToken, scanner: BinaryScanner, hear?: (text: string) => void): void {
    if (token === TOKEN.text && isBytes(scanner.textCode)) { this.#base64.add(scanner.bytes.subarray(scanner.valueAt, scanner.valueEnd)); return }
    this.#base64.flush()
    switch (token) {
      case TOKEN.start:
        this.#closeTag()
        this.#start(scanner)
        this.#tagIsOpen = true
        break
      case TOKEN.end:
        if (this.#tagIsOpen) this.out.ascii('/>'); else this.#end(scanner)
        this.#tagIsOpen = false
        break
      case TOKEN.text:
        hear?.(scanner.value())
        this.#text(scanner.bytes, scanner.textCode, scanner.valueAt, scanner.valueEnd, scanner.strings)
        break
      case TOKEN.comment: this.#comment(scanner); break
      case TOKEN.array: this.#array(scanner)
    }
  }

  #start (scanner: BinaryScanner): void {
    const out = this.out
    out.byte(0x3c)
    this.#name(scanner, scanner.prefixA, scanner.prefixB, scanner.localA, scanner.localB)
    if (this.nameEnd === 0) this.nameEnd = out.at
    if (scanner.declaresHere) for (const [prefix, uri] of scanner.ownScope()) out.utf8(prefix === '' ? ` xmlns="${escapeAttribute(uri)}"` : ` xmlns:${prefix}="${escapeAttribute(uri)}"`)
    for (let i = 0; i < scanner.attributeCount; i++) {
      out.byte(0x20)
      this.#name(scanner, scanner.attributeCell(i, 0), scanner.attributeCell(i, 1), scanner.attributeCell(i, 2), scanner.attributeCell(i, 3))
      out.ascii('="')
      out.utf8(escapeAttribute(scanner.attributeValue(i)))
      out.byte(0x22)
    }
  }

  #end (scanner: BinaryScanner): void {
    this.out.ascii('</')
    this.#name(scanner, scanner.prefixA, scanner.prefixB, scanner.localA, scanner.localB)
    this.out.byte(0x3e)
  }

  #name (scanner: BinaryScanner, prefixA: number, prefixB: number, localA: number, localB: number): void {
    const out = this.out
    if (prefixA < 0) { out.byte(-prefixA); out.byte(0x3a) } else if (prefixA !== prefixB) { out.bytes(scanner.bytes, prefixA, prefixB); out.byte(0x3a) }
    if (localA >= 0) out.bytes(scanner.bytes, localA, localB); else out.bytes(scanner.nameBytes(localA, localB))
  }

  #array (scanner: BinaryScanner): void {
    this.#closeTag()
    // Each start tag is the same.
    const from = this.out.at
    this.#start(scanner)
    this.out.byte(0x3e)
    const start = this.out.take(from)
    const code = scanner.itemCode & 0xfe; const size = ITEM_BYTES[scanner.itemCode]!
    for (let item = 0, at = scanner.itemsAt; item < scanner.itemCount; item++, at += size) {
      if (item > 0) this.out.bytes(start)
      this.out.ascii(textOf(scanner.bytes, code, at, at + size, scanner.strings))
      this.#end(scanner)
    }
  }

  #comment (scanner: BinaryScanner): void {
    this.#closeTag()
    const text = check(scanner.bytes.toString('utf8', scanner.valueAt, scanner.valueEnd))
    // Text has no way to write these two; a comment means nothing to anybody, so a blank does no harm.
    this.out.utf8(`<!--${text.replace(/--/g, '- -').replace(/--/g, '- -').replace(/-$/, '- ')}-->`)
  }

  #text (b: Buffer, code: number, at: number, end: number, strings: Strings): void {
    if (code === TEXT.empty || (at === end && code >= TEXT.chars8)) return
    if (code < TEXT.chars8 || code > TEXT.chars32) { this.#plain(textOf(b, code, at, end, strings)); return }
    let i = at
    while (i < end && CONTENT[b[i]!] === 0) i++
    if (i < end) { this.#plain(b.toString('utf8', at, end)); return }
    this.#closeTag()
    this.out.bytes(b, at, end)
  }

  #plain (text: string): void {
    if (text === '') return
    this.#closeTag()
    this.out.utf8(escapeText(text))
  }

  #closeTag (): void {
    if (!this.#tagIsOpen) return
    this.#tagIsOpen = false
    this.out.byte(0x3e)
  }
}

const scanner = new BinaryScanner()
const text = new TextOutput()

/**
 * The content of an element as text; `scope` is what its prefixes may refer to. Throws badEnvelope for what is no binary XML, badValue for characters that
 * text XML has no way to write, overLimit for what would be larger than MOST_TEXT_BYTES.
 */
export function fragmentToText (bytes: Uint8Array, scope: Scope, strings?: Strings): Buffer {
  try {
    scanner.open(bytes, { maxDepth: Infinity, fragmentOf: scope, strings })
    text.open()
    for (let token = scanner.next(); ; token = scanner.next()) {
      text.token(token, scanner)
      if (token === TOKEN.eof) return text.out.take()
    }
  } finally {
    scanner.close()
  }
}

/** The element whose start token is the scanner's current one, up to behind its end. Its prefixes may be declared outside. */
export function elementToText (scanner: BinaryScanner, next: () => BinaryToken, into: TextOutput, hear?: (text: string) => void): void {
  const level = scanner.depth
  into.token(TOKEN.start, scanner)
  while (scanner.depth >= level) into.token(next(), scanner, hear)
}
