/**
 * `soa-broker/service`: what a service module may import. It is light, and it is told by marks and not by class, so a module that brings its own copy of
 * this package is understood too.
 */
import { exitingHandlers } from './on-exiting.ts'
import type { ServiceContext } from './service-context.ts'

export type { ServiceContext, ServiceLogger } from './service-context.ts'

/** One operation: the request's value in, the reply's value out ([libraries] 8: members of the wrapper element by name). */
export type OperationMethod<Args = unknown, Result = unknown> = (args: Args, context: ServiceContext) => Result | Promise<Result>

export interface SoapFaultFields {
  /** Whose fault it is (default `Receiver`); SOAP 1.1 says Client and Server. */
  readonly code?: 'Sender' | 'Receiver'
  readonly subcode?: string
  readonly reason: string
  /** A self-contained XML element; or, with `fault`, the value of the element that the WSDL declares. */
  readonly detail?: unknown
  /** Name of a fault that the WSDL declares for the operation. */
  readonly fault?: string
}

/**
 * Has `handler` called once when the host is told to end (canceled, preempted, or idle and not needed), as HPC Pack's ServiceContext.OnExiting. It is
 * waited for, up to the grace period (taskCancelGracePeriod); what it throws is logged. The same function twice counts once.
 */
export function onExiting (handler: () => unknown): void { exitingHandlers().add(handler) }

const SOAP_FAULT = Symbol.for('soa-broker.SoapFault')
const RETRY = Symbol.for('soa-broker.RetryOperationError')

/**
 * Answers the call with this fault. It is the call's result: the client gets it, and nothing is tried again.
 * A fault that the WSDL declares may also be thrown as any object with `fault` (its name), `detail` (its value) and perhaps `message`.
 */
export class SoapFault extends Error {
  override readonly name = 'SoapFault'
  readonly code: 'Sender' | 'Receiver'
  readonly subcode: string | undefined
  readonly detail: unknown
  readonly fault: string | undefined
  readonly [SOAP_FAULT] = true

  constructor (fields: SoapFaultFields, options?: ErrorOptions) {
    super(fields.reason, options)
    this.code = fields.code ?? 'Receiver'
    this.subcode = fields.subcode
    this.detail = fields.detail
    this.fault = fields.fault
  }
}

/** The call did not succeed here and may elsewhere: the broker tries it again, up to messageResendLimit times. */
export class RetryOperationError extends Error {
  override readonly name = 'RetryOperationError'
  readonly [RETRY] = true
}

const has = (error: unknown, mark: symbol): boolean => typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[mark] === true
export const isSoapFault = (error: unknown): error is SoapFault => has(error, SOAP_FAULT)
export const isRetryOperationError = (error: unknown): error is RetryOperationError => has(error, RETRY)
