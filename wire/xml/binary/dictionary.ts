import { sizeBytes, writeSize } from '../../framing/size.ts'
import { isName } from '../characters.ts'
import { STATIC_STRINGS } from './static-strings.ts'

/** The static strings as UTF-8: index k is id 2k. */
export const STATIC_UTF8: readonly Buffer[] = STATIC_STRINGS.map(text => Buffer.from(text))

const NAMES: readonly boolean[] = STATIC_STRINGS.map(isName)
/** Static strings are namespaces and values too, and these are no names. */
export const isStaticName = (id: number): boolean => NAMES[id >>> 1] === true

const IDS: ReadonlyMap<string, number> = new Map(STATIC_STRINGS.map((text, index) => [text, 2 * index]))
/** Id of a text; undefined: it is not among the static strings. */
export const staticId = (text: string): number | undefined => IDS.get(text)

/** Static strings with the same length and first byte: what a name is compared with, mostly none. */
const BUCKETS: Array<number[] | undefined> = []
const bucketOf = (length: number, first: number): number => length * 128 + (first & 0x7f)
for (const [index, utf8] of STATIC_UTF8.entries()) if (utf8.length > 0) (BUCKETS[bucketOf(utf8.length, utf8[0]!)] ??= []).push(index)
const LONGEST = Math.max(...STATIC_UTF8.map(utf8 => utf8.length))

/** Id of the text in these bytes, found without making a string of it; -1: none. */
export function staticIdOf (b: Buffer, from: number, to: number): number {
  const length = to - from
  if (length > LONGEST || length === 0) return -1
  const bucket = BUCKETS[bucketOf(length, b[from]!)]
  if (bucket === undefined) return -1
  for (const index of bucket) if (isAt(STATIC_UTF8[index]!, b, from)) return 2 * index
  return -1
}

// From the end, where texts with the same beginning differ.
function isAt (text: Buffer, b: Buffer, from: number): boolean {
  let i = text.length - 1
  while (i >= 0 && text[i] === b[from + i]) i--
  return i < 0
}

/** A number of size.ts as bytes. */
export function sizeOf (size: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(sizeBytes(size))
  writeSize(bytes, 0, size)
  return bytes
}
