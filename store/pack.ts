import { SoaError } from '../core/errors.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { userDataText } from '../wire/soap/hpc-headers.ts'
import { USER_DATA_SHOWN, type FailedTry, type NewLetter } from './dead-letters.ts'
import type { Decision, StoredRequest, StoredResponse } from './message-store.ts'
import { packTrace, unpackTrace, type KeptHead, type TraceHead } from './trace-facts.ts'

/**
 * A stored row: one Buffer for one message.
 *
 *     offset  bytes
 *     0       1      v: version of the stored form (Envelope.v)
 *     1       1      kind: 'q' request, 's' response, 'e' envelope alone, 'd' dead letter
 *     2       8      seq, a big-endian double (scripts read it; Lua's numbers are doubles; 0 in an envelope alone)
 *     10      4      h: bytes of the head, big-endian
 *     14      h      head: JSON, all fields but the bytes, and the lengths of what follows
 *     14+h    …      userData, each of otherHeaders, body: as they came, one after the other
 *
 * The head is JSON so that a queue can be read by eye; the bytes are raw because turning a body into text would change it.
 */
const V = 1
const SEQ_AT = 2
const HEAD_LENGTH_AT = 10
const HEAD_AT = 14
const KINDS = { request: 0x71, response: 0x73, envelope: 0x65, letter: 0x64 } as const

interface Head {
  soap: Envelope['soap']
  enc: Envelope['enc']
  action: string
  messageId?: string | undefined
  relatesTo?: string | undefined
  clientId?: string | undefined
  scope?: Envelope['prefixesInScope'] | undefined
  /** Bytes of userData; absent and 0 are different. */
  userData?: number | undefined
  /** Bytes of each of otherHeaders. */
  others?: number[] | undefined
  batchId?: number | undefined
  isFault?: true | undefined
  requestAction?: string | undefined
  decision?: Decision | undefined
  letter?: LetterHead | undefined
  /** Of a request: when it was received, ms since 1970. */
  received?: number | undefined
  trace?: TraceHead | undefined
}

/** What a dead letter has beside its request. `user`: its user data as text, cut. */
export interface LetterHead { client: string, when: string, why: string, tries: readonly FailedTry[], user: string, lane?: number | undefined }

export const packEnvelope = (envelope: Envelope): Buffer => pack(KINDS.envelope, 0, envelope, {})
export const unpackEnvelope = (row: Buffer): Envelope => unpack(row, KINDS.envelope).envelope

export const packRequest = ({ seq, batchId, envelope, decision, receivedAt }: StoredRequest): Buffer => pack(KINDS.request, seq, envelope, { batchId, decision, received: receivedAt })
export function unpackRequest (row: Buffer): StoredRequest {
  const { seq, head, envelope } = unpack(row, KINDS.request)
  return { seq, batchId: head.batchId ?? -1, envelope, ...(head.decision === undefined ? {} : { decision: head.decision }), ...(head.received === undefined ? {} : { receivedAt: head.received }) }
}

export const packResponse = ({ seq, isFault, requestAction, envelope, trace }: Omit<StoredResponse, 'at'>): Buffer =>
  pack(KINDS.response, seq, envelope, { isFault: isFault || undefined, requestAction, trace: trace && packTrace(trace) })
/** @param at its place, which is the row's name in the store and not part of the row. */
export function unpackResponse (row: Buffer, at: number): StoredResponse {
  const { seq, head, envelope } = unpack(row, KINDS.response)
  return { at, seq, isFault: head.isFault === true, requestAction: head.requestAction ?? '', envelope, ...(head.trace === undefined ? {} : { trace: unpackTrace(head.trace) }) }
}

/** @param row the beginning of one, up to the end of its user data. @param at its place; undefined: a request */
export function unpackKept (row: Buffer, at: number | undefined): KeptHead {
  const { seq, head, end } = headOf(row, at === undefined ? KINDS.request : KINDS.response)
  return {
    seq,
    at,
    messageId: (at === undefined ? head.messageId : head.relatesTo) ?? '',
    action: at === undefined ? head.action : head.requestAction ?? '',
    userData: head.userData === undefined ? undefined : row.subarray(end, end + head.userData),
    isFault: head.isFault === true,
    receivedAt: head.received,
    trace: head.trace && unpackTrace(head.trace),
  }
}

export const packLetter = (seq: number, { displayId, when, why, tries, request, lane }: NewLetter): Buffer =>
  pack(KINDS.letter, seq, request, { letter: { client: displayId, when, why, tries, user: shownUserData(request.userData), lane } })
export function unpackLetter (row: Buffer): { seq: number, letter: LetterHead, envelope: Envelope } {
  const { seq, head, envelope } = unpack(row, KINDS.letter)
  return { seq, letter: letterIn(head), envelope }
}
/** The beginning of a row, up to the end of its head: what a list needs. */
export function unpackLetterHead (row: Buffer): { seq: number, letter: LetterHead, messageId: string, action: string } {
  const { seq, head } = headOf(row, KINDS.letter)
  return { seq, letter: letterIn(head), messageId: head.messageId ?? '', action: head.action }
}

function letterIn ({ letter }: Head): LetterHead {
  if (letter === undefined) throw new SoaError('StorageFailure', { why: 'a stored dead letter does not say what it died of' })
  return letter
}

function pack (kind: number, seq: number, envelope: Envelope, more: Partial<Head>): Buffer {
  const { userData, otherHeaders, body } = envelope
  const head: Head = {
    soap: envelope.soap,
    enc: envelope.enc,
    action: envelope.action,
    messageId: envelope.messageId, // JSON leaves undefined out and keeps '': absent and empty stay different
    relatesTo: envelope.relatesTo,
    clientId: envelope.clientId,
    scope: envelope.prefixesInScope.length === 0 ? undefined : envelope.prefixesInScope,
    userData: userData?.length,
    others: otherHeaders.length === 0 ? undefined : otherHeaders.map(header => header.length),
    ...more
  }
  const text = JSON.stringify(head)
  const headLength = Buffer.byteLength(text)
  let size = HEAD_AT + headLength + (userData?.length ?? 0) + body.length
  for (const header of otherHeaders) size += header.length
  const row = Buffer.allocUnsafe(size)
  row[0] = V
  row[1] = kind
  row.writeDoubleBE(seq, SEQ_AT)
  row.writeUInt32BE(headLength, HEAD_LENGTH_AT)
  row.write(text, HEAD_AT)
  let at = HEAD_AT + headLength
  const put = (bytes: Uint8Array): void => { row.set(bytes, at); at += bytes.length }
  if (userData !== undefined) put(userData)
  for (const header of otherHeaders) put(header)
  put(body)
  return row
}

function headOf (row: Buffer, kind: number): { seq: number, head: Head, end: number } {
  const v = row[0]
  if (v === undefined || v === 0) throw new SoaError('StorageFailure', { why: 'a stored row has no version' })
  if (v > V) throw new SoaError('Broker_UnsupportedVersion', { version: v, known: V })
  if (row.length < HEAD_AT || row[1] !== kind) throw new SoaError('StorageFailure', { why: `a stored row of ${row.length} bytes is not of kind ${String.fromCharCode(kind)}` })
  const headLength = row.readUInt32BE(HEAD_LENGTH_AT)
  const end = HEAD_AT + headLength
  return { seq: row.readDoubleBE(SEQ_AT), head: JSON.parse(row.toString('utf8', HEAD_AT, end)) as Head, end }
}

function unpack (row: Buffer, kind: number): { seq: number, head: Head, envelope: Envelope } {
  const { seq, head, end } = headOf(row, kind)
  let at = end
  // Views, not copies: they keep the row alive, and the row is this one message.
  const take = (length: number): Uint8Array => {
    if (at + length > row.length) throw new SoaError('StorageFailure', { why: `a stored row ends after ${row.length} bytes, ${at + length} are named in its head` })
    at += length
    return row.subarray(at - length, at)
  }
  const userData = head.userData === undefined ? undefined : take(head.userData)
  const otherHeaders = (head.others ?? []).map(take)
  const body = take(row.length - at)
  return {
    seq,
    head,
    envelope: {
      v: V,
      soap: head.soap,
      enc: head.enc,
      action: head.action,
      ...(head.messageId === undefined ? {} : { messageId: head.messageId }),
      ...(head.relatesTo === undefined ? {} : { relatesTo: head.relatesTo }),
      ...(head.clientId === undefined ? {} : { clientId: head.clientId }),
      ...(userData === undefined ? {} : { userData }),
      otherHeaders,
      prefixesInScope: head.scope ?? [],
      body
    }
  }
}

/** What a row costs in bytes, without making it: the memory store counts with it. The head is estimated. */
export function rowBytes (envelope: Envelope): number {
  let size = HEAD_AT + 160 + envelope.action.length + (envelope.messageId?.length ?? 0) + (envelope.userData?.length ?? 0) + envelope.body.length
  for (const header of envelope.otherHeaders) size += header.length
  return size
}

/** What a dead letter costs beside it. */
export function letterBytes ({ request, why, tries }: NewLetter): number {
  let size = rowBytes(request) + why.length + 2 * Math.min(USER_DATA_SHOWN, request.userData?.length ?? 0)
  for (const tried of tries) size += 100 + tried.why.length
  return size
}

/** User data as a list of dead letters shows it. */
export function shownUserData (userData: Uint8Array | undefined): string {
  const whole = userData === undefined ? '' : userDataText(userData)
  return whole.length <= USER_DATA_SHOWN ? whole : `${whole.slice(0, USER_DATA_SHOWN - 1)}…`
}
