/** Net.tcp bytes as a list of their records, in whatever order they come: for those who look at captures. decoder.ts is what connections are read with. */
import { isSoaError, SoaError } from '../../core/errors.ts'
import { KNOWN_ENCODINGS, RECORD, RECORD_NAMES, type RecordName } from './records.ts'
import { addGroup } from './size.ts'

export interface FrameRecord {
  /** Offset of its first byte. */
  readonly at: number
  /** Offset behind its last. */
  readonly end: number
  readonly record: RecordName | 'unknown'
  readonly version?: string
  readonly mode?: number
  /** Via, content type, name of an upgrade, or fault. */
  readonly text?: string
  /** Of an envelope, chunks put together. */
  readonly payload?: Buffer
  /** Sizes of an Unsized Envelope's chunks. */
  readonly chunks?: readonly number[]
  /** Why it could not be read, with the byte; nothing follows it. */
  readonly error?: string
}

/** Says the records that there are; the last one may be broken, and says so. */
export function * listFrames (bytes: Buffer): Generator<FrameRecord> {
  let at = 0
  try {
    for (const record of frames(bytes)) { yield record; at = record.end }
  } catch (error) {
    if (!isSoaError(error, 'badFrame')) throw error
    yield { at, end: bytes.length, record: RECORD_NAMES[bytes[at] as number] ?? 'unknown', error: error.context[0] as string }
  }
}

function * frames (bytes: Buffer): Generator<FrameRecord> {
  let at = 0
  const bad = (why: string): SoaError => new SoaError('badFrame', { why: `${why} (byte ${at})`, framingFault: '' })
  const byte = (): number => {
    const value = bytes[at]
    if (value === undefined) throw bad('it ends too early')
    at++
    return value
  }
  const size = (): number => {
    for (let size = 0, i = 0; ; i++) {
      const group = byte()
      if (i === 4 && group > 0x07) throw bad('a size above 2147483647')
      size = addGroup(size, group, i)
      if (group < 0x80) return size
    }
  }
  const take = (length: number): Buffer => {
    if (length > bytes.length - at) throw bad(`${length} bytes are announced, ${bytes.length - at} are there`)
    at += length
    return bytes.subarray(at - length, at)
  }

  while (at < bytes.length) {
    const from = at
    const code = byte()
    const name = RECORD_NAMES[code]
    if (name === undefined) { at--; throw bad(`there is no record 0x${code.toString(16).padStart(2, '0')}`) }
    const item = { at: from, record: name }
    let more: Partial<FrameRecord> = {}
    switch (code) {
      case RECORD.version: more = { version: `${byte()}.${byte()}` }; break
      case RECORD.mode: more = { mode: byte() }; break
      case RECORD.knownEncoding: { const known = byte(); more = { text: KNOWN_ENCODINGS[known] ?? `unknown encoding ${known}` }; break }
      case RECORD.via: case RECORD.extensibleEncoding: case RECORD.upgradeRequest: case RECORD.fault: more = { text: take(size()).toString('utf8') }; break
      case RECORD.sizedEnvelope: more = { payload: take(size()) }; break
      case RECORD.unsizedEnvelope: {
        const chunks: Buffer[] = []
        for (let length = size(); length > 0; length = size()) chunks.push(take(length))
        more = { payload: Buffer.concat(chunks), chunks: chunks.map(chunk => chunk.length) }
        break
      }
    }
    yield { ...item, ...more, end: at }
  }
}
