/**
 * What a call at a service instance came to, in one table, so that no caller adds to or subtracts from a try count itself ([broker-behaviour] 4.5, whole).
 *
 * costs: `try` counts against messageResendLimit · `uncountedTry` is nobody's fault, and counts against maxUncountedTries only · `nothing`: the service never had it.
 * mayHaveRun: with messageResendLimit 0 it is not run again. keepsInstance: the slot goes on with the next request, unless the task has ended.
 */
export const OUTCOMES = {
  serviceAskedRetry: { when: 'the service threw RetryOperationError', costs: 'try', mayHaveRun: true, keepsInstance: true },
  timedOut: { when: 'serviceOperationTimeout passed; the host may still be computing', costs: 'try', mayHaveRun: true, keepsInstance: true },
  badReply: { when: 'what came back is no SOAP, or is empty and should not be', costs: 'try', mayHaveRun: true, keepsInstance: true },
  instanceFailed: { when: 'the connection broke while the host was executing the request, and the host ended by itself or lives on', costs: 'try', mayHaveRun: true, keepsInstance: true },
  // Its answer to the one before may have been lost with the connection, so it may have begun all the same.
  waitedAtHost: { when: 'the same, while the request waited in the host\'s queue for its turn', costs: 'uncountedTry', mayHaveRun: true, keepsInstance: true },
  taskTakenAway: { when: 'the task was canceled or preempted, or its node is lost', costs: 'uncountedTry', mayHaveRun: true, keepsInstance: false },
  preempted: { when: 'the host skipped the request since it is being preempted (Service_Preempted)', costs: 'uncountedTry', mayHaveRun: false, keepsInstance: false },
  instanceUnreachable: { when: 'nobody listens, or no byte of the request left', costs: 'nothing', mayHaveRun: false, keepsInstance: false },
  /** Another host may have one, and the request has not run. HPC Pack counts it and does not look at the limit. */
  initializeFailed: { when: 'the host could not load its service (Service_InitializeFailed)', costs: 'nothing', mayHaveRun: false, keepsInstance: false },
} as const satisfies Record<string, { when: string, costs: 'try' | 'uncountedTry' | 'nothing', mayHaveRun: boolean, keepsInstance: boolean }>

/** Replies that are kept as the request's response, whatever they say: they are results, and never tried again. */
export const REPLIES = {
  answered: { when: 'a reply', isFault: false, keepsInstance: true },
  faulted: { when: 'a fault of the service, other than those above', isFault: true, keepsInstance: true },
  leaving: { when: 'either, with the header that says how many calls are left there: the host is being preempted', isFault: false, keepsInstance: false },
} as const satisfies Record<string, { when: string, isFault: boolean, keepsInstance: boolean }>

export type Outcome = keyof typeof OUTCOMES
/** Executions of one request that came to nothing so far. */
export interface Spent { tries: number, uncounted: number }
export interface Verdict extends Spent { action: 'requeue' | 'giveUp', keepsInstance: boolean }

export interface TryLimits {
  /** Tries allowed after the first (messageResendLimit, HPC Pack default 3: at most four executions; 0: at most one). */
  readonly resendLimit: number
  /** maxUncountedTries; 0: no limit. */
  readonly maxUncounted: number
}

/** @param spent without this one */
export function judge (outcome: Outcome, spent: Readonly<Spent>, { resendLimit, maxUncounted }: TryLimits): Verdict {
  const { costs, mayHaveRun, keepsInstance } = OUTCOMES[outcome]
  const tries = spent.tries + (costs === 'try' ? 1 : 0)
  const uncounted = spent.uncounted + (costs === 'uncountedTry' ? 1 : 0)
  // A limit of 0 promises at most one execution while the broker lives, so then even an end that is nobody's fault may not run the request again.
  const isSpent = resendLimit === 0 ? mayHaveRun : tries > resendLimit || (costs === 'uncountedTry' && maxUncounted > 0 && uncounted >= maxUncounted)
  return { action: isSpent ? 'giveUp' : 'requeue', tries, uncounted, keepsInstance }
}
