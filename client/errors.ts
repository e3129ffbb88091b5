import { FAULTS, type FaultName } from '../core/errors.ts'

/**
 * What the client throws when somebody else said no, or nobody answered. Arguments that are refused before anything is sent throw
 * core's `SoaError`; both kinds have `fault`, HPC Pack's name of the refusal, so a caller compares `error.fault` and never a sentence.
 */
export class ClientError extends Error {
  override name = 'ClientError'
  /** HPC Pack's name, e.g. `Service_NotFound`; undefined where the refusal has none. */
  readonly fault: string | undefined
  /** HPC Pack's number of it (SOAFaultCode). */
  readonly code: number | undefined

  constructor (message: string, facts: { fault?: string | undefined, code?: number | undefined } = {}, options?: ErrorOptions) {
    super(message, options)
    this.fault = facts.fault
    this.code = facts.code
  }
}

/** What `application/problem+json` says, as far as it is there (surface.md). */
export interface ProblemFacts {
  status: number
  detail: string
  name?: string | undefined
  code?: number | undefined
  setting?: string | undefined
  limit?: string | undefined
  value?: string | undefined
}

/** The REST side of a head or broker refused: creating, attaching, canceling and closing sessions. */
export class ProblemError extends ClientError {
  override name = 'ProblemError'
  /** HTTP status. */
  readonly status: number
  readonly setting: string | undefined
  readonly limit: string | undefined
  readonly value: string | undefined

  constructor (problem: ProblemFacts) {
    super(problem.detail, { fault: problem.name, code: problem.code })
    this.status = problem.status
    this.setting = problem.setting
    this.limit = problem.limit
    this.value = problem.value
  }
}

/** Nobody answered usefully until `retryForMs` had passed, or the answer was no SOAP: `cause` is what happened last. */
export class ConnectionError extends ClientError {
  override name = 'ConnectionError'
}

/** The connection was refused or broke in the middle of an exchange: what was sent may or may not have arrived. */
export class BrokenError extends ClientError {
  override name = 'BrokenError'
  constructor (what: string, cause: Error) { super(`${what}: ${whyOf(cause)}`, {}, { cause }) }
}

/** A head that was tried, and what came of it. */
export interface HeadFailure { readonly head: string, readonly error: unknown }

/** None of several heads could do it for now: not reached, being drained, its broker out of reach. `failures` has each of them, in the order in which they were tried. */
export class HeadsError extends ConnectionError {
  override name = 'HeadsError'
  readonly failures: readonly HeadFailure[]
  constructor (failures: readonly HeadFailure[]) {
    const named = failures.map(({ error }) => error).find(error => error instanceof ClientError && error.fault !== undefined) as ClientError | undefined
    super(failures.map(({ head, error }) => `${head}: ${whyOf(error)}`).join('; '), { fault: named?.fault, code: named?.code }, { cause: failures.at(-1)?.error })
    this.failures = failures
  }
}

/** One sentence, or what undici and Node leave of one: an error that only has a code. */
export const whyOf = (error: unknown): string => error instanceof Error ? error.message || String((error as NodeJS.ErrnoException).code ?? error.name) : String(error)

/** A wait of the client's own ran out. */
export class WaitTimeoutError extends ClientError {
  override name = 'WaitTimeoutError'
  constructor (what: string, timeoutMs: number) { super(`${what} took longer than ${timeoutMs} ms`, { fault: 'OperationTimeout', code: FAULTS.OperationTimeout.code }) }
}

/** A SOAP fault in words of 1.2, whichever version it came in. */
export interface FaultFacts {
  /** `Sender`, `Receiver`, `MustUnderstand`, `VersionMismatch`, `DataEncodingUnknown`, or the peer's own. */
  code: string
  /** `{namespace}local` of 1.2's subcode. */
  subcode?: string | undefined
  reason: string
  action?: string | undefined
  /** XML of the detail's content as it stood; prefixes may be declared further out. */
  detail?: string | undefined
  /** The detail as a value, where the WSDL declares the fault. */
  value?: unknown
}

/** What SessionFault or RetryOperationError say in a fault's detail ([wire-contract] 2.7). */
export interface SessionFaultFacts { code: number, context: readonly string[] }

/** The service or the broker answered with a fault. */
export class SoapFaultError extends ClientError {
  override name = 'SoapFaultError'
  /** SOAP's own code; `Sender` means that sending the same again gives the same. */
  readonly soapCode: string
  readonly subcode: string | undefined
  readonly action: string | undefined
  /** The fault's sentence, without anything added. */
  readonly reason: string
  /** XML of the detail's content; undefined without one. */
  readonly detail: string | undefined
  /** The detail as a value, where the WSDL declares the fault: `{ limit: 3 }`. */
  readonly value: unknown
  /** SessionFault only: what the numbers of the sentence stand for, in HPC Pack's order. */
  readonly context: readonly string[]

  constructor (facts: FaultFacts, session?: SessionFaultFacts) {
    super(facts.reason, session ? { code: session.code, fault: nameOfCode(session.code) } : {})
    this.soapCode = facts.code
    this.subcode = facts.subcode
    this.action = facts.action
    this.reason = facts.reason
    this.detail = facts.detail
    this.value = facts.value
    this.context = session?.context ?? []
  }
}

/** The request was tried as often as messageResendLimit allows, and the broker gave up; or a service asked for a retry of a plain call. */
export class RetryOperationError extends SoapFaultError {
  override name = 'RetryOperationError'
  /** Task that had it last; empty when none is named. */
  readonly lastFailedServiceId: string
  /** Tries in all. */
  readonly retryCount: number

  constructor (facts: FaultFacts, retry: { lastFailedServiceId: string, retryCount: number }) {
    super(facts)
    this.lastFailedServiceId = retry.lastFailedServiceId
    this.retryCount = retry.retryCount
  }
}

const NAMES: ReadonlyMap<number, string> = new Map((Object.keys(FAULTS) as FaultName[]).flatMap(name => {
  const { code } = FAULTS[name]
  return code === undefined ? [] : [[code, name] as const]
}))

/** HPC Pack's name for a number; undefined for a number that this version does not know. */
export const nameOfCode = (code: number): string | undefined => NAMES.get(code)
