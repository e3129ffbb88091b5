import { DelayedError, Queue, Worker, type Job } from 'bullmq'
import { within, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { PassKind } from '../../store/redis-placement.ts'
import type { DurableTimers } from '../../store/redis-timers.ts'
import { placementKeys } from '../../store/redis-placement-scripts.ts'
import { closeRedis, type Redis } from '../../store/redis.ts'

export type SessionChore = 'raise' | 'suspend' | 'purge'

export interface ChoresNeeds {
  /** Opened with kind `bullmq`: the pattern of the connections that the queues and workers make for themselves. Stays the caller's to close. */
  readonly connection: Redis
  readonly prefix: string
  readonly placement: { pass (kind: PassKind): Promise<unknown> }
  /** ms since any head's sweep, by Redis' clock. */
  readonly sinceSweepMs: () => Promise<number>
  readonly timers: DurableTimers
  /** Idempotent: a job whose head was killed runs again elsewhere. */
  readonly sessions: Readonly<Record<SessionChore, (sessionId: string) => Promise<void>>>
  /** By timer name; idempotent. A timer without a handler here is left for a head that has one. */
  readonly onTimer: Readonly<Record<string, (sessionId: string) => Promise<void>>>
  readonly clock: Clock
  readonly log: Logger
}

/** Sweep by job scheduler each second; a head that misses it for 3 s makes passes itself. */
const SWEEP_MS = 1000
const SWEEP_LATE_MS = 3000
/** Until then a late sweep wakes nobody: a head that starts on a busy machine is just slow. */
const START_MS = 15_000
/** Tries of a session's chore, with pauses of 0.5, 1, 2 … s. */
const ATTEMPTS = 8
const BACK_OFF_MS = 500
/** A timer is due from here on: BullMQ is not early, but the clocks of two heads differ. */
const EARLY_MS = 50
const DUE_AT_ONCE = 100
/** Longest wait for chores in hand when the head stops. */
const CLOSE_MS = 5000

/** Short jobs, no global concurrency (a head killed inside a job would block the others), nothing kept of done ones. */
const SHORT = { lockDuration: 5000, stalledInterval: 1000, maxStalledCount: 1000, runRetryDelay: 500, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } } as const
const NOTHING_KEPT = { removeOnComplete: true, removeOnFail: true } as const

interface TimerJob { readonly name: string, readonly sessionId: string }

/** The time is part of the id: a job of that id that is just ending would swallow the new one. */
const jobId = (name: string, sessionId: string, atMs: number): string => `${name}-${sessionId}-${atMs}`

/**
 * Short jobs and durable timers, on BullMQ: one worker per queue in every head, so a killed head's jobs go on in another. BullMQ is never the only way: if
 * its sweeps stop, this head makes passes and runs due timers by itself, and `healthy` is false until they are back.
 */
export class Chores {
  readonly #needs: ChoresNeeds
  readonly #queues: { readonly placement: Queue, readonly sessions: Queue, readonly timers: Queue }
  readonly #connection: Redis
  #workers: Worker[] = []
  #listener: Redis | undefined
  #asking: 'no' | 'once' | 'again' = 'no'
  #cancelWatch = (): void => {}
  #watching: Promise<void> = Promise.resolve()
  #isHealthy = true
  #isClosed = false
  #closing: Promise<void> | undefined
  #startedAt = 0

  constructor (needs: ChoresNeeds) {
    this.#needs = needs
    this.#connection = needs.connection.duplicate()
    this.#connection.on('error', err => { needs.log.debug({ err }, 'connection of the queues') })
    const queue = (name: string): Queue => this.#listened(new Queue(name, { connection: this.#connection, prefix: this.#bullPrefix, defaultJobOptions: NOTHING_KEPT }))
    this.#queues = { placement: queue('placement'), sessions: queue('sessions'), timers: queue('timers') }
  }

  /** False: no sweep for 3 s, or Redis does not answer. */
  get healthy (): boolean { return this.#isHealthy }

  async start (): Promise<void> {
    const { placement, sessions, timers, clock } = this.#needs
    this.#startedAt = clock.now()
    const worker = (name: string, run: (job: Job, token: string | undefined) => Promise<unknown>, concurrency: number): Worker => this.#listened(
      new Worker(name, (job, token) => run(job, token), { connection: this.#connection, prefix: this.#bullPrefix, concurrency, ...SHORT }))
    this.#workers = [
      worker('placement', job => placement.pass(job.name === 'sweep' ? 'sweep' : 'plan'), 1),
      worker('sessions', job => sessions[job.name as SessionChore]((job.data as { sessionId: string }).sessionId), 8),
      worker('timers', (job, token) => this.#due(job as Job<TimerJob>, token), 8),
    ]
    await this.#queues.placement.upsertJobScheduler('sweep', { every: SWEEP_MS }, { name: 'sweep', opts: NOTHING_KEPT })
    await this.#listen()
    // A head may have been killed between noting a timer and its job.
    for (const { name, sessionId, atMs } of await timers.all()) await this.#addTimer(name, sessionId, atMs)
    this.#arm()
  }

  /** Something that a plan depends on has changed: one pass soon, however many ask. Called by itself when a demand, a node or the end of a task changes something. */
  planSoon (): void {
    if (this.#asking !== 'no') { this.#asking = 'again'; return }
    this.#asking = 'once'
    this.#queues.placement.add('plan', {}, { deduplication: { id: 'plan', keepLastIfActive: true } })
      .catch(err => { if (!this.#isClosed) this.#needs.log.warn({ err }, 'plan not asked for; the next sweep plans') })
      .finally(() => {
        const isAsked = this.#asking === 'again'
        this.#asking = 'no'
        if (isAsked && !this.#isClosed) this.planSoon()
      })
  }

  /** While paused, this head takes no chore of a session: what is asked for waits for other heads. Chores in hand are finished. */
  async pause (isPaused: boolean): Promise<void> {
    const worker = this.#workers.find(({ name }) => name === 'sessions')
    if (isPaused) await worker?.pause(true)
    else worker?.resume()
  }

  /** Raises, suspends or purges a session soon, in some head, with tries. Asked again while it waits or runs: still one. */
  async ask (chore: SessionChore, sessionId: string): Promise<void> {
    await this.#queues.sessions.add(chore, { sessionId }, {
      deduplication: { id: `${chore}-${sessionId}` }, attempts: ATTEMPTS, backoff: { type: 'exponential', delay: BACK_OFF_MS }
    })
  }

  /** The handler of `name` is called for the session at that time (ms since the epoch), once, whatever heads live then. Set again: the new time counts. */
  async setTimer (name: string, sessionId: string, atMs: number): Promise<void> {
    const before = await this.#needs.timers.set(name, sessionId, atMs)
    // Moved to later: the job that is there looks at the clock when it wakes and waits on.
    if (before === undefined || atMs < before) await this.#addTimer(name, sessionId, atMs)
  }

  async clearTimer (name: string, sessionId: string): Promise<void> {
    const atMs = await this.#needs.timers.get(name, sessionId)
    if (atMs === undefined) return
    await this.#needs.timers.clear(name, sessionId)
    // The job would find nothing to do when its time comes; but a session that was closed leaves no key.
    await this.#queues.timers.remove(jobId(name, sessionId, atMs))
  }

  /** Resolves within 5 s, also while Redis is away; BullMQ then never comes to an end by itself, so the process must be ended with `process.exit`. */
  close (): Promise<void> { return (this.#closing ??= this.#close()) }

  async #close (): Promise<void> {
    this.#isClosed = true
    this.#cancelWatch()
    const closed = this.#watching
      .then(() => Promise.all(this.#workers.map(worker => worker.close())))
      .then(() => Promise.all(Object.values(this.#queues).map(queue => queue.close())))
      .finally(() => Promise.all([this.#listener, this.#connection].map(redis => redis === undefined ? undefined : closeRedis(redis))))
    try {
      await within(this.#needs.clock, CLOSE_MS, closed, () => new Error(`the queues did not close within ${CLOSE_MS} ms`))
    } catch (err) {
      // Redis is away, or a chore hangs: another head runs it again once our locks are over.
      this.#needs.log.warn({ err: err as Error }, 'queues are still closing')
    }
  }

  get #bullPrefix (): string { return `{${this.#needs.prefix}:bull}` }

  async #listen (): Promise<void> {
    const { prefix, log } = this.#needs
    const listener = this.#listener = this.#connection.duplicate()
    listener.on('error', err => { log.debug({ err }, 'listener for changes') })
    listener.on('message', () => this.planSoon())
    await listener.subscribe(placementKeys(prefix).changed)
  }

  async #addTimer (name: string, sessionId: string, atMs: number): Promise<void> {
    await this.#queues.timers.add(name, { name, sessionId }, {
      jobId: jobId(name, sessionId, atMs), delay: Math.max(0, atMs - this.#needs.clock.now()), attempts: ATTEMPTS, backoff: { type: 'exponential', delay: BACK_OFF_MS }
    })
  }

  async #due (job: Job<TimerJob>, token: string | undefined): Promise<void> {
    const { timers, clock } = this.#needs
    const { name, sessionId } = job.data
    const atMs = await timers.get(name, sessionId)
    if (atMs === undefined) return // cleared, or another job of this timer was first
    if (atMs - clock.now() > EARLY_MS) {
      await job.moveToDelayed(atMs, token)
      throw new DelayedError()
    }
    await this.#fire(name, sessionId, atMs)
  }

  async #fire (name: string, sessionId: string, atMs: number): Promise<void> {
    await this.#needs.onTimer[name]?.(sessionId)
    // Only if nobody has set it anew meanwhile.
    if (this.#needs.onTimer[name] !== undefined) await this.#needs.timers.clear(name, sessionId, atMs)
  }

  #arm (): void {
    this.#cancelWatch = this.#needs.clock.after(SWEEP_MS, () => {
      this.#watching = this.#watch()
        .catch(err => { this.#isHealthy = false; this.#needs.log.warn({ err }, 'placement: this head could not make a pass') })
        .finally(() => { if (!this.#isClosed) this.#arm() })
    }, { unref: true })
  }

  async #watch (): Promise<void> {
    const { sinceSweepMs, placement, clock, log } = this.#needs
    // A head that has just started asks for patience: the first sweep of all is on its way.
    const sinceMs = Math.min(await sinceSweepMs(), Math.max(clock.now() - this.#startedAt, 0))
    const isHealthy = sinceMs <= SWEEP_LATE_MS
    const isStarting = clock.now() - this.#startedAt < START_MS
    if (isHealthy !== this.#isHealthy) log[isHealthy || isStarting ? 'info' : 'error']({ sinceMs }, isHealthy ? 'sweeps are back' : 'no sweep: this head makes passes itself')
    this.#isHealthy = isHealthy
    if (isHealthy || this.#isClosed) return
    await placement.pass('fallback')
    await this.#runDueTimers()
  }

  async #runDueTimers (): Promise<void> {
    const { timers, clock, log } = this.#needs
    for (const { name, sessionId, atMs } of await timers.due(clock.now() - SWEEP_LATE_MS, DUE_AT_ONCE)) {
      await this.#fire(name, sessionId, atMs).catch(err => log.warn({ err, name, sessionId }, 'timer failed; tried again'))
    }
  }

  /** Without a listener an `error` event would end the head; the connection's own errors are logged where it was opened. */
  #listened<T extends Queue | Worker> (thing: T): T {
    const { log } = this.#needs
    const told = (err: Error): void => { log.debug({ err, queue: thing.name }, 'bullmq') }
    if (thing instanceof Worker) {
      thing.on('error', told)
      thing.on('failed', (job, err) => {
        const isLast = job === undefined || job.attemptsMade >= (job.opts.attempts ?? 1)
        log[isLast ? 'error' : 'warn']({ err, queue: thing.name, job: job?.name, data: job?.data as object, tries: job?.attemptsMade }, isLast ? 'chore given up' : 'chore failed, tried again')
      })
    } else {
      thing.on('error', told)
    }
    return thing
  }
}
