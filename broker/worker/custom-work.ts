import { sleep, within, type Clock } from '../../core/clock.ts'
import { isSoaError, SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { Decision, MadeMessage, StateChange } from '../../store/message-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { CustomDispatcher, JobState } from '../custom-broker.ts'
import { Chooser } from './chooser.ts'
import type { CustomHooks } from './custom-hooks.ts'
import { HookSession, RequestView, ResponseView, type SessionFacts } from './custom-session.ts'
import type { DurableMap } from './custom-state.ts'
import { madeEnvelope, type BodyLimits, type Decided } from './custom-verdict.ts'
import type { Desk } from './dispatcher.ts'
import type { BrokerRequest } from './broker-request.ts'
import { Scatters } from './scatters.ts'

export interface CustomWorkNeeds {
  hooks: CustomHooks
  facts: Omit<SessionFacts, 'dispatchers'>
  limits: BodyLimits
  timeoutMs: number
  desk: () => Desk
  /** A request as its client wrote its id. */
  clientIdOf: (request: BrokerRequest) => string
  /** Reads requests with their decisions from the store, in one round trip. Resolves to those that are gone. */
  read: (requests: readonly BrokerRequest[]) => Promise<BrokerRequest[]>
  /** A request whose turn may be long in coming need not stay in memory. */
  shed: (request: BrokerRequest) => void
  /** Puts a request among those that wait for a dispatcher. */
  put: (request: BrokerRequest) => void
  keepState: (changes: readonly StateChange[]) => Promise<void>
  clock: Clock
  log: Logger
  failed: (error: unknown) => void
  close: () => Promise<void>
}

/** What onRequest made of a request, and the changes of the state that are to be kept with it. */
export interface Accepted { readonly envelope: Envelope, readonly decision: Decision | undefined, readonly changes: StateChange[] }

const READ_AT_ONCE = 64
/** Responses that onResponse has in hand; more hold the dispatchers back. */
const MOST_RESPONDING = 1000

/** A custom broker at work in the stock one: every place where a hook is asked, and what becomes of its answer. */
export class CustomWork {
  readonly chooser: Chooser
  readonly #needs: CustomWorkNeeds
  readonly #facts: SessionFacts
  readonly #scatters: Scatters
  #map!: DurableMap
  #arrived: BrokerRequest[] = []
  #isSorting = false
  #responding = 0
  #isOver = false
  #roomWaiters: Array<() => void> = []

  constructor (needs: CustomWorkNeeds) {
    this.#needs = needs
    const { hooks } = needs
    this.chooser = new Chooser({
      choose: (request, free) => hooks.choose(this.#view(request), free, id => this.chooser.knows(id)),
      chooseMany: hooks.choosesMany ? requests => this.#chooseMany(requests) : undefined,
      load: request => needs.desk().load(request),
      failed: error => this.#failed(error),
    })
    this.#facts = { ...needs.facts, dispatchers: () => this.chooser.dispatchers }
    this.#scatters = new Scatters({ put: needs.put, gathered: (request, parts) => { void this.#gathered(request, parts) } })
  }

  /** Whether there is a hook to ask; where there is none the stock path is taken. */
  get decides (): boolean { return this.#needs.hooks.has('onRequest') }
  get responds (): boolean { return this.#needs.hooks.has('onResponse') }
  get choosesDispatchers (): boolean { return this.#needs.hooks.has('chooseDispatcher') || this.#needs.hooks.choosesMany }
  /** Calls that instances are wanted for beyond one for each request. */
  get extraCalls (): number { return this.#scatters.extra }

  async start (map: DurableMap): Promise<void> {
    this.#map = map
    try {
      await this.#needs.hooks.start(new HookSession(this.#facts, map))
    } catch (error) {
      // Tried again it would fail again: whoever creates the session is told so at once.
      throw new SoaError('Broker_SessionFailure', { sessionId: this.#facts.id, why: (error as Error).message }, { cause: error })
    }
    this.#needs.hooks.job('Running')
  }

  /** Once, before the request is stored. Throws the refusal, or HookFailure. */
  async accept (envelope: Envelope, clientId: string): Promise<Accepted> {
    const changes: StateChange[] = []
    const found = await this.#decided(envelope, clientId, changes)
    if (found.refusal === undefined) return { envelope: found.envelope, decision: found.decision, changes }
    this.giveBack(changes)
    throw found.refusal
  }

  /** A hook that fails ends the session, and whoever sent the request learns why. */
  async #decided (envelope: Envelope, clientId: string, changes: StateChange[]): Promise<Decided> {
    const { hooks, facts, failed } = this.#needs
    try {
      return await hooks.decide(envelope, new RequestView(envelope, clientId), new HookSession(this.#facts, this.#map, changes))
    } catch (error) {
      failed(error)
      throw new SoaError('Broker_SessionFailure', { sessionId: facts.id, why: (error as Error).message }, { cause: error })
    }
  }

  /** Changes of the state that nobody has taken along; with `giveBack` for a batch that was not written. */
  takeChanges (): StateChange[] { return this.#map.take() }
  giveBack (changes: readonly StateChange[]): void { this.#map.giveBack(changes) }

  /** The request may be worked on: dispatched, answered or scattered, as was decided. */
  route (request: BrokerRequest): void {
    const { decision } = request
    if (decision !== 'unread') request.lane = decision?.lane
    if (decision === undefined || (decision !== 'unread' && decision.answer === undefined && decision.scatter === undefined)) { this.#needs.put(request); return }
    this.#arrived.push(request)
    if (!this.#isSorting) void this.#sort()
  }

  async #sort (): Promise<void> {
    this.#isSorting = true
    await Promise.resolve() // a queue that is being raised routes its requests before anybody knows it
    try {
      while (this.#arrived.length > 0) {
        const batch = this.#arrived.splice(0, READ_AT_ONCE).filter(request => request.isDropped !== true)
        const gone = new Set(await this.#read(batch.filter(request => request.envelope === undefined || request.decision === 'unread')))
        for (const request of batch) if (!gone.has(request) && request.isDropped !== true) await this.#begin(request)
      }
    } catch (error) {
      this.#needs.failed(error)
    } finally {
      this.#isSorting = false
    }
  }

  async #read (requests: readonly BrokerRequest[]): Promise<BrokerRequest[]> {
    return requests.length === 0 ? [] : await this.#whenStoreIsThere(() => this.#needs.read(requests), 'decisions could not be read yet')
  }

  /** What it chose by is kept before anything is sent by it: after a crash it would choose otherwise. */
  async #chooseMany (requests: readonly BrokerRequest[]): Promise<string[]> {
    const { hooks, keepState } = this.#needs
    const choices = await hooks.chooseMany(requests.map(request => this.#view(request)), id => this.chooser.knows(id))
    const changes = this.takeChanges()
    if (changes.length > 0) await this.#whenStoreIsThere(() => keepState(changes), 'the state of the custom broker could not be kept yet')
    return choices
  }

  async #whenStoreIsThere<T> (work: () => Promise<T>, notYet: string): Promise<T> {
    const { facts: { signal }, clock, log } = this.#needs
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!isSoaError(error, 'StorageServiceNotAvailble') || signal.aborted) throw error
        log.warn({ err: error }, notYet)
        await sleep(clock, 1000, signal)
      }
    }
  }

  async #begin (request: BrokerRequest): Promise<void> {
    const { desk, put, shed, limits } = this.#needs
    const decision = request.decision === 'unread' ? undefined : request.decision
    request.lane = decision?.lane
    const sent = request.envelope as Envelope
    if (decision?.answer !== undefined) {
      desk().started(request, '')
      await desk().complete(request, madeEnvelope(decision.answer, sent, limits), decision.answer.isFault === true, true)
    } else if (decision?.scatter !== undefined) {
      await this.#scatters.room()
      desk().started(request, '')
      this.#scatters.open(request, decision.scatter.map(part => madeEnvelope(part, sent, limits)))
    } else {
      shed(request)
      put(request)
    }
  }

  async #gathered (request: BrokerRequest, parts: ReadonlyArray<{ envelope: Envelope, isFault: boolean }>): Promise<void> {
    const { hooks, desk, limits } = this.#needs
    const changes: StateChange[] = []
    try {
      const views = parts.map(({ envelope, isFault }) => new ResponseView(envelope, isFault))
      const response = await hooks.gather(this.#view(request), views, new HookSession(this.#facts, this.#map, changes))
      await desk().complete(request, madeEnvelope(response, request.envelope as Envelope, limits), response.isFault === true, true, changes)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** What a session had in hand when it was canceled or closed fails nothing any more: its custom broker may be gone already. */
  #failed (error: unknown): void {
    if (this.#isOver) this.#needs.log.warn({ err: error as Error }, 'custom broker: a hook failed after its session was over')
    else this.#needs.failed(error)
  }

  /** Before a response is stored or sent. `changes`: what is to be kept with it. Undefined: the session is over, and nobody is asked any more. */
  async respond (request: BrokerRequest, response: Envelope, isFault: boolean): Promise<{ response: Envelope, isFault: boolean, changes: StateChange[] } | undefined> {
    const { hooks, limits } = this.#needs
    const changes: StateChange[] = []
    if (!hooks.has('onResponse')) return { response, isFault, changes }
    this.#responding++
    try {
      const made: MadeMessage | undefined = await hooks.respond(this.#view(request), new ResponseView(response, isFault), new HookSession(this.#facts, this.#map, changes))
      return made === undefined ? { response, isFault, changes } : { response: madeEnvelope(made, response, limits), isFault: made.isFault === true, changes }
    } catch (error) {
      if (!this.#isOver) throw error
      this.#failed(error)
      return undefined
    } finally {
      this.#responding--
      for (const go of this.#roomWaiters.splice(0)) go()
    }
  }

  /** Back-pressure for dispatchers when onResponse is slower than the grid. */
  async room (): Promise<void> {
    while (this.#responding >= MOST_RESPONDING && !this.#needs.facts.signal.aborted) await new Promise<void>(resolve => this.#roomWaiters.push(resolve))
  }

  added (dispatcher: Omit<CustomDispatcher, 'free'>): void { this.chooser.added(dispatcher) }
  removed (id: string): void { this.chooser.removed(id) }
  tasks (tasks: readonly TaskInfo[]): void { this.#needs.hooks.tasks(tasks) }

  /** A client was purged, or all work has ended (undefined): what was scattered for it is never gathered. */
  forget (clientKey?: string): void {
    for (const request of this.#arrived) if (clientKey === undefined || request.clientKey === clientKey) request.isDropped = true
    this.#scatters.forget(clientKey)
  }

  /** Tells it, once, that the session is over or ends here, and keeps what is left of its state. A hook that fails now fails nothing any more. */
  async over (state: JobState | undefined, why: string): Promise<void> {
    const { hooks, clock, timeoutMs, log, keepState, close } = this.#needs
    if (this.#isOver) return
    this.#isOver = true
    if (state !== undefined) hooks.job(state)
    await within(clock, timeoutMs, hooks.end(why), () => new Error(`onSessionEnd did not return within ${timeoutMs} ms (hookTimeoutMs)`)).catch(error => log.warn({ err: error as Error }, 'custom broker: the end went wrong'))
    if (state === undefined) await keepState(this.takeChanges()).catch(error => log.error({ err: error as Error }, 'custom broker: its state was not kept'))
    await close().catch(error => log.warn({ err: error as Error }, 'custom broker: it did not close'))
  }

  #view (request: BrokerRequest): RequestView { return new RequestView(request.envelope as Envelope, this.#needs.clientIdOf(request), request.lane) }
}
