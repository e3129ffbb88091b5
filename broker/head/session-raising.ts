import { sleep, within, type Clock } from '../../core/clock.ts'
import { isSoaError, SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { DemandBoard } from '../../store/placement-store.ts'
import { isReadOnly, type SessionRecord, type SessionStore } from '../../store/session-store.ts'
import type { LastWords, SessionView } from '../contract.ts'
import type { Membership } from './membership.ts'
import { after, canBeRaised, statesWith, whyNotServed } from './session.states.ts'
import { Shared, type Turns } from './turns.ts'
import { isServedThere, isUnknownThere, isUnreachable, type Worker } from './worker-link.ts'
import type { WorkerPool } from './worker-pool.ts'

export interface RaisingNeeds {
  sessions: SessionStore
  /** While it takes none, sessions are raised by others; absent: it always does. */
  membership?: Pick<Membership, 'isDraining' | 'hasOthers'> | undefined
  pool: Pick<WorkerPool, 'take' | 'settled' | 'release' | 'find' | 'isElsewhere' | 'servedBy' | 'doubt'>
  demand: Pick<DemandBoard, 'remove'>
  /** Hands a raise to the short jobs, which have attempts and back-off and outlive this head; absent, or when it throws: raised from here. */
  raiseLater?: ((sessionId: string) => Promise<void>) | undefined
  /** Removes every trace of the queues of a session that nobody serves. */
  purgeQueues: (sessionId: string) => Promise<void>
  /** A durable session is served again: nothing that was to happen to it for want of anybody asking is to happen. */
  asked?: ((sessionId: string) => Promise<void>) | undefined
  /** One change of a session at a time; the launcher's cancel and close take the same turns. */
  turns: Turns
  limits: { raiseTimeoutMs: number }
  clock: Clock
  log: Logger
  /** Aborted when the head stops. */
  signal: AbortSignal
}

/** Workers tried for one raise. */
const TRIES = 3
/** Between two looks at what another head makes of a session. */
const LOOK_MS = 250
/** A durable session whose workers died this often within a minute is left suspended until somebody calls it: raising it on and on would take its neighbours down each time. */
const MOST_DEATHS_A_MINUTE = 20
/** A custom broker's code that ends its worker (process.exit, an error that nobody caught, memory) is raised this often, as a program is started again; a worker that was killed does not count. */
const MOST_SELF_ENDS = 3
const SELF_ENDED = /^exit code [1-9]|^signal SIG(?:ABRT|SEGV|ILL|BUS|TRAP)/

/**
 * Brings sessions and workers together: which worker serves a session, raising a durable one that nobody serves, and what becomes of the sessions of
 * a worker that is gone ([broker-behaviour] 1.4, 1.6). The record's `worker` is changed only while it is what was read, so two heads cannot raise one session at two workers.
 */
export class SessionRaising {
  readonly #needs: RaisingNeeds
  readonly #raises = new Shared<Worker>()
  readonly #deaths = new Map<string, number[]>()
  /** How often the code of a custom broker has ended its worker; the worker serves nobody else. */
  readonly #selfEnds = new Map<string, number>()

  constructor (needs: RaisingNeeds) { this.#needs = needs }

  /**
   * The worker that serves the session. A durable one that nobody serves is raised, once for all who ask meanwhile, and waited for, at most
   * `raiseTimeoutMs`; then, and for sessions that are over, the refusal says why.
   */
  async locate (sessionId: string): Promise<Worker> {
    return await this.servedBy(sessionId) ?? await this.#raiseInTime(sessionId)
  }

  /** The worker that serves the session now, undefined: nobody; nothing is raised. `InvalidSessionId` when there is no such session. */
  async servedBy (sessionId: string): Promise<Worker | undefined> {
    const { sessions, pool } = this.#needs
    let record: SessionRecord | undefined
    try {
      record = await sessions.get(sessionId)
    } catch (error) {
      // The store is away. What is served already goes on being served.
      const worker = isSoaError(error, 'StorageServiceNotAvailble') ? pool.servedBy(sessionId) : undefined
      if (worker === undefined) throw error
      return worker
    }
    if (record === undefined) throw new SoaError('InvalidSessionId', { sessionId })
    return record.worker === undefined || !isServed(record) ? undefined : await pool.find(record.worker)
  }

  /** Raises the session now, if it is one that nobody serves; otherwise nothing happens. What the short job `raise` calls. */
  async raise (sessionId: string): Promise<void> {
    await this.locate(sessionId).catch(error => {
      // Closed or over since the job was made: nothing is left to do, and trying again would not change that.
      if (!isSoaError(error, 'InvalidSessionId', 'Session_ValidateJobFailed_AlreadyFinished', 'Session_ValidateJobFailed_JobCanceled', 'Broker_SessionFailure')) throw error
    })
  }

  /** Somebody reached the located worker and did not find the session, or could not reach it: the record is brought in line with what is. */
  async mend (sessionId: string, worker: Worker): Promise<Worker> {
    await this.#needs.pool.doubt(worker.id)
    const has = await worker.link.view(sessionId).then(() => true, error => {
      if (isUnknownThere(error)) return false
      if (!isUnreachable(error)) throw error
      // It may be this head that is cut off: a worker of another machine is given up when its lease ran out.
      if (worker.isFar === true) throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error })
      return false
    })
    if (!has) await this.#orphaned(sessionId, worker.id, 'its broker worker does not have it')
    return this.locate(sessionId)
  }

  /** Puts a new or orphaned record at a worker. The caller has the session's turn. */
  async serve (record: SessionRecord): Promise<Worker> {
    const { sessions, pool, purgeQueues, log } = this.#needs
    const { sessionId } = record
    let last: unknown
    let from = record.worker
    for (let tried = 0; tried < TRIES; tried++) {
      const worker = await pool.take(sessionId, record.isAlone)
      try {
        // A worker that died while it started a new session may have taken its queues already; nothing is in them yet.
        if (tried > 0 && isNew(record) && record.durable) await purgeQueues(sessionId)
        const mine = await sessions.update(sessionId, { worker: worker.id }, { worker: from, state: statesWith('served') })
        if (mine === undefined) throw await this.#whyNotMine(sessionId) // another head was faster, or it is gone: the caller looks again
        from = worker.id
        const view = await this.#order(worker, mine)
        await sessions.update(sessionId, { state: after(mine.state, 'served') ?? mine.state, brokerUniqueId: view.brokerUniqueId, ...whyNow(mine) }, { worker: worker.id, state: [mine.state] })
        pool.settled(worker.id, sessionId)
        if (record.durable && !isNew(record)) await this.#needs.asked?.(sessionId)
        log.info({ sessionId, workerId: worker.id }, 'session served')
        return worker
      } catch (error) {
        pool.release(worker.id, sessionId)
        if (!isUnreachable(error)) {
          if (from === worker.id) await sessions.update(sessionId, { worker: undefined }, { worker: worker.id })
          throw error
        }
        // It may have begun: the ownership token in the store fences it off when it was only slow.
        log.warn({ sessionId, workerId: worker.id, err: error }, 'worker did not take the session')
        last = error
        await pool.doubt(worker.id)
      }
    }
    await sessions.update(sessionId, { worker: undefined }, { worker: from })
    throw new SoaError('Broker_FailedToStartBrokerServiceProcess', { why: `${TRIES} workers did not take the session: ${String(last)}` }, { cause: last })
  }

  /** A worker is gone: its durable sessions are raised elsewhere, its interactive ones have failed. Keeps at it while the store is away. */
  async workerDied (workerId: string, why: string, words?: LastWords): Promise<void> {
    const { sessions, turns, log } = this.#needs
    await this.#keepAt('sessions of an ended worker', async () => {
      for (const record of await sessions.ofWorker(workerId)) {
        const hopeless = words?.sessionId === record.sessionId ? words.why : this.#endedItself(record, why)
        if (hopeless !== undefined) { await this.#failed(record, workerId, hopeless); continue }
        if (record.state === 'Starting' && turns.isTaken(record.sessionId)) continue // whoever starts it notices, and tries another worker
        await this.#orphaned(record.sessionId, workerId, why)
        if (canBeRaised(record) && !isReadOnly(record)) void this.#raiseBehind(record.sessionId).catch(err => log.error({ sessionId: record.sessionId, err }, 'session is not raised; the next call tries again'))
      }
    })
  }

  /** Durable sessions that ought to be at work and that nobody serves are raised, interactive ones have failed. At the head's start, and now and then. Resolves to how many. */
  async recover (): Promise<{ raised: number, failed: number }> {
    const { sessions, pool, turns, clock, limits } = this.#needs
    const found = { raised: 0, failed: 0 }
    for (const state of ['Starting', 'Running'] as const) {
      let cursor: string | undefined
      do {
        const page = await sessions.list({ state, cursor, limit: 1000 })
        for (const record of page.items) {
          if (record.worker !== undefined && (await pool.find(record.worker) !== undefined || pool.isElsewhere(record.worker))) continue
          // Another head, or a create that is under way here, is about to put it at a worker.
          const isFresh = isNew(record) && clock.now() - Date.parse(record.createdAt) < limits.raiseTimeoutMs
          if (turns.isTaken(record.sessionId) || (isFresh && record.worker === undefined)) continue
          await this.#orphaned(record.sessionId, record.worker, 'its broker worker is gone')
          if (!record.durable) found.failed++
          else {
            found.raised++
            await this.#raiseBehind(record.sessionId)
          }
        }
        cursor = page.next
      } while (cursor !== undefined && !this.#needs.signal.aborted)
    }
    return found
  }

  /** Shared by all who ask, one after the other with cancel and close. */
  #raiseInTime (sessionId: string): Promise<Worker> {
    const { turns, clock, limits } = this.#needs
    const raising = this.#raises.run(sessionId, () => turns.run(sessionId, () => this.#raiseNow(sessionId)))
    return within(clock, limits.raiseTimeoutMs, raising, () => new SoaError('Broker_BrokerUnavailable', { sessionId }))
  }

  async #raiseNow (sessionId: string): Promise<Worker> {
    const { sessions, pool, clock, limits } = this.#needs
    const until = clock.now() + limits.raiseTimeoutMs
    for (let looked = 0; ;) {
      const record = await sessions.get(sessionId)
      if (record === undefined) throw new SoaError('InvalidSessionId', { sessionId })
      if (record.worker !== undefined) {
        const worker = await pool.find(record.worker)
        if (worker !== undefined && isServed(record)) return worker
        // Another head of this machine raises it there, or died doing so: asking for it once more is answered 409 when it is there.
        if (worker !== undefined && canBeRaised(record)) return await this.#raiseThere(record, worker)
        // Its machine has no head that we could go through, or it has just stopped beating: soon it is reached, found dead, or has let go of the session by itself.
        if (worker === undefined && pool.isElsewhere(record.worker)) { await this.#wait(sessionId, until); continue }
        if (worker === undefined) await this.#orphaned(sessionId, record.worker, 'its broker worker is gone')
        if (looked++ < TRIES) continue
      }
      if (!canBeRaised(record)) throw whyNotServed(record)
      if (this.#needs.membership?.isDraining === true) { await this.#leaveToOthers(sessionId); await this.#wait(sessionId, until); continue }
      try {
        return await this.serve(record)
      } catch (error) {
        if (!isSoaError(error, 'Broker_BrokerUnavailable') || looked++ >= TRIES) throw error // somebody else changed it: look again
      }
    }
  }

  /** This head is being drained: another one raises it, and it is reached there. */
  async #leaveToOthers (sessionId: string): Promise<void> {
    const { membership, raiseLater } = this.#needs
    if (raiseLater === undefined || await membership?.hasOthers() !== true) throw new SoaError('Broker_BrokerIsOffline', {})
    await raiseLater(sessionId)
  }

  async #wait (sessionId: string, until: number): Promise<void> {
    const { clock, signal } = this.#needs
    if (clock.now() >= until) throw new SoaError('Broker_BrokerUnavailable', { sessionId })
    await sleep(clock, LOOK_MS, signal)
  }

  /** The worker starts it, or raises it when it was served before, whatever its record says by now. */
  async #order (worker: Worker, record: SessionRecord): Promise<SessionView> {
    const { sessionId, state } = record
    try {
      return await worker.link.raise(state === 'Starting' && !isNew(record) ? { ...record, state: 'Suspended' } : record)
    } catch (error) {
      if (!isServedThere(error)) throw error
      return await worker.link.view(sessionId).catch(view => { throw isUnknownThere(view) ? new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error }) : view }) // being opened by another order
    }
  }

  async #raiseThere (record: SessionRecord, worker: Worker): Promise<Worker> {
    const { sessions, pool } = this.#needs
    const view = await this.#order(worker, record).catch(error => { throw worker.isFar === true && isUnreachable(error) ? new SoaError('Broker_BrokerUnavailable', { sessionId: record.sessionId }, { cause: error }) : error })
    await sessions.update(record.sessionId, { state: after(record.state, 'served') ?? record.state, brokerUniqueId: view.brokerUniqueId, ...whyNow(record) }, { worker: worker.id, state: [record.state] })
    pool.settled(worker.id, record.sessionId)
    return worker
  }

  /** The record no longer names the worker, and says what the session is now. */
  async #orphaned (sessionId: string, workerId: string | undefined, why: string): Promise<void> {
    const { sessions, demand, pool, log } = this.#needs
    const record = await sessions.get(sessionId)
    if (record === undefined || record.worker !== workerId) return
    if (workerId !== undefined) pool.release(workerId, sessionId)
    const event = record.durable ? 'orphaned' : 'lost'
    const state = after(record.state, event)
    if (state === undefined) return
    const changed = await sessions.update(sessionId, { state, worker: undefined, ...(state === record.state && record.why !== undefined ? {} : { why }) }, { worker: workerId, state: [record.state] })
    if (changed === undefined) return
    log[record.durable ? 'warn' : 'error']({ sessionId, workerId, why, state }, 'session lost its worker')
    if (!record.durable) await demand.remove(sessionId, { forget: true }) // its queues were in that process: nothing can be computed for it any more
  }

  /** Undefined: it may be raised again. */
  #endedItself ({ sessionId, isAlone = false, durable }: SessionRecord, why: string): string | undefined {
    if (!isAlone || !durable || !SELF_ENDED.test(why)) return undefined
    const ends = (this.#selfEnds.get(sessionId) ?? 0) + 1
    if (this.#selfEnds.size > 10_000) this.#selfEnds.clear()
    this.#selfEnds.set(sessionId, ends)
    return ends > MOST_SELF_ENDS ? `its custom broker has ended its worker ${ends} times, the last with ${why}` : undefined
  }

  /** It took its worker down by itself: raised again it would do so again. What is stored stays. */
  async #failed ({ sessionId, state }: SessionRecord, workerId: string, why: string): Promise<void> {
    const { sessions, demand, pool, log } = this.#needs
    pool.release(workerId, sessionId)
    const changed = await sessions.update(sessionId, { state: 'Failed', worker: undefined, why }, { worker: workerId, state: [state] })
    if (changed === undefined) return
    log.error({ sessionId, workerId, why }, 'session failed, and its worker with it')
    await demand.remove(sessionId)
  }

  async #whyNotMine (sessionId: string): Promise<SoaError> {
    const now = await this.#needs.sessions.get(sessionId)
    return now?.state === 'Failed' ? whyNotServed(now) : new SoaError('Broker_BrokerUnavailable', { sessionId })
  }

  async #raiseBehind (sessionId: string): Promise<void> {
    const { raiseLater, clock, log } = this.#needs
    const now = clock.now()
    const deaths = [...(this.#deaths.get(sessionId) ?? []).filter(at => now - at < 60_000), now]
    this.#deaths.set(sessionId, deaths)
    if (this.#deaths.size > 10_000) this.#deaths.clear() // memory has a bound; forgetting only means trying again
    if (deaths.length > MOST_DEATHS_A_MINUTE) {
      log.error({ sessionId, deaths: deaths.length }, 'session stays suspended: its workers keep dying; the next call raises it')
      return
    }
    const handedOver = raiseLater !== undefined && await raiseLater(sessionId).then(() => true, err => { log.warn({ sessionId, err }, 'the short jobs did not take a raise'); return false })
    if (!handedOver) void this.#keepAt('raising a session', () => this.raise(sessionId), 8)
  }

  /** Tries again, 0.2 s and up to 5 s later, while the head runs; the last failure is logged and left to the next sweep or call. */
  async #keepAt (what: string, work: () => Promise<void>, tries = 1000): Promise<void> {
    const { clock, signal, log } = this.#needs
    for (let tried = 1; !signal.aborted; tried++) {
      try { await work(); return } catch (err) {
        log.warn({ err, tried, what }, 'trying again')
        if (tried >= tries) { log.error({ err, tried, what }, 'given up'); return }
        await sleep(clock, Math.min(5000, 100 * 2 ** tried), signal).catch(() => {})
      }
    }
  }
}

/** It has never been served. */
const isNew = ({ state, brokerUniqueId }: SessionRecord): boolean => state === 'Starting' && brokerUniqueId === undefined

/** A worker has it, as far as the record goes. */
const isServed = ({ state, worker }: SessionRecord): boolean => worker !== undefined && state !== 'Starting' && state !== 'Suspended'

/** Why it was not served is over; why it ended is not. */
const whyNow = (record: SessionRecord): Partial<SessionRecord> => isReadOnly(record) ? {} : { why: undefined }
