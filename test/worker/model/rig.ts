import { EventEmitter, on } from 'node:events'
import type { Clock } from '../../../core/clock.ts'
import { userDataHeader } from '../../../wire/soap/hpc-headers.ts'
import type { Envelope } from '../../../wire/soap/envelope.ts'
import type { MessageStore } from '../../../store/message-store.ts'
import type { TaskInfo, TaskState } from '../../../store/placement-store.ts'
import type { CallResult } from '../../../transport/channel.ts'
import type { Settings } from '../../../config/settings.ts'
import type { BrokerSession } from '../../../broker/worker/session.ts'
import { ManualClock, settle } from '../../clock.ts'
import { openSession, reading, request, type TaskNews } from '../open-session.ts'
import { Reference } from './reference.ts'
import { Life, Troubles, troubledStore, type StoreWatch } from './troubled-store.ts'

/** Where sessions of a run lie: memory that outlives its broker, or Redis. */
export interface Backing {
  /** The store as a broker finds it that takes the session over. */
  open (create: boolean): Promise<MessageStore>
  /** Whether what a broker closes must be opened anew. */
  readonly keeps: boolean
}

/** Short, so that a run passes through all of them. */
export const TIMES: Partial<Settings> = {
  clientIdleTimeout: 20_000,
  sessionIdleTimeout: 20_000,
  clientConnectionTimeout: 20_000,
  unitIdleTimeoutMs: 60_000,
  messageResendLimit: 2,
  endpointNotFoundRetryPeriod: 10_000,
  taskCancelGracePeriod: 3000,
  serviceInitializationTimeout: 3000,
  serviceRequestPrefetchCount: 1,
}
export const RESEND_LIMIT = 2

export interface Call { readonly id: string, readonly taskId: string, readonly envelope: Envelope, answer: (result: CallResult) => void }

/** Time as one life of a broker has it: with its end its timers are gone. */
const clockOf = (clock: ManualClock, life: Life): Clock => ({
  now: () => clock.now(),
  after: (ms, call) => clock.after(ms, () => { if (!life.isOver) call() }),
})

/** A session with all that is around it, and the reference that watches. Brokers come and go; store, tasks and clock stay. */
export class Rig {
  readonly clock = new ManualClock()
  readonly troubles = new Troubles()
  readonly reference: Reference
  readonly isDurable: boolean
  readonly tasks: TaskInfo[] = []
  calls: Call[] = []
  /** Failures of a request in this life of the broker: those that cost a try for certain, and those that may. */
  readonly tries = new Map<string, { sure: number, maybe: number }>()
  /** Tasks whose host has said that it is being preempted: it will go. */
  readonly doomed = new Set<string>()
  violation: unknown
  /** How the broker ended by itself. */
  down: 'suspended' | 'destroyed' | undefined
  session!: BrokerSession
  life = new Life()
  readonly #backing: Backing
  readonly #settings: Partial<Settings>
  #opened!: Awaited<ReturnType<typeof openSession>>
  #news: TaskNews = new EventEmitter()
  #taskIds = 0

  get isDestroyed (): boolean { return this.down === 'destroyed' }

  constructor (isDurable: boolean, backing: Backing, settings: Partial<Settings> = {}) {
    this.#settings = settings
    this.isDurable = isDurable
    this.reference = new Reference(isDurable)
    this.#backing = backing
  }

  /** Notes what does not fit, wherever it is noticed: the first one ends the run. */
  watch (run: () => void): void {
    try { run() } catch (error) { this.violation ??= error }
  }

  async raise (create = false): Promise<void> {
    const life = this.life = new Life()
    const { reference } = this
    const watch: StoreWatch = {
      appended: (...args) => this.watch(() => reference.appended(...args)),
      committed: (...args) => this.watch(() => reference.committed(...args)),
      discarded: (...args) => this.watch(() => reference.discarded(...args)),
      settled: (...args) => this.watch(() => { reference.settled(...args); this.#judgeGivenUp(args[1]) }),
      purged: (...args) => this.watch(() => reference.purged(...args)),
    }
    const store = troubledStore(await this.#backing.open(create), life, this.troubles, watch, this.#backing.keeps)
    const news = this.#news = new EventEmitter()
    this.calls = []
    this.tries.clear()
    this.down = undefined
    this.troubles.landed.clear()
    this.troubles.purged = 0
    // Raising is tried again by whoever asked for it; here it must only begin.
    const { troubles } = this
    troubles.clear()
    this.#opened = await openSession({
      durable: this.isDurable,
      store,
      settings: { ...TIMES, ...this.#settings },
      clock: clockOf(this.clock, life),
      events: {
        snapshot: async () => ({ tasks: this.tasks.filter(({ state }) => state === 'Running' || state === 'Canceling'), cursor: '0' }),
        async * follow (_, __, signal) { for await (const [tasks] of on(news, 'tasks', { signal })) yield { tasks: tasks as TaskInfo[], cursor: '0' } },
      },
      connect: task => ({ call: async (envelope, { signal, timeoutMs }) => await this.#called(life, task, envelope, signal, timeoutMs), close: async () => {} }),
    })
    this.session = this.#opened.session
    if (!create) reference.raised()
  }

  #called (life: Life, task: TaskInfo, envelope: Envelope, signal: AbortSignal, _timeoutMs: number): Promise<CallResult> {
    return new Promise(resolve => {
      const id = envelope.messageId ?? ''
      if (life.isOver) return
      this.watch(() => this.reference.dispatched(id))
      const answer = (result: CallResult): void => {
        this.calls = this.calls.filter(other => other !== call)
        signal.removeEventListener('abort', aborted)
        if (!life.isOver) resolve(result)
      }
      const aborted = (): void => { this.count(id, 'maybe'); answer({ outcome: 'aborted' }) }
      const call: Call = { id, taskId: task.id, envelope, answer }
      this.calls.push(call)
      if (signal.aborted) aborted()
      else signal.addEventListener('abort', aborted, { once: true })
    })
  }

  count (id: string, kind: 'sure' | 'maybe'): void {
    const tries = this.tries.get(id) ?? { sure: 0, maybe: 0 }
    this.tries.set(id, tries)
    if (kind === 'sure') tries.sure++
    tries.maybe++
    if (tries.sure > RESEND_LIMIT + 1) this.violation ??= new Error(`${id} failed ${tries.sure} times that count, and ran again`)
  }

  /** A request is given up only after as many tries as the limit allows. */
  #judgeGivenUp (batch: Parameters<StoreWatch['settled']>[1]): void {
    for (const { response } of batch) {
      if (!response.action.endsWith('RetryOperationError')) continue
      const { maybe = 0 } = this.tries.get(response.relatesTo ?? '') ?? {}
      if (maybe <= RESEND_LIMIT) throw new Error(`${response.relatesTo ?? ''} was given up after ${maybe} tries`)
    }
  }

  /** A request of this client as it comes in. */
  envelope (key: string, n: number): Envelope {
    const action = n % 3 === 0 ? 'urn:Other' : 'urn:Echo'
    const id = `${key}-${n}`
    this.reference.sent.set(id, { action, user: `user ${n}` })
    return request(n, { messageId: id, action, userData: userDataHeader(`user ${n}`) })
  }

  reply (call: Call, isFault = false, action = 'urn:EchoResponse'): CallResult { return { outcome: 'answered', reading: reading({ ...call.envelope, action }, isFault) } }

  tell (task: TaskInfo, state: TaskState, exit?: TaskInfo['exit']): void {
    const at = this.tasks.indexOf(task)
    const now: TaskInfo = exit === undefined ? { ...task, state } : { ...task, state, exit }
    if (at >= 0) this.tasks[at] = now
    if (state !== 'Running' && state !== 'Canceling' && at >= 0) this.tasks.splice(at, 1)
    this.#news.emit('tasks', [now])
  }

  start (): void {
    const id = `1-${++this.#taskIds}`
    const task: TaskInfo = { id, sessionId: '7', node: 'n1', machineName: 'n1', state: 'Running', capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '' }
    this.tasks.push(task)
    this.tell(task, 'Running')
  }

  /** Until all that is ready has run and the store has answered: a few turns in which nothing is asked of it. */
  async rest (): Promise<void> {
    for (let quiet = 0; quiet < 12; quiet = this.troubles.inFlight === 0 ? quiet + 1 : 0) await settle(1)
  }

  /** kill -9. */
  crash (): void {
    this.life.isOver = true
    for (const call of [...this.calls]) call.answer({ outcome: 'aborted' })
    this.calls = []
  }

  /** Throws the first thing that did not fit. */
  check (): void {
    if (this.violation !== undefined) throw this.violation
    if (this.#opened.states.length > 0) throw new Error(`the session is ${this.#opened.states.join()}: ${this.#opened.whys.join('; ')}`)
    const [ended] = this.#opened.ended
    if (ended !== undefined) { this.down = ended.startsWith('suspended') ? 'suspended' : 'destroyed'; return }
    this.reference.check(this.session.counters)
  }

  async close (): Promise<void> {
    if (this.down !== undefined || this.life.isOver) return
    const closing = this.session.close('destroyed')
    await this.clock.advance(0)
    await this.rest()
    await closing
    this.life.isOver = true
  }
}
