import { SoaError } from '../core/errors.ts'
import { withTextBody } from '../wire/soap/body-form.ts'
import type { Envelope, Reading, Scope } from '../wire/soap/envelope.ts'
import { decodeUtf8 } from '../wire/xml/text.ts'
import { readTree, type XmlNode } from '../wire/xml/tree.ts'
import { httpAction, parseContentType, soapOfMediaType } from '../wire/soap/encoding.ts'
import { readFault, type FaultDetail } from '../wire/soap/fault-body.ts'
import { readEnvelope } from '../wire/soap/read.ts'
import { RetryOperationError, SoapFaultError, type FaultFacts } from './errors.ts'
import { StatusError } from './retry.ts'
import type { Answer } from './transport.ts'

/** Namespace of SessionFault and RetryOperationError ([wire-contract] 2.7). */
const SESSION = 'http://hpc.microsoft.com/session/'

/** What a client reads: a head may be of a newer version with larger limits, so these are only a guard against nonsense. */
export const READ_LIMITS = { maxHeaderBytes: 1024 * 1024, maxDepth: 1000 } as const

/** How a declared fault's detail becomes a value; undefined for one that the WSDL does not declare. */
export type DetailReader = (detail: Uint8Array, scope: Scope) => unknown

/** The SOAP message of an HTTP answer. Throws SoaError as `readEnvelope` does. */
export function readAnswer (answer: Answer): Reading {
  if ('reading' in answer) {
    if (answer.reading === undefined) throw new SoaError('badEnvelope', { why: 'there is no message' })
    return { ...answer.reading, envelope: withTextBody(answer.reading.envelope) }
  }
  const type = parseContentType(answer.contentType)
  return readEnvelope(answer.body, { limits: READ_LIMITS, soapAction: httpAction(type, undefined), charset: type.parameters.get('charset') })
}

/** An HTTP answer that is no success, as an error: the fault in it, or its status where there is none. */
export function faultAnswer (answer: Answer, readDetail?: DetailReader): Error {
  if (!('reading' in answer) && soapOfMediaType(parseContentType(answer.contentType).type) === undefined) return new StatusError(answer.status, Buffer.from(answer.body).toString('utf8').trim())
  const reading = readAnswer(answer)
  return reading.isFault ? faultOf(reading, readDetail) : new StatusError(answer.status, 'a SOAP message that is no fault')
}

/** The fault that a message carries. */
export function faultOf (reading: Pick<Reading, 'envelope'>, readDetail?: DetailReader): SoapFaultError {
  const envelope = withTextBody(reading.envelope)
  const fault = readFault(envelope)
  if (!fault) return new SoapFaultError({ code: 'Receiver', reason: 'a fault that cannot be read', action: envelope.action })
  const { detail } = fault
  const facts: FaultFacts = {
    code: fault.code,
    subcode: fault.subcodes[0],
    reason: fault.reason,
    action: envelope.action || undefined,
    detail: detail && decodeUtf8(detail.content),
    value: detail && readDetail?.(detail.content, scopeOf(envelope, detail))
  }
  const element = detail && detailElement(envelope, detail)
  const text = (local: string): string => element?.first(SESSION, local)?.text ?? ''
  if (element?.local === 'RetryOperationError') return new RetryOperationError(facts, { lastFailedServiceId: text('lastFailedServiceId'), retryCount: Number(text('retryCount')) || 0 })
  if (element?.local !== 'SessionFault' || !/^\s*-?\d+\s*$/.test(text('Code'))) return new SoapFaultError(facts)
  return new SoapFaultError(facts, { code: Number(text('Code')), context: element.first(SESSION, 'Context')?.children.map(item => item.text) ?? [] })
}

const scopeOf = (envelope: Envelope, detail: FaultDetail): Scope => [...detail.scope, ...envelope.prefixesInScope.filter(([prefix]) => !detail.scope.some(([inner]) => inner === prefix))]

/** The detail's element if it is one of HPC Pack's own; a detail of somebody else's is not looked into further. */
function detailElement (envelope: Envelope, detail: FaultDetail): XmlNode | undefined {
  if (!Buffer.from(detail.content.buffer, detail.content.byteOffset, detail.content.length).includes('hpc.microsoft.com/session') && !scopeOf(envelope, detail).some(([, uri]) => uri === SESSION)) return undefined
  return readTree(detail.content, { scope: scopeOf(envelope, detail), fragment: true, maxDepth: READ_LIMITS.maxDepth }).find(node => node.uri === SESSION)
}
