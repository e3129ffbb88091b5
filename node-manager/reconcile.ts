import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { Demand } from '../store/placement-store.ts'
import { NameHeld, type NodeRecord, type RedisNodeLink, type SyncAnswer } from '../store/redis-placement-node.ts'
import type { PlacedTask } from '../store/redis-placement-scripts.ts'
import { nameTaken, takePlace } from './place.ts'
import type { Preparations } from './preparations.ts'
import type { Task } from './task.ts'

export interface ReconcileNeeds {
  readonly record: NodeRecord
  readonly link: Pick<RedisNodeLink, 'register' | 'sync' | 'leave'>
  /** Makes a task; it is started by the caller. `changed` is called whenever its report is a new one. */
  readonly makeTask: (placed: PlacedTask, demand: Demand, changed: () => void) => Task
  /** What was done on this node for sessions. */
  readonly preparations: Pick<Preparations, 'sessions' | 'news' | 'settle' | 'close' | 'kill'>
  readonly clock: Clock
  readonly log: Logger
  readonly beatMs: number
  /** A node that has not beaten for so long is dead. */
  readonly leaseMs: number
  /** This node manager cannot go on: another one has its name. All its hosts are gone. */
  readonly lost: (why: Error) => void
}

/**
 * Makes what runs here what the table says. One exchange on each wake, each beat and each news of a task: reports go, the task list comes back, and the
 * difference is started, canceled or killed. While Redis is away the hosts go on and reports wait. Fenced: all hosts are killed, and only then it registers anew.
 */
export class Reconciler {
  readonly #needs: ReconcileNeeds
  readonly #tasks = new Map<string, Task>()
  /** What the table has been told of each task. */
  readonly #told = new Map<string, PlacedTask>()
  /** Tasks that the table has and this manager does not: reported as ended. */
  readonly #strays = new Map<string, PlacedTask>()
  #epoch: string | undefined
  #isWoken = false
  #wake = (): void => {}
  #isAway = false
  #isLeaving = false
  #isStopped = false
  #loop: Promise<void> = Promise.resolve()

  constructor (needs: ReconcileNeeds) { this.#needs = needs }

  get tasks (): readonly Task[] { return [...this.#tasks.values()] }

  /** Resolves when the node is registered and beats. @throws `SoaError` `refused` when another process has its name and lives. */
  async start (): Promise<void> {
    this.#registered(await takePlace(this.#needs))
    await this.#exchange()
    this.#loop = this.#run()
  }

  /** The list may be another one now. */
  wake (): void {
    this.#isWoken = true
    this.#wake()
  }

  /** Takes nothing new, ends all tasks with their grace, says goodbye. While Redis is away it goes without a word, and is found dead later. */
  async leave (): Promise<void> {
    this.#isLeaving = true
    await this.#say('ending')
    for (const task of this.tasks) task.cancel()
    await Promise.all(this.tasks.map(task => task.ended))
    // Whoever has the name now may be preparing for the same sessions.
    if (this.#epoch === undefined) this.#needs.preparations.kill(); else await this.#needs.preparations.close()
    await this.#stop()
    if (this.#epoch === undefined) return // fenced: registering just to say goodbye would fence whoever has the name now
    await this.#exchange().catch(err => this.#needs.log.warn({ err }, 'last reports not delivered'))
    await this.#say('gone')
  }

  /** Ends all at once. */
  async kill (why: string): Promise<void> {
    this.#isLeaving = true
    for (const task of this.tasks) task.kill(why)
    this.#needs.preparations.kill()
    await Promise.all(this.tasks.map(task => task.ended))
    await this.#stop()
  }

  async #stop (): Promise<void> {
    this.#isStopped = true
    this.wake()
    await this.#loop
  }

  async #say (stage: 'ending' | 'gone'): Promise<void> {
    const { link, record, log } = this.#needs
    if (this.#epoch === undefined) return
    await link.leave(record.id, this.#epoch, stage).catch(err => log.warn({ err, stage }, 'goodbye not delivered'))
  }

  async #run (): Promise<void> {
    while (!this.#isStopped) {
      await this.#next()
      if (this.#isStopped) return
      try {
        await this.#exchange()
        if (this.#isAway) this.#needs.log.info({ tasks: this.#tasks.size }, 'Redis is back')
        this.#isAway = false
      } catch (err) {
        if (!this.#isAway) this.#needs.log.warn({ err, tasks: this.#tasks.size }, 'away from Redis: hosts go on')
        this.#isAway = true
      }
    }
  }

  /** The next beat, or sooner when woken; while Redis is away only the beat, or a report would be tried without a pause. */
  async #next (): Promise<void> {
    const { clock, beatMs } = this.#needs
    await new Promise<void>(resolve => {
      const stop = clock.after(beatMs, resolve)
      this.#wake = () => { if (this.#isAway && !this.#isStopped) return; stop(); resolve() }
      if (this.#isWoken) this.#wake()
    })
    this.#wake = () => {}
  }

  async #exchange (): Promise<void> {
    const { link, record, preparations } = this.#needs
    this.#isWoken = false
    const epoch = this.#epoch ?? await this.#comeBack()
    if (epoch === undefined) return
    const reports = [...this.#tasks.values()].map(({ report }) => report).filter(report => this.#told.get(report.id) !== report)
    const strays = [...this.#strays.values()]
    const answer = await link.sync(record.id, epoch, [...reports, ...strays], preparations.sessions, preparations.news)
    for (const report of reports) this.#acknowledged(report)
    for (const { id } of strays) this.#strays.delete(id)
    if (answer.fenced) await this.#fenced(answer.takenBy); else this.#reconcile(answer)
  }

  /** It was declared dead. Undefined: another process took its place before it could come back. */
  async #comeBack (): Promise<string | undefined> {
    const { link, record } = this.#needs
    try {
      return this.#registered(await link.register(record))
    } catch (error) {
      if (!(error instanceof NameHeld)) throw error
      this.#giveUp(nameTaken(error.holder))
      return undefined
    }
  }

  #registered (epoch: string): string {
    const { record, log } = this.#needs
    log.info({ node: record.id, epoch }, 'node registered')
    this.#epoch = epoch
    return epoch
  }

  #giveUp (why: string): void {
    this.#isStopped = true
    this.#needs.lost(new Error(why))
  }

  #acknowledged (report: PlacedTask): void {
    this.#told.set(report.id, report)
    const task = this.#tasks.get(report.id)
    if (task?.isOver !== true || task.report !== report) return
    this.#tasks.delete(report.id)
    this.#told.delete(report.id)
  }

  async #fenced (takenBy: string | undefined): Promise<void> {
    const { record, log } = this.#needs
    log.warn({ node: record.id, epoch: this.#epoch, takenBy, tasks: this.#tasks.size }, 'fenced: all hosts are killed')
    this.#epoch = undefined
    for (const task of this.#tasks.values()) task.kill('the node was declared dead')
    await Promise.all(this.tasks.map(task => task.ended))
    if (takenBy !== undefined && takenBy !== record.instance) {
      this.#giveUp(`another node manager has the name ${record.id} now`)
      return
    }
    this.wake()
  }

  #reconcile ({ tasks, demands, over, isDraining }: Extract<SyncAnswer, { fenced: false }>): void {
    const { log, makeTask } = this.#needs
    const listed = new Set(tasks.map(({ id }) => id))
    for (const task of this.#tasks.values()) {
      if (listed.has(task.report.id) || task.isOver) continue
      log.warn({ taskId: task.report.id }, 'not on the list of tasks any more: killed')
      task.kill('not on the node\'s list of tasks any more')
    }
    for (const placed of tasks) {
      const mine = this.#tasks.get(placed.id)
      if (mine !== undefined) {
        if (placed.state === 'Canceling') mine.cancel()
        continue
      }
      const demand = demands.get(placed.sessionId)
      if (placed.state === 'Dispatching' && !this.#isLeaving) {
        // No demand: the session is gone, and the next plan cancels this one.
        if (demand === undefined) continue
        const task = makeTask(placed, demand, () => this.wake())
        this.#tasks.set(placed.id, task)
        this.#told.set(placed.id, placed)
        task.start()
      } else {
        this.#stray(placed)
      }
    }
    const busy = this.tasks.flatMap(task => task.isOver ? [] : [task.report.sessionId])
    this.#needs.preparations.settle(over, isDraining, new Set(busy))
  }

  #stray (placed: PlacedTask): void {
    const state = placed.state === 'Running' ? 'Failed' as const : 'Canceled' as const
    const why = 'never started by this node manager'
    this.#strays.set(placed.id, { ...placed, state, at: new Date(this.#needs.clock.now()).toISOString(), exit: { code: null, signal: null, stderr: '', why } })
    this.wake()
  }
}
