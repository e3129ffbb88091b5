/** Binary XML as a list of its records, each with what it holds, and back: for those who look at bytes, not for the path of messages. */
import { ByteOutput } from './output.ts'
import { BinaryCursor, hex } from './cursor.ts'
import { ITEM_BYTES, KIND, KINDS, RECORD, TEXT, TEXT_NAMES, VALUE_BYTES } from './records.ts'
import { STATIC, type Strings } from './tables.ts'
import { GUID_DIGITS, guidText, idAt } from './values.ts'

/** A string as it stands in a record, or the id of one. */
export type Name = string | { readonly id: number }

/** A text's value as its record has it: dates, decimals and names in their parts, ids as ids, lists and bytes as they are. */
export type Value = number | bigint | string | boolean | Buffer | null | { readonly id: number, readonly prefix?: string } | { readonly kind: number, readonly ticks: bigint } |
  { readonly isNegative: boolean, readonly scale: number, readonly digits: bigint } | ReadonlyArray<{ readonly code: number, readonly value: Value }>

export interface BinaryRecord {
  /** Offset of its first byte. */
  readonly at: number
  readonly code: number
  readonly prefix?: string
  /** Local name, or the namespace of a declaration, or the text of a comment. */
  readonly name?: Name
  /** Of a text; of an attribute, with `textCode`. */
  readonly value?: Value
  readonly textCode?: number
  /** Of an array: its element with attributes and end, the code of its items, and these. */
  readonly element?: readonly BinaryRecord[]
  readonly itemCode?: number
  readonly items?: readonly Value[]
}

/** Each record of a document or fragment, without a look at how they fit together. Throws badXml, with the byte, for what is no record or ends too early. */
export const listRecords = (bytes: Buffer, strings: Strings = STATIC): BinaryRecord[] => new Lister(bytes, strings).all()

class Lister extends BinaryCursor {
  constructor (bytes: Buffer, strings: Strings) {
    super()
    this.bytes = bytes
    this.end = bytes.length
    this.strings = strings
    this.fault = 'badXml'
  }

  all (): BinaryRecord[] {
    const records: BinaryRecord[] = []
    while (this.at < this.end) records.push(this.#record())
    return records
  }

  #record (): BinaryRecord {
    const at = this.start = this.at
    const code = this.takeByte()
    this.patchCount = 0
    switch (KINDS[code]) {
      case KIND.endElement: return { at, code }
      case KIND.comment: return { at, code, name: this.#string() }
      case KIND.element: return { at, code, ...this.#name(at, code, RECORD.shortDictionaryElement, RECORD.prefixDictionaryElement, RECORD.prefixElement) }
      case KIND.attribute: {
        const name = this.#name(at, code, RECORD.shortDictionaryAttribute, RECORD.prefixDictionaryAttribute, RECORD.prefixAttribute)
        const textCode = this.bytes[this.at] ?? 0
        if (KINDS[textCode] !== KIND.text) throw this.bad(`0x${hex(textCode)} where an attribute's value is due`)
        this.takeValue(this.at)
        return { at, code, ...name, textCode, value: this.#value() }
      }
      case KIND.xmlns: {
        const prefix = (code & 1) === 1 ? { prefix: this.#string() } : {}
        return { at, code, ...prefix, name: code >= RECORD.shortDictionaryXmlns ? { id: -1 - this.takeId(at) } : this.#string() }
      }
      case KIND.text: this.takeValue(at); return { at, code, value: this.#value() }
      case KIND.array: {
        const element: BinaryRecord[] = []
        do element.push(this.#record()); while ((element.at(-1) as BinaryRecord).code !== RECORD.endElement)
        const itemCode = this.takeByte(); const size = ITEM_BYTES[itemCode]!
        if (size === 0) throw this.bad(`an array of 0x${hex(itemCode)}, which arrays do not have`)
        const count = this.takeSize()
        if (count * size > this.end - this.at) throw this.bad('it ends too early')
        const items: Value[] = []
        for (let i = 0; i < count; i++, this.at += size) items.push(valueAt(this.bytes, itemCode & 0xfe, this.at, this.at + size))
        return { at, code, element, itemCode, items }
      }
      default: throw this.bad(`0x${hex(code)} is no record`)
    }
  }

  #name (at: number, code: number, ids: number, idLetters: number, nameLetters: number): { prefix?: string, name: Name } {
    this.takeName(at, code, ids, idLetters, nameLetters)
    const prefix = this.prefixA < 0 ? String.fromCharCode(-this.prefixA) : this.bytes.toString('utf8', this.prefixA, this.prefixB)
    const name = this.localA < 0 ? { id: -1 - this.localA } : this.bytes.toString('utf8', this.localA, this.localB)
    return code < ids + 2 && (code & 1) === 0 ? { name } : { prefix, name }
  }

  #string (): string {
    const from = this.takeBytes()
    this.checkUtf8(from, this.at)
    return this.bytes.toString('utf8', from, this.at)
  }

  #value (): Value { return valueAt(this.bytes, this.textCode, this.valueAt, this.valueEnd) }
}

function valueAt (b: Buffer, code: number, at: number, end: number): Value {
  switch (code) {
    case TEXT.int8: return b.readInt8(at)
    case TEXT.int16: return b.readInt16LE(at)
    case TEXT.int32: return b.readInt32LE(at)
    case TEXT.int64: case TEXT.timeSpan: return b.readBigInt64LE(at)
    case TEXT.uint64: return b.readBigUInt64LE(at)
    case TEXT.float: return b.readFloatLE(at)
    case TEXT.double: return b.readDoubleLE(at)
    case TEXT.decimal: return { isNegative: b[at + 3] !== 0, scale: b[at + 2]!, digits: b.readBigUInt64LE(at + 8) | BigInt(b.readUInt32LE(at + 4)) << 64n }
    case TEXT.dateTime: { const raw = b.readBigUInt64LE(at); return { kind: Number(raw >> 62n), ticks: raw & 0x3fff_ffff_ffff_ffffn } }
    case TEXT.guid: case TEXT.uniqueId: return guidText(b, at)
    case TEXT.bool: return b[at] !== 0
    case TEXT.chars8: case TEXT.chars16: case TEXT.chars32: return b.toString('utf8', at, end)
    case TEXT.unicodeChars8: case TEXT.unicodeChars16: case TEXT.unicodeChars32: return b.toString('utf16le', at, end)
    case TEXT.bytes8: case TEXT.bytes16: case TEXT.bytes32: return Buffer.from(b.subarray(at, end))
    case TEXT.dictionary: return { id: idAt(b, at) }
    case TEXT.qnameDictionary: return { id: idAt(b, at + 1), prefix: String.fromCharCode(0x61 + b[at]!) }
    case TEXT.startList: {
      const items: Array<{ code: number, value: Value }> = []
      while (at < end) {
        const code = b[at++]!
        let bytes = VALUE_BYTES[code]!
        if (bytes < 0) { const head = -bytes; bytes = b.readUIntLE(at, head); at += head }
        items.push({ code, value: valueAt(b, code, at, at + bytes) })
        at += bytes
      }
      return items
    }
    default: return null // zero, one, false, true, empty: the code says all
  }
}

/** The records as bytes, numbers in their shortest form. What was not is the only thing that comes out otherwise than it went in. */
export function writeRecords (records: readonly BinaryRecord[]): Buffer {
  const out = new ByteOutput().open()
  for (const record of records) writeRecord(record, out)
  return out.take()
}

function writeRecord (record: BinaryRecord, out: ByteOutput): void {
  const { code, prefix, name, value } = record
  const string = (text: string): void => { out.size(Buffer.byteLength(text)); out.utf8(text) }
  out.byte(code)
  // The letters' codes have their prefix in them.
  const isLetter = (code >= RECORD.prefixDictionaryAttribute && code < RECORD.shortElement) || (code >= RECORD.prefixDictionaryElement && code < TEXT.zero)
  if (prefix !== undefined && !isLetter) string(prefix)
  if (name !== undefined) { if (typeof name === 'string') string(name); else out.size(name.id) }
  if (record.textCode !== undefined) { out.byte(record.textCode); writeValue(record.textCode & 0xfe, value as Value, out) } else if (value !== undefined) writeValue(code & 0xfe, value, out)
  if (record.element === undefined) return
  for (const part of record.element) writeRecord(part, out)
  out.byte(record.itemCode as number)
  out.size(record.items?.length ?? 0)
  for (const item of record.items ?? []) writeValue((record.itemCode as number) & 0xfe, item, out)
}

function writeValue (code: number, value: Value, out: ByteOutput): void {
  const fixed = Math.max(0, VALUE_BYTES[code]!)
  out.room(fixed)
  const { buffer, at } = out
  out.at += fixed
  switch (code) {
    case TEXT.int8: buffer.writeInt8(value as number, at); break
    case TEXT.int16: buffer.writeInt16LE(value as number, at); break
    case TEXT.int32: buffer.writeInt32LE(value as number, at); break
    case TEXT.int64: case TEXT.timeSpan: buffer.writeBigInt64LE(value as bigint, at); break
    case TEXT.uint64: buffer.writeBigUInt64LE(value as bigint, at); break
    // What .NET writes for a number that is none has its sign set.
    case TEXT.float: if (Number.isNaN(value)) buffer.writeUInt32LE(0xffc00000, at); else buffer.writeFloatLE(value as number, at); break
    case TEXT.double: if (Number.isNaN(value)) buffer.writeBigUInt64LE(0xfff8_0000_0000_0000n, at); else buffer.writeDoubleLE(value as number, at); break
    case TEXT.decimal: {
      const { isNegative, scale, digits } = value as { isNegative: boolean, scale: number, digits: bigint }
      buffer.fill(0, at, at + 4)
      buffer[at + 2] = scale
      buffer[at + 3] = isNegative ? 0x80 : 0
      buffer.writeUInt32LE(Number(digits >> 64n), at + 4)
      buffer.writeBigUInt64LE(digits & 0xffff_ffff_ffff_ffffn, at + 8)
      break
    }
    case TEXT.dateTime: { const { kind, ticks } = value as { kind: number, ticks: bigint }; buffer.writeBigUInt64LE(BigInt(kind) << 62n | ticks, at); break }
    case TEXT.guid: case TEXT.uniqueId: for (let i = 0; i < 16; i++) { const digit = GUID_DIGITS[i]! - 9; buffer[at + i] = Number.parseInt((value as string).slice(digit, digit + 2), 16) } break
    case TEXT.bool: buffer[at] = value === true ? 1 : 0; break
    case TEXT.chars8: case TEXT.chars16: case TEXT.chars32: counted(Buffer.from(value as string)); break
    case TEXT.unicodeChars8: case TEXT.unicodeChars16: case TEXT.unicodeChars32: counted(Buffer.from(value as string, 'utf16le')); break
    case TEXT.bytes8: case TEXT.bytes16: case TEXT.bytes32: counted(value as Buffer); break
    case TEXT.dictionary: case TEXT.qnameDictionary: {
      const { id, prefix } = value as { id: number, prefix?: string }
      if (prefix !== undefined) out.byte(prefix.charCodeAt(0) - 0x61)
      out.size(id)
      break
    }
    case TEXT.startList:
      for (const item of value as ReadonlyArray<{ code: number, value: Value }>) { out.byte(item.code); writeValue(item.code, item.value, out) }
      out.byte(TEXT.endList)
  }
  function counted (bytes: Buffer): void {
    const head = -VALUE_BYTES[code]!
    out.room(head)
    out.buffer.writeUIntLE(bytes.length, out.at, head)
    out.at += head
    out.bytes(bytes)
  }
}

/** One record as a line for people, without the offset. */
export function describe (record: BinaryRecord, strings: Strings): string {
  const name = (of: Name): string => typeof of === 'string' ? JSON.stringify(of) : `[${of.id}] ${JSON.stringify(strings.text(of.id) ?? '?')}`
  const prefix = record.prefix === undefined ? '' : `${record.prefix}:`
  const text = (code: number, value: Value): string => {
    const what = TEXT_NAMES.get(code & 0xfe) ?? '?'
    if (value === null) return what
    if (Buffer.isBuffer(value)) return `${what} ${value.length} bytes ${value.toString('hex', 0, 32)}${value.length > 32 ? '…' : ''}`
    if (Array.isArray(value)) return `${what} ${(value as Array<{ code: number, value: Value }>).map(item => text(item.code, item.value)).join(', ')}`
    if (typeof value === 'object' && 'id' in value) return `${what} ${value.prefix === undefined ? '' : `${value.prefix}:`}${name(value)}`
    if (typeof value === 'object' && 'ticks' in value) return `${what} ${value.ticks} ticks, kind ${value.kind}`
    if (typeof value === 'object' && 'scale' in value) return `${what} ${value.isNegative ? '-' : ''}${value.digits}e-${value.scale}`
    return `${what} ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`
  }
  switch (KINDS[record.code]) {
    case KIND.endElement: return 'end'
    case KIND.comment: return `comment ${name(record.name as Name)}`
    case KIND.element: return `element ${prefix}${name(record.name as Name)}`
    case KIND.attribute: return `attribute ${prefix}${name(record.name as Name)} = ${text(record.textCode as number, record.value as Value)}`
    case KIND.xmlns: return `xmlns ${prefix}${name(record.name as Name)}`
    case KIND.array: return `array of ${record.items?.length ?? 0} ${TEXT_NAMES.get((record.itemCode as number) & 0xfe) ?? '?'} (${record.element?.map(part => describe(part, strings)).join(', ')}): ` +
      `${record.items?.slice(0, 20).map(item => text(record.itemCode as number, item).replace(/^\w+ /, '')).join(' ')}${(record.items?.length ?? 0) > 20 ? ' …' : ''}`
    default: return `text ${text(record.code, record.value as Value)}${(record.code & 1) === 1 ? ', end' : ''}`
  }
}
