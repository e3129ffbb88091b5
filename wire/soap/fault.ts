import { FAULTS, isSoaError, type FaultName, type SoaError } from '../../core/errors.ts'
import { escapeAttribute, escapeText } from '../xml/characters.ts'
import { qname, splitQName } from '../xml/events.ts'
import { TOKEN, XmlScanner } from '../xml/scan.ts'
import { HPC, SOAP11, SOAP12, WSA, type Envelope, type QName, type Reading, type SoapVersion } from './envelope.ts'
import { INTERNAL_SERVICE_FAULT, readFault, writeFault, type FaultBody, type FaultCode } from './fault-body.ts'
import { requestActionHeader } from './hpc-headers.ts'
import { declaration } from './prefixes.ts'

/** Namespace of HPC Pack's fault details, and the actions of their messages ([wire-contract] 0.3, 2.7, 3.4). */
const SESSION = 'http://hpc.microsoft.com/session/'
export const SESSION_FAULT_ACTION = `${SESSION}SessionFault`
export const RETRY_OPERATION_ERROR_ACTION = `${SESSION}RetryOperationError`
/** With this action (WCF: DefaultFaultAction) the detail's element name alone decides which exception a client throws. */
export const DEFAULT_FAULT_ACTION = `${WSA}/soap/fault`
const DISPATCHER_FAULT_ACTION = 'http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher/fault'

export interface FaultOptions {
  readonly soap: SoapVersion
  readonly relatesTo?: string | undefined
  /** Action of the request: HPC Pack's clients find the operation by it. */
  readonly requestAction?: string | undefined
  /** The reply will carry WS-Addressing (default: with SOAP 1.2). */
  readonly addressed?: boolean | undefined
}

/** The only place where something thrown becomes a SOAP fault. What is no SoaError is a bug: the client learns nothing from it, so log it. */
export function toFault (error: unknown, options: FaultOptions): Envelope {
  if (!isSoaError(error)) {
    const reason = 'The request could not be processed because of an internal error; the log of the server says more.'
    return message(options, DISPATCHER_FAULT_ACTION, { code: 'Receiver', subcodes: [INTERNAL_SERVICE_FAULT], reason })
  }
  const row = FAULTS[error.fault]
  const blame = row.blame === 'sender' ? 'Sender' : 'Receiver'
  if (row.code !== undefined) {
    return message(options, SESSION_FAULT_ACTION, { code: blame, subcodes: [`{${HPC}}${error.fault}`], reason: error.message, detail: detail(sessionFault(row.code, error)) })
  }
  switch (error.fault) {
    case 'mustUnderstand': return message(options, DEFAULT_FAULT_ACTION, plain('MustUnderstand', error), options.soap === 12 ? [notUnderstood(error.context[0] as string)] : [])
    case 'versionMismatch': return message(options, DEFAULT_FAULT_ACTION, plain('VersionMismatch', error), options.soap === 12 ? [UPGRADE] : [])
    case 'actionNotSupported': return message(options, `${WSA}/fault`, { code: 'Sender', subcodes: [`{${WSA}}ActionNotSupported`], reason: error.message })
    default: return message(options, DEFAULT_FAULT_ACTION, plain(blame, error))
  }
}

const plain = (code: FaultCode, error: SoaError): FaultBody => ({ code, subcodes: [], reason: error.message })
const detail = (content: string | Uint8Array): NonNullable<FaultBody['detail']> => ({ scope: [], attributes: '', content: typeof content === 'string' ? Buffer.from(content) : content })

/** Members in the order of the data contract; Reason is the template, which the client fills with Context, or with a text of its own. */
function sessionFault (code: number, error: SoaError): string {
  const items = error.context.map(item => `<b:anyType i:type="x:string"${declaration('x', 'http://www.w3.org/2001/XMLSchema')}>${escapeText(item)}</b:anyType>`).join('')
  return `<SessionFault xmlns="${SESSION}" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><Code>${code}</Code>` +
    `<Context xmlns:b="http://schemas.microsoft.com/2003/10/Serialization/Arrays">${items}</Context><Reason>${escapeText(FAULTS[error.fault].text)}</Reason></SessionFault>`
}

/** [SOAP 1.2] part 1, 5.4.8. What was in the request comes back only as a name: anything else would be markup of the sender's choice. */
function notUnderstood (header: QName): Buffer {
  const { uri, local } = splitQName(header)
  return Buffer.from(`<s:NotUnderstood${declaration('s', SOAP12)}${uri === '' ? '' : declaration('h', uri)} qname="${uri === '' ? '' : 'h:'}${escapeAttribute(local)}"/>`)
}

/** [SOAP 1.2] part 1, 5.4.7 */
const UPGRADE = Buffer.from(`<s:Upgrade${declaration('s', SOAP12)}><s:SupportedEnvelope qname="s:Envelope"/><s:SupportedEnvelope qname="e:Envelope"${declaration('e', SOAP11)}/></s:Upgrade>`)

function message (options: FaultOptions, action: string, fault: FaultBody, headers: readonly Uint8Array[] = []): Envelope {
  return {
    v: 1,
    soap: options.soap,
    enc: 'utf8',
    action,
    relatesTo: options.relatesTo,
    otherHeaders: options.requestAction === undefined ? headers : [...headers, requestActionHeader(options.requestAction)],
    prefixesInScope: [],
    body: writeFault(fault, options.soap, [], options.addressed ?? options.soap === 12)
  }
}

/** The response that is stored when a request is given up ([wire-contract] 2.7). */
export function retryOperationFault (request: Envelope, why: { reason: string, retryCount: number, lastFailedServiceId: string }): Envelope {
  const content = `<RetryOperationError xmlns="${SESSION}"><lastFailedServiceId>${escapeText(why.lastFailedServiceId)}</lastFailedServiceId>` +
    `<reason>${escapeText(why.reason)}</reason><retryCount>${why.retryCount}</retryCount></RetryOperationError>`
  return message({ soap: request.soap, relatesTo: request.messageId }, RETRY_OPERATION_ERROR_ACTION,
    { code: 'Receiver', subcodes: [`{${HPC}}RetryOperationError`], reason: why.reason, detail: detail(content) })
}

export interface ServiceFault {
  readonly soap: SoapVersion
  readonly blame: 'sender' | 'receiver'
  readonly reason: string
  readonly subcode?: QName | undefined
  /** Default: the action that lets the detail's element name decide. */
  readonly action?: string | undefined
  /** What stands in the detail: elements that declare all that they use. */
  readonly detail?: Uint8Array | undefined
  readonly relatesTo?: string | undefined
}

/** A fault of the user's service. */
export function serviceFault (fault: ServiceFault): Envelope {
  return message(fault, fault.action ?? DEFAULT_FAULT_ACTION, {
    code: fault.blame === 'sender' ? 'Sender' : 'Receiver',
    subcodes: fault.subcode === undefined ? [] : [fault.subcode],
    reason: fault.reason,
    detail: fault.detail === undefined ? undefined : detail(fault.detail)
  })
}

/** What a service said that wants its request retried; undefined: the reply is something else. */
export function readRetryOperationError (reading: Reading): { reason: string } | undefined {
  const found = faultDetail(reading, 'RetryOperationError')
  return found === undefined ? undefined : { reason: found.texts.get('reason')?.[0] ?? found.fault.reason }
}

export interface SessionFaultSeen {
  readonly code: number
  /** Name of the row with this code; of a code that nobody knows the subcode's name, or ''. */
  readonly name: FaultName | (string & {})
  readonly context: readonly string[]
  readonly reason: string
}

/** HPC Pack's SessionFault in a reply (Service_Preempted, Service_InitializeFailed, …); undefined: the reply is something else. */
export function readSessionFault (reading: Reading): SessionFaultSeen | undefined {
  const found = faultDetail(reading, 'SessionFault')
  const code = Number(found?.texts.get('Code')?.[0])
  if (found === undefined || !Number.isInteger(code)) return undefined
  const row = Object.entries(FAULTS).find(([, row]) => row.code === code)
  return { code, name: row?.[0] ?? splitQName(found.fault.subcodes[0] ?? '').local, context: found.texts.get('anyType') ?? [], reason: found.texts.get('Reason')?.[0] ?? found.fault.reason }
}

/** The texts in HPC's detail element by local name. Whether it is there is asked of the detail: hosts of SOAP 1.1 have no action to go by. */
function faultDetail (reading: Reading, element: string): { fault: FaultBody, texts: Map<string, string[]> } | undefined {
  const { envelope } = reading
  // Looking for the name first spares ordinary faults of services the parsing.
  if (!reading.isFault || !(envelope.action.endsWith(element) || viewOf(envelope.body).includes(element))) return undefined
  const fault = readFault(envelope)
  if (fault === undefined) return undefined
  const texts = new Map<string, string[]>()
  if (fault.detail === undefined) return envelope.action === `${SESSION}${element}` && element !== 'SessionFault' ? { fault, texts } : undefined
  const scanner = new XmlScanner().open(fault.detail.content, { maxDepth: Infinity, fragmentOf: [...fault.detail.scope, ...envelope.prefixesInScope] })
  let ours = false
  let last: string[] | undefined
  for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) {
    if (token === TOKEN.start) {
      if (scanner.depth === 1) {
        if (qname(scanner.namespace(), scanner.local()) === `{${SESSION}}${element}`) ours = true
        else scanner.skip(1)
        continue
      }
      const local = scanner.local()
      last = texts.get(local) ?? []
      texts.set(local, last)
      last.push('')
    } else if (token === TOKEN.end) last = undefined
    else if (last !== undefined) last[last.length - 1] += scanner.value(token)
  }
  return ours ? { fault, texts } : undefined
}

const viewOf = (bytes: Uint8Array): Buffer => Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
