import type { SoaError } from '../../core/errors.ts'
import { qname } from '../xml/events.ts'
import { HPC, OLD_WSA, SOAP11, SOAP12, WSA, WSA_NONE, type BodyEncoding, type QName, type Reading, type Scope, type SoapVersion } from './envelope.ts'
import { HPC_HEADER } from './hpc-headers.ts'

const WSSE = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd'

/** What the header block says, as it is found. */
export interface Found {
  action?: string
  noneAction?: string
  /** A header named Action in any other namespace: where SOAP 1.1 hosts put it ([broker-behaviour] 4.5). */
  strayAction?: string
  messageId?: string
  hpcMessageId?: string
  relatesTo?: string
  /** The same by an older WS-Addressing. */
  old: { action?: string, messageId?: string, relatesTo?: string }
  to?: string
  replyTo?: string
  clientId?: string
  batchId?: number
  requestAction?: string
  preemption?: number
  userData?: Uint8Array
  addressed: boolean
  others: Uint8Array[]
  mustUnderstand: QName[]
}

export const nothingFound = (): Found => ({ old: {}, addressed: false, others: [], mustUnderstand: [] })

/** One header element, its start tag just read: what the readers of text and of binary XML both show. One of the last four is called, once, and leads behind its end. */
export interface HeaderElement {
  namespace (): string
  local (): string
  attribute (namespace: string, local: string): string | undefined
  bad (why: string): SoaError
  /** Its text; elements in it are refused. */
  text (): string
  skip (): void
  /** The Address in an endpoint reference; the rest is passed over. */
  address (): string | undefined
  /** All of it as text XML that can stand anywhere. @param hear hears the text in it. */
  whole (hear?: (text: string) => void): Uint8Array
}

/** Takes in one header. Throws badEnvelope for one that is there twice, or is no number where one is due. */
export function takeHeader (element: HeaderElement, soapNamespace: string, found: Found): void {
  const namespace = element.namespace()
  const local = element.local()
  if (namespace === WSA) {
    found.addressed = true
    switch (local) {
      case 'Action': return put(element, local, found, 'action')
      case 'MessageID': return put(element, local, found, 'messageId')
      case 'To': return put(element, local, found, 'to')
      case 'RelatesTo': {
        // A message may relate to others in other ways; only "this is the reply to" is a field of ours.
        const relationship = element.attribute('', 'RelationshipType')
        if (found.relatesTo !== undefined || (relationship !== undefined && relationship !== `${WSA}/reply`)) break
        found.relatesTo = element.text().trim()
        return
      }
      case 'ReplyTo': {
        const address = element.address()
        if (address !== undefined) found.replyTo = address
        return
      }
      case 'FaultTo': case 'From': return element.skip()
    }
  } else if (namespace === HPC) {
    switch (local) {
      case HPC_HEADER.clientId: once(element, local, found, 'clientId'); found.clientId = element.text(); return
      case HPC_HEADER.userData: once(element, local, found, 'userData'); found.userData = element.whole(); return
      case HPC_HEADER.messageId: return put(element, local, found, 'hpcMessageId')
      case HPC_HEADER.requestAction: return put(element, local, found, 'requestAction')
      case HPC_HEADER.clientInstanceId: return number(element, local, found, 'batchId')
      case HPC_HEADER.preemption: return number(element, local, found, 'preemption')
    }
  } else if (namespace === WSA_NONE) {
    if (local === 'Action') return put(element, local, found, 'noneAction')
    if (local === 'To') return put(element, local, found, 'to')
  } else if (namespace === WSSE && local === 'Security') return element.skip()
  else if (OLD_WSA.includes(namespace)) {
    const field = local === 'Action' ? 'action' : local === 'MessageID' ? 'messageId' : local === 'RelatesTo' ? 'relatesTo' : undefined
    if (field === undefined || found.old[field] !== undefined) return element.skip()
    const value = element.text().trim()
    if (value !== '') found.old[field] = value
    return
  }

  if (isForUs(element, soapNamespace)) found.mustUnderstand.push(qname(namespace, local))
  if (local !== 'Action' || found.strayAction !== undefined) {
    found.others.push(element.whole())
    return
  }
  let action = ''
  found.others.push(element.whole(text => { action += text }))
  if (action.trim() !== '') found.strayAction = action.trim()
}

function once (element: HeaderElement, local: string, found: Found, field: keyof Found): void {
  if (found[field] !== undefined) throw element.bad(`header ${local} is there twice`)
}

function put (element: HeaderElement, local: string, found: Found, field: 'action' | 'noneAction' | 'messageId' | 'hpcMessageId' | 'to' | 'requestAction'): void {
  once(element, local, found, field)
  const value = element.text().trim()
  if (value !== '') found[field] = value
}

function number (element: HeaderElement, local: string, found: Found, field: 'batchId' | 'preemption'): void {
  once(element, local, found, field)
  const value = element.text().trim()
  if (!/^[+-]?\d{1,10}$/.test(value)) throw element.bad(`header ${local} is no whole number`)
  found[field] = Number(value)
}

/** mustUnderstand is set and the header is meant for whoever reads the message. [SOAP 1.1] 4.2.2-4.2.3, [SOAP 1.2] part 1, 2.2 and 5.2.3 */
function isForUs (element: HeaderElement, soapNamespace: string): boolean {
  const must = element.attribute(soapNamespace, 'mustUnderstand')?.trim()
  if (must !== '1' && must !== 'true') return false
  const role = element.attribute(soapNamespace, soapNamespace === SOAP11 ? 'actor' : 'role')?.trim() ?? ''
  return role === '' || role === 'http://schemas.xmlsoap.org/soap/actor/next' || role === `${SOAP12}/role/next` || role === `${SOAP12}/role/ultimateReceiver`
}

/** What was found in the header and the rest of the message, as a reading. @param soapAction what HTTP carried; WS-Addressing's wins. */
export function readingOf (found: Found, rest: {
  soap: SoapVersion
  enc: BodyEncoding
  soapAction: string | undefined
  prefixesInScope: Scope
  body: Uint8Array
  bodyElement: QName | undefined
  isFault: boolean
}): Reading {
  return {
    envelope: {
      v: 1,
      soap: rest.soap,
      enc: rest.enc,
      action: found.action ?? found.noneAction ?? found.old.action ?? (rest.soapAction || found.strayAction) ?? '',
      messageId: found.messageId ?? found.hpcMessageId ?? found.old.messageId,
      relatesTo: found.relatesTo ?? found.old.relatesTo,
      clientId: found.clientId,
      userData: found.userData,
      otherHeaders: found.others,
      prefixesInScope: rest.prefixesInScope,
      body: rest.body
    },
    batchId: found.batchId ?? -1,
    requestAction: found.requestAction,
    to: found.to,
    replyTo: found.replyTo,
    preemption: found.preemption,
    mustUnderstand: found.mustUnderstand,
    bodyElement: rest.bodyElement,
    isFault: rest.isFault,
    addressed: found.addressed
  }
}
