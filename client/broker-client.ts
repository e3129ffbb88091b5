import { systemClock } from '../core/clock.ts'
import { FAULTS, SoaError } from '../core/errors.ts'
import { newMessageId } from '../core/ids.ts'
import type { SoapCaller } from '../transport/channel.ts'
import { clientIdHeader, clientInstanceIdHeader } from '../wire/soap/hpc-headers.ts'
import { nextBatchId } from './client-id.ts'
import type { AnyContract, ContractType } from './contract-types.ts'
import { Controller, type ClientStatus, type ControllerNeeds } from './controller.ts'
import { ClientError, WaitTimeoutError } from './errors.ts'
import { faultAnswer } from './fault.ts'
import type { Response } from './response.ts'
import { ResponseReader, type ResponsesOptions } from './responses.ts'
import type { Service } from './service.ts'
import { signalFor } from './signals.ts'
import { userDataHeader, type UserData } from './user-data.ts'
import type { Way } from './way.ts'
import { Window } from './window.ts'

/** How a broker client sends. */
export interface ClientOptions {
  /** Sends and calls in flight at once, 1 … 1024; the next ones wait. Default 64. */
  readonly window?: number | undefined
  /** How long a broker that cannot be reached is tried, milliseconds, from a message's first failure on; default: the session's. */
  readonly retryForMs?: number | undefined
  /** Longest wait for one answer of the broker, milliseconds: a busy interactive broker answers late. Default 24 h, HPC Pack's serviceOperationTimeout. */
  readonly sendTimeoutMs?: number | undefined
}

export interface SendOptions {
  /** Comes back with the response, unchanged; default: empty. */
  readonly userData?: UserData | undefined
  /** `urn:uuid:…`; default: a new one. The broker keeps one request per id, so a program that sends again after a crash gives its own. */
  readonly messageId?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface WaitOptions {
  /** Longest wait, milliseconds, -1: for ever; default 60,000. It starts again with every request that arrives. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface SignalOption { readonly signal?: AbortSignal | undefined }

/** @internal What a session gives to its clients. */
export interface BrokerClientNeeds {
  readonly caller: Pick<SoapCaller, 'call'>
  readonly way: Pick<Way, 'persist'>
  readonly clientId: string
  readonly isDurable: boolean
  readonly openService: () => Promise<Service>
  readonly stillThere?: ControllerNeeds['stillThere']
  /** What the broker has of this client: all requests, and those covered by flushes. */
  readonly totals: (signal: AbortSignal) => Promise<{ total: number, flushed: number } | undefined>
  /** It was purged: its connections are not needed, until it sends again. */
  readonly released: () => Promise<void>
  readonly options: ClientOptions & { retryForMs: number }
}

const DEFAULT_WINDOW = 64
const MOST_IN_FLIGHT = 1024
const DAY_MS = 86_400_000
const DEFAULT_FLUSH_TIMEOUT_MS = 60_000

/**
 * One client id in a session: its requests, its responses, its EndRequests.
 *
 * Requests are sent with user data and answered by the broker as soon as it has them; the service's answers are read with `responses`,
 * in this process or another. A durable session works on requests from their `flush` or `endRequests` on, an interactive one at once.
 */
export class BrokerClient<C extends ContractType<C> = AnyContract> {
  readonly clientId: string
  readonly #needs: BrokerClientNeeds
  readonly #controller: Controller
  readonly #reader: ResponseReader
  readonly #window: Window
  readonly #sendTimeoutMs: number
  /** Requests that the broker has and that no flush covers. */
  #unflushed = 0
  /** Sends that failed after they may have arrived. */
  #uncertain = 0
  #batchId: number | undefined
  #hasSent = false
  #isEnded = false

  /** @internal Use `session.client()`. */
  constructor (needs: BrokerClientNeeds) {
    const { window = DEFAULT_WINDOW, sendTimeoutMs = DAY_MS, retryForMs } = needs.options
    if (!Number.isInteger(window) || window < 1 || window > MOST_IN_FLIGHT) throw new SoaError('InvalidArgument', { argument: 'window', why: `a whole number from 1 to ${MOST_IN_FLIGHT} is expected, not ${window}` })
    this.clientId = needs.clientId
    this.#needs = needs
    this.#controller = new Controller({ caller: needs.caller, way: needs.way, clientId: needs.clientId, retryForMs, stillThere: needs.stillThere })
    this.#reader = new ResponseReader({ controller: this.#controller, way: needs.way, openService: needs.openService, retryForMs })
    this.#window = new Window(window)
    this.#sendTimeoutMs = sendTimeoutMs
  }

  /**
   * Sends a request whose response is stored; resolves to its message id when the broker has it, and in a durable session has stored it.
   *
   * Many may be in flight: `await Promise.all(rows.map(row => client.send(…)))` keeps `window` of them going. Arguments are checked before anything
   * is sent. An interactive session takes no more while 4,096 requests and unread responses (messageThrottleStartThreshold) are there: `send` then waits
   * until responses are read, so read them meanwhile. While the broker cannot be reached the same message is sent again and again, for up to `retryForMs`; the broker drops doubles.
   *
   * @throws `SoaError` with `InvalidArgument` (path and reason) for arguments that the WSDL does not allow; `SoapFaultError` when the broker refuses;
   * `ConnectionError`, the signal's reason.
   */
  async send<O extends keyof C & string> (op: O, args: C[O]['args'], { userData = '', messageId = newMessageId(), signal }: SendOptions = {}): Promise<string> {
    const { transport, operation, body } = await this.#prepare(op, args, signal)
    if (operation.isOneWay) throw new SoaError('Broker_UnsupportedOperation', { operation: op, why: 'a one-way operation has no response to store; use call' })
    const headers = userDataHeader(userData) + this.#headers
    await this.#window.run(async () => {
      if (this.#isEnded) throw new SoaError('Broker_EOMReject_EndRequests', {})
      let mayHaveArrived = false
      this.#hasSent = true
      try {
        await this.#persist(`send ${op}`, signal, async limit => {
          const answer = await transport.exchange({ operation: op, action: operation.action, messageId, clientId: this.clientId, isOneWay: false, headers, body, signal: limit })
            .catch(error => { mayHaveArrived = true; throw error })
          if (answer.status !== 200 && answer.status !== 202) throw faultAnswer(answer, operation.readDetail)
        })
        this.#unflushed++
      } catch (error) {
        if (mayHaveArrived) this.#uncertain++
        throw error
      }
    }, signal)
    return messageId
  }

  /**
   * Calls the service and waits for its answer in the same exchange: nothing is stored, nothing needs a flush.
   * While the broker cannot be reached the call is made again, so the service may execute it more than once, as any request in a grid.
   *
   * @returns the reply's wrapper element as a value, `{ GenerateResult: 4 }`; undefined for a one-way operation.
   * @throws `SoapFaultError` for the service's fault, `RetryOperationError` when the broker gave up; otherwise as `send`.
   */
  async call<O extends keyof C & string> (op: O, args: C[O]['args'], { signal }: SignalOption = {}): Promise<C[O]['result']> {
    const { service, transport, operation, body } = await this.#prepare(op, args, signal)
    return this.#window.run(() => this.#persist(`call ${op}`, signal, async limit => {
      // A new id each time: the broker would drop the second of two with the same, and nobody would answer it. No client id: its EndRequests does not concern calls.
      const answer = await transport.exchange({ operation: op, action: operation.action, messageId: newMessageId(), isOneWay: operation.isOneWay, headers: '', body, signal: limit })
      if (answer.status === 202 || (answer.status === 200 && operation.isOneWay)) return undefined
      if (answer.status !== 200) throw faultAnswer(answer, operation.readDetail)
      return service.readReply(operation, answer)
    }), signal)
  }

  /**
   * Waits for the sends in flight, then until the broker has safely stored all of them (and works on them, in a durable session).
   * Sends that start meanwhile wait for its end. Nothing sent since the last flush: nothing happens.
   *
   * @returns how many requests it covered.
   * @throws `SoapFaultError` with `OperationTimeout`: nothing is lost, flush again. `ClientError` when another program has taken over this client id.
   */
  flush (options: WaitOptions = {}): Promise<number> { return this.#window.quiet(() => this.#commit('Flush', options)) }

  /** Flushes, and says that no more requests come: `responses` ends after the last one, and the work goes on without anybody connected. */
  async endRequests (options: WaitOptions = {}): Promise<number> {
    return this.#window.quiet(async () => {
      const count = await this.#commit('EndRequests', options)
      this.#isEnded = true
      return count
    })
  }

  /**
   * The stored responses, as they come, until the end (EndRequests was called and all were delivered). No order is promised.
   * Each comes once per iteration, also when connections break or the broker is restarted in between.
   *
   * `from: 'begin'` (default): all that are there; a durable session keeps them until `purge` or `close`, an interactive one until they are delivered.
   * `from: 'current'`: those that this client has not handed out yet.
   *
   * @throws (while iterating) `ConnectionError`, `WaitTimeoutError`, `SoapFaultError` when the session failed, the signal's reason. A fault of one request is
   * not thrown here: it is that response's `fault`.
   */
  responses<O extends keyof C & string = keyof C & string> (options: ResponsesOptions<O> = {}): AsyncIterableIterator<Response<C, O>> {
    return this.#reader.read(options) as unknown as AsyncIterableIterator<Response<C, O>>
  }

  /** `Ready` for requests, `Processing` after EndRequests, `Finished` when all responses are there. */
  status ({ signal }: SignalOption = {}): Promise<ClientStatus> { return this.#controller.status(signalFor(signal)) }

  /** Requests covered by flushes so far. */
  requestsCount ({ signal }: SignalOption = {}): Promise<number> { return this.#controller.requestsCount(signalFor(signal)) }

  /** Destroys this client's requests and responses, and lets go of its connections; afterwards its id can be used anew, over new ones. */
  purge ({ signal }: SignalOption = {}): Promise<void> {
    return this.#window.quiet(async () => {
      await this.#controller.purge(signalFor(signal))
      this.#reader.forget()
      this.#unflushed = this.#uncertain = 0
      this.#batchId = undefined
      this.#hasSent = this.#isEnded = false
      await this.#needs.released()
    })
  }

  async #prepare (op: string, args: unknown, signal: AbortSignal | undefined) {
    if (signal) signalFor(signal).throwIfAborted()
    const service = await this.#needs.openService()
    const operation = service.operation(op)
    const body = operation.writeArgs(args)
    return { service, operation, body, transport: await service.transport() }
  }

  get #headers (): string {
    const id = clientIdHeader(this.clientId).toString()
    return this.#needs.isDurable ? id + clientInstanceIdHeader(this.#batchId ??= nextBatchId(systemClock.now())).toString() : id
  }

  /** Each try has the signal of the caller and its own time limit. */
  #persist<T> (what: string, signal: AbortSignal | undefined, attempt: (limit: AbortSignal) => Promise<T>): Promise<T> {
    return this.#needs.way.persist(what, { retryForMs: this.#needs.options.retryForMs, signal }, async (_failed, silence) => {
      const limit = new AbortController()
      const stop = (): void => limit.abort(signal?.aborted === true ? signal.reason : silence.reason)
      const cancel = systemClock.after(this.#sendTimeoutMs, () => limit.abort(new WaitTimeoutError(what, this.#sendTimeoutMs)), { unref: true })
      for (const one of [signal, silence]) one?.addEventListener('abort', stop, { once: true })
      try {
        return await attempt(limit.signal)
      } finally {
        cancel()
        for (const one of [signal, silence]) one?.removeEventListener('abort', stop)
      }
    })
  }

  async #commit (name: 'Flush' | 'EndRequests', { timeoutMs = DEFAULT_FLUSH_TIMEOUT_MS, ...options }: WaitOptions): Promise<number> {
    if (!Number.isInteger(timeoutMs) || timeoutMs < -1 || timeoutMs === 0) throw new SoaError('InvalidArgument', { argument: 'timeoutMs', why: `a whole number above 0, or -1, is expected, not ${timeoutMs}` })
    const signal = signalFor(options.signal)
    if (this.#uncertain > 0) await this.#countAgain(signal)
    // A program that joins a client and only ends it covers what those before it sent.
    const count = this.#hasSent || name === 'Flush' ? this.#unflushed : await this.#unflushedThere(signal)
    if (name === 'Flush' && count === 0) return 0
    const before = await this.#controller.requestsCount(signal)
    await this.#controller.commit(name, before, { count, batchId: this.#batchId ?? -1, timeoutMs, signal })
    // A flush in the name of an older life of the client succeeds and does nothing, says HPC Pack's contract: that must not pass for success.
    const after = count === 0 ? before : await this.#controller.requestsCount(signal)
    if (after < before + count) {
      throw new ClientError(`${name}: the broker covered ${after - before} of ${count} requests; another program has taken over client id "${this.clientId}" and replaced what was not flushed`, { fault: 'Broker_FlushRejected', code: FAULTS.Broker_FlushRejected.code })
    }
    this.#unflushed = 0
    return count
  }

  async #unflushedThere (signal: AbortSignal): Promise<number> {
    const totals = await this.#needs.totals(signal)
    return totals ? totals.total - totals.flushed : 0
  }

  /** Some sends failed after they may have arrived. The count of a flush must be exact, so the broker is asked what it has. */
  async #countAgain (signal: AbortSignal): Promise<void> {
    const has = await this.#unflushedThere(signal)
    const most = this.#unflushed + this.#uncertain
    if (has < this.#unflushed || has > most) throw new ClientError(`the broker has ${has} requests since the last flush; ${this.#unflushed} to ${most} were sent by this program`)
    this.#unflushed = has
    this.#uncertain = 0
  }
}
