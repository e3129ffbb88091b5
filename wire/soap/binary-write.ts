import { RECORD as FRAME } from '../framing/records.ts'
import { sizeBytes, writeSize } from '../framing/size.ts'
import { staticId } from '../xml/binary/dictionary.ts'
import { elementToBinary, textToBinary } from '../xml/binary/from-text.ts'
import { RECORD, TEXT } from '../xml/binary/records.ts'
import type { WriterTables } from '../xml/binary/tables.ts'
import { GUID_DIGITS } from '../xml/binary/values.ts'
import { BinaryWriter } from '../xml/binary/writer.ts'
import { HPC, SOAP12, WSA, type Envelope, type Scope } from './envelope.ts'
import { DEFAULT_FAULT_ACTION } from './fault.ts'
import { convertSoap, hasFault } from './fault-body.ts'
import { HPC_HEADER } from './hpc-headers.ts'
import { freePrefix, mentions } from './prefixes.ts'

export const ANONYMOUS = `${WSA}/anonymous`

export interface BinaryWriteOptions {
  /** WS-Addressing To, with mustUnderstand as WCF writes it: ANONYMOUS on replies, the endpoint's URI on requests. */
  readonly to?: string | undefined
  /** A ReplyTo that names the anonymous address: on requests that want a reply. */
  readonly replyTo?: boolean | undefined
  /** Self-contained elements (text), written behind the envelope's own headers. */
  readonly extraHeaders?: readonly Uint8Array[] | undefined
  /** The body is a fault, where the caller knows; else it is looked at. */
  readonly isFault?: boolean | undefined
  /** With the record of a Sized Envelope around it, ready to be sent: saves the copy that putting a size in front costs. */
  readonly framed?: boolean | undefined
}

/** Ids of the static strings that stand in every message. */
const ID = Object.fromEntries(['mustUnderstand', 'Envelope', 'Header', 'Action', 'To', 'Body', 'RelatesTo', 'MessageID', 'ReplyTo', 'Address', ANONYMOUS, SOAP12, WSA].map(text => [text, staticId(text) as number])) as Readonly<Record<string, number>>
const CLIENT_ID_HEAD = new BinaryWriter()
CLIENT_ID_HEAD.byte(RECORD.shortElement)
CLIENT_ID_HEAD.string(HPC_HEADER.clientId)
CLIENT_ID_HEAD.xmlns('', HPC)
const CLIENT_ID = CLIENT_ID_HEAD.take()

const out = new BinaryWriter()

/**
 * The message as a payload: SOAP 1.2 with WS-Addressing 1.0, with the bytes that WCF writes where it has a choice ([net-tcp] 3.1: its receiver takes a short cut for
 * them). With a session the string table comes first and grows by the action and `to`; the payload must then be sent, in the order in which it was made.
 *
 * A SOAP 1.1 fault becomes one of SOAP 1.2; a fault without an action gets the general one, for a client must have one. Throws badEnvelope when a header or
 * text body is no XML, and then the session is as before.
 */
export function writeBinaryEnvelope (envelope: Envelope, session: WriterTables | undefined, options: BinaryWriteOptions = {}): Buffer {
  try {
    if (envelope.soap !== 12) envelope = convertSoap(envelope, 12, true)
    return write(envelope, session, options)
  } catch (error) {
    session?.forget()
    throw error
  }
}

function write (envelope: Envelope, session: WriterTables | undefined, options: BinaryWriteOptions): Buffer {
  const scope = neededScope(envelope)
  const s = freeLetter('s', SOAP12, scope)
  const a = freeLetter('a', WSA, s === 's' ? scope : [...scope, [s, SOAP12]])
  out.open()
  element(s, ID.Envelope!)
  declare(s, ID[SOAP12]!)
  declare(a, ID[WSA]!)
  element(s, ID.Header!)
  const isFault = options.isFault ?? hasFault(envelope)
  const action = envelope.action || (isFault ? DEFAULT_FAULT_ACTION : '')
  if (action !== '') {
    element(a, ID.Action!)
    mustUnderstand(s)
    // Actions of faults are rare and many: they would fill the table for all others.
    if (isFault) out.textOf(action, 1); else string(action, session)
  }
  if (envelope.messageId !== undefined) { element(a, ID.MessageID!); id(envelope.messageId) }
  if (envelope.relatesTo !== undefined) { element(a, ID.RelatesTo!); id(envelope.relatesTo) }
  if (options.replyTo === true) {
    element(a, ID.ReplyTo!)
    element(a, ID.Address!)
    string(ANONYMOUS, undefined)
    out.end()
  }
  if (envelope.clientId !== undefined) {
    out.bytes(CLIENT_ID)
    if (envelope.clientId === '') out.end(); else out.textOf(envelope.clientId, 1)
  }
  if (envelope.userData !== undefined) elementToBinary(envelope.userData, out)
  for (const header of envelope.otherHeaders) elementToBinary(header, out)
  if (options.extraHeaders !== undefined) for (const header of options.extraHeaders) elementToBinary(header, out)
  if (options.to !== undefined) {
    element(a, ID.To!)
    mustUnderstand(s)
    string(options.to, session)
  }
  out.end()

  element(s, ID.Body!)
  for (const [prefix, uri] of scope) if (prefix !== s && prefix !== a) out.xmlns(prefix, uri)
  // The body goes where it belongs at once, or, when it is text, through the writer.
  if (envelope.enc === 'utf8') textToBinary(envelope.body, envelope.prefixesInScope, out)
  const body = envelope.enc === 'utf8' ? NOTHING : envelope.body

  const table = session === undefined ? 0 : session.tableBytes
  const payload = table + out.at + body.length + 2
  const frame = options.framed === true ? 1 + sizeBytes(payload) : 0
  const bytes = Buffer.allocUnsafe(frame + payload)
  let at = 0
  if (frame > 0) {
    bytes[0] = FRAME.sizedEnvelope
    at = writeSize(bytes, 1, payload)
  }
  if (session !== undefined) at = session.writeTable(bytes, at)
  at += out.buffer.copy(bytes, at, 0, out.at)
  bytes.set(body, at)
  at += body.length
  bytes[at] = bytes[at + 1] = RECORD.endElement
  return bytes
}

const NOTHING = new Uint8Array()

/** What Body has to say again. Of a text body's declarations those that it cannot mean are left out, for one of them often is `s`, as SOAP 1.1 means it. */
function neededScope ({ enc, body, prefixesInScope: scope }: Envelope): Scope {
  if (scope.length === 0) return scope
  const text = enc === 'utf8' ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : undefined
  return scope.filter(([prefix, uri]) => !(prefix === 's' && uri === SOAP12) && !(prefix === 'a' && uri === WSA) && (prefix === '' || text === undefined || mentions(text, prefix)))
}

/** A prefix of one letter where that can be: it costs no byte. */
function freeLetter (wish: string, namespace: string, scope: Scope): string {
  if (scope.length === 0) return wish
  for (const letter of [wish, ...'evwt']) if (scope.every(([known, uri]) => known !== letter || uri === namespace)) return letter
  return freePrefix(wish, namespace, scope)
}

function element (prefix: string, name: number): void {
  if (prefix.length === 1) out.byte(RECORD.prefixDictionaryElement + prefix.charCodeAt(0) - 0x61)
  else { out.byte(RECORD.dictionaryElement); out.string(prefix) }
  out.size(name)
}

function declare (prefix: string, uri: number): void {
  out.byte(RECORD.dictionaryXmlns)
  out.string(prefix)
  out.size(uri)
}

function mustUnderstand (s: string): void {
  if (s.length === 1) out.byte(RECORD.prefixDictionaryAttribute + s.charCodeAt(0) - 0x61)
  else { out.byte(RECORD.dictionaryAttribute); out.string(s) }
  out.size(ID.mustUnderstand!)
  out.byte(TEXT.one)
}

/** A text that comes again in later messages, and the end of its element. */
function string (text: string, session: WriterTables | undefined): void {
  const id = staticId(text) ?? session?.id(text)
  if (id === undefined) { out.textOf(text, 1); return }
  out.byte(TEXT.dictionary + 1)
  out.size(id)
}

/** A message id and the end of its element: 16 bytes for what .NET would read out of them again, else text. */
function id (text: string): void {
  if (text.length === 45 && text.startsWith('urn:uuid:')) {
    out.room(17)
    if (guid(text, out.buffer, out.at + 1)) {
      out.buffer[out.at] = TEXT.uniqueId + 1
      out.at += 17
      return
    }
  }
  out.textOf(text, 1)
}

/** Values of lower-case hexadecimal digits; capitals would come back as small ones. */
const HEX = new Int8Array(128).fill(-1)
for (let digit = 0; digit < 16; digit++) HEX[digit.toString(16).charCodeAt(0)] = digit

function guid (text: string, into: Buffer, at: number): boolean {
  if (text.charCodeAt(17) !== 0x2d || text.charCodeAt(22) !== 0x2d || text.charCodeAt(27) !== 0x2d || text.charCodeAt(32) !== 0x2d) return false
  for (const from of GUID_DIGITS) {
    const byte = (HEX[text.charCodeAt(from)] ?? -1) << 4 | (HEX[text.charCodeAt(from + 1)] ?? -1)
    if (byte < 0) return false
    into[at++] = byte
  }
  return true
}
