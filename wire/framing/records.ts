/**
 * [MC-NMF] 2.2: every byte on a net.tcp connection belongs to one of these records; `size` is size.ts's number.
 *
 *     00 Version         major, minor                       05 Unsized Envelope   { size > 0, bytes } … 00      0a Upgrade Response
 *     01 Mode            one byte                           06 Sized Envelope     size, bytes                   0b Preamble Ack
 *     02 Via             size, UTF-8                        07 End                                              0c Preamble End
 *     03 Known Encoding  one byte                           08 Fault              size > 0, UTF-8
 *     04 Extensible Enc. size, UTF-8                        09 Upgrade Request    size, UTF-8
 *
 *     client: 00 01 02 03|04 [09 → the server's 0a, then TLS] 0c        06 06 …  or  05        07
 *     server:                                                 0b|08     06 06 …  or  05        07
 */
export const RECORD = {
  version: 0x00,
  mode: 0x01,
  via: 0x02,
  knownEncoding: 0x03,
  extensibleEncoding: 0x04,
  unsizedEnvelope: 0x05,
  sizedEnvelope: 0x06,
  end: 0x07,
  fault: 0x08,
  upgradeRequest: 0x09,
  upgradeResponse: 0x0a,
  preambleAck: 0x0b,
  preambleEnd: 0x0c
} as const
export type RecordName = keyof typeof RECORD

/** Name of a record by its code. */
export const RECORD_NAMES = Object.keys(RECORD) as readonly RecordName[]

/** 1: one unsized envelope each way (WCF: streamed). 2: any number of sized ones (WCF: buffered, its default). 3 and 4 are for queues and not served. */
export const MODE = { singletonUnsized: 1, duplex: 2 } as const
export type Mode = (typeof MODE)[keyof typeof MODE]

/** Content types by the byte of a Known Encoding record. The spelling of the charsets is the protocol's own. */
export const KNOWN_ENCODINGS: readonly string[] = [
  'text/xml; charset=utf-8', 'text/xml; charset=utf16', 'text/xml; charset=unicodeFFFE',
  'application/soap+xml; charset=utf-8', 'application/soap+xml; charset=utf16', 'application/soap+xml; charset=unicodeFFFE',
  'multipart/related', 'application/soap+msbin1', 'application/soap+msbinsession1'
]
/** Binary XML with the static dictionary only (mode 1, and HTTP). */
export const MSBIN1 = 'application/soap+msbin1'
/** Binary XML with a table of strings that lasts as long as the session (mode 2). */
export const MSBINSESSION1 = 'application/soap+msbinsession1'

export const SSL_TLS = 'application/ssl-tls'
export const NEGOTIATE = 'application/negotiate'

/** Bytes that a peer's text may have; what .NET accepts ([MC-NMF] says nothing). Upgrade names count as content types. */
export const MAX_TEXT_BYTES = { via: 2048, contentType: 256, upgrade: 256, fault: 256 } as const
