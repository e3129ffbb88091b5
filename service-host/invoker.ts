/** One request → one method of the user's service → one reply. Turns values into bodies and back; knows nothing of sockets, queues or the host's end. */
import { cutText } from '../core/cut-text.ts'
import { SoaError, isSoaError } from '../core/errors.ts'
import { readEnvelopeBody } from '../wire/soap/body-form.ts'
import type { Envelope, Reading } from '../wire/soap/envelope.ts'
import { retryOperationFault, serviceFault, toFault, type ServiceFault } from '../wire/soap/fault.ts'
import { INTERNAL_SERVICE_FAULT } from '../wire/soap/fault-body.ts'
import { escapeText } from '../wire/xml/text-writer.ts'
import type { WsdlOperation } from '../wsdl/document.ts'
import { checkRaw } from '../wsdl/schema/raw.ts'
import { BodyReader } from '../wsdl/schema/reader.ts'
import type { SchemaSet } from '../wsdl/schema/schema.ts'
import { writeElement } from '../wsdl/schema/writer.ts'
import { isRetryOperationError, isSoapFault } from './index.ts'
import { cleanText, nodeSoapFault } from './node-soap.ts'
import type { ServiceContext, ServiceLogger } from './service-context.ts'
import type { Method } from './service-loader.ts'

export interface InvokerNeeds {
  readonly schema: SchemaSet
  readonly operations: readonly WsdlOperation[]
  readonly methods: ReadonlyMap<string, Method>
  readonly taskId: string
  readonly maxDepth: number
  /** Bytes; a reply's body that is larger would be refused by the broker, and tried again in vain. */
  readonly maxMessageSize: number
  readonly includeExceptionDetailInFaults: boolean
  /** Unknown elements and attributes of requests are skipped. */
  readonly isLenient?: boolean
  readonly log: ServiceLogger
}

/** Faults are replies like others here; `oneWay`: nothing is sent back. */
export type Invoked = { readonly envelope: Envelope, readonly isFault: boolean } | { readonly oneWay: true }

const EXCEPTION_DETAIL = 'http://schemas.datacontract.org/2004/07/System.ServiceModel'
const DISPATCHER_FAULT = 'http://schemas.microsoft.com/net/2005/12/windowscommunicationfoundation/dispatcher/fault'

export class Invoker {
  readonly #needs: InvokerNeeds
  readonly #byAction: ReadonlyMap<string, WsdlOperation>
  readonly #byElement: ReadonlyMap<string, WsdlOperation>

  constructor (needs: InvokerNeeds) {
    this.#needs = needs
    this.#byAction = new Map(needs.operations.flatMap(op => [...op.actions].map(action => [action, op])))
    this.#byElement = new Map(needs.operations.map(op => [op.inputElement ?? '', op]))
  }

  /** The operation that a message is for: by its action, else (SOAP 1.1 without one) by its body element. Throws `mustUnderstand` or `actionNotSupported`. */
  find (reading: Reading): WsdlOperation {
    const header = reading.mustUnderstand[0]
    if (header !== undefined) throw new SoaError('mustUnderstand', { header })
    const { action } = reading.envelope
    const op = action === '' ? this.#byElement.get(reading.bodyElement ?? '') : this.#byAction.get(action)
    if (!op) throw new SoaError('actionNotSupported', { action: action === '' ? `(none, body element ${reading.bodyElement ?? 'missing'})` : action })
    return op
  }

  /** Never rejects: whatever goes wrong is a fault, and is logged if it is not the caller's. */
  async invoke (reading: Reading, contextOf: (op: WsdlOperation) => ServiceContext): Promise<Invoked> {
    let op: WsdlOperation | undefined
    try {
      op = this.find(reading)
      const args = this.#read(reading, op)
      const method = this.#needs.methods.get(op.name) as Method
      const result = await method(args, contextOf(op))
      return op.outputElement === undefined && op.oneWay ? { oneWay: true } : this.#fitting(reading, op, { envelope: this.#reply(reading, op, result), isFault: false })
    } catch (error) {
      if (op?.oneWay) {
        this.#needs.log.warn({ err: asError(error), operation: op.name, messageId: reading.envelope.messageId }, 'one-way call failed')
        return { oneWay: true }
      }
      return this.#fitting(reading, op, { envelope: this.#fault(reading, op, error), isFault: true })
    }
  }

  /** A reply, or a fault's detail, that is more than the broker takes: the client is told so. */
  #fitting (reading: Reading, op: WsdlOperation | undefined, answer: { envelope: Envelope, isFault: boolean }): Invoked {
    const { maxMessageSize, log } = this.#needs
    const { soap, messageId } = reading.envelope
    const bytes = answer.envelope.body.length
    if (bytes <= maxMessageSize) return answer
    const reason = `the ${answer.isFault ? 'fault' : 'reply'} of ${op?.name ?? 'the service'} has ${bytes} bytes, the limit is ${maxMessageSize} (maxMessageSize)`
    log.error({ operation: op?.name, messageId }, reason)
    return { envelope: serviceFault({ soap, relatesTo: messageId, blame: 'receiver', reason }), isFault: true }
  }

  #read (reading: Reading, op: WsdlOperation): unknown {
    const { envelope } = reading
    if (reading.bodyElement !== op.inputElement) throw new SoaError('badBody', { path: '/', why: `${op.name} takes ${op.inputElement ?? 'an empty body'}, not ${reading.bodyElement ?? 'an empty body'}` })
    const reader = new BodyReader(this.#needs.schema, { isLenient: this.#needs.isLenient ?? false })
    readEnvelopeBody(envelope, reader, { maxDepth: this.#needs.maxDepth })
    return reader.result?.value ?? {}
  }

  #reply (reading: Reading, op: WsdlOperation, result: unknown): Envelope {
    const body = op.outputElement === undefined ? '' : writeElement(this.#needs.schema, op.outputElement, result ?? {})
    return {
      v: 1, soap: reading.envelope.soap, enc: 'utf8', action: op.replyAction ?? '', relatesTo: reading.envelope.messageId, otherHeaders: [], prefixesInScope: [], body: Buffer.from(body)
    }
  }

  #fault (reading: Reading, op: WsdlOperation | undefined, error: unknown): Envelope {
    const { envelope } = reading
    const about = { soap: envelope.soap, relatesTo: envelope.messageId }
    try {
      const declared = op && this.#declared(op, error)
      if (declared) return serviceFault({ ...about, ...declared })
      if (isRetryOperationError(error)) return retryOperationFault(envelope, { reason: cutText(error.message), retryCount: 0, lastFailedServiceId: this.#needs.taskId })
      if (isSoapFault(error)) {
        const detail = error.detail === undefined ? undefined : Buffer.from(checkRaw(String(error.detail)))
        return serviceFault({ ...about, blame: error.code === 'Sender' ? 'sender' : 'receiver', reason: cutText(error.message), subcode: error.subcode, detail })
      }
      const foreign = nodeSoapFault(error)
      if (foreign) return serviceFault({ ...about, ...foreign })
    } catch (wrong) {
      // The service's own fault does not fit its contract: that is what is to be mended, so it is what is said.
      error = wrong
    }
    if (isSoaError(error)) {
      if (error.fault === 'badValue') this.#needs.log.error({ err: error, operation: op?.name, messageId: envelope.messageId }, 'reply does not match the contract')
      return toFault(error, about)
    }
    this.#needs.log.warn({ err: asError(error), operation: op?.name, messageId: envelope.messageId }, 'service threw')
    if (!this.#needs.includeExceptionDetailInFaults) return toFault(error, about)
    return serviceFault({ ...about, blame: 'receiver', reason: cutText(asError(error).message), subcode: INTERNAL_SERVICE_FAULT, action: DISPATCHER_FAULT, detail: Buffer.from(exceptionDetail(asError(error))) })
  }

  /** A fault of the contract: an object, error or SoapFault whose `fault` is the name of one. */
  #declared (op: WsdlOperation, error: unknown): Omit<ServiceFault, 'soap'> | undefined {
    if (typeof error !== 'object' || error === null) return undefined
    const { fault, detail, message, code } = error as { fault?: unknown, detail?: unknown, message?: unknown, code?: unknown }
    const declared = op.faults.find(f => f.name === fault)
    if (!declared) {
      if (isSoapFault(error) && fault !== undefined) throw new SoaError('badValue', { why: `${op.name} declares no fault ${String(fault)}` })
      return undefined
    }
    return {
      blame: code === 'Sender' ? 'sender' : 'receiver',
      reason: typeof message === 'string' && message !== '' ? cutText(message) : declared.name,
      action: declared.action,
      detail: Buffer.from(writeElement(this.#needs.schema, declared.element, detail ?? {}))
    }
  }
}

const asError = (thrown: unknown): Error => thrown instanceof Error ? thrown : new Error(typeof thrown === 'string' ? thrown : `the service threw ${thrown === null ? 'null' : typeof thrown}`)

/** What WCF writes with includeExceptionDetailInFaults, members in its order. */
function exceptionDetail (error: Error, depth = 0): string {
  const text = (value: string): string => escapeText(cleanText(value))
  const inner = error.cause instanceof Error && depth < 10 ? `<InnerException>${exceptionDetail(error.cause, depth + 1)}</InnerException>` : '<InnerException i:nil="true"/>'
  const members = `<HelpLink i:nil="true"/>${inner}<Message>${text(error.message)}</Message><StackTrace>${text(error.stack ?? '')}</StackTrace><Type>${text(error.name)}</Type>`
  return depth > 0 ? members : `<ExceptionDetail xmlns="${EXCEPTION_DETAIL}" xmlns:i="http://www.w3.org/2001/XMLSchema-instance">${members}</ExceptionDetail>`
}
