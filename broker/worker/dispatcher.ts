import { setMaxListeners } from 'node:events'
import { cutText } from '../../core/cut-text.ts'
import { sleep, within, type Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { FailedTry } from '../../store/dead-letters.ts'
import type { StateChange } from '../../store/message-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import { CallsInHand, type Call } from './calls-in-hand.ts'
import { hostFailureText } from './host-failure.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'
import { judge, OUTCOMES, REPLIES, type Outcome, type Verdict } from './retry.ts'
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
  /** It is at this instance now. */
  started (request: BrokerRequest, taskId: string): void
  /** It is there no more; one of the three below follows. `ms`: how long the host worked on it, when it was answered. */
  ended? (request: BrokerRequest, taskId: string, ms: number | undefined): void
  /** A run of it came to nothing. */
  failed? (request: BrokerRequest, taskId: string, outcome: Outcome, action: Verdict['action'], why: string): void
  /** The answer is kept (or sent on, for a call in the same exchange). Resolves when there is room for more. `isMade`: by the custom broker, which is then not asked about it. */
  complete (request: BrokerRequest, response: Envelope | undefined, isFault: boolean, isMade?: boolean, changes?: readonly StateChange[]): Promise<void>
  giveUp (request: BrokerRequest, why: string, taskId: string): Promise<void>
  putBack (request: BrokerRequest): void
}

interface Needs {
  desk: Desk
  instance: ServiceInstance
  /** Where it runs. */
  node: string
  limits: {
    slots: number
    /** Calls that the host works on at a time; the others wait there. */
    capacity: number
    operationTimeoutMs: number
    resendLimit: number
    maxUncounted: number
    initializationTimeoutMs: number
    taskFateTimeoutMs: number
  }
  /** The host is ours: it works on calls in the order in which they were sent. Of another one nothing is known, and any call may be the one that it works on. */
  keepsOrder: boolean
  clock: Clock
  log: { warn (facts: object, message: string): void, debug (facts: object, message: string): void }
}

/** Executions of a request that are remembered, the latest ones, and how much of why each came to nothing. */
const TRIES_KEPT = 20
const WHY_KEPT = 1000

/**
 * Feeds one service instance: `slots` loops, each with at most one call in flight (capacity × (1 + prefetch), [broker-behaviour] 4.1).
 * A free slot pulls, nobody pushes. Failures come back as values, and only retry.ts counts.
 */
export class Dispatcher {
  readonly taskId: string
  readonly #needs: Needs
  readonly #calls: CallsInHand
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
    setMaxListeners(0, this.#stop.signal, this.#cut.signal) // each slot listens, and there may be thousands
    this.taskId = needs.instance.taskId
    this.#calls = new CallsInHand(needs.limits.capacity, needs.clock)
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
    const { desk, instance, limits, clock } = this.#needs
    const stop = this.#stop.signal
    for (;;) {
      const request = await desk.requests.take(stop, this.taskId)
      if (request === undefined) return 'stopped'
      if (request.at?.has(this.taskId) === true) { desk.requests.putCopy(request); continue }
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
      // Another instance may have answered it while it waited for its turn here.
      if (request.isDropped === true || request.isAnswered === true) { this.#over(isSuspect); continue }
      desk.started(request, this.taskId)
      const call = this.#calls.sent()
      let result: InstanceResult
      try {
        result = await instance.call(request.envelope as Envelope, limits.operationTimeoutMs, this.#cut.signal)
      } finally {
        this.#over(isSuspect)
      }
      if ('response' in result) {
        this.#calls.over(call, false)
        desk.ended?.(request, this.taskId, clock.now() - (call.beganAt ?? call.sentAt))
        if (!REPLIES[result.isLeaving ? 'leaving' : result.isFault ? 'faulted' : 'answered'].keepsInstance) this.#stop.abort()
        this.#hasAnswered = true
        this.#unreachableSince = undefined
        await desk.complete(request, result.response, result.isFault)
        continue
      }
      this.#calls.over(call, result.outcome === 'broken' || result.outcome === 'taskTakenAway')
      if (result.isLeaving === true) this.#stop.abort()
      const meant = await this.#meaning(result.outcome, call)
      desk.ended?.(request, this.taskId, undefined)
      const keeps = await this.#failed(request, meant, result.why)
      if (keeps) continue
      this.#stop.abort()
      if (meant === 'initializeFailed') this.#noService = result.why
      return meant === 'initializeFailed' ? 'noService' : meant === 'instanceUnreachable' ? 'instanceLost' : 'stopped'
    }
  }

  #over (isSuspect: boolean): void {
    this.inFlight--
    if (isSuspect) this.#suspects--
    this.#freed.tell()
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
  async #failed (request: BrokerRequest, meant: Outcome, why: string): Promise<boolean> {
    const { desk, limits, log, clock, node } = this.#needs
    // What it died of, the next host has alone. How the host ended tells more than how the connection did.
    if (meant === 'instanceFailed') request.isSuspect = true
    if ((meant === 'instanceFailed' || meant === 'waitedAtHost') && this.#exit !== undefined) why = hostFailureText(this.#exit)
    const verdict = judge(meant, { tries: request.tries, uncounted: request.uncounted ?? 0 }, limits)
    if (OUTCOMES[meant].costs !== 'nothing') remember(request, { taskId: this.taskId, node, at: new Date(clock.now()).toISOString(), outcome: meant, why: cutText(why, WHY_KEPT) })
    log.warn({ clientId: request.clientKey, messageId: request.envelope?.messageId, taskId: this.taskId, outcome: meant, tries: verdict.tries, uncounted: verdict.uncounted, action: verdict.action, why }, 'call failed')
    request.tries = verdict.tries
    request.uncounted = verdict.uncounted
    desk.failed?.(request, this.taskId, meant, verdict.action, why)
    if (verdict.action === 'giveUp') await desk.giveUp(request, why, this.taskId)
    else desk.putBack(request)
    if (verdict.keepsInstance) return this.#fate === undefined
    return meant === 'instanceUnreachable' && await this.#isWorthWaiting()
  }

  /** A broken connection: whose fault it was is known when the task's fate is. A host that lives on broke it itself. */
  async #meaning (outcome: Outcome | 'broken', call: Call): Promise<Outcome> {
    if (outcome !== 'broken' && outcome !== 'taskTakenAway') return outcome
    const { clock, limits, keepsOrder } = this.#needs
    const fate = this.#fate ?? (outcome === 'taskTakenAway'
      ? 'takenAway'
      : await within(clock, limits.taskFateTimeoutMs, this.#fateKnown, () => new Error('not known')).catch(() => 'endedByItself' as const))
    return fate === 'takenAway' ? 'taskTakenAway' : keepsOrder && call.beganAt === undefined ? 'waitedAtHost' : 'instanceFailed'
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

function remember (request: BrokerRequest, tried: FailedTry): void {
  request.history ??= []
  request.history.push(tried)
  if (request.history.length > TRIES_KEPT) request.history.shift()
}
