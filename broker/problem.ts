import { STATUS_CODES } from 'node:http'
import { FAULTS, isSoaError, SoaError, type FaultName, type FaultRow } from '../core/errors.ts'
import type { Problem } from './contract.ts'

/** A refusal that came as `application/problem+json` from a worker: it goes to the caller as it is. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly problem: Problem

  constructor (problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** For callers who speak SOAP: a worker's refusal has lost its fault's context on the way, but its sentence has all that people need. Anything else is passed on. */
export const asSoaError = (thrown: unknown, sessionId: string): unknown =>
  thrown instanceof Refusal ? new SoaError('Broker_SessionFailure', { sessionId, why: thrown.message }, { cause: thrown }) : thrown

/** Faults whose HTTP status is not just 400 for the sender's and 500 for our own. */
const STATUS: Partial<Record<FaultName, number>> = {
  InvalidSessionId: 404,
  Service_NotFound: 404,
  ServiceVersion_NotFound: 404,
  noDeadLetter: 404,
  noMessage: 404,
  deadLetterRead: 409,
  Broker_EOMRejected: 409,
  Broker_EOMReject_GetResponse: 409,
  Broker_EOMReject_EndRequests: 409,
  Broker_EOMReject_NoRequest: 409,
  Broker_FlushRejected: 409,
  Broker_AlreadyClosed: 409,
  Broker_SessionIdAlreadyExists: 409,
  InvalidAttachDurableSession: 409,
  InvalidAttachInteractiveSession: 409,
  Session_ValidateJobFailed_AlreadyFinished: 409,
  Session_ValidateJobFailed_JobCanceled: 409,
  Broker_SessionFailure: 409,
  ClientPurged: 410,
  badMediaType: 415,
  Broker_UnsupportedOperation: 501,
  OperationTimeout: 504,
  Broker_BrokerIsOffline: 503,
  Broker_TooManyBrokerRunning: 503,
  Broker_BrokerSuspending: 503,
  Broker_BrokerUnavailable: 503,
  Broker_FailedToStartBrokerServiceProcess: 503,
  TimeoutToGetBrokerWorkerProcess: 503,
  StorageServiceNotAvailble: 503,
  StorageSpaceNotSufficient: 507,
  refused: 503
}

/** Which item of a fault's context is the setting, the limit and the value; a word that is none of its items stands for itself. */
const PARTS: Partial<Record<FaultName, { setting?: string, limit?: string, value?: string }>> = {
  overLimit: { setting: 'setting', limit: 'limit', value: 'value' },
  StorageSpaceNotSufficient: { setting: 'setting', limit: 'limit', value: 'value' },
  Broker_InvalidConfiguration: { setting: 'setting' },
  InvalidArgument: { setting: 'argument' },
  Broker_TooManyBrokerRunning: { setting: 'maxSessions', limit: 'limit' }
}

/**
 * Anything thrown, as `application/problem+json` (surface.md). A bug tells the caller nothing beyond that it was one; the log has it all.
 * fastify's own refusals (no JSON, body over the limit, media type) carry a status below 500 and keep their sentence.
 */
export function toProblem (error: unknown): Problem {
  if (error instanceof Refusal) return error.problem
  if (isSoaError(error)) {
    const row: FaultRow = FAULTS[error.fault]
    const status = STATUS[error.fault] ?? (row.blame === 'sender' ? 400 : 500)
    const parts = PARTS[error.fault] ?? {}
    const said = (key: string | undefined): string | undefined => key === undefined ? undefined : error.context[row.context.indexOf(key)] ?? key
    return {
      title: titleOf(status),
      status,
      detail: error.message,
      ...(row.code === undefined ? {} : { code: row.code }),
      name: error.fault,
      ...defined({ setting: said(parts.setting), limit: said(parts.limit) ?? limitIn(error), value: said(parts.value) })
    }
  }
  const status = statusIn(error)
  if (status !== undefined) return { title: titleOf(status), status, detail: (error as Error).message, code: FAULTS.InvalidArgument.code, name: 'InvalidArgument' }
  return { title: titleOf(500), status: 500, detail: 'an error in soa-broker; its log says more', code: FAULTS.UnknownError.code, name: 'UnknownError' }
}

const titleOf = (status: number): string => STATUS_CODES[status] ?? 'Error'
const limitIn = (error: Error): string | undefined => 'limit' in error ? String(error.limit) : undefined
const defined = <T extends object> (fields: T): T => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T

function statusIn (error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' && status >= 400 && status < 500 ? status : undefined
}
