import { qname } from '../xml/events.ts'
import { readBinary } from '../xml/binary/read.ts'
import { BinaryScanner, TOKEN } from '../xml/binary/scan.ts'
import { fragmentToBinary } from '../xml/binary/from-text.ts'
import { fragmentToText } from '../xml/binary/to-text.ts'
import { readText } from '../xml/text.ts'
import type { XmlHandler } from '../xml/events.ts'
import type { Envelope, QName } from './envelope.ts'

/** A body in the other of its two forms, and what is asked of a body whatever its form. */

/** The envelope with its body as text; itself when it is. Throws as `fragmentToText` does. */
export function withTextBody (envelope: Envelope): Envelope {
  return envelope.enc === 'utf8' ? envelope : { ...envelope, enc: 'utf8', body: fragmentToText(envelope.body, envelope.prefixesInScope) }
}

/** The envelope with its body as binary XML with static ids only; itself when it is. Throws badEnvelope when its text is no XML. */
export function withBinaryBody (envelope: Envelope): Envelope {
  return envelope.enc === 'utf8' ? { ...envelope, enc: 'nbfx-static', body: fragmentToBinary(envelope.body, envelope.prefixesInScope) } : envelope
}

/** The body as events, whichever its form. Throws badXml, overLimit (maxDepth; default 128), or what the handler throws. */
export function readEnvelopeBody (envelope: Pick<Envelope, 'enc' | 'body' | 'prefixesInScope'>, handler: XmlHandler, options: { maxDepth?: number } = {}): void {
  (envelope.enc === 'utf8' ? readText : readBinary)(envelope.body, handler, { ...options, fragment: true, scope: envelope.prefixesInScope })
}

const scanner = new BinaryScanner()

/** Name of the first element of a binary body; undefined: there is none. Looks no further. */
export function firstElement (envelope: Envelope): QName | undefined {
  try {
    scanner.open(envelope.body, { maxDepth: Infinity, fragmentOf: envelope.prefixesInScope })
    for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) {
      if (token === TOKEN.start || token === TOKEN.array) return qname(scanner.namespace(), scanner.local())
    }
    return undefined
  } finally {
    scanner.close()
  }
}
