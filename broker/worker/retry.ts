/** What a failed call means, in one table, so that no caller adds to or subtracts from a try count itself ([broker-behaviour] 4.5). */
export const OUTCOMES = {
  /** The service threw RetryOperationError. */
  serviceAskedRetry: { countsTry: true, keepsInstance: true },
  /** serviceOperationTimeout passed. The host may still be computing. */
  timedOut: { countsTry: true, keepsInstance: true },
  /** What came back is no SOAP. */
  badReply: { countsTry: true, keepsInstance: true },
  /** The connection broke while the host was executing, and the host ended by itself or lives on. */
  instanceFailed: { countsTry: true, keepsInstance: true },
  /** No byte of the request left: the service never saw it. */
  instanceUnreachable: { countsTry: false, keepsInstance: false },
  /** The task was canceled or preempted, or its node is gone: not the request's fault. */
  taskTakenAway: { countsTry: false, keepsInstance: false },
  /** The host skipped the request because it is being preempted (Service_Preempted). */
  preempted: { countsTry: false, keepsInstance: false },
  /** The host could not load its service (Service_InitializeFailed): another host may, and the request has not run. HPC Pack counts it and does not look at the limit. */
  initializeFailed: { countsTry: false, keepsInstance: false },
} as const satisfies Record<string, { countsTry: boolean, keepsInstance: boolean }>

export type Outcome = keyof typeof OUTCOMES
export interface Verdict { action: 'requeue' | 'giveUp', tries: number, keepsInstance: boolean }

/**
 * @param tries executions that counted so far, without this one
 * @param resendLimit tries allowed after the first (messageResendLimit, HPC Pack default 3: at most four executions; 0: at most one)
 */
export function judge (outcome: Outcome, tries: number, resendLimit: number): Verdict {
  const { countsTry, keepsInstance } = OUTCOMES[outcome]
  const now = tries + (countsTry ? 1 : 0)
  // A limit of 0 promises at most one execution while the broker lives, so then even an end that is nobody's fault may not run the request again.
  const mayHaveRun = countsTry || outcome === 'taskTakenAway'
  const giveUp = resendLimit === 0 ? mayHaveRun : now > resendLimit
  return { action: giveUp ? 'giveUp' : 'requeue', tries: now, keepsInstance }
}
