import { faultUri, type FramingFault } from './faults.ts'
import { KNOWN_ENCODINGS, MODE, RECORD, type Mode } from './records.ts'
import { sizeBytes, writeSize } from './size.ts'

/** Records of one byte. Shared: whoever sends them must not write into them. */
export const END = Buffer.of(RECORD.end)
export const PREAMBLE_END = Buffer.of(RECORD.preambleEnd)
export const PREAMBLE_ACK = Buffer.of(RECORD.preambleAck)
export const UPGRADE_RESPONSE = Buffer.of(RECORD.upgradeResponse)
/** Behind the last chunk of an Unsized Envelope. */
export const UNSIZED_END = Buffer.of(0)

export interface Preamble {
  readonly via: string
  /** Known ones are written as their byte. */
  readonly contentType: string
  /** Default: duplex. */
  readonly mode?: Mode
}

/** Version, mode, via and encoding. Without an upgrade .NET writes this and Preamble End at once. */
export function preamble ({ via, contentType, mode = MODE.duplex }: Preamble): Buffer {
  const known = KNOWN_ENCODINGS.indexOf(contentType)
  return Buffer.concat([
    Buffer.of(RECORD.version, 1, 0, RECORD.mode, mode), text(RECORD.via, via),
    known < 0 ? text(RECORD.extensibleEncoding, contentType) : Buffer.of(RECORD.knownEncoding, known)
  ])
}

export const upgradeRequest = (name: string): Buffer => text(RECORD.upgradeRequest, name)
export const faultRecord = (fault: FramingFault): Buffer => text(RECORD.fault, faultUri(fault))

/** What stands before the payload of a Sized Envelope. */
export function sizedHead (payloadBytes: number): Buffer {
  const head = Buffer.allocUnsafe(1 + sizeBytes(payloadBytes))
  head[0] = RECORD.sizedEnvelope
  writeSize(head, 1, payloadBytes)
  return head
}

export const sizedEnvelope = (payload: Uint8Array): Buffer => Buffer.concat([sizedHead(payload.length), payload])

/** A whole Unsized Envelope in one chunk. Chunks mean nothing, so one is as good as many. */
export function unsizedEnvelope (payload: Uint8Array): Buffer {
  if (payload.length === 0) return Buffer.of(RECORD.unsizedEnvelope, 0)
  const head = Buffer.allocUnsafe(1 + sizeBytes(payload.length))
  head[0] = RECORD.unsizedEnvelope
  writeSize(head, 1, payload.length)
  return Buffer.concat([head, payload, UNSIZED_END])
}

function text (code: number, value: string): Buffer {
  const bytes = Buffer.from(value)
  const record = Buffer.allocUnsafe(1 + sizeBytes(bytes.length) + bytes.length)
  record[0] = code
  record.set(bytes, writeSize(record, 1, bytes.length))
  return record
}
