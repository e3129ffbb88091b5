import { isSoaError, SoaError } from '../core/errors.ts'
import { FrameDecoder } from '../wire/framing/decoder.ts'
import { listFrames, type FrameRecord } from '../wire/framing/listing.ts'
import { MODE, MSBIN1, MSBINSESSION1, RECORD, type Mode } from '../wire/framing/records.ts'
import { parseContentType, toUtf8 } from '../wire/soap/encoding.ts'
import { describe, listRecords } from '../wire/xml/binary/listing.ts'
import { ReaderTables, STATIC, type Strings } from '../wire/xml/binary/tables.ts'
import { fragmentToText } from '../wire/xml/binary/to-text.ts'

/** What a file can hold. */
export const FORMS = {
  conversation: 'one side of a net.tcp connection, from its first byte, or any records of one',
  payload: 'what stands in a Sized Envelope: string table and binary XML',
  nbfx: 'binary XML alone, as in a Unsized Envelope or an HTTP body of application/soap+msbin1',
  http: 'an HTTP message, head and body',
  xml: 'text XML'
} as const
export type Form = keyof typeof FORMS

/** One thing found, at an offset of the file. */
export interface Item {
  readonly at: number
  readonly record: string
  readonly value?: string | number
  readonly bytes?: number
  /** Strings that the message adds to its session. */
  readonly newStrings?: readonly string[]
  readonly xml?: string
  readonly records?: ReadonlyArray<{ readonly at: number, readonly record: string }>
  /** What is wrong with it; nothing behind it can be read when it is the last. */
  readonly error?: string
}

/** Hexadecimal digits and blanks become the bytes that they say. @param from undefined: hex when nothing else is in the file */
export function bytesOfFile (content: Buffer, from: 'hex' | 'binary' | undefined, file: string): Buffer {
  if (from === 'binary') return content
  const text = content.toString('latin1')
  const wrong = /[^0-9a-fA-F\s]/.exec(text)
  const digits = text.replace(/\s+/g, '')
  if (from === undefined && (wrong !== null || digits === '')) return content
  if (wrong !== null) throw new SoaError('InvalidArgument', { argument: file, why: `byte ${wrong.index} is no hexadecimal digit (0x${content[wrong.index]?.toString(16).padStart(2, '0')}); use --from binary if it is raw` })
  if (digits.length % 2 === 1) throw new SoaError('InvalidArgument', { argument: file, why: `it has ${digits.length} hexadecimal digits, which is half a byte too many` })
  return Buffer.from(digits, 'hex')
}

/** What the first bytes look like. */
export function guessForm (bytes: Buffer): Form {
  const start = bytes.subarray(0, 16).toString('latin1')
  if (/^(HTTP\/1\.|[A-Z]{3,8} \S)/.test(start)) return 'http'
  if (/^(\xef\xbb\xbf)?\s*</.test(start)) return 'xml'
  const first = bytes[0] ?? 0
  return first >= 0x40 && first < 0x78 ? 'nbfx' : 'conversation'
}

export function decodeWire (bytes: Buffer, form: Form, withRecords: boolean): Item[] {
  switch (form) {
    case 'conversation': return conversation(bytes, withRecords)
    case 'payload': return [document('payload', 0, bytes, new ReaderTables(Infinity), withRecords)]
    case 'nbfx': return [document('nbfx', 0, bytes, undefined, withRecords)]
    case 'http': return http(bytes, withRecords)
    case 'xml': return [{ at: 0, record: 'xml', bytes: bytes.length, xml: toUtf8(bytes).toString() }]
  }
}

function conversation (bytes: Buffer, withRecords: boolean): Item[] {
  const items: Item[] = []
  let tables = new ReaderTables(Infinity); let contentType: string | undefined
  for (const frame of listFrames(bytes)) {
    if (frame.error !== undefined) return [...items, { at: frame.at, record: frame.record, error: frame.error }]
    if (frame.record === 'knownEncoding' || frame.record === 'extensibleEncoding') contentType = frame.text
    // Each preamble begins a session with an empty table; on the server's side the answer to one does.
    if (frame.record === 'version' || frame.record === 'preambleAck') tables = new ReaderTables(Infinity)
    items.push(frame.payload === undefined ? plain(frame) : envelope(frame, frame.payload, contentType, tables, withRecords))
    // What follows on the wire is TLS.
    if (frame.record !== 'upgradeRequest' && frame.record !== 'upgradeResponse') continue
    const behind = frame.end
    if (bytes.length > behind && bytes[behind] !== RECORD.preambleEnd && bytes[behind] !== RECORD.preambleAck) {
      return [...items, { at: behind, record: 'upgraded', bytes: bytes.length - behind, value: 'bytes of the upgrade, which are not read' }]
    }
  }
  const refused = refusal(bytes, items)
  return refused === undefined ? items : [...items, { at: 0, record: 'order', error: refused }]
}

/** What a peer would say to a whole conversation beyond what is wrong with single records. */
function refusal (bytes: Buffer, items: readonly Item[]): string | undefined {
  const first = bytes[0]
  if ((first !== RECORD.version || bytes.length < 5) && first !== RECORD.preambleAck) return undefined
  const decoder = new FrameDecoder({ of: first === RECORD.version ? 'client' : 'server', maxMessageSize: bytes.length, mode: items.some(item => item.record === 'unsizedEnvelope') ? MODE.singletonUnsized : MODE.duplex as Mode }).push(bytes)
  try {
    while (decoder.next() !== undefined) if (decoder.state === 'ended') decoder.again()
  } catch (error) {
    if (isSoaError(error)) return plainly(error)
    throw error
  }
  return undefined
}

const plain = ({ at, record, version, mode, text }: FrameRecord): Item => ({ at, record, ...(version ?? mode ?? text) === undefined ? {} : { value: (version ?? mode ?? text) as string | number } })

function envelope (frame: FrameRecord, payload: Buffer, contentType: string | undefined, tables: ReaderTables, withRecords: boolean): Item {
  const type = contentType === undefined ? undefined : parseContentType(contentType).type
  const isText = guessForm(payload) === 'xml' && type !== MSBIN1 && type !== MSBINSESSION1
  const at = frame.at
  if (isText) return { at, record: frame.record, bytes: payload.length, xml: toUtf8(payload).toString() }
  return document(frame.record, at, payload, type === MSBIN1 || frame.record === 'unsizedEnvelope' ? undefined : tables, withRecords)
}

function document (record: string, at: number, payload: Buffer, tables: ReaderTables | undefined, withRecords: boolean): Item {
  const item = { at, record, bytes: payload.length }
  const before = tables?.size ?? 0
  let from = 0
  try {
    from = tables?.load(payload) ?? 0
  } catch (error) {
    if (!isSoaError(error)) throw error
    return { ...item, error: plainly(error) }
  }
  const strings: Strings = tables ?? STATIC
  const newStrings = Array.from({ length: (tables?.size ?? 0) - before }, (_, i) => strings.text(2 * (before + i) + 1) as string)
  const nbfx = payload.subarray(from)
  // Offsets in what is wrong count from the document's first byte.
  const inDocument = (error: unknown): string => {
    if (!isSoaError(error)) throw error
    return `${plainly(error)}${from === 0 ? '' : ` of the document, which begins at byte ${from} of the payload`}`
  }
  let more: Partial<Item> = {}
  try {
    more = { xml: fragmentToText(nbfx, [], strings).toString() }
  } catch (error) {
    more = { error: inDocument(error) }
  }
  if (withRecords) {
    try {
      more = { ...more, records: listRecords(nbfx, strings).map(one => ({ at: one.at, record: describe(one, strings) })) }
    } catch (error) {
      more = { ...more, error: inDocument(error) }
    }
  }
  return { ...item, ...(newStrings.length > 0 ? { newStrings } : {}), ...more }
}

/** Without whose rule it breaks: here the file itself is what is looked at. */
const plainly = (error: Error): string => error.message.replace(/^(no SOAP envelope|XML is not accepted|net\.tcp framing): /, '')

function http (bytes: Buffer, withRecords: boolean): Item[] {
  const [head = '', gap = ''] = /^([\s\S]*?)(\r?\n\r?\n)/.exec(bytes.toString('latin1'))?.slice(1) ?? [bytes.toString('latin1'), '']
  const at = head.length + gap.length
  const body = bytes.subarray(at)
  const items: Item[] = [{ at: 0, record: 'head', value: head.split(/\r?\n/)[0] ?? '' }]
  if (body.length === 0) return items
  const { type, parameters } = parseContentType(/^content-type:\s*(.*?)\s*$/im.exec(head)?.[1] ?? '')
  if (type === MSBIN1 || type === MSBINSESSION1 || guessForm(body) === 'nbfx') return [...items, document('body', at, body, type === MSBINSESSION1 ? new ReaderTables(Infinity) : undefined, withRecords)]
  try {
    return [...items, { at, record: 'body', bytes: body.length, xml: toUtf8(body, parameters.get('charset')).toString() }]
  } catch (error) {
    if (!isSoaError(error)) throw error
    return [...items, { at, record: 'body', bytes: body.length, error: error.message }]
  }
}

/** An item as lines for people. */
export function linesOf (item: Item): string[] {
  const place = String(item.at).padStart(7)
  const facts = [item.record, item.value, item.bytes === undefined ? undefined : `${item.bytes} bytes`].filter(fact => fact !== undefined).join('  ')
  return [
    `${place}  ${facts}`,
    ...item.newStrings === undefined ? [] : [`         strings: ${item.newStrings.map(text => JSON.stringify(text)).join(' ')}`],
    ...item.records?.map(record => `         ${String(record.at).padStart(5)}  ${record.record}`) ?? [],
    ...item.xml === undefined ? [] : [`         ${item.xml}`],
    ...item.error === undefined ? [] : [`         error: ${item.error}`]
  ]
}
