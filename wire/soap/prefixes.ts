import { escapeAttribute, NAME } from '../xml/characters.ts'
import type { Scope } from './envelope.ts'

/** Pieces bigger than this count as using all prefixes, without a look. */
const LOOK_INTO_BYTES = 1024

/** One declaration as it stands in a start tag, with the blank before it. */
export const declaration = (prefix: string, uri: string): string => prefix === '' ? ` xmlns="${escapeAttribute(uri)}"` : ` xmlns:${prefix}="${escapeAttribute(uri)}"`

/** A prefix like `wish` that is free in the scope or means this namespace there already, so that declaring it hides no other. */
export function freePrefix (wish: string, namespace: string, scope: Scope): string {
  for (let n = 0; ; n++) {
    const prefix = n === 0 ? wish : `${wish}${n}`
    if (scope.every(([known, uri]) => known !== prefix || uri === namespace)) return prefix
  }
}

/** The piece of XML may use the prefix: in a name, or in a value, which nobody can tell from other text; one of its characters may be written as a reference. */
export function mentions (bytes: Buffer, prefix: string): boolean {
  if (bytes.length > LOOK_INTO_BYTES) return true
  const first = prefix.charCodeAt(0)
  if (prefix.length === 1 && first < 0x80) {
    // Such a letter is in most words, and a loop is quicker than asking native code for each.
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === first ? standsAlone(bytes, at, 1) : byte === 0x26 && bytes[at + 1] === 0x23) return true
    }
    return false
  }
  if (bytes.includes('&#')) return true
  const length = Buffer.byteLength(prefix)
  for (let at = bytes.indexOf(prefix); at >= 0; at = bytes.indexOf(prefix, at + 1)) if (standsAlone(bytes, at, length)) return true
  return false
}

/** A name that begins or goes on here is another name; behind a colon stands a local name. */
function standsAlone (bytes: Buffer, at: number, length: number): boolean {
  const after = NAME[bytes[at + length] ?? 0]
  return (after === 0 || after === 3) && NAME[bytes[at - 1] ?? 0] === 0
}
