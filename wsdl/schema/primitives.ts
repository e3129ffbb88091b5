/**
 * The built-in simple types: text ⇄ value ([xmlschema-2] 3.2, 3.3).
 *
 * int and smaller = number · long, unsignedLong, integer = bigint · decimal = string (no digit is lost) · float, double = number with Infinity and NaN ·
 * dateTime = Date when a Date keeps all of it (UTC, milliseconds), else the text · base64Binary, hexBinary = Buffer · boolean · QName = `{ns}local` · the others = text.
 */
import { resolveQName } from '../../wire/xml/events.ts'
import type { QName } from '../../wire/soap/envelope.ts'

/** Why a text or value is not of a type; whoever knows the path catches it and says where. */
export class Mismatch extends Error {}

export interface Prefixes {
  /** Reading: namespace of a prefix. */
  readonly resolve: (prefix: string) => string | undefined
}

export interface Primitive {
  readonly name: string
  /** Name of the type that it restricts; undefined for the primitives proper. */
  readonly base: string | undefined
  readonly whiteSpace: 'preserve' | 'replace' | 'collapse'
  /** From text with whitespace already treated. */
  parse (text: string, prefixes: Prefixes): unknown
  /** To text; takes what `parse` gives, and text of the type. */
  format (value: unknown, qname: (name: QName) => string): string
  /** Order for the facets min… and max…, and equality for enumeration and fixed; undefined where there is no order and equal values are equal texts. */
  readonly compare?: (a: unknown, b: unknown) => number
}

const show = (value: unknown): string => typeof value === 'string' ? JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value) : value === null ? 'null' : typeof value === 'object' ? Array.isArray(value) ? 'an array' : 'an object' : String(value)
const no = (value: unknown, type: string): never => { throw new Mismatch(`${show(value)} is not a valid ${type}`) }
const NO_PREFIXES: Prefixes = { resolve: () => undefined }

type Row = Omit<Primitive, 'name' | 'base'>

const text = (type: string, whiteSpace: Primitive['whiteSpace'], grammar?: RegExp, compare?: Primitive['compare']): Row => ({
  whiteSpace,
  parse: value => grammar === undefined || grammar.test(value) ? value : no(value, type),
  format: value => {
    const out = typeof value === 'string' ? value : typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean' ? String(value) : no(value, type)
    return grammar === undefined || grammar.test(out) ? out : no(value, type)
  },
  ...(compare ? { compare } : {})
})

/** NaN equals itself here, and is in no order with others: undefined order is no order that holds. */
const byValue = (a: unknown, b: unknown): number => (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : Object.is(a, b) || a === b ? 0 : NaN

/** Whole numbers. With both limits inside ±2^53 a number, else a bigint. */
function whole (type: string, min?: bigint, max?: bigint): Row {
  const small = min !== undefined && max !== undefined && min >= -(2n ** 53n) && max <= 2n ** 53n
  const inRange = (n: bigint, said: unknown): bigint => (min !== undefined && n < min) || (max !== undefined && n > max) ? no(said, type) : n
  const parse = (said: string): number | bigint => {
    if (!/^[+-]?\d+$/.test(said) || said.length > 1000) return no(said, type)
    const n = inRange(BigInt(said.startsWith('+') ? said.slice(1) : said), said)
    return small ? Number(n) : n
  }
  return {
    whiteSpace: 'collapse',
    parse,
    format: value => {
      if (typeof value === 'bigint') return String(inRange(value, value))
      if (typeof value === 'number') return Number.isSafeInteger(value) ? String(inRange(BigInt(value), value)) : no(value, type)
      return typeof value === 'string' ? String(parse(value)) : no(value, type)
    },
    compare: byValue
  }
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/

function compareDecimals (a: unknown, b: unknown): number {
  const scaled = [String(a), String(b)].map(s => /^([+-]?)(\d*)\.?(\d*)$/.exec(s) ?? ['', '', '0', ''])
  const digits = Math.max(...scaled.map(m => (m[3] as string).length))
  const [x, y] = scaled.map(m => BigInt(`${m[1] === '-' ? '-' : ''}${m[2]}${(m[3] as string).padEnd(digits, '0')}` || '0'))
  return byValue(x, y)
}

/** A double without exponent: `String(1e-7)` is no decimal. */
function plainDigits (value: number): string {
  const m = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(String(value))
  if (!m) return String(value)
  const digits = `${m[2]}${m[3] ?? ''}`
  const point = 1 + Number(m[4])
  return m[1] + (point <= 0 ? `0.${'0'.repeat(-point)}${digits}` : digits.padEnd(point, '0'))
}

const decimal: Row = {
  whiteSpace: 'collapse',
  parse: said => DECIMAL.test(said) ? said : no(said, 'decimal'),
  format: value => {
    if (typeof value === 'number' && Number.isFinite(value)) return plainDigits(value)
    if (typeof value === 'bigint') return String(value)
    return typeof value === 'string' && DECIMAL.test(value) ? value : no(value, 'decimal')
  },
  compare: compareDecimals
}

const WORDS: ReadonlyMap<string, number> = new Map([['INF', Infinity], ['-INF', -Infinity], ['NaN', NaN]])

function real (type: string): Row {
  const parse = (said: string): number => {
    const word = WORDS.get(said)
    if (word !== undefined) return word
    return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(said) ? Number(said) : no(said, type)
  }
  return {
    whiteSpace: 'collapse',
    parse,
    format: value => {
      const n = typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : typeof value === 'string' ? parse(value) : no(value, type)
      if (Number.isNaN(n)) return 'NaN'
      if (!Number.isFinite(n)) return n > 0 ? 'INF' : '-INF'
      return Object.is(n, -0) ? '-0' : String(n).replace('e+', 'E').replace('e', 'E')
    },
    compare: byValue
  }
}

const bool: Row = {
  whiteSpace: 'collapse',
  parse: said => said === 'true' || said === '1' ? true : said === 'false' || said === '0' ? false : no(said, 'boolean'),
  format: value => typeof value === 'boolean' ? String(value) : value === 'true' || value === 'false' ? value : no(value, 'boolean')
}

function bytes (type: string, encoding: 'base64' | 'hex'): Row {
  const parse = (said: string): Buffer => {
    const packed = encoding === 'hex' ? said.toLowerCase() : said.replace(/ /g, '')
    const value = Buffer.from(packed, encoding)
    // Node skips what it cannot read; written back it must be the same.
    return value.toString(encoding) === packed ? value : no(said, type)
  }
  return {
    whiteSpace: 'collapse',
    parse,
    format: value => value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString(encoding) : typeof value === 'string' ? parse(value).toString(encoding) : no(value, type)
  }
}

const ZONE = '(Z|[+-](?:0\\d|1[0-3]):[0-5]\\d|[+-]14:00)?'
const TIME = '(?:([01]\\d|2[0-3]):([0-5]\\d):([0-5]\\d)(\\.\\d+)?|24:00:00(?:\\.0+)?)'
const DAY = '(-?(?:[1-9]\\d{4,}|\\d{4}))-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])'
const DATE_TIME = new RegExp(`^${DAY}T${TIME}${ZONE}$`)
const DATE = new RegExp(`^${DAY}${ZONE}$`)

/**
 * A place in time as whole seconds and a fraction, which no double could hold together. Without an offset it counts as UTC ([xmlschema-2] 3.2.7.3
 * leaves the order of the two kinds open).
 */
function instant (value: unknown): { seconds: number, fraction: string } {
  const said = value instanceof Date ? value.toISOString() : String(value)
  const [, year = '2000', month = '01', day = '01', h = '0', mi = '0', s = '0', fraction = '', zone = 'Z'] =
    /^(?:(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?)?T?(?:(\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d)?$/.exec(said) ?? []
  // The calendar repeats after 400 years; Date.UTC ends at 275,760.
  const cycles = Math.floor((Number(year) - 2000) / 400)
  const days = Date.UTC(Number(year) - cycles * 400, Number(month) - 1, Number(day)) / 86_400_000 + cycles * 146_097
  const [offset, sign] = zone === 'Z' ? [0, 1] : [Number(zone.slice(1, 3)) * 3600 + Number(zone.slice(4)) * 60, zone.startsWith('-') ? -1 : 1]
  return { seconds: days * 86_400 + Number(h) * 3600 + Number(mi) * 60 + Number(s) - sign * offset, fraction: fraction.replace(/0+$/, '') }
}

function compareInstants (a: unknown, b: unknown): number {
  const [x, y] = [instant(a), instant(b)]
  return byValue(x.seconds, y.seconds) || byValue(x.fraction, y.fraction) // without trailing zeros, fractions are in order as texts are
}

function isDay (match: RegExpExecArray | null): match is RegExpExecArray {
  if (!match) return false
  const [, year, month, day] = match as unknown as [string, string, string, string]
  const y = Number(year)
  return y !== 0 && Number(day) <= new Date(Date.UTC(2000 + ((y % 400) + 400) % 400, Number(month), 0)).getUTCDate()
}

/** A Date for what a Date can hold whole, else the text: .NET writes seven digits and offsets. */
function parseDateTime (said: string): Date | string {
  const m = DATE_TIME.exec(said)
  if (!isDay(m)) return no(said, 'dateTime')
  const fraction = m[7] ?? ''
  const fits = m[8] === 'Z' && m[4] !== undefined && m[1]?.length === 4 && /^(?:\.\d{1,3}0*)?$/.test(fraction)
  return fits ? new Date(`${said.slice(0, 19)}${fraction.slice(0, 4)}Z`) : said
}

const dateTime: Row = {
  whiteSpace: 'collapse',
  parse: parseDateTime,
  format: value => {
    if (typeof value === 'string') { parseDateTime(value); return value }
    if (!(value instanceof Date) || Number.isNaN(value.getTime())) return no(value instanceof Date ? 'Invalid Date' : value, 'dateTime')
    const out = value.toISOString().replace('.000Z', 'Z')
    return /^[+-]/.test(out) ? no(out, 'dateTime') : out
  },
  compare: compareInstants
}

const date: Row = { ...text('date', 'collapse'), parse: said => isDay(DATE.exec(said)) ? said : no(said, 'date'), format: value => typeof value === 'string' && isDay(DATE.exec(value)) ? value : no(value, 'date'), compare: compareInstants }

const DURATION = /^(-)?P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/

/** As a double, which tells .NET's longest spans apart to about 0.1 ms; months count 30.4375 days. Good enough for a limit. */
function seconds (duration: unknown): number {
  const [, sign, y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0] = DURATION.exec(String(duration)) ?? []
  return (sign ? -1 : 1) * (((Number(y) * 12 + Number(mo)) * 30.4375 + Number(d)) * 86400 + Number(h) * 3600 + Number(mi) * 60 + Number(s))
}

const qnames: Row = {
  whiteSpace: 'collapse',
  parse: (said, prefixes) => /^(?:[^\s:]+:)?[^\s:]+$/.test(said) ? resolveQName(said, prefix => prefixes.resolve(prefix)) ?? no(said, 'QName (its prefix is not declared)') : no(said, 'QName'),
  format: (value, qname) => typeof value === 'string' && value !== '' ? qname(value) : no(value, 'QName')
}

const limits = (bits: bigint): [bigint, bigint] => [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n]
const NC = '[\\p{L}_][\\p{L}\\p{N}\\p{M}._\\-·]*'

const ROWS: Readonly<Record<string, readonly [base: string | undefined, row: Row]>> = {
  string: [undefined, text('string', 'preserve')],
  normalizedString: ['string', text('normalizedString', 'replace')],
  token: ['normalizedString', text('token', 'collapse')],
  language: ['token', text('language', 'collapse', /^[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*$/)],
  NMTOKEN: ['token', text('NMTOKEN', 'collapse', /^[\p{L}\p{N}\p{M}._\-:·]+$/u)],
  Name: ['token', text('Name', 'collapse', /^[\p{L}_:][\p{L}\p{N}\p{M}._\-:·]*$/u)],
  NCName: ['Name', text('NCName', 'collapse', new RegExp(`^${NC}$`, 'u'))],
  ID: ['NCName', text('ID', 'collapse', new RegExp(`^${NC}$`, 'u'))],
  IDREF: ['NCName', text('IDREF', 'collapse', new RegExp(`^${NC}$`, 'u'))],
  ENTITY: ['NCName', text('ENTITY', 'collapse', new RegExp(`^${NC}$`, 'u'))],
  boolean: [undefined, bool],
  decimal: [undefined, decimal],
  integer: ['decimal', whole('integer')],
  nonPositiveInteger: ['integer', whole('nonPositiveInteger', undefined, 0n)],
  negativeInteger: ['nonPositiveInteger', whole('negativeInteger', undefined, -1n)],
  long: ['integer', whole('long', ...limits(64n))],
  int: ['long', whole('int', ...limits(32n))],
  short: ['int', whole('short', ...limits(16n))],
  byte: ['short', whole('byte', ...limits(8n))],
  nonNegativeInteger: ['integer', whole('nonNegativeInteger', 0n)],
  unsignedLong: ['nonNegativeInteger', whole('unsignedLong', 0n, 2n ** 64n - 1n)],
  unsignedInt: ['unsignedLong', whole('unsignedInt', 0n, 2n ** 32n - 1n)],
  unsignedShort: ['unsignedInt', whole('unsignedShort', 0n, 65535n)],
  unsignedByte: ['unsignedShort', whole('unsignedByte', 0n, 255n)],
  positiveInteger: ['nonNegativeInteger', whole('positiveInteger', 1n)],
  float: [undefined, real('float')],
  double: [undefined, real('double')],
  base64Binary: [undefined, bytes('base64Binary', 'base64')],
  hexBinary: [undefined, bytes('hexBinary', 'hex')],
  dateTime: [undefined, dateTime],
  date: [undefined, date],
  time: [undefined, text('time', 'collapse', new RegExp(`^${TIME}${ZONE}$`), compareInstants)],
  duration: [undefined, text('duration', 'collapse', DURATION, (a, b) => seconds(a) - seconds(b))],
  gYear: [undefined, text('gYear', 'collapse', new RegExp(`^-?(?:[1-9]\\d{4,}|\\d{4})${ZONE}$`), compareInstants)],
  gYearMonth: [undefined, text('gYearMonth', 'collapse', new RegExp(`^-?(?:[1-9]\\d{4,}|\\d{4})-(?:0[1-9]|1[0-2])${ZONE}$`), compareInstants)],
  gMonth: [undefined, text('gMonth', 'collapse', new RegExp(`^--(?:0[1-9]|1[0-2])(?:--)?${ZONE}$`))],
  gMonthDay: [undefined, text('gMonthDay', 'collapse', new RegExp(`^--(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])${ZONE}$`))],
  gDay: [undefined, text('gDay', 'collapse', new RegExp(`^---(?:0[1-9]|[12]\\d|3[01])${ZONE}$`))],
  anyURI: [undefined, text('anyURI', 'collapse')],
  QName: [undefined, qnames],
  NOTATION: [undefined, qnames],
  anySimpleType: [undefined, text('anySimpleType', 'preserve')]
}

export const PRIMITIVES: ReadonlyMap<string, Primitive> = new Map(Object.entries(ROWS).map(([name, [base, row]]) => [name, { name, base, ...row }]))

/** NMTOKENS and the like: lists of the type without the S. */
export const LISTS: ReadonlyMap<string, string> = new Map([['NMTOKENS', 'NMTOKEN'], ['IDREFS', 'IDREF'], ['ENTITIES', 'ENTITY']])

export function treatWhiteSpace (said: string, how: Primitive['whiteSpace']): string {
  if (how === 'preserve') return said
  const replaced = said.replace(/[\t\n\r]/g, ' ')
  return how === 'replace' ? replaced : replaced.replace(/ {2,}/g, ' ').replace(/^ | $/g, '')
}

export { NO_PREFIXES }
