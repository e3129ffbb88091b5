import { SoaError } from '../../core/errors.ts'
import { MSBIN1, MSBINSESSION1 } from '../../wire/framing/records.ts'
import { parseContentType, soapOfMediaType } from '../../wire/soap/encoding.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import type { OutgoingMessage, DuplexEndpoint } from '../channel.ts'

/** Messages ⇄ payloads of one session. Binary ones have tables that grow with each message, so the order of calls is the order on the wire. */
export interface MessageCodec {
  read (payload: Buffer): Reading
  write (message: OutgoingMessage): Buffer
}

/** How messages of a content type are read and written; undefined: nobody here reads it. Each session has its own. */
export function codecFor (contentType: string, limits: DuplexEndpoint['limits'], _via: string): MessageCodec | undefined {
  const { type, parameters } = parseContentType(contentType)
  const soap = soapOfMediaType(type)
  if (soap === undefined) return type === MSBIN1 || type === MSBINSESSION1 ? undefined : undefined
  // The protocol's own words for two charsets.
  const charset = { utf16: 'utf-16le', unicodefffe: 'utf-16be' }[(parameters.get('charset') ?? '').toLowerCase()] ?? parameters.get('charset')
  return {
    read (payload) {
      const reading = readEnvelope(payload, { limits, soap, charset })
      if (reading.envelope.soap !== soap) throw new SoaError('badEnvelope', { why: 'another SOAP version than the session has' })
      return reading
    },
    write: ({ envelope, extraHeaders, to }) => writeEnvelope(envelope, { soap, addressing: 'wsa', extraHeaders, to }),
  }
}
