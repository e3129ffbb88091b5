import { randomUUID } from 'node:crypto'
import { SoaError, isSoaError } from '../../core/errors.ts'
import { machine, type Machine } from '../../core/machine.ts'
import { sleep } from '../../core/clock.ts'
import { ofSession } from '../../config/settings.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { isReadOnly, type SessionRecord } from '../../store/session-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { SoapReply } from '../../transport/channel.ts'
import type { SessionView } from '../contract.ts'
import type { BrokerClient } from './broker-client.ts'
import type { ClientQueue } from './client-queue.ts'
import { SessionCounters } from './counters.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Units } from './demand.ts'
import { customWork, type CustomNeeds } from './custom-setup.ts'
import { DurableMap } from './custom-state.ts'
import type { CustomWork } from './custom-work.ts'
import { sessionDesk } from './desk.ts'
import { DirectCalls } from './direct-calls.ts'
import type { Desk } from './dispatcher.ts'
import { DispatcherPool } from './dispatcher-pool.ts'
import { RequestQueue } from './request-queue.ts'
import { BROKER } from './session.states.ts'
import { sessionTries } from './session-tries.ts'
import { SessionClients } from './session-clients.ts'
import type { Ending, SessionNeeds } from './session-needs.ts'
import { Settler } from './settler.ts'
import { StartTrouble } from './start-trouble.ts'
import { Throttle } from './throttle.ts'
import { Tracing } from './tracing.ts'
import type { ServiceFacts } from './service-facts.ts'

/** The broker of one session: its clients, its queues, its dispatchers, its clocks. */
export class BrokerSession {
  readonly sessionId: string
  readonly isDurable: boolean
  readonly service: ServiceFacts
  /** New with each incarnation: PingBroker2's answer. */
  readonly uniqueId = randomUUID()
  readonly counters: SessionCounters
  /** Its requests that were given up. */
  readonly letters: DeadLetters
  /** What became of its messages. */
  readonly tracing: Tracing
  readonly #needs: SessionNeeds
  readonly #life: Machine<typeof BROKER>
  readonly #requests: RequestQueue
  readonly #custom: CustomWork | undefined
  readonly #settler: Settler
  readonly #throttle: Throttle
  /** What late callers are told: to attach again, which raises it, or that it is over ([broker-behaviour] 1.1). */
  #ending: SoaError
  readonly #queues = new Map<string, ClientQueue>()
  readonly #clients: SessionClients
  readonly #desk: Desk
  readonly #pool: DispatcherPool
  readonly #end = new AbortController()
  readonly #direct: DirectCalls
  #why = ''
  #endedAs: 'Canceled' | 'Failed' | undefined
  readonly #trouble: StartTrouble
  #disarm: () => void = () => {}

  constructor (needs: SessionNeeds) {
    const { record, service, clock, log } = needs
    const { settings } = service
    this.#needs = needs
    this.#trouble = new StartTrouble(log)
    this.counters = new SessionCounters(clock)
    this.sessionId = record.sessionId
    this.#ending = new SoaError('Broker_BrokerSuspending', { sessionId: record.sessionId })
    this.isDurable = record.durable
    this.service = service
    const over = isReadOnly(record) ? record.state : undefined
    const custom = this.#custom = needs.custom === undefined || over !== undefined ? undefined : this.#customWork(needs.custom)
    this.#requests = new RequestQueue(custom?.choosesDispatchers === true ? custom.chooser : undefined)
    this.#settler = new Settler(needs.store, custom, { counters: this.counters, clock })
    this.#direct = new DirectCalls({ counters: this.counters, custom, put: request => this.#requests.put(request), workCame: () => this.workCame(), failed: error => this.fail(error) })
    this.#throttle = new Throttle(record.durable ? { start: Infinity, stop: Infinity } : { start: settings.messageThrottleStartThreshold, stop: settings.messageThrottleStopThreshold })
    this.#life = machine(BROKER, over ?? 'Started', (from, event, to) => {
      if (to === 'Canceled' || to === 'Failed') this.#endedAs = to
      log.info({ from, event, to }, 'broker changed state')
    })
    this.#endedAs = over
    this.#why = record.why ?? ''
    const common = {
      requests: this.#requests,
      counters: this.counters,
      custom,
      clock,
      signal: this.#end.signal,
      queueOf: (key: string) => this.#queues.get(key),
      requestAction: (request: Envelope) => request.action,
      failed: (error: unknown) => this.fail(error),
      log,
    }
    const { desk, letters } = sessionTries({
      ...common,
      sessionId: record.sessionId,
      desk: sessionDesk({ ...common, settler: this.#settler, clientOf: key => this.#clients.find(key) }),
      store: needs.store.letters,
      choosesDispatchers: custom?.choosesDispatchers === true,
      settings,
      refuseUnlessTaking: () => this.refuseUnlessTaking(),
      workCame: () => this.workCame(),
    })
    this.letters = letters
    this.tracing = new Tracing({ sessionId: this.sessionId, most: settings.traceMessages, isDurable: this.isDurable, store: needs.store, queues: this.#queues, counters: this.counters, clock })
    this.#desk = this.tracing.over(desk)
    this.#clients = new SessionClients({
      queues: this.#queues,
      isDurable: this.isDurable,
      idleTimeoutMs: settings.clientIdleTimeout,
      throttle: this.#throttle,
      store: needs.store,
      requests: this.#requests,
      settler: this.#settler,
      counters: this.counters,
      custom,
      trace: this.tracing.log,
      cache: { used: 0, max: settings.maxRequestCacheBytes },
      signal: this.#end.signal,
      isJobEnded: () => this.#endedAs !== undefined,
      came: () => { if (this.#life.fire('clientCame')) this.#disarm() },
      lastLeft: () => { if (this.#life.fire('lastClientLeft') || this.#endedAs !== undefined) this.#armIdle() },
      forgotten: key => { custom?.forget(key); this.tracing.log?.forget(key) },
      failed: error => this.fail(error),
      clock,
      log,
    })
    this.#pool = new DispatcherPool({
      desk: this.#desk,
      connect: needs.connect,
      exit: needs.exitHost,
      keepsOrder: needs.keepsOrder ?? true,
      hasReply: action => service.hasReply(action),
      replyActionOf: action => service.replyActionOf(action),
      isOneWay: action => service.isOneWay(action),
      limits: service.dispatchLimits(needs.taskFateTimeoutMs),
      clock,
      failed: error => this.fail(error),
      changed: (event, task) => { this.tracing.poolChanged(event, task); this.#poolChanged(event, task) },
      hostFailed: (task, inARow) => this.#hostFailed(task, inARow),
      wantsChanged: () => needs.demand.wantsChanged(),
      log,
    })
  }

  get state (): SessionRecord['state'] {
    const { state } = this.#life
    return state === 'Canceled' || state === 'Failed' ? state : 'Running'
  }

  /** Canceled or failed, also after the broker itself has ended. */
  get endedAs (): 'Canceled' | 'Failed' | undefined { return this.#endedAs }

  /** Raises what the store has, starts demand and dispatchers. Requests are taken when it resolves. */
  async open (): Promise<void> {
    const { record, store, demand, events, service, log } = this.#needs
    const stored = await store.load()
    this.counters.purged(await store.purged())
    this.counters.deadLettered = await store.deadLettered()
    await this.#custom?.start(new DurableMap(await store.state(), service.settings.maxStateBytes))
    for (const client of stored) this.#clients.recover(client)
    if (stored.length > 0) log.info({ clients: stored.length, outstanding: this.counters.outstanding }, 'session raised from the store')
    if (this.#endedAs !== undefined) { this.#requests.drop(); this.#armIdle(); return }
    await this.letters.recover()
    const { tasks, cursor } = await events.snapshot(this.sessionId)
    if (record.state === 'Suspended' && this.callsWanted === 0) demand.startIdle()
    await demand.start()
    this.#taskStateChanged(tasks)
    void this.#follow(cursor)
    if (this.#life.state === 'Started') {
      this.#arm(service.settings.clientConnectionTimeout, 'noClient', `no client within ${service.settings.clientConnectionTimeout} ms (clientConnectionTimeout)`)
    }
  }

  async #follow (cursor: string): Promise<void> {
    try {
      for await (const { tasks } of this.#needs.events.follow(this.sessionId, cursor, this.#end.signal)) this.#taskStateChanged(tasks)
    } catch (error) {
      if (!this.#end.signal.aborted) this.fail(error)
    }
  }

  #taskStateChanged (tasks: readonly TaskInfo[]): void {
    this.#custom?.tasks(tasks)
    this.#pool.taskStateChanged(tasks)
  }

  #poolChanged (event: 'added' | 'removed', { id, machineName, capacity }: TaskInfo): void {
    if (event === 'removed') { this.#custom?.removed(id); return }
    this.#trouble.over()
    this.#custom?.added({ id, machineName, capacity: this.service.maxConcurrentCalls || capacity })
  }

  #customWork (custom: CustomNeeds): CustomWork {
    const { record: { sessionId }, service, store, clock, log } = this.#needs
    return customWork({
      ...custom,
      facts: { id: sessionId, service: service.registered.name, isDurable: this.isDurable, settings: { ...ofSession(service.settings) }, log, signal: this.#end.signal },
      replyActionOf: action => service.replyActionOf(action),
      desk: () => this.#desk,
      queueOf: key => this.#queues.get(key),
      put: request => this.#requests.put(request),
      keepState: changes => store.keepState(changes),
      clock,
      failed: error => this.fail(error),
    })
  }

  /** The broker client of this id, made when it is first asked for. Refuses when the session is ending. */
  client (displayId: string): BrokerClient {
    if (this.#life.state === 'Ending') throw this.#ending
    return this.#clients.get(displayId)
  }

  async purge (clientId: string): Promise<void> {
    const key = clientId.toLowerCase()
    this.#direct.refuse(new SoaError('ClientPurged', {}), key)
    await this.#clients.purge(key)
  }

  #armIdle (): void {
    const ms = this.service.settings.sessionIdleTimeout
    this.#arm(ms, 'idle', `no client for ${ms} ms (sessionIdleTimeout)`)
  }

  #arm (ms: number, event: 'idle' | 'noClient', why: string): void {
    this.#disarm()
    this.#disarm = this.#needs.clock.after(ms, () => {
      if (this.letters.running > 0) { this.#arm(ms, event, why); return }
      if (!this.#life.fire(event)) return
      const isWorthKeeping = this.isDurable && (event === 'idle' || this.#queues.size > 0)
      this.#stop(isWorthKeeping ? 'suspended' : 'destroyed').then(() => this.#needs.ended(isWorthKeeping ? 'suspended' : 'destroyed', why), error => this.#needs.log.error({ err: error as Error }, 'session did not end cleanly'))
    }, { unref: true })
  }

  #hostFailed (task: TaskInfo, inARow: number): void {
    const why = this.#trouble.failed(task, inARow, this.#pool.size > 0)
    if (why === undefined) return
    this.#direct.refuse(why)
    this.#clients.tell()
  }

  /** A request may be taken: the session is neither canceled, failed nor ending. */
  refuseUnlessTaking (): void {
    const end = this.#workEnd()
    if (end !== undefined) { this.counters.refused++; throw end }
  }

  /**
   * Why nothing more will come, for readers that have had all that is stored; undefined while work goes on. A service that cannot be started is told between
   * the attempts: while one is under way a reader waits for what comes of it.
   */
  readEnd (): SoaError | undefined {
    const isTrying = this.#pool.size > 0 || this.#pool.tasks.some(({ state }) => state === 'Dispatching')
    return this.#workEnd() ?? (isTrying || this.counters.outstanding === 0 ? undefined : this.#trouble.why)
  }

  #workEnd (): SoaError | undefined {
    switch (this.#life.state) {
      case 'Canceled': return new SoaError('Session_ValidateJobFailed_JobCanceled', { sessionId: this.sessionId })
      case 'Failed': return new SoaError('Broker_SessionFailure', { sessionId: this.sessionId, why: this.#why })
      case 'Ending': return this.#ending
      default: return undefined
    }
  }

  /** Calls that wait for a service instance or are at one. */
  get callsWanted (): number { return this.counters.outstanding + this.letters.running + (this.#custom?.extraCalls ?? 0) }

  /** Its service instances, for its demand. */
  get units (): Units { return this.#pool }

  /** An idle session gets its service instances back as soon as there is work. */
  workCame (): void { this.#needs.demand.look() }

  async throttleOpen (timeoutMs: number, signal: AbortSignal): Promise<void> {
    await this.#throttle.openWithin(this.#needs.clock, timeoutMs, signal)
  }

  /** A call answered in the same exchange: waits for the service's reply; dropped when the caller goes before its turn. */
  call (client: BrokerClient, envelope: Envelope, signal: AbortSignal): Promise<SoapReply> {
    return this.#direct.call(client, envelope, signal)
  }

  /** A one-way call: taken now, run when its turn comes, its end only counted. */
  callOneWay (client: BrokerClient, envelope: Envelope): void {
    this.#direct.callOneWay(client, envelope)
  }

  /** Work stops; what is stored stays readable. Again: nothing more happens. */
  async cancel (): Promise<void> {
    if (!this.#life.fire('cancel')) return
    this.#disarm()
    this.#endWork(new SoaError('Session_ValidateJobFailed_JobCanceled', { sessionId: this.sessionId }))
    await this.#needs.demand.stop(false)
    if (this.#clients.size === 0) this.#armIdle()
    void this.#custom?.over('Canceled', 'canceled')
    this.#needs.stateChanged('Canceled', 'canceled by a client')
  }

  /** The session cannot go on: readers get what is stored, then a fault. Ownership lost: everything is let go of at once. */
  fail (error: unknown): void {
    const { log, ended, stateChanged } = this.#needs
    const why = error instanceof Error ? error.message : String(error)
    if (isSoaError(error, 'storeFenced')) {
      if (!this.#life.fire('suspend')) return
      log.error({ err: error }, 'another broker owns this session: letting go')
      this.#letGo(error)
      ended('lost', why)
      return
    }
    if (!this.#life.fire('fail')) return
    log.error({ err: error as Error }, 'session failed')
    this.#why = why
    this.#disarm()
    this.#endWork(new SoaError('Broker_SessionFailure', { sessionId: this.sessionId, why }))
    this.#needs.demand.stop(false).catch(stopError => log.warn({ err: stopError as Error }, 'demand not removed'))
    if (this.#clients.size === 0) this.#armIdle()
    void this.#custom?.over('Failed', `failed: ${why}`)
    stateChanged('Failed', why)
  }

  #endWork (error: SoaError): void {
    for (const request of this.#requests.drop()) request.isDropped = true
    this.#direct.refuse(error)
    this.#custom?.forget()
    this.letters.stop()
    this.#clients.jobEnded()
    void this.#pool.close(0)
  }

  #letGo (error: SoaError): void {
    this.#needs.demand.letGo()
    this.#endWork(error)
    this.#end.abort(error)
  }

  /** Ends the broker on purpose. `destroyed`: every trace goes. `suspended`: a durable session stays in the store. */
  async close (ending: Exclude<Ending, 'lost'>, graceMs = 0): Promise<void> {
    if (!this.#life.fire(ending === 'destroyed' ? 'close' : 'suspend')) return
    await this.#stop(ending, graceMs)
  }

  /** Closing order ([broker-behaviour] 1.3): no new work, dispatchers, the job, then the queues. */
  async #stop (ending: Exclude<Ending, 'lost'>, graceMs = 0): Promise<void> {
    this.#disarm()
    if (ending === 'destroyed') this.#ending = new SoaError('Session_ValidateJobFailed_AlreadyFinished', { sessionId: this.sessionId })
    const gone = this.#ending
    for (const request of this.#requests.drop()) request.isDropped = true
    await this.#pool.close(graceMs)
    await this.#settler.drained()
    this.#direct.refuse(gone)
    this.#clients.jobEnded()
    await this.#needs.demand.stop(ending === 'destroyed')
    await (ending === 'destroyed' ? this.#custom?.over('Finished', 'closed') : this.#custom?.over(undefined, 'suspended'))
    await this.#needs.store.close(ending === 'suspended')
    this.#end.abort(gone)
  }

  async view (): Promise<SessionView> {
    return {
      sessionId: this.sessionId,
      state: this.state,
      brokerPid: process.pid,
      brokerUniqueId: this.uniqueId,
      counters: this.counters.view(),
      clients: this.#clients.views(),
      tasks: this.taskInfos.map(({ id, node, pid, state, capacity, at, exit }) => ({ id, node, pid, state, capacity, at, exit })),
      bytes: await this.#needs.store.bytes(),
      ...(this.#trouble.last === undefined ? {} : { lastFailure: this.#trouble.last }),
    }
  }

  /** Waits; ends early, without a throw, when the signal aborts. */
  async pause (ms: number, signal: AbortSignal): Promise<void> {
    await sleep(this.#needs.clock, ms, signal).catch(() => undefined)
  }

  /** Those that run or start, and behind them the latest that ended by themselves. */
  get taskInfos (): TaskInfo[] { return [...this.#pool.tasks, ...this.#pool.ended] }
}
