import type { Clock } from '../../core/clock.ts'
import type { SessionCounters } from './counters.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'

interface Needs {
  /** multiEmissionDelayTime: what has no answer after this long is sent to another instance too. */
  delayMs: number
  /** messageResendLimit: a request has never more runs, those that counted and those under way together, than this and one. */
  resendLimit: number
  requests: RequestQueue
  counters: SessionCounters
  clock: Clock
}

interface Run { readonly request: BrokerRequest, readonly dueAt: number }

/**
 * Against stragglers ([broker-behaviour] 3.10): the same request is at several instances at a time, and the first response counts. One timer for the
 * session: the delay is the same for all, so those that were sent first are due first.
 */
export class ReEmission {
  readonly #needs: Needs
  /** Runs that are not due yet, in the order in which they were sent; by request, then by instance. */
  readonly #waiting = new Map<BrokerRequest, Map<string, Run>>()
  readonly #order = new Set<Run>()
  #isArmed = false

  constructor (needs: Needs) { this.#needs = needs }

  /** Runs that wait for their time. */
  get size (): number { return this.#order.size }

  /** It is at this instance now. True: at this one only, so it was not being processed before. */
  started (request: BrokerRequest, taskId: string): boolean {
    const at = request.at ??= new Set()
    const isFirst = at.size === 0
    at.add(taskId)
    request.isCopyWaiting = false
    const run: Run = { request, dueAt: this.#needs.clock.now() + this.#needs.delayMs }
    this.#order.add(run)
    const runs = this.#waiting.get(request)
    if (runs === undefined) this.#waiting.set(request, new Map([[taskId, run]]))
    else runs.set(taskId, run)
    this.#arm(this.#needs.delayMs)
    return isFirst
  }

  /** It is there no more. */
  ended (request: BrokerRequest, taskId: string): void {
    request.at?.delete(taskId)
    const run = this.#waiting.get(request)?.get(taskId)
    if (run !== undefined) this.#forget(run, taskId)
  }

  /** It has its response: whatever else comes is late, and what waits is not sent. */
  answered (request: BrokerRequest): void {
    request.isAnswered = true
    this.#needs.requests.dropCopy(request)
    for (const [taskId, run] of this.#waiting.get(request) ?? []) this.#forget(run, taskId)
  }

  /** A run of it has failed and another one is under way, or waits for an instance: what becomes of the request is that one's affair. */
  livesOn (request: BrokerRequest): 'elsewhere' | 'waiting' | undefined {
    if ((request.at?.size ?? 0) > 0) return 'elsewhere'
    return request.isCopyWaiting === true ? 'waiting' : undefined
  }

  #forget (run: Run, taskId: string): void {
    const { request } = run
    this.#order.delete(run)
    const runs = this.#waiting.get(request)
    runs?.delete(taskId)
    if (runs?.size === 0) this.#waiting.delete(request)
  }

  #arm (ms: number): void {
    if (this.#isArmed) return
    this.#isArmed = true
    this.#needs.clock.after(ms, () => { this.#isArmed = false; this.#look() }, { unref: true })
  }

  #look (): void {
    const { clock, requests, counters, resendLimit } = this.#needs
    const now = clock.now()
    for (const run of this.#order) {
      if (run.dueAt > now) { this.#arm(run.dueAt - now); return }
      const { request } = run
      for (const [taskId, of] of this.#waiting.get(request) ?? []) if (of === run) this.#forget(run, taskId)
      if (request.isDropped === true || request.isAnswered === true || request.isCopyWaiting === true || request.tries + (request.at?.size ?? 0) > resendLimit) continue
      request.isCopyWaiting = true
      counters.reemitted++
      requests.putCopy(request)
    }
  }
}
