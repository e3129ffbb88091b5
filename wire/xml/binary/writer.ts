import { sizeBytes, writeSize } from '../../framing/size.ts'
import { staticId, staticIdOf } from './dictionary.ts'
import { ByteOutput } from './output.ts'
import { RECORD, TEXT } from './records.ts'

/** Codes of names: short, with a prefix, the same two with ids, and where the single letters begin with ids and with names. */
const ELEMENT = [RECORD.shortElement, RECORD.element, RECORD.shortDictionaryElement, RECORD.dictionaryElement, RECORD.prefixDictionaryElement, RECORD.prefixElement] as const
const ATTRIBUTE = [RECORD.shortAttribute, RECORD.attribute, RECORD.shortDictionaryAttribute, RECORD.dictionaryAttribute, RECORD.prefixDictionaryAttribute, RECORD.prefixAttribute] as const
const XMLNS = [RECORD.shortXmlns, RECORD.xmlns, RECORD.shortDictionaryXmlns, RECORD.dictionaryXmlns] as const
type Codes = typeof ELEMENT | typeof ATTRIBUTE

/**
 * Writes the records of binary XML, with Microsoft's choices where they cost nothing: ids for the static strings, the short forms for prefixes of one letter,
 * the texts `0` and `1` as numbers. Texts stay UTF-8 (docs/adr/0016). It does not look whether elements are closed.
 */
export class BinaryWriter extends ByteOutput {
  /** @param b the name's bytes from `at` to `end`; `colon` is 0 where there is no prefix. */
  element (b: Buffer, at: number, colon: number, end: number): void { this.#name(ELEMENT, b, at, colon, end) }
  attribute (b: Buffer, at: number, colon: number, end: number): void { this.#name(ATTRIBUTE, b, at, colon, end) }

  /** A declaration; the default namespace has an empty prefix. */
  xmlns (prefix: string, uri: string): void {
    const id = staticId(uri)
    this.byte(XMLNS[(prefix === '' ? 0 : 1) + (id === undefined ? 0 : 2)] as number)
    if (prefix !== '') this.string(prefix)
    if (id === undefined) this.string(uri); else this.size(id)
  }

  /** The default namespace, from its bytes. */
  xmlnsDefault (b: Buffer, at: number, end: number): void {
    const id = staticIdOf(b, at, end)
    this.byte(id < 0 ? RECORD.shortXmlns : RECORD.shortDictionaryXmlns)
    if (id >= 0) { this.size(id); return }
    this.size(end - at)
    this.bytes(b, at, end)
  }

  end (): void { this.byte(RECORD.endElement) }

  comment (b: Buffer, from: number, to: number): void {
    this.byte(RECORD.comment)
    this.size(to - from)
    this.bytes(b, from, to)
  }

  /** A text of these UTF-8 bytes. @param closes 1 ends the element too, 0 does not */
  text (b: Buffer, from: number, to: number, closes: 0 | 1): void {
    const length = to - from
    if (length === 0) { this.byte(TEXT.empty + closes); return }
    if (length === 1 && (b[from] === 0x30 || b[from] === 0x31)) { this.byte((b[from] === 0x30 ? TEXT.zero : TEXT.one) + closes); return }
    this.#charsHead(length, closes)
    this.bytes(b, from, to)
  }

  textOf (value: string, closes: 0 | 1): void {
    if (value === '') { this.byte(TEXT.empty + closes); return }
    if (value === '0' || value === '1') { this.byte((value === '0' ? TEXT.zero : TEXT.one) + closes); return }
    const length = Buffer.byteLength(value)
    this.#charsHead(length, closes)
    this.room(length)
    this.at += this.buffer.write(value, this.at)
  }

  /** A length and a string, as names are. */
  string (value: string): void {
    const length = Buffer.byteLength(value)
    this.room(length + sizeBytes(length))
    this.at = writeSize(this.buffer, this.at, length)
    this.at += this.buffer.write(value, this.at)
  }

  #charsHead (length: number, closes: 0 | 1): void {
    this.room(5)
    const b = this.buffer
    if (length <= 0xff) { b[this.at++] = TEXT.chars8 + closes; b[this.at++] = length } else if (length <= 0xffff) {
      b[this.at] = TEXT.chars16 + closes
      this.at = b.writeUInt16LE(length, this.at + 1)
    } else {
      b[this.at] = TEXT.chars32 + closes
      this.at = b.writeUInt32LE(length, this.at + 1)
    }
  }

  #name (codes: Codes, b: Buffer, at: number, colon: number, end: number): void {
    const local = colon === 0 ? at : colon + 1
    const id = staticIdOf(b, local, end)
    const isId = id >= 0
    if (colon === 0) this.byte(codes[isId ? 2 : 0])
    else if (colon - at === 1 && b[at]! >= 0x61 && b[at]! <= 0x7a) this.byte(codes[isId ? 4 : 5] + b[at]! - 0x61)
    else {
      this.byte(codes[isId ? 3 : 1])
      this.size(colon - at)
      this.bytes(b, at, colon)
    }
    if (isId) { this.size(id); return }
    this.size(end - local)
    this.bytes(b, local, end)
  }
}
