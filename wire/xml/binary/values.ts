import { KINDS, TEXT, VALUE_BYTES } from './records.ts'
import type { Strings } from './tables.ts'

/**
 * Values of binary XML as the text that they stand for. [MC-NBFX] 2.2.3; the texts are those of .NET's XmlConvert.
 */
const TICKS_PER_SECOND = 10_000_000n
const TICKS_PER_DAY = 864_000_000_000n
/** Ticks (100 ns) from 0001-01-01 to 1970-01-01, and those of the last one that a date can have. */
const UNIX_EPOCH = 621_355_968_000_000_000n
const LAST_TICK = 3_155_378_975_999_999_999n
const KIND = { utc: 1n, local: 2n } as const

/** What is wrong with a decimal or a time of day at `at`; the others cannot be wrong. */
export function checkValue (b: Buffer, code: number, at: number): string | undefined {
  if (code === TEXT.decimal) {
    return b[at] !== 0 || b[at + 1] !== 0 || b[at + 2]! > 28 || (b[at + 3]! & 0x7f) !== 0 ? 'a decimal whose reserved bytes, scale or sign cannot be' : undefined
  }
  return (b.readBigUInt64LE(at) & 0x3fff_ffff_ffff_ffffn) > LAST_TICK ? 'a date behind the year 9999' : undefined
}

/** @param code even. @param at … `end` the value without the length before it; of a list, its items. The bytes have been checked (scan.ts). */
export function textOf (b: Buffer, code: number, at: number, end: number, strings: Strings): string {
  switch (code) {
    case TEXT.chars8: case TEXT.chars16: case TEXT.chars32: return utf8At(b, at, end)
    case TEXT.unicodeChars8: case TEXT.unicodeChars16: case TEXT.unicodeChars32: return b.toString('utf16le', at, end)
    case TEXT.bytes8: case TEXT.bytes16: case TEXT.bytes32: return b.toString('base64', at, end)
    case TEXT.zero: return '0'
    case TEXT.one: return '1'
    case TEXT.false: return 'false'
    case TEXT.true: return 'true'
    case TEXT.int8: return String(b.readInt8(at))
    case TEXT.int16: return String(b.readInt16LE(at))
    case TEXT.int32: return String(b.readInt32LE(at))
    case TEXT.int64: return String(b.readBigInt64LE(at))
    case TEXT.uint64: return String(b.readBigUInt64LE(at))
    case TEXT.float: return floatText(b.readFloatLE(at))
    case TEXT.double: return doubleText(b.readDoubleLE(at))
    case TEXT.decimal: return decimalText(b, at)
    case TEXT.dateTime: return dateTimeText(b.readBigUInt64LE(at))
    case TEXT.timeSpan: return timeSpanText(b.readBigInt64LE(at))
    case TEXT.guid: return guidText(b, at)
    case TEXT.uniqueId: return uniqueIdText(b, at)
    case TEXT.bool: return b[at] === 0 ? 'false' : 'true'
    case TEXT.dictionary: return strings.text(idAt(b, at)) as string
    case TEXT.qnameDictionary: return `${String.fromCharCode(0x61 + b[at]!)}:${strings.text(idAt(b, at + 1)) as string}`
    case TEXT.startList: return listText(b, at, end, strings)
    default: return '' // empty
  }
}

/** The number at `at`, which has been checked. */
export function idAt (b: Buffer, at: number): number {
  for (let id = 0, i = 0; ; i += 7) {
    const byte = b[at++]!
    id |= (byte & 0x7f) << i
    if (byte < 0x80) return id
  }
}

function listText (b: Buffer, at: number, end: number, strings: Strings): string {
  const items: string[] = []
  while (at < end) {
    const code = b[at++]! & 0xfe
    let bytes = KINDS[code] === 0 ? 0 : VALUE_BYTES[code]!
    if (bytes < 0) { const head = -bytes; bytes = b.readUIntLE(at, head); at += head }
    items.push(textOf(b, code, at, at + bytes, strings))
    at += bytes
  }
  return items.join(' ')
}

/** As .NET writes it: the shortest digits that mean the same number, an exponent from 1E+15 on and below 0.0001. */
export const doubleText = (value: number): string => special(value) ?? withExponent(String(value), 15)

export function floatText (value: number): string {
  const known = special(value)
  if (known !== undefined) return known
  for (let digits = 1; ; digits++) {
    const text = value.toPrecision(digits)
    if (digits === 9 || Math.fround(Number(text)) === value) return withExponent(String(Number(text)), 7)
  }
}

function special (value: number): string | undefined {
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0' : undefined
  return Number.isNaN(value) ? 'NaN' : value > 0 ? 'INF' : '-INF'
}

/** JavaScript writes an exponent from 1e21 on and below 1e-6, .NET earlier and with a capital. */
function withExponent (text: string, from: number): string {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(text) as unknown as [string, string, string, string?, string?]
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return text
  // The power of ten of the first digit that counts.
  const power = whole.length - 1 + Number(exponent) - (whole.length + fraction.length - digits.length)
  if (power < from && power > -5 && exponent === '0') return text
  const significant = digits.replace(/0+$/, '')
  const mantissa = significant.length > 1 ? `${significant[0]}.${significant.slice(1)}` : significant
  return `${sign}${mantissa}E${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

function decimalText (b: Buffer, at: number): string {
  const scale = b[at + 2]!
  const digits = String(b.readBigUInt64LE(at + 8) | BigInt(b.readUInt32LE(at + 4)) << 64n).padStart(scale + 1, '0')
  const sign = b[at + 3] === 0 ? '' : '-'
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

export const guidText = (b: Buffer, at: number): string => { writeGuid(b, at); return GUID.toString('latin1', 9) }
const uniqueIdText = (b: Buffer, at: number): string => { writeGuid(b, at); return GUID.toString('latin1') }

const GUID = Buffer.from('urn:uuid:00000000-0000-0000-0000-000000000000')
/** Where the digits of each byte go: the first three groups are numbers, lowest byte first. */
export const GUID_DIGITS: readonly number[] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34].map(at => at + 9)
const HEX = Buffer.from('0123456789abcdef')

function writeGuid (b: Buffer, at: number): void {
  for (let i = 0; i < 16; i++) {
    const byte = b[at + i]!; const digit = GUID_DIGITS[i]!
    GUID[digit] = HEX[byte >> 4]!
    GUID[digit + 1] = HEX[byte & 15]!
  }
}

/** UTF-8 as a string: short ASCII, which names and most values are, the quicker way. */
export function utf8At (b: Buffer, from: number, to: number): string {
  if (to - from <= SHORT) {
    let i = from
    while (i < to && b[i]! < 0x80) i++
    if (i === to) return b.toString('latin1', from, to)
  }
  return b.toString('utf8', from, to)
}
const SHORT = 64

/** Low 62 bits: ticks; top two: kind. Local times are stored in UTC and shown with this machine's offset, as .NET does. */
function dateTimeText (raw: bigint): string {
  const ticks = raw & 0x3fff_ffff_ffff_ffffn
  const kind = raw >> 62n
  if (kind < KIND.local) return instantText(ticks) + (kind === KIND.utc ? 'Z' : '')
  const offset = -new Date(Number((ticks - UNIX_EPOCH) / 10_000n)).getTimezoneOffset()
  const local = ticks + BigInt(offset) * 60n * TICKS_PER_SECOND
  const minutes = Math.abs(offset)
  return `${instantText(local < 0n ? 0n : local > LAST_TICK ? LAST_TICK : local)}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

function instantText (ticks: bigint): string {
  const second = ticks / TICKS_PER_SECOND
  const date = new Date(Number(second - UNIX_EPOCH / TICKS_PER_SECOND) * 1000)
  const year = String(date.getUTCFullYear()).padStart(4, '0')
  return `${year}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}T${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}${fraction(ticks % TICKS_PER_SECOND)}`
}

const two = (value: number): string => value < 10 ? `0${value}` : String(value)
const fraction = (ticks: bigint): string => ticks === 0n ? '' : '.' + String(ticks).padStart(7, '0').replace(/0+$/, '')

function timeSpanText (ticks: bigint): string {
  if (ticks === 0n) return 'PT0S'
  const sign = ticks < 0n ? '-' : ''
  if (ticks < 0n) ticks = -ticks
  const days = ticks / TICKS_PER_DAY
  const rest = ticks % TICKS_PER_DAY
  const seconds = Number(rest / TICKS_PER_SECOND)
  const part = (value: number, unit: string): string => value === 0 ? '' : `${value}${unit}`
  const second = seconds % 60; const tail = fraction(rest % TICKS_PER_SECOND)
  const time = part(Math.floor(seconds / 3600), 'H') + part(Math.floor(seconds / 60) % 60, 'M') + (second === 0 && tail === '' ? '' : `${second}${tail}S`)
  return `${sign}P${days === 0n ? '' : `${days}D`}${time === '' ? '' : `T${time}`}`
}
