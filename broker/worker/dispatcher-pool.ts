import { sleep, type Clock } from '../../core/clock.ts'
import { youngestFirst } from '../../core/planner.ts'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import { Dispatcher, type Desk, type Fate } from './dispatcher.ts'
import { AvoidedNodes } from './avoided-nodes.ts'
import type { UnitLoad } from './shrink.ts'
import { ServiceInstance } from './service-instance.ts'
import type { SoapCaller } from '../../transport/channel.ts'

/**
 * What a task's state means for its dispatcher ([broker-behaviour] 4.2, and design.md where HPC Pack was silent). add: one per instance id, never twice ·
 * drain: no new request, the host still answers, for the grace · finish: the same for as long as it takes · remove: what is in flight goes back to the queue.
 */
export const TASK_REACTIONS = {
  Queued: { does: 'nothing' },
  Dispatching: { does: 'nothing' },
  Running: { does: 'add' },
  Canceling: { does: 'drain' },
  Finishing: { does: 'finish' },
  Finished: { does: 'remove', fate: 'takenAway' },
  Failed: { does: 'remove', fate: 'endedByItself' },
  Canceled: { does: 'remove', fate: 'takenAway' },
} as const satisfies Record<TaskState, { does: 'nothing' | 'add' | 'drain' | 'finish' } | { does: 'remove', fate: Fate }>

/** Hosts that failed in a row, with no instance running, before those who wait are told. */
export const FAILURES_THAT_TELL = 3
/** Tasks that ended by themselves and are still shown. */
const SHOWN_ENDS = 10
/** Longest wait for instances to say that they will end, before whoever made them leave goes on. */
const LEAVE_MS = 5000
/** A host that took its Exit has its grace, and this, before it is doubted. */
const EXIT_SLACK_MS = 1000

interface Entry { dispatcher: Dispatcher, task: TaskInfo, isDraining: boolean, disarm: () => void, ended: Promise<void> }

/** Of the service and the session's settings. */
export interface PoolLimits {
  /** 0: as many as the task has cores. */
  maxConcurrentCalls: number
  prefetch: number
  operationTimeoutMs: number
  resendLimit: number
  /** maxUncountedTries; 0: no limit. */
  maxUncounted?: number
  initializationTimeoutMs: number
  taskFateTimeoutMs: number
  cancelGraceMs: number
  /** How long an instance that cannot be reached is left alone. */
  retryPeriodMs: number
}

interface Needs {
  desk: Desk
  connect: (task: TaskInfo, slots: number) => SoapCaller
  /** Hosts are ours: they work on calls in the order in which they were sent. */
  keepsOrder?: boolean
  /** The service's WSDL says that this action has a reply. */
  hasReply: (action: string) => boolean
  replyActionOf?: (action: string) => string | undefined
  /** It says that there is none. */
  isOneWay?: (action: string) => boolean
  limits: PoolLimits
  clock: Clock
  /** Tells a host to end by itself (IHpcServiceHost.Exit). False: it does not take that. */
  exit: (task: TaskInfo) => Promise<boolean>
  /** A desk that throws (store gone for good) ends the session. */
  failed: (error: unknown) => void
  changed: (event: 'added' | 'removed', task: TaskInfo) => void
  /** A host ended before it took a call, or says that it has no service; `inARow` such ends with none that got so far in between. */
  hostFailed: (task: TaskInfo, inARow: number) => void
  /** `leaving` or `avoided` is another one now. */
  wantsChanged: () => void
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
  /** Run and cannot be reached; left alone for a while. */
  readonly #blocked = new Map<string, TaskInfo>()
  readonly #avoided: AvoidedNodes
  readonly #stop = new AbortController()
  #failedInARow = 0

  constructor (needs: Needs) {
    this.#needs = needs
    this.#avoided = new AvoidedNodes(needs.clock, needs.limits.retryPeriodMs, needs.wantsChanged)
  }

  get tasks (): TaskInfo[] { return [...this.#tasks.values()] }
  /** Those that ended by themselves lately, with how they ended: oldest first. */
  get ended (): readonly TaskInfo[] { return this.#over }
  get size (): number { return this.#entries.size }
  get inFlight (): number { return [...this.#entries.values()].reduce((sum, { dispatcher }) => sum + dispatcher.inFlight, 0) }

  /** Nodes where no instance of the session is to be started now. */
  get avoided (): string[] { return this.#avoided.names }
  /** Tasks that the session has let go of and that have not ended. */
  get leaving (): string[] { return [...this.#leaving].sort() }
  /** Tasks that have been placed and do not run yet. */
  get starting (): number { return [...this.#tasks.values()].filter(({ state }) => state === 'Dispatching').length }

  /** Every instance that takes requests, or would if it could be reached. */
  get loads (): UnitLoad[] {
    const load = ({ id, node, capacity: cores }: TaskInfo, inFlight: number, isBlocked: boolean): UnitLoad =>
      ({ id, node, cores, capacity: this.#needs.limits.maxConcurrentCalls || cores, inFlight, isBlocked })
    const active = [...this.#entries.values()].filter(({ isDraining }) => !isDraining)
    return [...active.map(({ task, dispatcher }) => load(task, dispatcher.inFlight, false)), ...[...this.#blocked.values()].map(task => load(task, 0, true))]
  }

  taskStateChanged (tasks: readonly TaskInfo[]): void {
    for (const task of tasks) this.#react(task)
  }

  #react (task: TaskInfo): void {
    const reaction = TASK_REACTIONS[task.state]
    if (this.#stop.signal.aborted) { this.#showEnding(task); return }
    if (reaction.does === 'remove') {
      const entry = this.#entries.get(task.id)
      const isNews = !this.#ended.has(task.id)
      const wasAsked = this.#leaving.delete(task.id) || entry?.isDraining === true
      this.#tasks.delete(task.id)
      this.#blocked.delete(task.id)
      this.#remember(task.id)
      if (isNews && task.exit !== undefined && task.state !== 'Canceled' && !wasAsked) this.#show(task)
      if (task.exit?.isNodeUnfit === true) this.#avoid(task)
      if (isNews && task.state === 'Failed' && task.exit !== undefined && entry === undefined) this.#needs.hostFailed(task, ++this.#failedInARow)
      entry?.dispatcher.end(fateOf(task, reaction.fate, entry.isDraining), task.exit)
      return
    }
    if (this.#ended.has(task.id)) return
    this.#tasks.set(task.id, task)
    if (reaction.does === 'add' && !this.#leaving.has(task.id)) this.#add(task)
    if (reaction.does === 'drain' || reaction.does === 'finish') this.#blocked.delete(task.id)
    if (reaction.does === 'drain') this.#drain(task)
    if (reaction.does === 'finish') this.#finish(task)
  }

  #add (task: TaskInfo): void {
    if (this.#entries.has(task.id)) return // HPC Pack says Running more than once
    this.#failedInARow = 0
    const { desk, connect, limits, clock, log, changed, failed } = this.#needs
    const { operationTimeoutMs, resendLimit, maxUncounted = 0, initializationTimeoutMs, taskFateTimeoutMs } = limits
    const capacity = limits.maxConcurrentCalls || task.capacity
    const slots = capacity * (1 + limits.prefetch)
    const instance = new ServiceInstance(task.id, connect(task, slots), this.#needs.hasReply, this.#needs.replyActionOf, this.#needs.isOneWay)
    const dispatcher = new Dispatcher({
      desk,
      instance,
      node: task.node,
      limits: { slots, capacity, operationTimeoutMs, resendLimit, maxUncounted, initializationTimeoutMs, taskFateTimeoutMs },
      keepsOrder: this.#needs.keepsOrder ?? true,
      clock,
      log,
    })
    const ended = dispatcher.run().then(end => {
      entry.disarm()
      this.#entries.delete(task.id)
      changed('removed', task)
      log.info({ taskId: task.id, node: task.node, end }, 'dispatcher removed')
      if (end === 'noService') this.#hasNoService(task, dispatcher.noService)
      else if (end === 'instanceLost') this.#block(task)
      else if (entry.isDraining && !this.#leaving.has(task.id)) void this.#sendHome(task)
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
    if (entry === undefined) return
    entry.disarm()
    entry.disarm = this.#needs.clock.after(this.#needs.limits.cancelGraceMs, () => entry.dispatcher.end('takenAway'))
    if (entry.isDraining) return
    entry.isDraining = true
    entry.dispatcher.drain()
  }

  /** Its node is being drained: what it has in hand takes the time that it takes, then it goes home. */
  #finish (task: TaskInfo): void {
    const entry = this.#entries.get(task.id)
    if (entry === undefined) { if (!this.#leaving.has(task.id)) void this.#sendHome(task); return }
    if (entry.isDraining) return
    entry.isDraining = true
    entry.dispatcher.drain()
  }

  /** It has nothing in hand and is to end. One that finishes and does not take its Exit, or does not end by it, is let go of: then it is canceled. */
  async #sendHome (task: TaskInfo): Promise<void> {
    const { clock, limits } = this.#needs
    if (this.#stop.signal.aborted || this.#ended.has(task.id)) return
    const isTaken = await this.#sayExit(task)
    if (isTaken) await sleep(clock, limits.cancelGraceMs + EXIT_SLACK_MS, this.#stop.signal).catch(() => undefined)
    if (!this.#stop.signal.aborted && this.#tasks.get(task.id)?.state === 'Finishing') this.#letGo(task.id)
  }

  #letGo (taskId: string): void {
    this.#leaving.add(taskId)
    this.#needs.wantsChanged()
  }

  /** HPC Pack's own hosts wait for it once they are canceled ([broker-behaviour] 4.5, 4.9); ours ends by its SIGTERM anyway. */
  async #sayExit (task: TaskInfo): Promise<boolean> {
    return await this.#needs.exit(task).catch(error => {
      this.#needs.log.warn({ taskId: task.id, err: error as Error }, 'Exit not said')
      return false
    })
  }

  /** All but `keep` instances are told to leave, those first that the planner would cancel (the youngest). As `retire`. */
  async leave (keep: number): Promise<void> {
    const staying = [...this.#tasks.values()].filter(({ id, state }) => (state === 'Dispatching' || state === 'Running') && !this.#leaving.has(id)).sort(youngestFirst)
    await this.retire(staying.slice(0, Math.max(0, staying.length - keep)).flatMap(({ id, state }) => state === 'Running' ? [id] : []))
  }

  /**
   * These instances are told to leave by their Exit, unless they have got a call meanwhile. Resolves to those that are let go of, when each has answered, so that
   * the session can want less before one of them is missed. One that does not take its Exit is canceled by the plan.
   */
  async retire (taskIds: readonly string[]): Promise<string[]> {
    const going = taskIds.filter(id => !this.#leaving.has(id) && (this.#blocked.has(id) || this.#entries.get(id)?.dispatcher.inFlight === 0))
    const over = new AbortController()
    const late = sleep(this.#needs.clock, LEAVE_MS, AbortSignal.any([over.signal, this.#stop.signal])).catch(() => undefined)
    for (const id of going) this.#leaving.add(id)
    await Promise.race([late, Promise.all(going.map(id => this.#retire(id)))])
    over.abort()
    return going
  }

  async #retire (taskId: string): Promise<void> {
    const { clock, limits, log } = this.#needs
    const entry = this.#entries.get(taskId)
    const task = entry?.task ?? this.#blocked.get(taskId)
    this.#blocked.delete(taskId)
    if (task === undefined) return
    if (entry !== undefined) {
      this.#drain(task)
      await entry.ended
    }
    if (this.#ended.has(taskId)) return
    const isTaken = entry !== undefined && await this.#sayExit(task)
    log.info({ taskId, node: task.node, isTaken }, 'idle service instance told to exit')
    // It may live on, and be needed: then it gets requests again.
    sleep(clock, limits.cancelGraceMs + EXIT_SLACK_MS, this.#stop.signal).then(() => {
      const now = this.#tasks.get(taskId)
      if (!this.#leaving.delete(taskId) || now?.state !== 'Running') return
      log.warn({ taskId, node: task.node }, 'a host that was to exit still runs: it gets requests again')
      this.#add(now)
    }, () => undefined)
  }

  /** Nothing is given out any more, and how the tasks end is still shown. */
  #showEnding (task: TaskInfo): void {
    if (TASK_REACTIONS[task.state].does === 'remove') this.#tasks.delete(task.id)
    else if (this.#tasks.has(task.id)) this.#tasks.set(task.id, task)
  }

  #show (task: TaskInfo): void {
    this.#over.push(task)
    if (this.#over.length > SHOWN_ENDS) this.#over.shift()
  }

  /** The host runs and has nothing to serve (HPC Pack's dummy service): as good as one that did not start, and so would be the next one on its node. */
  #hasNoService (task: TaskInfo, why: string): void {
    if (this.#stop.signal.aborted || this.#ended.has(task.id)) return
    const failed = this.#failed(task, why)
    this.#leaving.add(task.id)
    this.#needs.hostFailed(failed, ++this.#failedInARow)
    this.#avoid(failed)
  }

  /** Whoever waits is told when nothing comes in that node's place. */
  #avoid (failed: TaskInfo): void {
    const { clock, limits, hostFailed, log } = this.#needs
    log.warn({ node: failed.node, taskId: failed.id, retryPeriodMs: limits.retryPeriodMs }, 'node avoided by this session')
    this.#avoided.add(failed.node)
    sleep(clock, limits.taskFateTimeoutMs, this.#stop.signal).then(() => {
      if (this.#entries.size === 0 && this.starting === 0 && this.#failedInARow > 0) hostFailed(failed, Math.max(FAILURES_THAT_TELL, this.#failedInARow))
    }, () => undefined)
  }

  #failed (task: TaskInfo, why: string): TaskInfo {
    return { ...task, state: 'Failed', at: new Date(this.#needs.clock.now()).toISOString(), exit: { code: null, signal: null, stderr: '', why } }
  }

  /**
   * An instance that cannot be reached is left alone for endpointNotFoundRetryPeriod, then tried again if its task still runs ([broker-behaviour] 4.8). Meanwhile
   * it counts as one more that is wanted.
   */
  #block (task: TaskInfo): void {
    if (this.#stop.signal.aborted || this.#ended.has(task.id) || this.#leaving.has(task.id)) return
    const { clock, limits, log, hostFailed } = this.#needs
    log.warn({ taskId: task.id, node: task.node, retryPeriodMs: limits.retryPeriodMs }, 'service instance blocked')
    this.#blocked.set(task.id, task)
    hostFailed(this.#failed(task, `cannot be reached at ${task.address ?? 'no address'}; left alone for ${limits.retryPeriodMs} ms (endpointNotFoundRetryPeriod)`), ++this.#failedInARow)
    sleep(clock, limits.retryPeriodMs, this.#stop.signal).then(() => {
      const now = this.#tasks.get(task.id)
      if (this.#blocked.delete(task.id) && now?.state === 'Running') this.#add(now)
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
    this.#avoided.close()
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
