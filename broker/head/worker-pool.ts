import { sleep, within, type Clock } from '../../core/clock.ts'
import { SoaError } from '../../core/errors.ts'
import { Lifetime } from '../../core/lifetime.ts'
import type { Logger } from '../../core/log.ts'
import type { WorkerDirectory, WorkerRecord } from '../../store/session-store.ts'
import type { FarWorkers } from './far-workers.ts'
import type { LastWords, WorkerFigures } from '../contract.ts'
import { takeLastWords } from './last-words.ts'
import { removeStaleSockets } from './stale-sockets.ts'
import type { PeerSocket } from '../../transport/peer.ts'
import { isUnreachable, WorkerLink, type Worker } from './worker-link.ts'
import { FigureBook } from './worker-figures.ts'
import { isOfMachine, isWorkerAlive, killWorker, newWorker, type StartedWorker } from './worker-process.ts'

export interface WorkerPoolNeeds {
  directory: WorkerDirectory
  start: (names: ReturnType<typeof newWorker>) => StartedWorker
  /** Who claims, and the socket where the worker hands on what it got for others. */
  head: string
  headSocket: string
  /** The workers of other machines. */
  far: Pick<FarWorkers, 'find' | 'isDead'>
  machine: string
  runDir: string
  limits: { workerPoolSize: number, sessionsPerWorker: number, workerClaimTimeoutMs: number, workerReadyTimeoutMs: number }
  /** Its sessions are served by nobody any more. Not awaited; what it throws is logged. */
  onDeath: (workerId: string, why: string, words: LastWords | undefined) => Promise<void>
  clock: Clock
  log: Logger
}

interface Member extends Worker {
  readonly control: string
  /** Started or stopped by heads of this run folder. Others are claimed, so that they live, but never stopped from here. */
  readonly isOurs: boolean
  /** As the worker said last. */
  sessions: ReadonlySet<string>
  /** Given out since then. */
  readonly promised: Set<string>
  /** Asked to stop: gets nothing new. */
  isLeaving: boolean
  /** Its session has a custom broker: it gets no other one, and ends with it. */
  isAlone: boolean
  /** Adopted: an earlier head has told of what it did until then. */
  readonly isOld: boolean
  /** Claims in a row without an answer. */
  missed: number
  /** Claims in a row that found it without a session. */
  idleFor: number
}

/** Answers missed in a row after which a worker that is alive is stuck and is ended: by then it has not been claimed for `workerClaimTimeoutMs`. */
const STUCK_AFTER = 6
/** Before that, one whose lease ran out is stuck after so many: claim and beat are two ways to be alive, and it has used neither. */
const MISSED_AT_LEAST = 2
const POLL_MS = 20

/**
 * The workers of this machine. Keeps `workerPoolSize` of them warm and without a session, claims every one that it knows, adopts those that an
 * earlier head left, and notices when one ends ([broker-behaviour] 1.5).
 */
export class WorkerPool {
  readonly #needs: WorkerPoolNeeds
  readonly #life = new Lifetime()
  readonly #members = new Map<string, Member>()
  readonly #starting = new Set<Promise<void>>()
  /** Ids of workers that are being started here: their start adopts them. */
  readonly #starts = new Set<string>()
  readonly #waiting = new Set<{ ready: () => void, failed: (error: Error) => void }>()
  readonly #book = new FigureBook()
  #failures = 0
  #lastFailure: string | undefined
  /** Aborted when nobody is to be started or taken any more. */
  readonly #draining = new AbortController()

  constructor (needs: WorkerPoolNeeds) { this.#needs = needs }

  /** Finds the workers of an earlier head, then keeps the pool full until `close`. */
  async start (): Promise<void> {
    await this.#adoptAll()
    this.#clear()
    this.#refill()
    void this.#claimOnAndOn()
  }

  /** A worker with room, in which `sessionId` has a place from now on, for itself when `isAlone`. Waits for one to start; `TimeoutToGetBrokerWorkerProcess` after `workerReadyTimeoutMs`. */
  async take (sessionId: string, isAlone = false): Promise<Worker> {
    const { workerReadyTimeoutMs } = this.#needs.limits
    const until = this.#needs.clock.now() + workerReadyTimeoutMs
    for (;;) {
      this.#draining.signal.throwIfAborted()
      const free = this.#withRoom(isAlone)
      if (free !== undefined) {
        free.isAlone = isAlone
        free.promised.add(sessionId)
        free.idleFor = 0
        this.#refill()
        return free
      }
      const leftMs = until - this.#needs.clock.now()
      const late = (): Error => new SoaError('TimeoutToGetBrokerWorkerProcess', { timeoutMs: workerReadyTimeoutMs })
      if (leftMs <= 0) throw late()
      await this.#oneMore(leftMs, late)
    }
  }

  /** The worker has it: from now on what the worker says counts. */
  settled (workerId: string, sessionId: string): void {
    const member = this.#members.get(workerId)
    if (member?.promised.delete(sessionId)) member.sessions = new Set([...member.sessions, sessionId])
  }

  /** The session has left this worker, or never came to it. */
  release (workerId: string, sessionId: string): void {
    const member = this.#members.get(workerId)
    if (member === undefined) return
    member.promised.delete(sessionId)
    if (member.sessions.has(sessionId)) member.sessions = new Set([...member.sessions].filter(id => id !== sessionId))
    // What its custom broker has left in the process is not for another one.
    if (member.isAlone && member.isOurs && load(member) === 0) void this.#stop(member)
  }

  /** The worker, if it lives on this machine, where one that is not known yet is adopted, or on another one with a living head. */
  async find (workerId: string): Promise<Worker | undefined> {
    const known = this.#members.get(workerId)
    if (known !== undefined) return known
    if (!isOfMachine(workerId, this.#needs.machine)) return this.#needs.far.find(workerId)
    const record = await this.#needs.directory.get(workerId)
    return record === undefined ? undefined : this.#adopt(record)
  }

  /** The worker is of another machine and has not been found dead, whether it can be reached or not. */
  isElsewhere (workerId: string): boolean { return !isOfMachine(workerId, this.#needs.machine) && !this.#needs.far.isDead(workerId) }

  /** Unix socket of a worker of this machine, for a head of another one that knows it by the last part of its id. */
  async socketOf (name: string, kind: PeerSocket): Promise<string | undefined> {
    const id = `${this.#needs.machine}/${name}`
    if (this.#members.get(id) === undefined) await this.find(id)
    const member = this.#members.get(id)
    return member === undefined ? undefined : { http: member.socket, netTcp: member.netTcp, control: member.control }[kind]
  }

  /** The worker that said last that it serves the session: for when the store cannot be asked. */
  servedBy (sessionId: string): Worker | undefined {
    return [...this.#members.values()].find(member => member.sessions.has(sessionId) || member.promised.has(sessionId))
  }

  /** A caller could not reach it: look now instead of at the next claim. */
  async doubt (workerId: string): Promise<void> {
    const member = this.#members.get(workerId)
    if (member !== undefined) await this.#claim(member)
  }

  get sessions (): number { return [...this.#members.values()].reduce((sum, member) => sum + load(member), 0) }
  get workers (): Worker[] { return [...this.#members.values()] }
  /** Those of this run folder, which this head fills and stops. */
  get ours (): Worker[] { return this.#ourMembers() }
  get ownSessions (): number { return [...this.#members.values()].reduce((sum, member) => sum + (member.isOurs ? load(member) : 0), 0) }
  /** What our workers have done since this head began, as they say now; of one that does not answer, as it said last. */
  async figures (): Promise<ReturnType<FigureBook['view']>> {
    await Promise.all(this.#ourMembers().map(member => member.link.figures().then(figures => this.#told(member, figures), err => this.#needs.log.debug({ workerId: member.id, err }, 'worker gave no figures'))))
    return this.#book.view()
  }

  #told (member: Member, figures: WorkerFigures | undefined): void {
    if (member.isOurs && this.#members.get(member.id) === member) this.#book.told(member.id, figures, member.isOld)
  }

  #ourMembers (): Member[] { return [...this.#members.values()].filter(member => member.isOurs) }

  /** For `/readyz`: why no session could be started now, or undefined. */
  get trouble (): string | undefined {
    if (this.#isDraining) return 'the head is stopping'
    return this.#failures > 0 && ![...this.#members.values()].some(isFit) ? `no broker worker starts: ${this.#lastFailure}` : undefined
  }

  /** Asks every worker of this machine now; afterwards `sessions` is what they say. */
  async refresh (): Promise<void> {
    const known = [...this.#members.values()]
    await Promise.all([this.#adoptAll(), ...known.map(member => this.#claim(member))])
  }

  /** Tells our workers to suspend their sessions and end, and waits for them, at most `graceMs`. Those that are still there then go on unclaimed, which ends them too. */
  async drain (graceMs: number): Promise<void> {
    const { clock, log } = this.#needs
    this.#draining.abort(new SoaError('Broker_BrokerIsOffline', {}))
    await this.#adoptAll().catch(err => log.warn({ err }, 'workers could not be listed'))
    const ours = this.#ourMembers()
    const gone = Promise.all([...ours.map(member => this.#stop(member).then(() => this.#untilGone(member))), ...this.#starting])
    await within(clock, graceMs, gone, () => new Error('workers are still busy')).catch(err => log.warn({ err, graceMs }, 'not every worker ended in time'))
  }

  /** Stops looking after workers, and leaves them alone. */
  async close (): Promise<void> {
    this.#draining.abort(new SoaError('Broker_BrokerIsOffline', {}))
    await Promise.all([this.#life.close(), ...this.#starting])
    await Promise.all([...this.#members.values()].map(member => member.link.close()))
  }

  get #isDraining (): boolean { return this.#draining.signal.aborted }

  // Fullest first, so that others stay without a session and can be given back.
  #withRoom (isAlone: boolean): Member | undefined {
    const free = [...this.#members.values()].filter(member => isFit(member) && load(member) < (isAlone ? 1 : this.#needs.limits.sessionsPerWorker))
    return free.sort((a, b) => load(b) - load(a))[0]
  }

  #refill (): void {
    const idle = [...this.#members.values()].filter(member => isFit(member) && load(member) === 0).length
    const wanted = Math.max(this.#needs.limits.workerPoolSize, Math.ceil(this.#waiting.size / this.#needs.limits.sessionsPerWorker))
    for (let lacking = wanted - idle - this.#starting.size; lacking > 0 && !this.#isDraining; lacking--) {
      const starting = this.#startOne().finally(() => { this.#starting.delete(starting); this.#refill() })
      this.#starting.add(starting)
    }
  }

  async #oneMore (leftMs: number, late: () => Error): Promise<void> {
    const { signal } = this.#draining
    let waiter!: { ready: () => void, failed: (error: Error) => void }
    const ready = new Promise<void>((resolve, reject) => { waiter = { ready: resolve, failed: reject } })
    const stop = (): void => waiter.failed(signal.reason as Error)
    this.#waiting.add(waiter)
    signal.addEventListener('abort', stop, { once: true })
    this.#refill()
    try { await within(this.#needs.clock, leftMs, ready, late) } finally {
      this.#waiting.delete(waiter)
      signal.removeEventListener('abort', stop)
    }
  }

  /** Never throws: who waits for a worker is told why there is none. After failures it begins by waiting, 0.2 s and up to 5 s, or a broken installation would spin. */
  async #startOne (): Promise<void> {
    const { start, runDir, machine, clock, log } = this.#needs
    if (this.#failures > 0) await sleep(clock, Math.min(5000, 100 * 2 ** this.#failures), this.#draining.signal).catch(() => {})
    if (this.#isDraining) return
    const names = newWorker(machine, runDir)
    this.#starts.add(names.workerId)
    const child = start(names)
    log.info({ workerId: names.workerId, workerPid: child.pid }, 'worker started')
    let ended: string | undefined
    void child.ended.then(why => { ended = why; this.#gone(names.workerId, why) })
    try {
      await this.#untilReady(names, () => ended)
      this.#failures = 0
      for (const waiter of this.#waiting) waiter.ready()
    } catch (error) {
      if (ended === undefined) killWorker(child.pid, names.workerId)
      if (this.#isDraining) return
      this.#failures++
      this.#lastFailure = (error as Error).message
      log.error({ workerId: names.workerId, err: error }, 'worker did not become ready')
      const refusal = new SoaError('Broker_FailedToStartBrokerServiceProcess', { why: this.#lastFailure }, { cause: error })
      for (const waiter of this.#waiting) waiter.failed(refusal)
    } finally {
      this.#starts.delete(names.workerId)
    }
  }

  /** Ready = it answers a claim and stands in the directory. */
  async #untilReady (names: ReturnType<typeof newWorker>, ended: () => string | undefined): Promise<void> {
    const { clock, directory, head, limits } = this.#needs
    const until = clock.now() + limits.workerReadyTimeoutMs
    const link = new WorkerLink(names.control)
    try {
      for (;;) {
        const why = ended()
        if (why !== undefined) throw new Error(`it ended before it was ready: ${why}`)
        if (clock.now() > until) throw new Error(`it was not ready within ${limits.workerReadyTimeoutMs} ms`)
        const isUp = await link.claim(head, this.#needs.headSocket).then(() => true, (error: Error) => { if (isUnreachable(error)) return false; throw error })
        const record = isUp ? await directory.get(names.workerId) : undefined
        if (record !== undefined) { await this.#adopt(record); return }
        await sleep(clock, POLL_MS, this.#draining.signal)
      }
    } finally {
      await link.close()
    }
  }

  async #adoptAll (): Promise<void> {
    const records = (await this.#needs.directory.list()).filter(record => record.machine === this.#needs.machine && !this.#members.has(record.workerId) && !this.#starts.has(record.workerId))
    const found = await Promise.all(records.map(record => this.#adopt(record)))
    const adopted = found.filter(member => member !== undefined).map(member => member.id)
    if (adopted.length > 0) this.#needs.log.info({ workers: adopted }, 'workers of an earlier head adopted')
  }

  async #adopt (record: WorkerRecord): Promise<Member | undefined> {
    const { workerId: id, pid, socket, netTcp, control } = record
    const known = this.#members.get(id)
    if (known !== undefined) return known
    if (!isWorkerAlive(pid, id)) { await this.#needs.directory.remove(id); return undefined }
    const member: Member = {
      id, pid, socket, netTcp, control, link: new WorkerLink(control), isOurs: control.startsWith(`${this.#needs.runDir}/`), sessions: new Set(), promised: new Set(), isLeaving: false, isAlone: false, isOld: !this.#starts.has(id), missed: 0, idleFor: 0
    }
    this.#members.set(id, member)
    await this.#claim(member)
    return this.#members.get(id)
  }

  async #claimOnAndOn (): Promise<void> {
    const { clock, limits, log } = this.#needs
    while (!this.#life.signal.aborted) {
      try {
        await sleep(clock, limits.workerClaimTimeoutMs / 6, this.#life.signal)
        await this.refresh()
        this.#trim()
        this.#refill()
      } catch (error) {
        if (!this.#life.signal.aborted) log.error({ err: error }, 'claiming workers failed')
      }
    }
  }

  async #claim (member: Member): Promise<void> {
    try {
      const status = await member.link.claim(this.#needs.head, this.#needs.headSocket)
      member.missed = 0
      member.sessions = new Set(status.sessions)
      member.isAlone ||= status.isAlone
      this.#told(member, status.figures)
      member.idleFor = load(member) === 0 ? member.idleFor + 1 : 0
    } catch (error) {
      if (this.#life.signal.aborted || !this.#members.has(member.id)) return
      member.missed++
      if (!isWorkerAlive(member.pid, member.id)) { this.#gone(member.id, 'its broker worker is gone'); return }
      this.#needs.log.warn({ workerId: member.id, missed: member.missed, err: error }, 'worker did not answer a claim')
      if (member.missed < STUCK_AFTER && !await this.#hasRunOut(member)) return
      this.#needs.log.error({ workerId: member.id, workerPid: member.pid }, 'worker is stuck and is killed')
      killWorker(member.pid, member.id)
      this.#gone(member.id, 'it no longer answered and was killed')
    }
  }

  /** It neither answers nor beats: the directory has forgotten it. Nobody is judged while the store is away, for whoever beats into nothing is not to blame. */
  async #hasRunOut (member: Member): Promise<boolean> {
    if (member.missed < MISSED_AT_LEAST) return false
    return await this.#needs.directory.get(member.id).then(record => record === undefined, () => false)
  }

  /** Gives back what was started for a burst: workers without a session for two rounds, beyond the warm ones. */
  #trim (): void {
    const ours = this.#ourMembers().filter(member => !member.isLeaving)
    for (const member of ours) if (member.isAlone && load(member) === 0) void this.#stop(member)
    const idle = ours.filter(member => !member.isLeaving && member.idleFor >= 2)
    for (const member of idle.slice(this.#needs.limits.workerPoolSize)) void this.#stop(member)
  }

  async #stop (member: Member): Promise<void> {
    member.isLeaving = true
    await member.link.stop().then(status => this.#told(member, status.figures)).catch(err => this.#needs.log.warn({ workerId: member.id, err }, 'worker could not be told to stop'))
  }

  async #untilGone (member: Member): Promise<void> {
    while (this.#members.has(member.id) && !this.#life.signal.aborted) {
      if (!isWorkerAlive(member.pid, member.id)) this.#gone(member.id, 'stopped')
      else await sleep(this.#needs.clock, POLL_MS, this.#life.signal).catch(() => {})
    }
  }

  /** What workers that were killed have left in the run folder. */
  #clear (): void {
    removeStaleSockets(this.#needs.runDir).catch(err => this.#needs.log.warn({ err }, 'sockets of ended workers were not removed'))
  }

  #gone (id: string, why: string): void {
    const { directory, onDeath, log } = this.#needs
    const member = this.#members.get(id)
    if (member === undefined || !this.#members.delete(id)) return
    this.#book.gone(id)
    log[member.isLeaving ? 'info' : 'error']({ workerId: id, workerPid: member.pid, why, sessions: load(member) }, 'worker ended')
    const failed = (what: string) => (err: unknown): void => log.error({ workerId: id, err }, what)
    member.link.close().catch(failed('closing the link to an ended worker failed'))
    directory.remove(id).catch(failed('an ended worker is still in the directory'))
    if (member.isOurs) this.#clear()
    onDeath(id, why, takeLastWords(member.control)).catch(failed('sessions of an ended worker were not looked after'))
    this.#refill()
  }
}

/** May be given sessions. A worker of another run folder is its own head's to fill, for that head stops it when it stops. */
const isFit = (member: Member): boolean => member.isOurs && !member.isLeaving && !member.isAlone && member.missed === 0

const load = (member: Member): number => {
  let sum = member.sessions.size
  for (const id of member.promised) if (!member.sessions.has(id)) sum++
  return sum
}
