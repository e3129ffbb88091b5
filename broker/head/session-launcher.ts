import { sleep, type Clock } from '../../core/clock.ts'
import { SoaError } from '../../core/errors.ts'
import { newSessionId } from '../../core/ids.ts'
import type { Shortage } from '../../core/shortage.ts'
import type { Logger } from '../../core/log.ts'
import type { Settings } from '../../config/settings.ts'
import type { DemandBoard } from '../../store/placement-store.ts'
import type { Allocations, SessionOrder } from '../../store/redis-allocations.ts'
import type { ServiceRegistry } from '../../store/service-registry.ts'
import { isReadOnly, type SessionQuery, type SessionRecord, type SessionStore } from '../../store/session-store.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import type { SessionView } from '../contract.ts'
import type { Membership } from './membership.ts'
import type { SessionRaising } from './session-raising.ts'
import type { SessionPools } from './session-pools.ts'
import { sessionRecord, type SessionRequest } from './session-request.ts'
import { after, canBeRaised, statesWith } from './session.states.ts'
import { Gate, type Turns } from './turns.ts'
import { isUnknownThere, isUnreachable, type Worker } from './worker-link.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface LauncherNeeds {
  sessions: SessionStore
  allocations: Allocations
  services: ServiceRegistry
  pool: Pick<WorkerPool, 'sessions' | 'workers' | 'ours' | 'refresh' | 'release' | 'find' | 'doubt'>
  raising: SessionRaising
  /** Refuses new sessions while this head is being drained. */
  membership?: Pick<Membership, 'refuseNew'> | undefined
  demand: Pick<DemandBoard, 'remove'>
  /** Every node that is known, for sessions that want special ones. */
  nodes: () => Promise<readonly NodeView[]>
  /** Why a session lacks instances that it must have; undefined: it does not, or will get them at once. */
  shortage: (sessionId: string) => Promise<Shortage | undefined>
  /** Removes every trace of the queues of a session that nobody serves. */
  purgeQueues: (sessionId: string) => Promise<void>
  turns: Turns
  /** The session is gone: nothing is to happen for it any more. */
  closed: (sessionId: string) => Promise<void>
  pools: Pick<SessionPools, 'enter' | 'leave'>
  defaults: Settings
  limits: { maxSessions: number }
  clock: Clock
  log: Logger
}

/** A session as it stands in the directory, and as its broker shows it; no view while nobody serves it. */
export interface SessionSeen {
  readonly record: SessionRecord
  readonly view: SessionView | undefined
  /** Only of `show`. */
  readonly waitsFor?: Shortage | undefined
  /** It was there before: one of a pool. */
  readonly isReused?: true
}

/** A create waits for a worker process at most; more at once would only make each of them late. */
const CREATES = { width: 8, depth: 256 }
/** A session of a pool that somebody else starts: longest wait for it, and between two looks. */
const BEGIN_TIMEOUT_MS = 30_000
const LOOK_MS = 100
/** Workers asked at once for the views of a list. */
const VIEWS_AT_ONCE = 8

/** Creates, shows, cancels and closes sessions ([broker-behaviour] 1.4, 1.8). Where a session is served, and raising it, is SessionRaising's. */
export class SessionLauncher {
  readonly #needs: LauncherNeeds
  readonly #creates = new Gate('creating sessions', CREATES)

  constructor (needs: LauncherNeeds) { this.#needs = needs }

  /** A new session, once its broker takes requests. Refuses what does not fit before anything is started. */
  async create (request: SessionRequest): Promise<SessionSeen> {
    const { services, defaults, clock } = this.#needs
    const wanted = await sessionRecord(request, services, defaults, clock.now(), this.#needs.nodes)
    return this.#creates.run(async () => {
      if (wanted.poolSize === undefined) await this.#refuseTooMany()
      const record = await this.#takeId(wanted, record => this.#needs.sessions.create(record))
      const member = await this.#enterPool(record, () => this.#needs.sessions.remove(record.sessionId))
      if (member === undefined) return this.#begin(record)
      return await this.#shared(member)
    })
  }

  /** All that `create` would refuse is refused now; what is left is kept under a new id for `start`, which any head can do. Nobody else sees it until then. */
  async allocate (request: SessionRequest): Promise<SessionRecord & { readonly isReused?: true }> {
    const { services, sessions, allocations, defaults, clock } = this.#needs
    const wanted = await sessionRecord(request, services, defaults, clock.now(), this.#needs.nodes)
    if (wanted.poolSize === undefined) await this.#refuseTooMany()
    const record = await this.#takeId(wanted, async ({ sessionId }) => await sessions.get(sessionId) === undefined && await allocations.keep(sessionId, wanted))
    const member = await this.#enterPool(record, () => allocations.remove(record.sessionId))
    if (member === undefined) return record
    const there = await sessions.get(member)
    return there === undefined ? { ...record, sessionId: member } : { ...there, isReused: true } // allocated by somebody else: whoever creates it first starts it
  }

  /** Starts an allocated session, once its broker takes requests. A start that failed can be tried again. */
  async start (sessionId: string, durable: boolean): Promise<SessionSeen> {
    const { sessions, allocations, clock, log } = this.#needs
    const wanted = await allocations.get(sessionId)
    const there = wanted === undefined ? await sessions.get(sessionId) : undefined
    if (there?.poolSize !== undefined && there.durable === durable) return await this.#shared(sessionId)
    if (wanted === undefined) throw new SoaError(await sessions.get(sessionId) === undefined ? 'InvalidSessionId' : 'Broker_SessionIdAlreadyExists', { sessionId })
    if (wanted.durable !== durable) throw new SoaError('InvalidArgument', { argument: 'sessionId', why: `session ${sessionId} was allocated as ${wanted.durable ? 'a durable' : 'an interactive'} one` })
    return this.#creates.run(async () => {
      await this.#refuseTooMany()
      const record = { ...wanted, sessionId, createdAt: new Date(clock.now()).toISOString() }
      if (!await sessions.create(record)) {
        if (wanted.poolSize !== undefined) return await this.#shared(sessionId) // somebody else who was given it was first
        throw new SoaError('Broker_SessionIdAlreadyExists', { sessionId })
      }
      const seen = await this.#begin(record)
      await allocations.remove(sessionId).catch(err => log.warn({ sessionId, err }, 'allocation of a started session is left; it goes by itself'))
      return seen
    })
  }

  /** The session with its live half; a durable one that nobody serves is raised for it. `InvalidSessionId` when there is none. */
  async show (sessionId: string): Promise<SessionSeen> {
    const record = await this.#record(sessionId)
    if (record.worker === undefined && !canBeRaised(record)) return { record, view: undefined }
    let last: Worker | undefined
    for (;;) {
      let worker: Worker
      try {
        const { raising } = this.#needs
        worker = last === undefined ? await raising.locate(sessionId) : await raising.mend(sessionId, last)
      } catch (error) {
        const now = await this.#record(sessionId)
        if (after(now.state, 'served') !== undefined && !isReadOnly(now)) throw error // it ought to be served, so this is news
        return { record: now, view: undefined } // over: shown as it is
      }
      try {
        return await this.#withShortage(await this.#seen(sessionId, worker))
      } catch (error) {
        if (!isUnreachable(error)) throw error
        if (last !== undefined) throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error })
        last = worker // it has died since it was located, and nobody has noticed yet
      }
    }
  }

  /** One of a pool, once it takes requests: whoever made it may be about to start it, at this head or at another. */
  async #shared (sessionId: string): Promise<SessionSeen> {
    const { turns, clock } = this.#needs
    const until = clock.now() + BEGIN_TIMEOUT_MS
    for (;;) {
      await turns.run(sessionId, async () => {})
      const seen = await this.show(sessionId)
      if (seen.view !== undefined || seen.record.state !== 'Starting') return { ...seen, isReused: true }
      if (clock.now() >= until) throw new SoaError('Broker_BrokerUnavailable', { sessionId })
      await sleep(clock, LOOK_MS)
    }
  }

  /** A page of sessions as they are; nothing is raised for it. A worker that does not answer costs its sessions their live half only. */
  async list (query: SessionQuery): Promise<{ items: SessionSeen[], next?: string | undefined }> {
    const page = await this.#needs.sessions.list(query)
    const items: SessionSeen[] = []
    for (let at = 0; at < page.items.length; at += VIEWS_AT_ONCE) {
      items.push(...await Promise.all(page.items.slice(at, at + VIEWS_AT_ONCE).map(record => this.#asItIs(record))))
    }
    return { items, next: page.next }
  }

  /** Work stops, stored responses stay readable. Again, or after the end: nothing happens. */
  async cancel (sessionId: string): Promise<SessionSeen> {
    const { sessions, pool, demand, turns } = this.#needs
    return turns.run(sessionId, async () => {
      const record = await this.#record(sessionId)
      const state = after(record.state, 'cancel')
      if (state === undefined) return this.#asItIs(record)
      const worker = record.worker === undefined ? undefined : await pool.find(record.worker)
      const view = await worker?.link.cancel(sessionId).catch(async error => {
        await this.#unlessGone(sessionId, worker, error) // else the record alone says it
        return undefined
      })
      if (view === undefined) await demand.remove(sessionId)
      const changed = await sessions.update(sessionId, { state, why: 'canceled', ...(view === undefined ? { worker: undefined } : {}) }, { state: statesWith('cancel') })
      return { record: changed ?? await this.#record(sessionId), view }
    })
  }

  /** A durable session's worker lets go of it; the next call raises it again. One that nobody serves, and an interactive one: nothing happens. */
  async suspend (sessionId: string): Promise<void> {
    const { sessions, pool, turns } = this.#needs
    await turns.run(sessionId, async () => {
      const record = await sessions.get(sessionId)
      const worker = record?.durable !== true || record.worker === undefined ? undefined : await pool.find(record.worker)
      const state = record === undefined ? undefined : after(record.state, 'released')
      if (worker === undefined || state === undefined) return
      await worker.link.suspend(sessionId)
      pool.release(worker.id, sessionId)
      await sessions.update(sessionId, { state, worker: undefined, why: 'suspended by a head' }, { worker: worker.id })
    })
  }

  /** Destroys the session: no key is left. Again, or with an id that nobody has: nothing happens, and the answer is false. */
  async close (sessionId: string): Promise<boolean> {
    const { sessions, allocations, pool, turns } = this.#needs
    return await turns.run(sessionId, async () => {
      const allocated = await allocations.get(sessionId)
      if (allocated !== undefined) await this.#needs.pools.leave({ ...allocated, sessionId })
      await allocations.remove(sessionId)
      const record = await sessions.get(sessionId)
      if (record === undefined) return allocated !== undefined
      const worker = record.worker === undefined ? undefined : await pool.find(record.worker)
      const isDestroyed = worker !== undefined && await worker.link.destroy(sessionId).then(() => true, async error => {
        await this.#unlessGone(sessionId, worker, error)
        return false
      })
      if (isDestroyed) {
        pool.release(worker.id, sessionId)
        await sessions.remove(sessionId)
      } else {
        await this.#forget(record)
      }
      await this.#needs.pools.leave(record)
      await this.#needs.closed(sessionId)
      this.#needs.log.info({ sessionId }, 'session closed')
      return true
    })
  }

  /**
   * The head stops in order: durable sessions at work are marked, so that the next head raises them although nobody calls. Called after their
   * workers have let go of them; `before` is what was served until then.
   */
  async leaveForNext (before: readonly SessionRecord[]): Promise<void> {
    for (const { sessionId, durable, state } of before) {
      const to = after(state, 'waits')
      if (durable && state === 'Running' && to !== undefined) await this.#needs.sessions.update(sessionId, { state: to, worker: undefined, why: 'its head stopped, or was drained by force' }, { state: ['Running', 'Suspended'] })
    }
  }

  /**
   * All sessions leave this head's workers: durable ones for another head to raise at once, work and all; interactive ones, whose queues lie in these processes,
   * are over. Sessions that come to an end meanwhile are let be.
   */
  async evict (raiseLater: (sessionId: string) => Promise<void>): Promise<void> {
    const { pool, sessions, turns, log } = this.#needs
    const records = (await Promise.all(pool.ours.map(worker => sessions.ofWorker(worker.id)))).flat()
    await Promise.all(records.map(async ({ sessionId, durable }) => {
      if (durable) {
        await this.suspend(sessionId)
        await this.leaveForNext(records.filter(record => record.sessionId === sessionId))
        await raiseLater(sessionId)
        return
      }
      await turns.run(sessionId, async () => {
        const record = await sessions.get(sessionId)
        const worker = record?.worker === undefined ? undefined : await pool.find(record.worker)
        const state = record === undefined ? undefined : after(record.state, 'ended') ?? record.state
        if (worker === undefined || state === undefined) return
        await worker.link.destroy(sessionId).catch(error => this.#unlessGone(sessionId, worker, error))
        pool.release(worker.id, sessionId)
        await sessions.update(sessionId, { state, worker: undefined, why: 'its head was drained by force' }, { worker: worker.id })
        log.warn({ sessionId }, 'interactive session ended: its head was drained by force')
      })
    }))
  }

  /** Running sessions of the workers that this head looks after. */
  async served (): Promise<SessionRecord[]> {
    const { pool, sessions } = this.#needs
    return (await Promise.all(pool.workers.map(worker => sessions.ofWorker(worker.id)))).flat().filter(record => record.state === 'Running')
  }

  /** Throws unless the error means that the worker is gone or does not have the session. One of another machine that cannot be reached may well have it. */
  async #unlessGone (sessionId: string, worker: Worker, error: unknown): Promise<void> {
    if (!isUnreachable(error) && !isUnknownThere(error)) throw error
    if (worker.isFar === true && isUnreachable(error)) throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error })
    await this.#needs.pool.doubt(worker.id)
  }

  /** The member of the pool to use in place of a new session; undefined: the new one it is. Where there is one, or the new one is too many, `undo` takes the new one back. */
  async #enterPool (record: SessionRecord, undo: () => Promise<void>): Promise<string | undefined> {
    if (record.poolSize === undefined) return undefined
    const { pools } = this.#needs
    try {
      const member = await pools.enter(record)
      if (member === undefined) await this.#refuseTooMany()
      else await undo()
      return member
    } catch (error) {
      await pools.leave(record)
      await undo()
      throw error
    }
  }

  async #refuseTooMany (): Promise<void> {
    const { pool, limits, membership } = this.#needs
    membership?.refuseNew()
    if (pool.sessions < limits.maxSessions) return
    await pool.refresh() // sessions that ended by themselves since the last claim still count: ask before refusing
    if (pool.sessions >= limits.maxSessions) throw new SoaError('Broker_TooManyBrokerRunning', { limit: limits.maxSessions })
  }

  /** A new record is put at a worker. */
  async #begin (record: SessionRecord): Promise<SessionSeen> {
    const { sessionId } = record
    return this.#needs.turns.run(sessionId, async () => {
      try {
        const worker = await this.#needs.raising.serve(record)
        return await this.#seen(sessionId, worker)
      } catch (error) {
        // Nobody was told that it started, so nobody would ever close it.
        await this.#needs.pools.leave(record).then(() => this.#forget(record)).catch(err => this.#needs.log.error({ sessionId, err }, 'traces of a session that did not start are left'))
        throw error
      }
    })
  }

  async #takeId (wanted: SessionOrder, take: (record: SessionRecord) => Promise<boolean>): Promise<SessionRecord> {
    // 1,000 sessions out of 2^31 numbers: a second draw is needed once in two million creates. Ten in a row is a broken source of chance.
    for (let tried = 0; tried < 10; tried++) {
      const record = { ...wanted, sessionId: newSessionId() }
      if (await take(record)) return record
    }
    throw new SoaError('UnknownError', { why: 'no free session id was found' })
  }

  async #record (sessionId: string): Promise<SessionRecord> {
    const record = await this.#needs.sessions.get(sessionId)
    if (record === undefined) throw new SoaError('InvalidSessionId', { sessionId })
    return record
  }

  /** Nothing is raised for it, and a worker that does not answer costs the live half only. */
  async #asItIs (record: SessionRecord): Promise<SessionSeen> {
    const worker = record.worker === undefined ? undefined : await this.#needs.pool.find(record.worker)
    return { record, view: await worker?.link.view(record.sessionId).catch(() => undefined) }
  }

  /** All that a plan is made from is read for it, so only of a session that has fewer instances than it must have. */
  async #withShortage (seen: SessionSeen): Promise<SessionSeen> {
    const { record: { sessionId, minUnits = 1 }, view } = seen
    if (view?.state !== 'Running' || view.tasks.filter(({ state }) => state === 'Dispatching' || state === 'Running').length >= Math.max(1, minUnits)) return seen
    return { ...seen, waitsFor: await this.#needs.shortage(sessionId) }
  }

  async #seen (sessionId: string, worker: Worker): Promise<SessionSeen> {
    // A worker lets go of a session that ends by itself a moment before it writes so: that is no "no such session".
    const view = await worker.link.view(sessionId).catch(error => { if (!isUnknownThere(error)) throw error; return undefined })
    return { record: await this.#record(sessionId), view }
  }

  // The record goes last: as long as something is left, its id is taken, and a second close finishes the work.
  async #forget (record: SessionRecord): Promise<void> {
    const { sessions, demand, purgeQueues } = this.#needs
    if (record.durable) await purgeQueues(record.sessionId)
    await demand.remove(record.sessionId, { forget: true })
    await sessions.remove(record.sessionId)
  }
}
