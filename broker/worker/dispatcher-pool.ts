import { sleep, type Clock } from '../../core/clock.ts'
import { youngestFirst } from '../../core/planner.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import { Dispatcher, type Desk, type Fate } from './dispatcher.ts'
import { ServiceInstance } from './service-instance.ts'
import type { SoapCaller } from '../../transport/channel.ts'

/**
 * What a task's state means for its dispatcher ([broker-behaviour] 4.2, and design.md where HPC Pack was silent). add: one per instance id, never twice ·
 * drain: no new request, the host still answers · remove: what is in flight goes back to the queue.
 */
export const TASK_REACTIONS = {
  Queued: { does: 'nothing' },
  Dispatching: { does: 'nothing' },
  Running: { does: 'add' },
  Canceling: { does: 'drain' },
  Finishing: { does: 'drain' },
  Finished: { does: 'remove', fate: 'takenAway' },
  Failed: { does: 'remove', fate: 'endedByItself' },
  Canceled: { does: 'remove', fate: 'takenAway' },
} as const satisfies Record<TaskState, { does: 'nothing' | 'add' | 'drain' } | { does: 'remove', fate: Fate }>

/** Hosts that failed in a row, with no instance running, before those who wait are told. */
export const FAILURES_THAT_TELL = 3
/** Tasks that ended by themselves and are still shown. */
const SHOWN_ENDS = 10
/** Longest wait for instances to say that they will end, before whoever made them leave goes on. */
const LEAVE_MS = 5000
/** A host that took its Exit has its grace, and this, before it is doubted. */
const EXIT_SLACK_MS = 1000

interface Entry { dispatcher: Dispatcher, task: TaskInfo, isDraining: boolean, disarm: () => void, ended: Promise<void> }

interface Needs {
  desk: Desk
  connect: (task: TaskInfo, slots: number) => SoapCaller
  /** The service's WSDL says that this action has a reply. */
  hasReply: (action: string) => boolean
  replyActionOf?: (action: string) => string | undefined
  /** It says that there is none. */
  isOneWay?: (action: string) => boolean
  limits: {
    /** 0: as many as the task has cores. */
    maxConcurrentCalls: number
    prefetch: number
    operationTimeoutMs: number
    resendLimit: number
    initializationTimeoutMs: number
    taskFateTimeoutMs: number
    cancelGraceMs: number
    /** How long an instance that cannot be reached is left alone. */
    retryPeriodMs: number
  }
  clock: Clock
  /** Tells a host to end by itself (IHpcServiceHost.Exit). False: it does not take that. */
  exit: (task: TaskInfo) => Promise<boolean>
  /** A desk that throws (store gone for good) ends the session. */
  failed: (error: unknown) => void
  changed: (event: 'added' | 'removed', task: TaskInfo) => void
  /** A host ended before it took a call, or says that it has no service; `inARow` such ends with none that got so far in between. */
  hostFailed: (task: TaskInfo, inARow: number) => void
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void, debug (facts: object, message: string): void }
}

/** The dispatchers of a session, one per task that runs, kept by TaskStateChanged. */
export class DispatcherPool {
  readonly #needs: Needs
  readonly #entries = new Map<string, Entry>()
  /** Latest state of every task that has not ended, for the session object. */
  readonly #tasks = new Map<string, TaskInfo>()
  /** The latest that ended without being asked to, oldest first. */
  readonly #over: TaskInfo[] = []
  /** Told to leave while they run: no dispatcher is added for them again. */
  readonly #leaving = new Set<string>()
  /** Ids that ended or were given up: a late Running for one of them adds nothing. */
  readonly #ended = new Set<string>()
  readonly #stop = new AbortController()
  #failedInARow = 0

  constructor (needs: Needs) { this.#needs = needs }

  get tasks (): TaskInfo[] { return [...this.#tasks.values()] }
  /** Those that ended by themselves lately, with how they ended: oldest first. */
  get ended (): readonly TaskInfo[] { return this.#over }
  get size (): number { return this.#entries.size }
  get inFlight (): number { return [...this.#entries.values()].reduce((sum, { dispatcher }) => sum + dispatcher.inFlight, 0) }

  taskStateChanged (tasks: readonly TaskInfo[]): void {
    for (const task of tasks) this.#react(task)
  }

  #react (task: TaskInfo): void {
    const reaction = TASK_REACTIONS[task.state]
    if (this.#stop.signal.aborted) return
    if (reaction.does === 'remove') {
      const entry = this.#entries.get(task.id)
      const isNews = !this.#ended.has(task.id)
      const wasAsked = this.#leaving.delete(task.id) || entry?.isDraining === true
      this.#tasks.delete(task.id)
      this.#remember(task.id)
      if (isNews && task.exit !== undefined && task.state !== 'Canceled' && !wasAsked) this.#show(task)
      if (isNews && task.state === 'Failed' && task.exit !== undefined && entry === undefined) this.#needs.hostFailed(task, ++this.#failedInARow)
      entry?.dispatcher.end(fateOf(task, reaction.fate, entry.isDraining), task.exit)
      return
    }
    if (this.#ended.has(task.id)) return
    this.#tasks.set(task.id, task)
    if (reaction.does === 'add' && !this.#leaving.has(task.id)) this.#add(task)
    if (reaction.does === 'drain') this.#drain(task)
  }

  #add (task: TaskInfo): void {
    if (this.#entries.has(task.id)) return // HPC Pack says Running more than once
    this.#failedInARow = 0
    const { desk, connect, limits, clock, log, changed, failed } = this.#needs
    const { operationTimeoutMs, resendLimit, initializationTimeoutMs, taskFateTimeoutMs } = limits
    const slots = (limits.maxConcurrentCalls || task.capacity) * (1 + limits.prefetch)
    const instance = new ServiceInstance(task.id, connect(task, slots), this.#needs.hasReply, this.#needs.replyActionOf, this.#needs.isOneWay)
    const dispatcher = new Dispatcher({
      desk,
      instance,
      limits: { slots, operationTimeoutMs, resendLimit, initializationTimeoutMs, taskFateTimeoutMs },
      clock,
      log,
    })
    const ended = dispatcher.run().then(end => {
      entry.disarm()
      this.#entries.delete(task.id)
      changed('removed', task)
      log.info({ taskId: task.id, node: task.node, end }, 'dispatcher removed')
      if (end === 'noService') this.#hasNoService(task, dispatcher.noService)
      if (end !== 'stopped') this.#block(task)
      else if (entry.isDraining && !this.#ended.has(task.id) && !this.#leaving.has(task.id)) void this.#sayExit(task)
    }, error => {
      this.#entries.delete(task.id)
      failed(error)
    })
    const entry: Entry = { dispatcher, task, isDraining: false, disarm: () => {}, ended }
    this.#entries.set(task.id, entry)
    changed('added', task)
    log.info({ taskId: task.id, node: task.node, slots, address: task.address }, 'dispatcher added')
  }

  /** Removed when drained, when Canceled arrives, or after the grace. */
  #drain (task: TaskInfo): void {
    const entry = this.#entries.get(task.id)
    // It stopped by itself, since its host said that it is being preempted.
    if (entry === undefined && !this.#leaving.has(task.id)) void this.#sayExit(task)
    if (entry === undefined || entry.isDraining) return
    entry.isDraining = true
    entry.dispatcher.drain()
    entry.disarm = this.#needs.clock.after(this.#needs.limits.cancelGraceMs, () => entry.dispatcher.end('takenAway'))
  }

  /** HPC Pack's own hosts wait for it once they are canceled ([broker-behaviour] 4.5, 4.9); ours ends by its SIGTERM anyway. */
  async #sayExit (task: TaskInfo): Promise<boolean> {
    return await this.#needs.exit(task).catch(error => {
      this.#needs.log.warn({ taskId: task.id, err: error as Error }, 'Exit not said')
      return false
    })
  }

  /**
   * The session is idle: all but `keep` instances are told to leave by their Exit, those first that the planner would cancel (the youngest). Resolves when
   * each has answered, so that the session can want less before one of them is missed. One that does not take Exit is canceled by the plan.
   */
  async leave (keep: number): Promise<void> {
    const staying = [...this.#tasks.values()].filter(({ id, state }) => TASK_REACTIONS[state].does !== 'drain' && !this.#leaving.has(id)).sort(youngestFirst)
    const going = staying.slice(0, Math.max(0, staying.length - keep)).flatMap(({ id }) => this.#entries.get(id) ?? [])
    const over = new AbortController()
    const late = sleep(this.#needs.clock, LEAVE_MS, AbortSignal.any([over.signal, this.#stop.signal])).catch(() => undefined)
    await Promise.race([late, Promise.all(going.map(entry => this.#retire(entry)))])
    over.abort()
  }

  async #retire (entry: Entry): Promise<void> {
    const { task } = entry
    const { clock, limits, log } = this.#needs
    this.#leaving.add(task.id)
    this.#drain(task)
    await entry.ended
    if (this.#ended.has(task.id)) return
    const isTaken = await this.#sayExit(task)
    log.info({ taskId: task.id, node: task.node, isTaken }, 'idle service instance told to exit')
    // It may live on, and be needed: then it gets requests again.
    sleep(clock, isTaken ? limits.cancelGraceMs + EXIT_SLACK_MS : 0, this.#stop.signal).then(() => {
      const now = this.#tasks.get(task.id)
      if (!this.#leaving.delete(task.id) || now?.state !== 'Running') return
      if (isTaken) log.warn({ taskId: task.id, node: task.node }, 'a host that was told to exit still runs: it gets requests again')
      this.#add(now)
    }, () => undefined)
  }

  #show (task: TaskInfo): void {
    this.#over.push(task)
    if (this.#over.length > SHOWN_ENDS) this.#over.shift()
  }

  /** The host runs and has nothing to serve (HPC Pack's dummy service): as good as one that did not start. */
  #hasNoService (task: TaskInfo, why: string): void {
    this.#failedInARow = Math.max(FAILURES_THAT_TELL, this.#failedInARow + 1)
    const failed: TaskInfo = { ...task, state: 'Failed', at: new Date(this.#needs.clock.now()).toISOString(), exit: { code: null, signal: null, stderr: '', why } }
    this.#needs.hostFailed(failed, this.#failedInARow)
  }

  /** An instance that cannot be reached is left alone for endpointNotFoundRetryPeriod, then tried again if its task still runs ([broker-behaviour] 4.8). */
  #block (task: TaskInfo): void {
    if (this.#stop.signal.aborted || this.#ended.has(task.id)) return
    const { clock, limits, log } = this.#needs
    log.warn({ taskId: task.id, node: task.node, retryPeriodMs: limits.retryPeriodMs }, 'service instance blocked')
    sleep(clock, limits.retryPeriodMs, this.#stop.signal).then(() => {
      const now = this.#tasks.get(task.id)
      if (now?.state === 'Running') this.#add(now)
    }, () => undefined)
  }

  #remember (taskId: string): void {
    this.#ended.add(taskId)
    // Ids are never used twice, so old ones are only kept against late notifications.
    if (this.#ended.size > 10_000) this.#ended.delete(this.#ended.values().next().value as string)
  }

  /** Ends all dispatchers: with `graceMs` for what is in flight, then at once. */
  async close (graceMs: number): Promise<void> {
    this.#stop.abort()
    const entries = [...this.#entries.values()]
    for (const { dispatcher } of entries) dispatcher.drain()
    const cut = this.#needs.clock.after(graceMs, () => { for (const { dispatcher } of entries) dispatcher.end('takenAway') })
    await Promise.all(entries.map(entry => entry.ended))
    for (const entry of entries) entry.disarm()
    cut()
  }
}

/** A host that ended without being asked to, well or not, did so by itself; a lost node (no exit to tell of) did not. */
function fateOf (task: TaskInfo, fate: Fate, wasAsked: boolean): Fate {
  if (task.state === 'Failed' && task.exit === undefined) return 'takenAway'
  return task.state === 'Finished' && !wasAsked ? 'endedByItself' : fate
}
