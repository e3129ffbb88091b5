import { SoaError } from '../../../core/errors.ts'
import { PATCH, type BinaryCursor } from './cursor.ts'
import { KIND, KINDS, RECORD, TEXT } from './records.ts'
import type { ReaderTables, SessionString } from './tables.ts'

/** Records with names written out may be so much larger than those with ids: a string of 2 KB costs its sender 2 bytes. */
const MOST_GROWTH = 16
const ALWAYS_ALLOWED = 65_536

/**
 * The records from … to of what was scanned, with the session's ids replaced: by static ids where the text has one, else by the text. The result means the same
 * without a session. Without such ids (`patchCount` is 0) it is a view. @param lastText offset of a text record at the end that closed the element around; its
 * code is made the one that does not; -1: none. Throws overLimit above 16 times the size.
 */
export function resolveSession (cursor: BinaryCursor, from: number, to: number, lastText: number, session: ReaderTables | undefined): Buffer {
  const b = cursor.bytes
  if ((cursor.patchCount === 0 || session === undefined) && lastText < 0) return b.subarray(from, to)
  const { patches, patchCount } = cursor
  const most = Math.max(ALWAYS_ALLOWED, MOST_GROWTH * (to - from))
  let size = to - from
  for (let row = 0; row < patchCount * PATCH; row += PATCH) {
    size += patchedBytes(b, patches[row]!, session!.sessionString(patches[row + 3]!)!) - (patches[row + 2]! - patches[row + 1]!)
  }
  if (size > most) throw new SoaError('overLimit', { setting: 'size of the body with its names written out', limit: most, value: size })
  const out = Buffer.allocUnsafe(size)
  let at = 0; let done = from
  for (let row = 0; row < patchCount * PATCH; row += PATCH) {
    const record = patches[row]!
    at += b.copy(out, at, done, record)
    at = patch(out, at, b, record, patches[row + 1]!, session!.sessionString(patches[row + 3]!)!, record === lastText)
    done = patches[row + 2]!
  }
  if (done <= lastText) {
    at += b.copy(out, at, done, lastText)
    out[at++] = b[lastText]! & 0xfe
    done = lastText + 1
  }
  b.copy(out, at, done, to)
  return out
}

/** Bytes that stand where the id stood. Records keep their other bytes, but for a name as a value: its letter becomes text, and the head of a text is its code and length. */
function patchedBytes (b: Buffer, record: number, string: SessionString): number {
  const code = b[record]!
  if (KINDS[code] !== KIND.text) return string.staticId?.length ?? string.inline.length
  if ((code & 0xfe) === TEXT.qnameDictionary) return string.staticId?.length ?? charsBytes(string.utf8.length + 2) + string.utf8.length + 1 // its letter is there already
  return string.staticId?.length ?? charsBytes(string.utf8.length) + string.utf8.length
}

/** Bytes of the length in a Chars record. */
const charsBytes = (length: number): number => length <= 0xff ? 1 : 2

function patch (out: Buffer, at: number, b: Buffer, record: number, idAt: number, string: SessionString, opens: boolean): number {
  const code = opens ? b[record]! & 0xfe : b[record]!
  if (string.staticId !== undefined) {
    at += b.copy(out, at, record, idAt)
    out[at - (idAt - record)] = code
    return at + string.staticId.copy(out, at)
  }
  if (KINDS[code] !== KIND.text) {
    out[at++] = withName(code)
    at += b.copy(out, at, record + 1, idAt)
    return at + string.inline.copy(out, at)
  }
  const isName = (code & 0xfe) === TEXT.qnameDictionary
  const length = string.utf8.length + (isName ? 2 : 0)
  out[at++] = (length <= 0xff ? TEXT.chars8 : TEXT.chars16) + (code & 1)
  if (length <= 0xff) out[at++] = length; else at = out.writeUInt16LE(length, at)
  if (isName) { out[at++] = 0x61 + b[record + 1]!; out[at++] = 0x3a }
  return at + string.utf8.copy(out, at)
}

/** The code of the same record with a name instead of an id. */
function withName (code: number): number {
  if (code >= RECORD.prefixDictionaryElement) return code - RECORD.prefixDictionaryElement + RECORD.prefixElement
  if (code >= RECORD.shortDictionaryElement || code < RECORD.prefixDictionaryAttribute) return code - 2
  return code - RECORD.prefixDictionaryAttribute + RECORD.prefixAttribute
}
