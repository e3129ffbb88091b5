import { isUtf8 } from 'node:buffer'
import { SoaError } from '../../../core/errors.ts'
import { isName, NAME } from '../characters.ts'
import { KIND, KINDS, TEXT, VALUE_BYTES } from './records.ts'
import { STATIC, type Strings } from './tables.ts'
import { checkValue } from './values.ts'

const EMPTY = Buffer.alloc(0)
/** Longer ones are left to native code, which is slow to call. */
const SHORT_TEXT = 48
/** Cells of a row: offsets of the record, of the id in it and of what follows, and the id. */
export const PATCH = 4

/**
 * The parts that records of binary XML are made of, read one after the other: the only code that looks whether there is still a byte.
 *
 * A name is two cells: its bytes are from … to; a negative first cell is -1 - id instead. A prefix is the same, but one letter is -letter, and none is 0, 0.
 */
export class BinaryCursor {
  bytes: Buffer = EMPTY
  /** Offset of the next byte. */
  at = 0
  end = 0
  /** Offset of the current record: what errors name. */
  start = 0
  strings: Strings = STATIC

  /** Of the name read last; at an end, of the element that ends. */
  prefixA = 0
  prefixB = 0
  localA = 0
  localB = 0
  /** Of the text read last: its even code, and its value's bytes. A list's are its items; an id's the id's own. */
  textCode = 0
  valueAt = 0
  valueEnd = 0

  /** Every place with an id of the session since `patchCount` was last set to 0. */
  patches = new Int32Array(PATCH * 64)
  patchCount = 0

  protected fault: 'badEnvelope' | 'badXml' = 'badEnvelope'

  bad (why: string): SoaError { return new SoaError(this.fault, { why: `${why} (byte ${this.start})` }) }

  /** A text's record at `at`, up to behind its value. */
  protected takeValue (at: number): void {
    const b = this.bytes; const code = b[at]!; const even = code & 0xfe
    this.textCode = even
    let from = at + 1
    let bytes = VALUE_BYTES[even]!
    if (bytes < 0) {
      if (bytes === -8) return this.takeOddValue(at, even)
      if (from - bytes > this.end) throw this.bad('it ends too early')
      if (bytes === -1) bytes = b[from++]!
      else if (bytes === -2) { bytes = b[from]! | b[from + 1]! << 8; from += 2 } else {
        bytes = b[from]! | b[from + 1]! << 8 | b[from + 2]! << 16 | b[from + 3]! << 24
        from += 4
        if (bytes < 0) throw this.bad('a text with a negative length')
      }
    }
    if (bytes > this.end - from) throw this.bad('it ends too early')
    this.valueAt = from
    this.valueEnd = this.at = from + bytes
    if (even <= TEXT.chars32) {
      if (even >= TEXT.chars8) this.checkUtf8(from, from + bytes)
      else if (even === TEXT.decimal || even === TEXT.dateTime) this.checkNumber(even, from)
    } else if (even >= TEXT.unicodeChars8 && (bytes & 1) === 1) throw this.bad('UTF-16 text with half a character')
  }

  protected takeOddValue (at: number, even: number): void {
    const b = this.bytes
    this.at = this.valueAt = at + 1
    switch (even) {
      case TEXT.dictionary: this.takeId(at); break
      case TEXT.qnameDictionary:
        if (this.takeByte() > 25) throw this.bad('a name whose prefix is no letter')
        this.takeId(at)
        break
      case TEXT.startList: {
        const from = this.at
        for (let code = this.takeByte(); code !== TEXT.endList; code = this.takeByte()) {
          // Ids in a list are what Microsoft's own reader stumbles over.
          if (KINDS[code] !== KIND.text || (code & 1) === 1 || VALUE_BYTES[code] === -8) throw this.bad(`0x${hex(code)} in a list`)
          this.takeValue(this.at - 1)
        }
        this.textCode = even
        this.valueAt = from
        this.valueEnd = this.at - 1
        return
      }
      default: throw this.bad(`0x${hex(b[at]!)} without a list`)
    }
    this.valueEnd = this.at
  }

  protected checkNumber (code: number, at: number): void {
    const wrong = checkValue(this.bytes, code, at)
    if (wrong !== undefined) throw this.bad(wrong)
  }

  protected takeByte (): number {
    if (this.at >= this.end) throw this.bad('it ends too early')
    return this.bytes[this.at++]!
  }

  protected takeSize (): number {
    const b = this.bytes
    if (this.at < this.end && b[this.at]! < 0x80) return b[this.at++]!
    for (let size = 0, i = 0; ; i++) {
      const byte = this.takeByte()
      if (i === 4 && byte > 0x07) throw this.bad('a size above 2147483647')
      size |= (byte & 0x7f) << 7 * i
      if (byte < 0x80) return size
    }
  }

  /** A length and its bytes; answers where these begin, `at` is where they end. */
  protected takeBytes (): number {
    const bytes = this.takeSize(); const from = this.at
    if (bytes > this.end - from) throw this.bad('it ends too early')
    this.at = from + bytes
    return from
  }

  protected takePrefix (): void {
    const from = this.takeBytes(); const to = this.at
    if (to - from === 1 && this.bytes[from]! >= 0x61 && this.bytes[from]! <= 0x7a) { this.prefixA = -this.bytes[from]!; this.prefixB = 0; return }
    if (from !== to) this.checkName(this.bytes, from, to)
    this.prefixA = from === to ? 0 : from
    this.prefixB = from === to ? 0 : to
  }

  /** Prefix and local name as a record's code says; the three others are where ids begin, prefixes of one letter with ids, and those with names. */
  protected takeName (record: number, code: number, ids: number, idLetters: number, nameLetters: number): void {
    this.prefixA = this.prefixB = 0
    if (code >= nameLetters) this.prefixA = nameLetters - 0x61 - code
    else if (code >= idLetters) this.prefixA = idLetters - 0x61 - code
    else if ((code & 1) === 1) this.takePrefix()
    if (code >= ids && code < nameLetters) {
      this.localA = this.takeId(record)
      this.localB = 0
      if (!this.strings.isName(-1 - this.localA)) throw this.bad('something that is no name where a name is due')
      return
    }
    this.localA = this.takeBytes()
    this.localB = this.at
    this.checkName(this.bytes, this.localA, this.localB)
  }

  /** An id as a cell: -1 - id. */
  protected takeId (record: number): number {
    const from = this.at
    const id = this.takeSize()
    if (this.strings.utf8(id) === undefined) throw this.bad(`string ${id} is not in the dictionary${(id & 1) === 1 ? ' of the session' : ''}`)
    if ((id & 1) === 1) {
      const row = this.patchCount++ * PATCH
      if (row === this.patches.length) this.patches = grown(this.patches)
      const patches = this.patches
      patches[row] = record; patches[row + 1] = from; patches[row + 2] = this.at; patches[row + 3] = id
    }
    return -1 - id
  }

  protected checkName (b: Buffer, from: number, to: number): void {
    let i = from
    if (i < to && NAME[b[i]!] === 1) {
      do i++; while (i < to && (NAME[b[i]!]! === 1 || NAME[b[i]!]! === 2))
      if (i === to) return
    }
    if (from === to || !isUtf8(b.subarray(from, to)) || !isName(b.toString('utf8', from, to))) throw this.bad('something that is no name where a name is due')
  }

  protected checkUtf8 (from: number, to: number): void {
    const b = this.bytes
    if (to - from <= SHORT_TEXT) {
      let i = from
      while (i < to && b[i]! < 0x80) i++
      if (i === to) return
    }
    if (!isUtf8(b.subarray(from, to))) throw this.bad('text that is not UTF-8')
  }
}

export function grown (table: Int32Array): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(table.length * 2)
  larger.set(table)
  return larger
}

export const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
