import { sleep, type Clock } from '../core/clock.ts'
import { BrokenError, ClientError, ConnectionError, HeadsError, ProblemError, whyOf } from './errors.ts'

/**
 * Which refusals pass by themselves: the head or the broker is being restarted, or the store is away for a moment.
 * Everything else is an answer, and trying again would only delay it.
 */
const PASSING: ReadonlySet<string> = new Set([
  'Broker_BrokerSuspending', 'Broker_BrokerUnavailable', 'Broker_FailedToStartBrokerServiceProcess',
  'TimeoutToGetBrokerWorkerProcess', 'StorageServiceNotAvailble'
])

/** HTTP statuses of a door without a room behind it, just now. */
const PASSING_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** What undici and Node call a connection that was refused, cut or never made. */
const BROKEN: ReadonlySet<string> = new Set([
  'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'EAI_AGAIN', 'ENOENT',
  'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'HPE_INVALID_EOF_STATE'
])

/** The peer's door answered with this status and no SOAP. */
export class StatusError extends ClientError {
  override name = 'StatusError'
  readonly status: number
  constructor (status: number, text: string) {
    super(`HTTP status ${status}${text === '' ? '' : `: ${text.slice(0, 500)}`}`)
    this.status = status
  }
}

/** The connection broke: the request may or may not have arrived. */
export function isBroken (error: unknown): boolean {
  if (error instanceof BrokenError) return true
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (code !== undefined && BROKEN.has(String(code))) return true
    if (at instanceof AggregateError && at.errors.some(isBroken)) return true
  }
  return false
}

/** Sending the same again, later, may well succeed. */
export function passes (error: unknown): boolean {
  if (error instanceof HeadsError) return true
  if ((error instanceof StatusError || error instanceof ProblemError) && PASSING_STATUS.has(error.status)) return true
  if (error instanceof ClientError && !(error instanceof BrokenError)) return error.fault !== undefined && PASSING.has(error.fault)
  return isBroken(error)
}

/** Back-off between tries: doubles from the first to the longest, each drawn from the upper half, so that many senders do not come back in step. */
export const FIRST_PAUSE_MS = 50
export const LONGEST_PAUSE_MS = 2000

export interface Patience {
  readonly clock: Clock
  /** From the first failure on; 0: one try. */
  readonly retryForMs: number
  readonly signal?: AbortSignal | undefined
  /** Says more than the last failure does when patience ends. */
  readonly blame?: ((last: unknown) => string) | undefined
}

/**
 * Runs `attempt` until it succeeds, fails for good, or `retryForMs` have passed since its first failure. `attempt` is told how many tries
 * failed before, so that it can look first whether one of them arrived after all.
 *
 * @throws what `attempt` threw when that does not pass by itself; `ConnectionError` with the last failure as cause when patience ends; the signal's reason.
 */
export async function persist<T> (what: string, { clock, retryForMs, signal, blame = whyOf }: Patience, attempt: (failed: number) => Promise<T>): Promise<T> {
  let giveUpAt = Infinity
  for (let failed = 0, pause = FIRST_PAUSE_MS; ; failed++, pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted()
    try {
      return await attempt(failed)
    } catch (error) {
      if (signal?.aborted || !passes(error)) throw error
      const now = clock.now()
      if (failed === 0) giveUpAt = now + retryForMs
      if (now >= giveUpAt) throw gaveUp(what, failed + 1, retryForMs, error, blame(error))
      await sleep(clock, Math.min(pause * (0.5 + Math.random() / 2), giveUpAt - now), signal)
    }
  }
}

function gaveUp (what: string, tries: number, retryForMs: number, cause: unknown, why: string): Error {
  const facts = cause instanceof ClientError ? { fault: cause.fault, code: cause.code } : {}
  return new ConnectionError(`${what}: gave up after ${tries} tries in ${retryForMs} ms: ${why}`, facts, { cause })
}
