import { sleep, type Clock } from '../../core/clock.ts'
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

interface Entry { dispatcher: Dispatcher, task: TaskInfo, isDraining: boolean, disarm: () => void, ended: Promise<void> }

interface Needs {
  desk: Desk
  connect: (task: TaskInfo, slots: number) => SoapCaller
  /** The service's WSDL says that this action has a reply. */
  hasReply: (action: string) => boolean
  replyActionOf?: (action: string) => string | undefined
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
  /** A desk that throws (store gone for good) ends the session. */
  failed: (error: unknown) => void
  changed: (event: 'added' | 'removed', task: TaskInfo) => void
  /** A host ended before it took a call; `inARow` such ends with none that got so far in between. */
  hostFailed: (task: TaskInfo, inARow: number) => void
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void, debug (facts: object, message: string): void }
}

/** The dispatchers of a session, one per task that runs, kept by TaskStateChanged. */
export class DispatcherPool {
  readonly #needs: Needs
  readonly #entries = new Map<string, Entry>()
  /** Latest state of every task that has not ended, for the session object. */
  readonly #tasks = new Map<string, TaskInfo>()
  /** Ids that ended or were given up: a late Running for one of them adds nothing. */
  readonly #ended = new Set<string>()
  readonly #stop = new AbortController()
  #failedInARow = 0

  constructor (needs: Needs) { this.#needs = needs }

  get tasks (): TaskInfo[] { return [...this.#tasks.values()] }
  get size (): number { return this.#entries.size }
  get inFlight (): number { return [...this.#entries.values()].reduce((sum, { dispatcher }) => sum + dispatcher.inFlight, 0) }

  taskStateChanged (tasks: readonly TaskInfo[]): void {
    for (const task of tasks) this.#react(task)
  }

  #react (task: TaskInfo): void {
    const reaction = TASK_REACTIONS[task.state]
    if (this.#stop.signal.aborted) return
    if (reaction.does === 'remove') {
      if (task.state === 'Failed' && task.exit !== undefined && !this.#entries.has(task.id) && !this.#ended.has(task.id)) this.#needs.hostFailed(task, ++this.#failedInARow)
      this.#tasks.delete(task.id)
      this.#remember(task.id)
      const entry = this.#entries.get(task.id)
      entry?.dispatcher.end(fateOf(task, reaction.fate, entry.isDraining))
      return
    }
    if (this.#ended.has(task.id)) return
    this.#tasks.set(task.id, task)
    if (reaction.does === 'add') this.#add(task)
    if (reaction.does === 'drain') this.#drain(task)
  }

  #add (task: TaskInfo): void {
    if (this.#entries.has(task.id)) return // HPC Pack says Running more than once
    this.#failedInARow = 0
    const { desk, connect, limits, clock, log, changed, failed } = this.#needs
    const { operationTimeoutMs, resendLimit, initializationTimeoutMs, taskFateTimeoutMs } = limits
    const slots = (limits.maxConcurrentCalls || task.capacity) * (1 + limits.prefetch)
    const instance = new ServiceInstance(task.id, connect(task, slots), this.#needs.hasReply, this.#needs.replyActionOf)
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
      if (end === 'instanceLost') this.#block(task)
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
    if (entry === undefined || entry.isDraining) return
    entry.isDraining = true
    entry.dispatcher.drain()
    entry.disarm = this.#needs.clock.after(this.#needs.limits.cancelGraceMs, () => entry.dispatcher.end('takenAway'))
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
