import { SoaError } from '../core/errors.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { TOKEN, XmlScanner } from '../wire/xml/scan.ts'

/** Action of the message that ends the responses pushed to a client ([wire-contract] 3.1). */
export const END_OF_GET_RESPONSE = 'http://hpc.microsoft.com/EndOfGetResponse'

export type EndReason = 'Success' | 'ClientPurged' | 'ClientTimeout'

/** How many messages were pushed since the last Begin, faults of the broker among them, and why no more will come. */
export interface EndOfResponses { readonly count: number, readonly reason: EndReason }

/** HPC's message contract EndOfResponses ([wire-contract] 2.7): the wrapper and its members are in WCF's default namespace. */
export function endOfResponses ({ count, reason }: EndOfResponses): Envelope {
  return {
    v: 1,
    soap: 12,
    enc: 'utf8',
    action: END_OF_GET_RESPONSE,
    otherHeaders: [],
    prefixesInScope: [],
    body: Buffer.from(`<EndOfResponses xmlns="http://tempuri.org/"><Count>${count}</Count><Reason>${reason}</Reason></EndOfResponses>`)
  }
}

/** What such a message says, from its body as text. Throws badEnvelope where it says nothing. */
export function readEndOfResponses (body: Uint8Array): EndOfResponses {
  const scanner = new XmlScanner().open(body, { maxDepth: 16 })
  let count: number | undefined
  let reason: string | undefined
  for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) {
    if (token !== TOKEN.start) continue
    if (scanner.local() === 'Count') count = Number(scanner.elementText('Count'))
    else if (scanner.local() === 'Reason') reason = scanner.elementText('Reason')
  }
  if (count === undefined || !Number.isSafeInteger(count) || reason === undefined) throw new SoaError('badEnvelope', { why: 'an EndOfResponses without Count and Reason' })
  return { count, reason: reason as EndReason }
}
