import { within, type Clock } from '../../core/clock.ts'
import { isSoaError } from '../../core/errors.ts'
import type { MadeMessage } from '../../store/message-store.ts'
import type { TaskInfo } from '../../store/placement-store.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { HOOKS, type CustomBroker, type CustomDispatcher, type CustomRequest, type CustomResponse, type CustomSession, type Hook, type JobState, type TaskNotice } from '../custom-broker.ts'
import { decided, made, Rubbish, shown, type BodyLimits, type Decided } from './custom-verdict.ts'

/** A hook threw, did not return or gave back rubbish: its session ends by it. */
export class HookFailure extends Error {}

/** Notices that wait for a slow onTaskStateChanged; then the session ends, for a custom broker that has missed some is wrong about its dispatchers. */
const MOST_NOTICES = 10_000

export interface HooksNeeds {
  /** What `class` or `executive` names, for people. */
  name: string
  broker: CustomBroker
  /** Undefined: the broker sees to it itself, for only it knows when a hook begins. */
  timeoutMs: number | undefined
  /** In place of chooseDispatcher, where asking is a round trip. */
  chooseMany?: ((requests: readonly CustomRequest[]) => Promise<readonly unknown[]>) | undefined
  limits: BodyLimits
  clock: Clock
  /** Runs the synchronous part of a hook under watch. */
  run: <T>(hook: Hook, call: () => T) => T
  /** A notice failed, which nobody waits for. */
  failed: (error: HookFailure) => void
  replyActionOf: (action: string) => string
}

/** The hooks of one session's custom broker, each called, timed and checked in one place. Failures come as HookFailure that names class and hook. */
export class CustomHooks {
  readonly #needs: HooksNeeds
  readonly #has: ReadonlySet<Hook>
  #notices: Promise<void> = Promise.resolve()
  #waiting = 0

  constructor (needs: HooksNeeds) {
    this.#needs = needs
    this.#has = new Set(HOOKS.filter(hook => typeof needs.broker[hook] === 'function'))
  }

  has (hook: Hook): boolean { return this.#has.has(hook) }
  get choosesMany (): boolean { return this.#needs.chooseMany !== undefined }

  async start (session: CustomSession): Promise<void> { await this.#call('onSessionStart', broker => broker.onSessionStart?.(session)) }

  async decide (envelope: Envelope, request: CustomRequest, session: CustomSession): Promise<Decided> {
    const verdict = await this.#call('onRequest', broker => broker.onRequest?.(request, session))
    // Checking thousands of parts takes its time; others come in between.
    if (typeof verdict === 'object') await new Promise<void>(resolve => setImmediate(resolve))
    return this.#checked('onRequest', () => decided(verdict, envelope, this.#needs.replyActionOf(envelope.action), this.#needs.limits))
  }

  /** `any`, `wait`, or the id of one that `knows`. */
  choose (request: CustomRequest, free: readonly CustomDispatcher[], knows: (id: string) => boolean): string {
    return this.#chosen(this.#sync('chooseDispatcher', broker => broker.chooseDispatcher?.(request, free)), knows)
  }

  /** The same for many. What it has been told of before, it knows when it is asked. */
  async chooseMany (requests: readonly CustomRequest[], knows: (id: string) => boolean): Promise<string[]> {
    await this.#notices
    const choices = await this.#call('chooseDispatcher', () => this.#needs.chooseMany?.(requests), true) ?? []
    if (choices.length !== requests.length) throw this.#failure('chooseDispatcher', `gave back ${choices.length} choices for ${requests.length} requests`)
    return choices.map(choice => this.#chosen(choice, knows))
  }

  #chosen (choice: unknown, knows: (id: string) => boolean): string {
    const id: unknown = typeof choice === 'object' && choice !== null ? (choice as Partial<CustomDispatcher>).id : choice
    if (id === 'any' || id === 'wait' || (typeof id === 'string' && knows(id))) return id
    // A dispatcher that has gone since the broker remembered it is no mistake of it.
    if (typeof id === 'string' && /^\d+-\d+$/.test(id)) return 'any'
    throw this.#failure('chooseDispatcher', `gave back ${shown(choice)}; one of the free dispatchers, its id, 'any' or 'wait' is expected, at once`)
  }

  /** Undefined: the response as it is. */
  async respond (request: CustomRequest, response: CustomResponse, session: CustomSession): Promise<MadeMessage | undefined> {
    const changed = await this.#call('onResponse', broker => broker.onResponse?.(request, response, session))
    if (changed === undefined || changed === response) return undefined
    return this.#checked('onResponse', () => made({ isFault: response.isFault, ...changed }, response.action, this.#needs.limits, 'the response'))
  }

  async gather (request: CustomRequest, parts: readonly CustomResponse[], session: CustomSession): Promise<MadeMessage> {
    if (!this.has('onGather')) throw this.#failure('onGather', 'is not there, and a request was scattered')
    const response = await this.#call('onGather', broker => broker.onGather?.(request, parts, session))
    return this.#checked('onGather', () => made(response, this.#needs.replyActionOf(request.action), this.#needs.limits, 'the response'))
  }

  /** In order, and one after the other: a broker that is told of a task twice at once could not tell which was first. */
  tasks (tasks: readonly TaskInfo[]): void {
    const notices = tasks.map(({ id, capacity, machineName, state }): TaskNotice => ({ Id: id, Capacity: capacity, MachineName: machineName, State: state }))
    if (this.has('onTaskStateChanged') && notices.length > 0) this.#notify('onTaskStateChanged', broker => broker.onTaskStateChanged?.(notices))
  }

  job (state: JobState): void { if (this.has('onJobStateChanged')) this.#notify('onJobStateChanged', broker => broker.onJobStateChanged?.(state)) }

  /** After the notices that are on their way. */
  async end (why: string): Promise<void> {
    await this.#notices
    await this.#call('onSessionEnd', broker => broker.onSessionEnd?.(why))
  }

  #notify (hook: Hook, call: (broker: CustomBroker) => unknown): void {
    if (++this.#waiting > MOST_NOTICES) { this.#needs.failed(this.#failure(hook, `is ${MOST_NOTICES} notices behind`)); return }
    this.#notices = this.#notices
      .then(() => this.#call(hook, call))
      .then(() => undefined, error => this.#needs.failed(error as HookFailure))
      .finally(() => { this.#waiting-- })
  }

  async #call<T> (hook: Hook, call: (broker: CustomBroker) => T | Promise<T>, isThere = this.has(hook)): Promise<T | undefined> {
    if (!isThere) return undefined
    const { clock, timeoutMs } = this.#needs
    // Whether it is a promise is looked at in there too: its `then` may be a getter that throws.
    const [result, came] = this.#sync(hook, broker => {
      const given = call(broker)
      return typeof (given as { then?: unknown } | undefined)?.then === 'function' ? [undefined, Promise.resolve(given)] as const : [given as T, undefined] as const
    })
    if (came === undefined) return result
    const late = (): HookFailure => this.#failure(hook, `did not return within ${timeoutMs} ms (hookTimeoutMs)`)
    return await (timeoutMs === undefined ? came : within(clock, timeoutMs, came, late)).catch(error => { throw error instanceof HookFailure ? error : this.#threw(hook, error) })
  }

  #sync<T> (hook: Hook, call: (broker: CustomBroker) => T): T {
    const { broker, run } = this.#needs
    try {
      return run(hook, () => call(broker))
    } catch (error) {
      throw this.#threw(hook, error)
    }
  }

  #checked<T> (hook: Hook, check: () => T): T {
    try {
      return check()
    } catch (error) {
      if (error instanceof Rubbish) throw this.#failure(hook, `gave back what is no answer: ${error.message}`, error)
      throw this.#threw(hook, error) // a getter of what it gave back, say
    }
  }

  #threw (hook: Hook, error: unknown): HookFailure {
    const { text, cause } = thrown(error)
    return this.#failure(hook, `threw ${text.slice(0, 2000)}`, cause)
  }

  #failure (hook: Hook, what: string, cause?: unknown): HookFailure {
    return new HookFailure(`custom broker ${this.#needs.name}: ${hook} ${what}`, { cause })
  }
}

/** What a hook threw, as text, and as a cause where it can be logged: it is a stranger's, and looking at it may throw too. */
function thrown (error: unknown): { text: string, cause: unknown } {
  try {
    if (!(error instanceof Error)) return { text: shown(error), cause: undefined }
    return { text: `${isSoaError(error) ? error.fault : String(error.name)}: ${String(error.message)}`, cause: error }
  } catch {
    return { text: 'what cannot be shown', cause: undefined }
  }
}
