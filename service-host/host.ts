/**
 * Serves one service: lets in as many calls at a time as it may, queues the others, and ends in good order.
 *
 * Ending ([broker-behaviour] 4.9): calls in progress finish and their replies say in the `preemption` header how many are left; calls that wait and new
 * ones get SessionFault Service_Preempted, which costs a request no try; onExiting handlers run meanwhile.
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
import type { ServiceContext, ServiceLogger } from './service-context.ts'

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
  readonly log: ServiceLogger
  readonly clock: Clock
  readonly get?: SoapEndpoint['get']
}

interface Waiting { go (): void, drop (error: unknown): void }

export class ServiceHost {
  readonly #needs: HostNeeds
  readonly #exiting = new Set<() => unknown>()
  /** Aborts the calls that are still in progress when the grace is over. */
  readonly #cut = new AbortController()
  readonly #waiting = new Set<Waiting>()
  #running = 0
  #exit: Promise<boolean> | undefined
  #whenIdle: (() => void) | undefined

  constructor (needs: HostNeeds) { this.#needs = needs }

  get endpoint (): SoapEndpoint {
    const { limits, get } = this.#needs
    return { limits, handle: request => this.#handle(request), ...(get ? { get } : {}) }
  }

  get callsInProgress (): number { return this.#running }

  get callsWaiting (): number { return this.#waiting.size }

  async #handle (request: SoapRequest): Promise<SoapReply> {
    const { envelope } = request.reading
    if (this.#exit) throw this.#preempted()
    if (this.#running >= this.#needs.maxConcurrentCalls) {
      if (this.#waiting.size >= this.#needs.maxWaitingCalls) return { envelope: this.#busy(envelope), isFault: true }
      await this.#turn(request.signal)
    } else this.#running++
    let answer: Awaited<ReturnType<Invoker['invoke']>>
    const call = new Call(request.signal, this.#cut.signal)
    try {
      answer = await this.#needs.invoker.invoke(request.reading, op => this.#context(op, envelope, call))
    } finally {
      call.end()
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

  #context (op: WsdlOperation, envelope: Envelope, call: Call): ServiceContext {
    const { log, sessionId, taskId } = this.#needs
    return {
      logger: log,
      // Made when asked for: most services look at neither.
      get signal () { return call.signal },
      get userData () { return envelope.userData && userDataText(envelope.userData) },
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
    const { cancelGraceMs, clock, log } = this.#needs
    // After this turn, so that #exit is set when the waiting ones hear of it.
    await Promise.resolve()
    for (const waiting of [...this.#waiting]) waiting.drop(this.#preempted())
    const idle = this.#running === 0 ? Promise.resolve() : new Promise<void>(resolve => { this.#whenIdle = resolve })
    const handlers = [...this.#exiting].map(handler => Promise.resolve().then(handler).catch((error: unknown) => log.warn({ err: error }, 'onExiting handler failed')))
    const timer = new AbortController()
    const late = sleep(clock, cancelGraceMs, timer.signal).then(() => false, () => true)
    const isDone = await Promise.race([Promise.all([idle, ...handlers]).then(() => true), late])
    timer.abort()
    if (!isDone) {
      log.error({ callsInProgress: this.#running, cancelGraceMs }, 'grace is over')
      this.#cut.abort(this.#preempted())
    }
    return isDone
  }
}

/** The signal of one call. Listeners on the host's own signal go when the call ends, or a host that lives long would keep them all. */
class Call {
  readonly #sources: readonly AbortSignal[]
  #made: AbortController | undefined
  #isOver = false

  constructor (...sources: AbortSignal[]) { this.#sources = sources }

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
