import type { Envelope } from './envelope.ts'

/**
 * A service's reply as it goes on to clients: headers that it marks mustUnderstand stay, and the mark is taken off. They are of the hop between broker and
 * service (Java stacks mark their addressing and policy headers so), and a client that was made from the WSDL refuses the whole reply for one that it does not know.
 */
export function withoutMustUnderstand (envelope: Envelope): Envelope {
  return { ...envelope, otherHeaders: envelope.otherHeaders.map(unmarked) }
}

const NAME = 'mustUnderstand'
/** A start tag up to where it ends: quoted values may hold `>`. */
const START_TAG = /^<[^\s/>]+(?:\s+[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*'))*/
const ATTRIBUTE = /(\s[^\s=/>]+:mustUnderstand\s*=\s*)("[^"]*"|'[^']*')|\s[^\s=/>]+\s*=\s*(?:"[^"]*"|'[^']*')/g

/** latin1 has a character for each byte, so that nothing else in the element changes. */
function unmarked (header: Uint8Array): Uint8Array {
  const bytes = Buffer.isBuffer(header) ? header : Buffer.from(header.buffer, header.byteOffset, header.byteLength)
  if (!bytes.includes(NAME)) return header
  const text = bytes.toString('latin1')
  const tag = START_TAG.exec(text)?.[0] ?? ''
  const plain = tag.replace(ATTRIBUTE, (whole, before: string | undefined) => before === undefined ? whole : `${before}"0"`)
  return plain === tag ? header : Buffer.from(plain + text.slice(tag.length), 'latin1')
}
