/**
 * PullResponsesResult, the one reply written by XmlSerializer ([wire-contract] 2.7): `EOM`, then `SOAPMessage` once per response, each with one
 * complete SOAP 1.1 envelope. The envelopes pass through as they are: written by one copy, read as pieces of the text.
 */
import { SoaError } from '../core/errors.ts'
import type { Scope } from '../wire/soap/envelope.ts'
import { decodeUtf8, readText } from '../wire/xml/text.ts'
import { BROKER_CONTROLLER } from './contracts.ts'

const { namespace } = BROKER_CONTROLLER
const OPEN = Buffer.from('<SOAPMessage>')
const CLOSE = Buffer.from('</SOAPMessage>')

/** The type in a schema, as XmlSerializer writes it. */
export const PULLED_PAGE_TYPE = {
  name: 'BrokerResponseMessages',
  schema: '<xs:complexType name="BrokerResponseMessages"><xs:sequence><xs:element minOccurs="1" maxOccurs="1" name="EOM" type="xs:boolean"/>' +
    '<xs:element minOccurs="0" maxOccurs="unbounded" name="SOAPMessage"><xs:complexType mixed="true"><xs:sequence><xs:any processContents="skip"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType>'
} as const

/** The whole body of PullResponsesResponse. `envelopes`: self-contained, without XML declaration. */
export function writePulledPage (endOfMessages: boolean, envelopes: readonly Uint8Array[]): Buffer {
  const head = Buffer.from(`<PullResponsesResponse xmlns="${namespace}"><PullResponsesResult><EOM>${String(endOfMessages)}</EOM>`)
  const tail = Buffer.from('</PullResponsesResult></PullResponsesResponse>')
  return Buffer.concat([head, ...envelopes.flatMap(envelope => [OPEN, envelope, CLOSE]), tail])
}

/** The body of PullResponsesResponse: the end mark, and each envelope as text. */
export function readPulledPage (body: Uint8Array, scope: Scope, maxDepth = 192): { endOfMessages: boolean, envelopes: string[] } {
  const xml = decodeUtf8(body)
  const path: string[] = []
  const starts: number[] = []
  /** Where the piece behind an envelope begins: the start of the next element at SOAPMessage's level. */
  const ends: number[] = []
  let endOfMessages = ''
  let tagStart = 0
  readText(xml, {
    start (element) {
      path.push(element.local)
      if (path.length === 3 && starts.length > ends.length) ends.push(tagStart)
      if (path.length === 4 && path[2] === 'SOAPMessage') starts.push(tagStart)
    },
    text (value) { if (path.length === 3 && path[2] === 'EOM') endOfMessages += value },
    end () { path.pop() },
  }, { scope, fragment: true, maxDepth, at (end) { tagStart = xml.lastIndexOf('<', end - 1) } })
  // Behind the last envelope come the end tags of SOAPMessage, PullResponsesResult and PullResponsesResponse.
  if (starts.length > ends.length) ends.push(xml.lastIndexOf('</', xml.lastIndexOf('</') - 1))
  if (!/^\s*(true|false|1|0)\s*$/.test(endOfMessages)) throw new SoaError('badEnvelope', { why: `PullResponsesResult has EOM "${endOfMessages.slice(0, 20)}"` })
  const envelopes = starts.map((start, i) => xml.slice(start, xml.lastIndexOf('</', (ends[i] as number) - 1)))
  return { endOfMessages: /true|1/.test(endOfMessages), envelopes }
}
