import { MSBIN1, MSBINSESSION1 } from '../../wire/framing/records.ts'
import { sizedEnvelope } from '../../wire/framing/encoder.ts'
import { readBinaryEnvelope } from '../../wire/soap/binary.ts'
import { writeBinaryEnvelope } from '../../wire/soap/binary-write.ts'
import { parseContentType, soapOfMediaType } from '../../wire/soap/encoding.ts'
import { WSA, type Reading } from '../../wire/soap/envelope.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import { escapeText } from '../../wire/xml/characters.ts'
import { ReaderTables, WriterTables } from '../../wire/xml/binary/tables.ts'
import type { OutgoingMessage, DuplexEndpoint } from '../channel.ts'

/** Messages ⇄ payloads of one session. Binary ones have tables that grow with each message, so the order of calls is the order on the wire. */
export interface MessageCodec {
  read (payload: Buffer): Reading
  /** @param isFramed as a Sized Envelope record, ready to be sent */
  write (message: OutgoingMessage, isFramed: boolean): Buffer
}

/** The protocol's own words for two charsets. */
const CHARSETS: Readonly<Record<string, string>> = { utf16: 'utf-16le', unicodefffe: 'utf-16be' }

/** How messages of a content type are read and written; undefined: nobody here reads it. Each session has its own. */
export function codecFor (contentType: string, limits: DuplexEndpoint['limits']): MessageCodec | undefined {
  const { type, parameters } = parseContentType(contentType)
  if (type === MSBINSESSION1) return binary(limits, new ReaderTables(), new WriterTables())
  if (type === MSBIN1) return binary(limits)
  const soap = soapOfMediaType(type)
  if (soap === undefined) return undefined
  const said = parameters.get('charset') ?? 'utf-8'
  const charset = CHARSETS[said.toLowerCase()] ?? said
  if (!isKnown(charset)) return undefined
  return {
    read: payload => readEnvelope(payload, { limits, soap, charset }),
    write ({ envelope, extraHeaders = [], to, replyTo }, isFramed) {
      const payload = writeEnvelope(envelope, { soap, addressing: 'wsa', extraHeaders: replyTo === undefined ? extraHeaders : [...extraHeaders, replyToHeader(replyTo)], to })
      return isFramed ? sizedEnvelope(payload) : payload
    },
  }
}

function isKnown (charset: string): boolean {
  try {
    return new TextDecoder(charset).encoding !== ''
  } catch {
    return false // what this throws for a name that nobody knows
  }
}

const replyToHeader = (address: string): Buffer => Buffer.from(`<ReplyTo xmlns="${WSA}"><Address>${escapeText(address)}</Address></ReplyTo>`)

/** Without tables: ids of the static dictionary only. */
const binary = (limits: DuplexEndpoint['limits'], received?: ReaderTables, sent?: WriterTables): MessageCodec => ({
  read: payload => readBinaryEnvelope(payload, received, { limits }),
  write: ({ envelope, extraHeaders, to, replyTo }, isFramed) => writeBinaryEnvelope(envelope, sent, { to, replyTo: replyTo !== undefined, extraHeaders, framed: isFramed }),
})
