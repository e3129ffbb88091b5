import { SoaError, isSoaError } from '../../core/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { sessionSettings } from '../../config/read-settings.ts'
import { parseRegistration, type ServiceRegistration } from '../../config/service-registration.ts'
import type { Settings } from '../../config/settings.ts'
import type { MessageStore } from '../../store/message-store.ts'
import type { DemandBoard, TaskEvents } from '../../store/placement-store.ts'
import type { ServiceRegistry } from '../../store/service-registry.ts'
import { isReadOnly, type SessionRecord, type SessionStore } from '../../store/session-store.ts'
import type { callHost } from './call-host.ts'
import type { CustomNeeds } from './custom-setup.ts'
import { DemandKeeper } from './demand.ts'
import { wishesOf } from '../wishes.ts'
import { SessionFigures } from './figures.ts'
import { exitHost } from './host-exit.ts'
import { BrokerSession } from './session.ts'
import type { Ending } from './session-needs.ts'
import { ServiceFacts } from './service-facts.ts'
import { operationsOf } from './description.ts'

interface Needs {
  workerId: string
  /** Defaults of this process; a registration file and the session itself go over them. */
  defaults: Settings
  openStore: (record: SessionRecord, settings: Settings) => Promise<MessageStore>
  sessions: SessionStore
  services: ServiceRegistry
  board: DemandBoard
  events: TaskEvents
  /** A store has refused this worker: another broker owns the session, and perhaps others too. */
  refused?: (() => void) | undefined
  /** The session is not served here any more, however that came. */
  closed?: ((sessionId: string) => void) | undefined
  connect: typeof callHost
  /** The custom broker that the registration names; undefined: none. Refuses what cannot be loaded or started. */
  openCustom: (registration: ServiceRegistration, record: SessionRecord, settings: Settings) => Promise<CustomNeeds | undefined>
  /** That paths of registration files are expanded with. */
  env: Readonly<Record<string, string | undefined>>
  clock: Clock
  log: Logger
}

/** The sessions of one worker: opened on a head's order, ended on order or by their own clocks. */
export class WorkerSessions {
  readonly #needs: Needs
  readonly #open = new Map<string, BrokerSession>()
  readonly #closing = new Map<string, Promise<void>>()
  /** Ids being opened: a second order for one of them would take the store away from the first. */
  readonly #opening = new Set<string>()
  #isAlone = false
  /** For heads that are scraped. */
  readonly figures = new SessionFigures()

  constructor (needs: Needs) { this.#needs = needs }

  /** A session with a custom broker is, or was, here: it may have left something in the process. */
  get isAlone (): boolean { return this.#isAlone }
  get ids (): string[] { return [...this.#open.keys()] }
  get (sessionId: string): BrokerSession | undefined { return this.#open.get(sessionId) }

  /** Starts a new session (`Starting`), or raises one from the store. */
  async open (record: SessionRecord): Promise<BrokerSession> {
    const { sessionId } = record
    if (this.#open.has(sessionId) || this.#opening.has(sessionId)) throw new SoaError('Broker_SessionIdAlreadyExists', { sessionId })
    this.#opening.add(sessionId)
    try {
      return await this.#openNow(record)
    } finally {
      this.#opening.delete(sessionId)
    }
  }

  async #openNow (record: SessionRecord): Promise<BrokerSession> {
    const { services, defaults, openStore, openCustom, board, events, connect, env, clock, log: parent } = this.#needs
    const log = parent.child({ sessionId: record.sessionId })
    const registered = await services.get(record.service, record.version)
    const registration = parseRegistration(registered.config, registered.file, env)
    const settings = sessionSettings(defaults, registration.broker, record.settings)
    const { maxConcurrentCalls, contract } = registration.service
    const service = new ServiceFacts(registered, settings, maxConcurrentCalls, operationsOf(registered, contract, log), contract)
    if (registration.customBroker !== undefined) this.#isAlone = true
    const custom = isReadOnly(record) ? undefined : await openCustom(registration, record, settings)
    const store = await openStore(record, settings).catch(async error => { await custom?.close(); throw error })
    try {
      const session: BrokerSession = new BrokerSession({
        record,
        service,
        store,
        demand: new DemandKeeper({
          board,
          base: {
            sessionId: record.sessionId,
            service: registered.name,
            version: registered.version,
            priority: record.priority,
            createdAt: record.createdAt,
            environment: record.environment,
            ...wishesOf(record),
            growsByPreemption: settings.growByPreemption,
            cancelGraceMs: settings.taskCancelGracePeriod,
          },
          minUnits: record.minUnits,
          maxUnits: record.maxUnits,
          minWarm: settings.minWarm,
          maxConcurrentCalls,
          reckonedCalls: settings.dispatcherCapacityInGrowShrink,
          prefetch: settings.serviceRequestPrefetchCount,
          adjustIntervalMs: settings.allocationAdjustInterval,
          shrinks: settings.automaticShrinkEnabled,
          idleTimeoutMs: settings.unitIdleTimeoutMs,
          outstanding: () => session.callsWanted,
          units: () => session.units,
          clock,
          log,
        }),
        events,
        connect: (task, slots) => connect(task.address ?? '', { slots, isOurs: registration.host.hostType === 'Standard', settings }),
        keepsOrder: registration.host.hostType === 'Standard',
        exitHost: task => exitHost(task, url => connect(url, { slots: 1, isOurs: false, settings }), log),
        taskFateTimeoutMs: settings.taskFateTimeoutMs,
        custom,
        clock,
        log,
        ended: (ending, why) => { this.#ended(session, ending, why) },
        stateChanged: (state, why) => { this.#record(record.sessionId, { state, why }) },
      })
      await session.open()
      this.#open.set(record.sessionId, session)
      this.figures.opened(session)
      return session
    } catch (error) {
      await custom?.close()
      await store.close(true).catch(closeError => log.warn({ err: closeError as Error }, 'store not let go of'))
      throw error
    }
  }

  /** Destroys or suspends a session. Whoever asks again waits for the same end. */
  close (sessionId: string, ending: 'destroyed' | 'suspended'): Promise<void> {
    const session = this.#open.get(sessionId)
    const under = this.#closing.get(sessionId)
    if (under !== undefined || session === undefined) return under ?? Promise.resolve()
    const closing = session.close(ending).finally(() => {
      this.#open.delete(sessionId)
      this.figures.ended(session)
      this.#closing.delete(sessionId)
      this.#needs.closed?.(sessionId)
    })
    this.#closing.set(sessionId, closing)
    return closing
  }

  /** Suspends what is durable; interactive sessions die with their broker. `lost`: nobody wanted them to, so they have failed for this reason. */
  async suspendAll (lost?: string): Promise<void> {
    const { sessions, workerId, log } = this.#needs
    await Promise.all([...this.#open.values()].map(async session => {
      const { sessionId, isDurable, state } = session
      // With work left it is `Starting`: a head raises it without being asked, and the work goes on. Otherwise it waits for a client.
      const left = isDurable ? { state: session.counters.outstanding + session.letters.running > 0 ? 'Starting' : 'Suspended' } as const : lost === undefined ? { state: 'Finished', why: 'its broker was stopped' } as const : { state: 'Failed', why: `its broker ended: ${lost}` } as const
      try {
        await this.close(sessionId, isDurable ? 'suspended' : 'destroyed')
        await sessions.update(sessionId, { ...(state === 'Running' ? left : {}), worker: undefined }, { worker: workerId })
      } catch (error) {
        log.error({ err: error as Error, sessionId }, 'session not suspended')
      }
    }))
  }

  /** Another broker owns the session: nothing is written any more, and whoever waits here is told. */
  letGo (sessionId: string): void { this.#open.get(sessionId)?.fail(new SoaError('storeFenced', { sessionId })) }

  #ended (session: BrokerSession, ending: Ending, why: string): void {
    this.#open.delete(session.sessionId)
    this.figures.ended(session)
    this.#needs.closed?.(session.sessionId)
    this.#needs.log.info({ sessionId: session.sessionId, ending, why }, 'session ended by itself')
    if (ending === 'lost') { this.#needs.refused?.(); return } // another broker owns it: the record is that one's to write
    // What was canceled or failed stays so: raised again for its responses, it must not compute again.
    const state = session.endedAs ?? (ending === 'suspended' ? 'Suspended' : 'Finished')
    this.#record(session.sessionId, { state, worker: undefined, ...(session.endedAs === undefined ? { why } : {}) })
  }

  #record (sessionId: string, change: Partial<SessionRecord>): void {
    const { sessions, workerId, log } = this.#needs
    sessions.update(sessionId, change, { worker: workerId }).catch(error => log.error({ err: error as Error, sessionId, change }, 'session record not written'))
  }
}

/** A record that cannot be opened says why in a form that a client understands. */
export function refusalOf (error: unknown): unknown {
  return isSoaError(error) ? error : new SoaError('Broker_FailedToStartBrokerServiceProcess', { why: error instanceof Error ? error.message : String(error) }, { cause: error })
}
