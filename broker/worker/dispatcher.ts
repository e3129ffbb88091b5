import { sleep, within, type Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import { hostFailureText } from './host-failure.ts'
import type { BrokerRequest, RequestQueue } from './request-queue.ts'
import { judge, type Outcome } from './retry.ts'
import type { InstanceResult, ServiceInstance } from './service-instance.ts'
import { Signal } from './signal.ts'

/** How a task ended, as far as its dispatcher must know: by itself, or taken away (canceled, preempted, its node lost). */
export type Fate = 'endedByItself' | 'takenAway'

/** Why a dispatcher takes no more: it was told to, its instance cannot be reached, or the instance says that it has no service. */
export type End = 'stopped' | 'instanceLost' | 'noService'

/** What a dispatcher does with requests; the session implements it. */
export interface Desk {
  readonly requests: RequestQueue
  /** Reads the request's envelope if it is only in the store. False: it is gone (purged), skip it. */
  load (request: BrokerRequest): Promise<boolean>
  started (request: BrokerRequest): void
  /** The answer is kept (or sent on, for a call in the same exchange). Resolves when there is room for more. */
  complete (request: BrokerRequest, response: Envelope | undefined, isFault: boolean): Promise<void>
  giveUp (request: BrokerRequest, why: string, taskId: string): Promise<void>
  putBack (request: BrokerRequest): void
}

interface Needs {
  desk: Desk
  instance: ServiceInstance
  limits: { slots: number, operationTimeoutMs: number, resendLimit: number, initializationTimeoutMs: number, taskFateTimeoutMs: number }
  clock: Clock
  log: { warn (facts: object, message: string): void, debug (facts: object, message: string): void }
}

/**
 * Feeds one service instance: `slots` loops, each with at most one call in flight (capacity × (1 + prefetch), [broker-behaviour] 4.1).
 * A free slot pulls, nobody pushes. Failures come back as values, and only retry.ts counts.
 */
export class Dispatcher {
  readonly taskId: string
  readonly #needs: Needs
  /** Aborted: take no more. */
  readonly #stop = new AbortController()
  /** Aborted: calls in flight are cut, their requests go back. */
  readonly #cut = new AbortController()
  #fate: Fate | undefined
  #exit: TaskInfo['exit']
  #noService = ''
  /** Suspects that wait for this instance or have it. */
  #suspects = 0
  readonly #freed = new Signal()
  readonly #fateKnown: Promise<Fate>
  #tellFate!: (fate: Fate) => void
  #hasAnswered = false
  #unreachableSince: number | undefined
  inFlight = 0

  constructor (needs: Needs) {
    this.#needs = needs
    this.taskId = needs.instance.taskId
    this.#fateKnown = new Promise(resolve => { this.#tellFate = resolve })
  }

  /** With End `noService`: what the host said. */
  get noService (): string { return this.#noService }

  /** Resolves when the last slot has ended: stopped, or the instance is of no use. Never rejects unless the desk does. */
  async run (): Promise<End> {
    const ends = await Promise.all(Array.from({ length: this.#needs.limits.slots }, () => this.#slot()))
    await this.#needs.instance.close()
    return ends.find(end => end === 'noService') ?? ends.find(end => end === 'instanceLost') ?? 'stopped'
  }

  /** Takes nothing new; what is in flight finishes (Canceling: the host still answers). */
  drain (): void { this.#stop.abort() }

  /** The task has ended: what is in flight goes back, judged by how it ended. */
  end (fate: Fate, exit?: TaskInfo['exit']): void {
    this.#fate ??= fate
    this.#exit ??= exit
    this.#tellFate(this.#fate)
    this.#stop.abort()
    this.#cut.abort()
  }

  async #slot (): Promise<End> {
    const { desk, instance, limits } = this.#needs
    const stop = this.#stop.signal
    for (;;) {
      const request = await desk.requests.take(stop)
      if (request === undefined) return 'stopped'
      if (!await desk.load(request)) continue
      // Read once: what fails may make it a suspect, but only for the next time.
      const isSuspect = request.isSuspect === true
      if (isSuspect) this.#suspects++
      if (this.#suspects === 0) this.inFlight++
      else if (!await this.#turn(isSuspect)) {
        if (isSuspect) this.#suspects--
        desk.requests.putBack(request)
        return 'stopped'
      }
      desk.started(request)
      let result: InstanceResult
      try {
        result = await instance.call(request.envelope as Envelope, limits.operationTimeoutMs, this.#cut.signal)
      } finally {
        this.inFlight--
        if (isSuspect) this.#suspects--
        this.#freed.tell()
      }
      if (result.isLeaving === true) this.#stop.abort()
      if ('response' in result) {
        this.#hasAnswered = true
        this.#unreachableSince = undefined
        await desk.complete(request, result.response, result.isFault)
        continue
      }
      const keeps = await this.#failed(request, result.outcome, result.why)
      if (keeps) continue
      this.#stop.abort()
      if (result.outcome !== 'initializeFailed') return 'instanceLost'
      this.#noService = result.why
      return 'noService'
    }
  }

  /**
   * A suspect has the instance alone: when that host dies too, nobody else has lost a try by it. Waits until no call is in flight (a suspect), or no suspect
   * is there (the others), and counts the call as in flight in the same moment. False: the dispatcher stops first.
   */
  async #turn (isSuspect: boolean): Promise<boolean> {
    const { signal } = this.#stop
    while (!signal.aborted && (isSuspect ? this.inFlight > 0 : this.#suspects > 0)) await this.#freed.next(this.#needs.clock, -1, signal)
    if (signal.aborted) return false
    this.inFlight++
    return true
  }

  /** False: this instance takes no more requests. */
  async #failed (request: BrokerRequest, outcome: Outcome | 'broken', why: string): Promise<boolean> {
    const { desk, limits, log } = this.#needs
    const meant = outcome === 'broken' ? await this.#judgeBroken() : outcome === 'taskTakenAway' && this.#fate === 'endedByItself' ? 'instanceFailed' : outcome
    if (meant === 'instanceFailed') {
      request.isSuspect = true
      // How the host ended tells more than how the connection did.
      if (this.#exit !== undefined) why = hostFailureText(this.#exit)
    }
    const verdict = judge(meant, request.tries, limits.resendLimit)
    log.warn({ clientId: request.clientKey, messageId: request.envelope?.messageId, taskId: this.taskId, outcome: meant, tries: verdict.tries, action: verdict.action, why }, 'call failed')
    request.tries = verdict.tries
    if (verdict.action === 'giveUp') await desk.giveUp(request, why, this.taskId)
    else desk.putBack(request)
    if (verdict.keepsInstance) return this.#fate === undefined
    return meant === 'instanceUnreachable' && await this.#isWorthWaiting()
  }

  /** A broken connection: whose fault it was is known when the task's fate is. A host that lives on broke it itself. */
  async #judgeBroken (): Promise<Outcome> {
    const { clock, limits } = this.#needs
    const fate = this.#fate ?? await within(clock, limits.taskFateTimeoutMs, this.#fateKnown, () => new Error('not known')).catch(() => 'endedByItself' as const)
    return fate === 'takenAway' ? 'taskTakenAway' : 'instanceFailed'
  }

  /**
   * Nobody listens: before the first answer that may be a host still starting, so each slot asks again after a growing wait until
   * serviceInitializationTimeout × 1.1 has passed ([broker-behaviour] 4.6); after an answer it means that the host is gone, but the notification may be on its way.
   */
  async #isWorthWaiting (): Promise<boolean> {
    const { clock, limits } = this.#needs
    const now = clock.now()
    this.#unreachableSince ??= now
    const patience = this.#hasAnswered ? limits.taskFateTimeoutMs : limits.initializationTimeoutMs * 1.1
    const waited = now - this.#unreachableSince
    if (waited >= patience) return false
    await sleep(clock, Math.min(1000, Math.max(50, waited)), this.#stop.signal).catch(() => undefined)
    return !this.#stop.signal.aborted
  }
}
