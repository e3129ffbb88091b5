import type { FaultName } from '../core/errors.ts'
import type { TaskState } from '../store/placement-store.ts'

/**
 * `soa-broker/broker`: what a custom broker's module may import. The class is *given* to the stock broker, which keeps queues, durability, retries, throttling and
 * the dispatchers; its hooks decide. It never holds a socket, the store or a lease. docs/custom-brokers.md has the order in which hooks are called.
 */

/** A request as hooks see it. */
export interface CustomRequest {
  /** As its client wrote it; compared without case. */
  readonly clientId: string
  readonly messageId: string
  readonly action: string
  /** Text of the UserData header; undefined: the request has none, and its response goes out in the same exchange. */
  readonly userData: string | undefined
  /** The markup inside the SOAP Body, with the namespace declarations that it needs. Made from the closed body when it is first read: a hook that does not look costs nothing. */
  readonly body: string
  /** As `onRequest` said; 0. */
  readonly lane: number
}

/** A response as hooks see it. `isFault`: the body is a SOAP fault. */
export interface CustomResponse {
  readonly action: string
  readonly body: string
  readonly isFault: boolean
}

/** What a hook makes: markup that declares the prefixes it uses. A fault's body is a `Fault` element of the request's SOAP version. */
export interface MadeBody {
  readonly body: string
  /** Default: the request's for a request; the operation's reply action, else the request's + `Response`, for a response. */
  readonly action?: string | undefined
  /** Responses only; default false. */
  readonly isFault?: boolean | undefined
}

/** What becomes of a request. It is decided once, before the request is stored, and is what is stored. */
export type Verdict =
  | 'pass'
  | undefined
  /** Higher lanes are dispatched first, −1000 to 1000; `replace` may come with it. */
  | { readonly lane?: number | undefined, readonly replace?: { readonly body?: string | undefined, readonly action?: string | undefined } | undefined }
  /** No service instance is asked. */
  | { readonly answer: MadeBody }
  /** Not taken; its sender gets this fault of HPC Pack's table (docs/faults.md) with `why`. */
  | { readonly refuse: FaultName, readonly why?: string | undefined }
  /** These are sent in its place, 1 to 10,000; `onGather` makes one response of theirs. After a crash of the broker all parts run again. */
  | { readonly scatter: readonly MadeBody[], readonly lane?: number | undefined }

/** A service instance that takes requests. */
export interface CustomDispatcher {
  /** The task's id, never used twice. */
  readonly id: string
  readonly machineName: string
  /** Calls that it works on at a time. */
  readonly capacity: number
  /** Calls that it would take now; 0 in `session.dispatchers` while it is busy. */
  readonly free: number
}

/** HPC Pack's TaskInfo, the set of its first custom brokers ([broker-behaviour] 8). */
export interface TaskNotice { readonly Id: string, readonly Capacity: number, readonly MachineName: string, readonly State: TaskState }

/** HPC Pack's JobState, those that a session here goes through. */
export type JobState = 'Running' | 'Canceled' | 'Failed' | 'Finished'

/**
 * A map that survives the broker: values are what JSON can carry. A change that `onRequest`, `onResponse` or `onGather` makes through the session that it was given is
 * committed with that request or response, in one step; one made elsewhere goes with the next batch, at the latest when the broker lets go of the session.
 * All entries together: setting maxStateBytes. In an interactive session it lives as long as the session.
 */
export interface CustomState {
  get (key: string): unknown
  has (key: string): boolean
  /** @throws RangeError over maxStateBytes, TypeError for what JSON cannot carry */
  set (key: string, value: unknown): void
  delete (key: string): boolean
  keys (): string[]
  readonly size: number
}

export interface CustomSession {
  readonly id: string
  readonly service: string
  readonly isDurable: boolean
  /** The session's settings by name, after all overrides. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly logger: Readonly<Record<'debug' | 'info' | 'warn' | 'error', (facts: object, message: string) => void>>
  /** Aborted when the session ends here: closed, suspended, failed or taken over. */
  readonly signal: AbortSignal
  readonly state: CustomState
  /** Those that take requests, free or not. */
  readonly dispatchers: readonly CustomDispatcher[]
}

export const HOOKS = ['onSessionStart', 'onRequest', 'chooseDispatcher', 'onTaskStateChanged', 'onJobStateChanged', 'onResponse', 'onGather', 'onSessionEnd'] as const
export type Hook = (typeof HOOKS)[number]

type MaybePromise<T> = T | Promise<T>

/** Base of custom brokers: all hooks are optional, and one that is not there costs nothing. */
export abstract class CustomBroker {
  /** Before the first request is taken, also when a durable session is raised again; `session.state` is there. */
  onSessionStart? (session: CustomSession): void | Promise<void>
  /** Once for each request, before it is stored; not asked again after a crash. */
  onRequest? (request: CustomRequest, session: CustomSession): Verdict | Promise<Verdict>
  /**
   * Hot path, synchronous: one of `free`, or its id; `any`; `wait`: ask again when something has changed (at most the first 1,000 that wait are asked). A dispatcher of
   * `session.dispatchers` that is busy may be named too: the request then waits for that one, and is asked again if it goes.
   */
  chooseDispatcher? (request: CustomRequest, free: readonly CustomDispatcher[]): CustomDispatcher | string
  /** HPC Pack's ISchedulerNotify. What is notified more than once comes more than once. */
  onTaskStateChanged? (tasks: readonly TaskNotice[]): void | Promise<void>
  onJobStateChanged? (state: JobState): void | Promise<void>
  /** Before the response of a service instance, or the fault of one that was given up, is stored or sent; may run again after a crash. Undefined: as it is. */
  onResponse? (request: CustomRequest, response: CustomResponse, session: CustomSession): MaybePromise<CustomResponse | MadeBody | undefined>
  /** The responses of a scattered request, in the order of its parts. May run again after a crash. */
  onGather? (request: CustomRequest, parts: readonly CustomResponse[], session: CustomSession): MadeBody | Promise<MadeBody>
  /** The session ends here: `closed`, `suspended`, `failed: …`, `canceled`. Waited for, at most hookTimeoutMs. */
  onSessionEnd? (why: string): void | Promise<void>
}
