/**
 * Serves one service: lets in as many calls at a time as it may, queues the others, and ends in good order.
 *
 * Ending ([broker-behaviour] 4.9): calls in progress finish and their replies say in the `preemption` header how many are left; calls that wait and new
 * ones get SessionFault Service_Preempted, which costs a request no try; onExiting handlers run meanwhile. Without message-level preemption calls in
 * progress are cut at once, and only the handlers get the grace.
 */
import type { Clock } from '../core/clock.ts'
import { SoaError } from '../core/errors.ts'
import { sleep } from '../core/clock.ts'
import type { SoapEndpoint, SoapReply, SoapRequest } from '../transport/channel.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { retryOperationFault } from '../wire/soap/fault.ts'
import { preemptionHeader, userDataText } from '../wire/soap/hpc-headers.ts'
import type { WsdlOperation } from '../wsdl/document.ts'
import type { Invoker } from './invoker.ts'
import { exitingHandlers } from './on-exiting.ts'
import { Progress } from './progress.ts'
import { headersOf, type ServiceContext, type ServiceLogger } from './service-context.ts'

export interface HostNeeds {
  readonly invoker: Pick<Invoker, 'invoke'>
  readonly sessionId: string
  readonly taskId: string
  /** From 1. */
  readonly maxConcurrentCalls: number
  /** Calls that wait for their turn; one more is sent back for another try. */
  readonly maxWaitingCalls: number
  readonly limits: SoapEndpoint['limits']
  readonly cancelGraceMs: number
  /** enableMessageLevelPreemption: calls in progress are finished when it ends. */
  readonly finishesCalls: boolean
  /** serviceHostIdleTimeout, ms; under 0: never. */
  readonly idleMs: number
  /** serviceHangTimeout, ms; under 0: never. */
  readonly hangMs: number
  /** No call for `idleMs`. */
  readonly idle: () => void
  /** Calls in hand have made no progress for `hangMs`; `calls` says which. */
  readonly hung: (calls: string) => void
  /** Told each step of a call (Progress). */
  readonly stepped?: ((steps: number, calls: number) => void) | undefined
  readonly log: ServiceLogger
  readonly clock: Clock
  readonly get?: SoapEndpoint['get']
}

interface Waiting { go (): void, drop (error: unknown): void }

/** How many hung calls are named. */
const NAMED_CALLS = 5

export class ServiceHost {
  readonly #needs: HostNeeds
  readonly #progress: Progress
  /** Those that the service has begun. */
  readonly #begun = new Set<Call>()
  readonly #exiting = new Set<() => unknown>()
  /** Aborts the calls that are still in progress when the grace is over. */
  readonly #cut = new AbortController()
  readonly #waiting = new Set<Waiting>()
  #running = 0
  #exit: Promise<boolean> | undefined
  #whenIdle: (() => void) | undefined

  constructor (needs: HostNeeds) {
    this.#needs = needs
    const { idleMs, hangMs, clock, idle, stepped } = needs
    this.#progress = new Progress({ idleMs, hangMs, clock, idle, hung: () => needs.hung(this.#named()), stepped })
  }

  get endpoint (): SoapEndpoint {
    const { limits, get } = this.#needs
    return { limits, handle: request => this.#handle(request), ...(get ? { get } : {}) }
  }

  get callsInProgress (): number { return this.#running }

  get callsWaiting (): number { return this.#waiting.size }

  async #handle (request: SoapRequest): Promise<SoapReply> {
    this.#progress.received()
    try {
      return await this.#serve(request)
    } finally {
      this.#progress.answered()
    }
  }

  async #serve (request: SoapRequest): Promise<SoapReply> {
    const { envelope } = request.reading
    if (this.#exit) throw this.#preempted()
    if (this.#running >= this.#needs.maxConcurrentCalls) {
      if (this.#waiting.size >= this.#needs.maxWaitingCalls) return { envelope: this.#busy(envelope), isFault: true }
      await this.#turn(request.signal)
    } else this.#running++
    let answer: Awaited<ReturnType<Invoker['invoke']>>
    const call = new Call(envelope.messageId, request.signal, this.#cut.signal)
    this.#begun.add(call)
    try {
      answer = await this.#needs.invoker.invoke(request.reading, op => this.#context(op, envelope, call))
    } finally {
      call.end()
      this.#begun.delete(call)
      this.#leave()
    }
    if ('oneWay' in answer || !this.#exit) return answer
    return { ...answer, envelope: { ...answer.envelope, otherHeaders: [...answer.envelope.otherHeaders, preemptionHeader(this.#running)] } }
  }

  #preempted (): SoaError { return new SoaError('Service_Preempted', { left: this.#running }) }

  #busy (request: Envelope): Envelope {
    const reason = `${this.#running} calls are in progress and ${this.#waiting.size} wait at service instance ${this.#needs.taskId}, which is the most that it takes`
    return retryOperationFault(request, { reason, retryCount: 0, lastFailedServiceId: this.#needs.taskId })
  }

  /** Waits in line; rejects when the caller goes or the host ends first. Whoever goes on has been counted as running by `#leave`. */
  #turn (signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (act: () => void): void => { this.#waiting.delete(entry); signal.removeEventListener('abort', gone); act() }
      const gone = (): void => entry.drop(signal.reason)
      const entry: Waiting = { go: () => settle(resolve), drop: error => settle(() => reject(error)) }
      this.#waiting.add(entry)
      signal.addEventListener('abort', gone, { once: true })
      if (signal.aborted) gone()
    })
  }

  #leave (): void {
    const [next] = this.#waiting
    if (next) { next.go(); return } // takes over the place: the count stays
    this.#running--
    if (this.#running === 0) this.#whenIdle?.()
  }

  #named (): string {
    const calls = [...this.#begun].slice(0, NAMED_CALLS).map(({ operation, messageId }) => `${operation} ${messageId ?? '(no MessageID)'}`)
    return calls.join(', ') + (this.#begun.size > NAMED_CALLS ? `, and ${this.#begun.size - NAMED_CALLS} more` : '')
  }

  #context (op: WsdlOperation, envelope: Envelope, call: Call): ServiceContext {
    const { log, sessionId, taskId } = this.#needs
    call.operation = op.name
    return {
      logger: log,
      // Made when asked for: most services look at neither.
      get signal () { return call.signal },
      get userData () { return envelope.userData && userDataText(envelope.userData) },
      get headers () { return headersOf(envelope) },
      messageId: envelope.messageId,
      operation: op.name,
      sessionId,
      taskId,
      onExiting: handler => { this.#exiting.add(handler) }
    }
  }

  /** Ends once, whoever asks. True: all calls were answered and all handlers done within the grace. */
  exit (): Promise<boolean> { return (this.#exit ??= this.#end()) }

  async #end (): Promise<boolean> {
    const { cancelGraceMs, finishesCalls, clock, log } = this.#needs
    this.#progress.stop()
    // After this turn, so that #exit is set when the waiting ones hear of it.
    await Promise.resolve()
    for (const waiting of [...this.#waiting]) waiting.drop(this.#preempted())
    const isCutAtOnce = !finishesCalls && this.#running > 0
    if (isCutAtOnce) this.#cut.abort(this.#preempted())
    const idle = this.#running === 0 || !finishesCalls ? Promise.resolve() : new Promise<void>(resolve => { this.#whenIdle = resolve })
    const handlers = [...new Set([...exitingHandlers(), ...this.#exiting])].map(handler => Promise.resolve().then(handler).catch((error: unknown) => log.warn({ err: error }, 'onExiting handler failed')))
    const timer = new AbortController()
    const late = sleep(clock, cancelGraceMs, timer.signal).then(() => false, () => true)
    const isDone = await Promise.race([Promise.all([idle, ...handlers]).then(() => true), late])
    timer.abort()
    if (!isDone) {
      log.error({ callsInProgress: this.#running, cancelGraceMs }, 'grace is over')
      this.#cut.abort(this.#preempted())
    }
    return isDone && !isCutAtOnce
  }
}

/** The signal of one call. Listeners on the host's own signal go when the call ends, or a host that lives long would keep them all. */
class Call {
  readonly messageId: string | undefined
  operation = ''
  readonly #sources: readonly AbortSignal[]
  #made: AbortController | undefined
  #isOver = false

  constructor (messageId: string | undefined, ...sources: AbortSignal[]) {
    this.messageId = messageId
    this.#sources = sources
  }

  get signal (): AbortSignal {
    if (!this.#made) {
      this.#made = new AbortController()
      for (const source of this.#isOver ? [] : this.#sources) {
        if (source.aborted) this.#made.abort(source.reason)
        else source.addEventListener('abort', this.#abort)
      }
    }
    return this.#made.signal
  }

  end (): void {
    this.#isOver = true
    for (const source of this.#made ? this.#sources : []) source.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => {
    this.#made?.abort(this.#sources.find(source => source.aborted)?.reason)
  }
}
