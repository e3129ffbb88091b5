import { Agent } from 'undici'
import { FAULTS, isSoaError, SoaError } from '../core/errors.ts'
import { httpCaller } from '../transport/http/connector.ts'
import { tcpCaller } from '../transport/tcp/caller.ts'
import type { AnyContract, ContractType } from './contract-types.ts'
import { BrokerClient, type ClientOptions } from './broker-client.ts'
import { Callers } from './callers.ts'
import { clientKey } from './client-id.ts'
import { ClientError } from './errors.ts'
import { Heads } from './heads.ts'
import { MESSAGE_LIMITS, netTcpTransport } from './net-tcp-transport.ts'
import { restCall, type RestCall } from './rest.ts'
import { openService, type Service } from './service.ts'
import type { Transport } from './transport.ts'
import { Way } from './way.ts'

export { DEFAULT_HEAD } from '../config/head-urls.ts'

/** How a session reaches its head, whether it is created or attached to. */
export interface ConnectOptions {
  /**
   * URL of a head, or of several with commas between them: each is tried in turn, and a session whose head dies is found again through another one.
   * Default `http://127.0.0.1:8080`. Heads that the one which answers knows of, and that can be reached by their addresses, are tried too.
   */
  readonly head?: string | undefined
  /** Ends creating or attaching; the session itself lives on. */
  readonly signal?: AbortSignal | undefined
  /** How long heads that cannot be reached are tried, milliseconds, from the first failure on; default 60,000. Sends use the same unless the client says otherwise. */
  readonly retryForMs?: number | undefined
  /** How messages go: `netTcp` (default, where the head serves it) is faster, `http` passes through proxies. */
  readonly transport?: 'netTcp' | 'http' | undefined
}

/** What nodes and units a session asks for. */
export interface SessionWishes {
  /** Node group; several with commas between them: nodes that are in all of them. One that no node is in is refused, with those that there are. */
  readonly group?: string | undefined
  /** Labels that a node must have, by name. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Names of nodes that are not to be used. */
  readonly exclude?: readonly string[] | undefined
  /** Cores of each service instance, 1 … 4096, default 1; it takes as many calls at a time, unless the service says otherwise. */
  readonly coresPerUnit?: number | undefined
  /** What a service instance gets instead: the slots of a socket, or a whole node. */
  readonly unitType?: 'core' | 'socket' | 'node' | undefined
  /** False: no other session takes its service instances, whatever its priority; default true. */
  readonly canPreempt?: boolean | undefined
}

/** What a new session is to be. Whatever is left out is taken from the service's registration file, then from the head's settings. */
export interface SessionOptions extends ConnectOptions, SessionWishes {
  /** Name of a registered service. */
  readonly service: string
  /** `1.2`, …; left out: the unversioned one, else the highest. */
  readonly version?: string | undefined
  /** Requests and responses survive the client, the broker, the head and the node; default false (`DurableSession`: always true). */
  readonly durable?: boolean | undefined
  /** One of the service's pool of sessions: an existing one when there are as many as its registration allows. It is shared. */
  readonly pool?: boolean | undefined
  /** Others use it too: disposing of it leaves it open. */
  readonly shared?: boolean | undefined
  /** Service instances wanted at least (all or none) and at most. */
  readonly minUnits?: number | undefined
  readonly maxUnits?: number | undefined
  /** 0 … 4000, higher goes first; default 2000. */
  readonly priority?: number | undefined
  /** Session settings by name (`soa settings`): `{ messageResendLimit: 0 }`. */
  readonly settings?: Readonly<Record<string, number | string | boolean>> | undefined
}

/** One broker client of a session. */
export interface ClientInfo {
  readonly clientId: string
  readonly state: string
  readonly status: string
  /** Requests that the broker has taken; those covered by flushes; those answered; those answered by a fault. */
  readonly total: number
  readonly flushed: number
  readonly processed: number
  readonly faulted: number
  readonly endRequests: boolean
}

/** The session object of REST and CLI (surface.md). */
export interface SessionInfo extends SessionWishes {
  readonly sessionId: string
  readonly service: string
  readonly version?: string | undefined
  readonly durable: boolean
  /** One of its service's pool. */
  readonly pooled?: boolean | undefined
  readonly shared?: boolean | undefined
  readonly state: 'Starting' | 'Running' | 'Suspended' | 'Finished' | 'Failed' | 'Canceled'
  readonly why?: string | undefined
  readonly brokerPid?: number | null | undefined
  readonly endpoints: { readonly http: string, readonly netTcp: string | null }
  readonly counters: { readonly total: number, readonly processed: number, readonly processing: number, readonly faulted: number }
  readonly clients: readonly ClientInfo[]
  /** Those that run or start, and behind them the latest that ended by themselves, with how. */
  readonly tasks: ReadonlyArray<{
    readonly id: string
    readonly node: string
    readonly pid?: number | undefined
    readonly state: string
    readonly capacity: number
    readonly exit?: { readonly code: number | null, readonly signal: string | null, readonly why: string, readonly stderr: string } | undefined
  }>
  /** The latest service host that ended before it took a call, or node that could not be prepared: why, and the last lines on stderr. */
  readonly lastFailure?: { readonly taskId: string, readonly node: string, readonly at: string, readonly why: string, readonly stderr: string } | undefined
  readonly bytes: number
}

const DEFAULT_RETRY_FOR_MS = 60_000
/** A pull may wait for hours, and each client may have one; the others must not wait behind them. */
const CONTROLLER_CONNECTIONS = 256

/**
 * A stay at a service: requests go in through broker clients, responses come out of them.
 *
 * Created over REST, talked to over SOAP. An interactive session ends with the object that created it (`close` or `await using`);
 * a durable one, a shared one, and one that was attached to, is left running when it is disposed of.
 */
export class Session implements AsyncDisposable {
  readonly id: string
  readonly service: string
  readonly isDurable: boolean
  readonly #agent: Agent
  readonly #heads: Heads
  readonly #way: Way
  readonly #retryForMs: number
  readonly #isOurs: boolean
  readonly #overNetTcp: boolean
  readonly #transport: Transport | undefined
  /** Controllers: one for all over HTTP, one for each client over net.tcp, where a channel is one client's. */
  readonly #controllers: Callers
  readonly #clients = new Map<string, BrokerClient<AnyContract>>()
  /** Those that were purged: the same objects while somebody has them, and gone with them, so that a program may use any number of ids. */
  readonly #purged = new Map<string, WeakRef<BrokerClient<AnyContract>>>()
  readonly #forgotten = new FinalizationRegistry<string>(key => { if (this.#purged.get(key)?.deref() === undefined) this.#purged.delete(key) })
  #opened: Promise<Service> | undefined
  #isReleased = false

  /** Use `Session.create` or `Session.attach`. */
  protected constructor (info: SessionInfo, ways: SessionWays) {
    this.id = info.sessionId
    this.service = info.service
    this.isDurable = info.durable
    this.#agent = ways.agent
    this.#heads = ways.heads
    this.#retryForMs = ways.retryForMs
    this.#isOurs = ways.isOurs && info.shared !== true
    const netTcp = info.endpoints.netTcp ?? undefined
    this.#overNetTcp = ways.transport !== 'http' && netTcp !== undefined
    if (ways.transport === 'netTcp' && !this.#overNetTcp) throw new SoaError('InvalidArgument', { argument: 'transport', why: 'the head serves no net.tcp (netTcp)' })
    const place = { head: ways.head, http: info.endpoints.http, netTcp }
    this.#way = new Way({ agent: ways.agent, heads: ways.heads, sessionId: info.sessionId, place, overNetTcp: this.#overNetTcp, moved: () => this.#moved() })
    const address = (): string => this.#way.place.netTcp as string // a place without it is never taken
    this.#transport = this.#overNetTcp ? netTcpTransport(address, (error, signal) => this.#stillThere(error, signal)) : undefined
    this.#controllers = new Callers(() => this.#overNetTcp
      ? tcpCaller(`${address()}/Controller`, { limits: MESSAGE_LIMITS, connections: 1, callsPerConnection: Infinity })
      : httpCaller(`${this.endpoint}/Controller`, { connections: CONTROLLER_CONNECTIONS, ...MESSAGE_LIMITS }))
  }

  /** Where requests go now: `http://…/{id}/Http`. */
  get endpoint (): string { return this.#way.place.http }

  /**
   * Opens a new session; resolves when its broker takes requests.
   *
   * @throws `ProblemError` with HPC Pack's name in `fault` (`Service_NotFound`, `ServiceVersion_NotFound`, `Broker_TooManyBrokerRunning`, …),
   * `ConnectionError` when no head answers.
   */
  static async create (options: SessionOptions): Promise<Session> { return new Session(...await open(options, options.durable ?? false)) }

  /** Joins a session that is there, interactive or durable. @throws `ProblemError` with `InvalidSessionId` when there is none of this id. */
  static async attach (id: string | number, options: ConnectOptions = {}): Promise<Session> { return new Session(...await join(id, options)) }

  /**
   * The broker client of this id: its own requests, responses and EndRequests. The same id, in any case, gives the same object.
   *
   * @param clientId at most 128 characters of letters, digits, blanks and `_ - { }`; default: the empty id, which all who name none share.
   * @param options of the first call for this id.
   * @throws `SoaError` with `Broker_InvalidClientIdOrTooLong`.
   */
  client<C extends ContractType<C> = AnyContract> (clientId = '', options: ClientOptions = {}): BrokerClient<C> {
    const key = clientKey(clientId)
    let client = this.#clients.get(key) ?? this.#purged.get(key)?.deref()
    if (!client) {
      const controller = this.#overNetTcp ? key : undefined

      client = new BrokerClient<AnyContract>({
        caller: { call: (envelope, options) => this.#controllers.call(controller, envelope, options) },
        way: this.#way,
        stillThere: this.#overNetTcp ? (error, signal) => this.#stillThere(error, signal) : undefined,
        clientId,
        isDurable: this.isDurable,
        openService: () => this.#service(),
        totals: signal => this.#totals(key, signal),
        released: () => this.#letGo(key),
        options: { ...options, retryForMs: options.retryForMs ?? this.#retryForMs }
      })
    }
    this.#purged.delete(key)
    this.#clients.set(key, client)
    return client as unknown as BrokerClient<C>
  }

  /** The session as the head sees it: state, counters, clients, tasks. */
  status (options: { signal?: AbortSignal | undefined } = {}): Promise<SessionInfo> { return this.#rest({ method: 'GET', path: `sessions/${this.id}`, isRepeatable: true, ...options }) }

  /** Work stops; stored responses stay readable. Canceling what is canceled or finished changes nothing. */
  cancel (options: { signal?: AbortSignal | undefined } = {}): Promise<SessionInfo> { return this.#rest({ method: 'POST', path: `sessions/${this.id}/cancel`, isRepeatable: true, ...options }) }

  /** Destroys the session with all its requests and responses, and lets go of the connections. Closing twice is no error. */
  async close (options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#isReleased) return
    await this.#rest({ method: 'DELETE', path: `sessions/${this.id}`, isRepeatable: true, ...options })
    await this.detach()
  }

  /** Lets go of the connections; the session lives on and can be attached to. */
  async detach (): Promise<void> {
    if (this.#isReleased) return
    this.#isReleased = true
    await Promise.all([this.#agent.destroy(), this.#transport?.close?.(), this.#controllers.close()])
  }

  /** Closes an interactive session that this object created and that is nobody else's; lets go of any other. */
  [Symbol.asyncDispose] (): Promise<void> { return this.#isOurs && !this.isDurable ? this.close() : this.detach() }

  #service (): Promise<Service> {
    // One that failed is forgotten: the next call tries anew.
    return (this.#opened ??= this.#open().catch(error => { this.#opened = undefined; throw error }))
  }

  #open (): Promise<Service> {
    void this.#way.learn() // beside it: nobody waits for it, and it never fails
    return openService({ agent: this.#agent, way: this.#way, netTcp: this.#transport, retryForMs: this.#retryForMs })
  }

  /** Through another head from now on. What is under way at the one before ends there, or is cut and said again here. */
  #moved (): void { void Promise.all([this.#transport?.renew?.(), this.#controllers.renew()]).catch(() => {}) } // closing what is broken

  /** A purged client keeps no connection; over HTTP none is its own. */
  async #letGo (key: string): Promise<void> {
    const client = this.#clients.get(key)
    this.#clients.delete(key)
    if (client !== undefined) {
      this.#purged.set(key, new WeakRef(client))
      this.#forgotten.register(client, key)
    }
    if (this.#overNetTcp) await Promise.all([this.#controllers.release(key), this.#transport?.release?.(key)])
  }

  /** net.tcp says only that nothing is at an address; whether the session is gone for good its head knows. */
  async #stillThere (error: Error, signal: AbortSignal): Promise<void> {
    if (!isSoaError(error, 'badFrame')) return
    const { state, why = '' } = await this.status({ signal })
    if (state !== 'Finished' && state !== 'Failed') return
    const { code } = FAULTS.Broker_SessionFailure
    throw new ClientError(`session ${this.id} is ${state.toLowerCase()}${why === '' ? '' : `: ${why}`}`, { fault: 'Broker_SessionFailure', code })
  }

  async #totals (key: string, signal?: AbortSignal): Promise<{ total: number, flushed: number } | undefined> {
    const clients = await this.#rest<ClientInfo[]>({ method: 'GET', path: `sessions/${this.id}/clients`, isRepeatable: true, signal })
    return clients.find(client => clientKey(client.clientId) === key)
  }

  #rest<T> (call: RestCall): Promise<T> {
    if (this.#isReleased) throw new SoaError('Broker_AlreadyClosed', {})
    return restCall<T>({ agent: this.#agent, heads: this.#heads, retryForMs: this.#retryForMs }, call)
  }
}

/** A session whose requests and responses survive everybody in it; it is left running when the object is disposed of, until `close`. */
export class DurableSession extends Session {
  /** As `Session.create`, always durable. */
  static override async create (options: Omit<SessionOptions, 'durable'>): Promise<DurableSession> { return new DurableSession(...await open(options, true)) }

  /** As `Session.attach`. @throws `SoaError` with `InvalidAttachDurableSession` when the session is interactive. */
  static override async attach (id: string | number, options: ConnectOptions = {}): Promise<DurableSession> {
    const session = new DurableSession(...await join(id, options))
    if (session.isDurable) return session
    await session.detach()
    throw new SoaError('InvalidAttachDurableSession', { sessionId: session.id })
  }
}

interface SessionWays { agent: Agent, heads: Heads, head: string, retryForMs: number, isOurs: boolean, transport: ConnectOptions['transport'] }
type Reached = [info: SessionInfo, ways: SessionWays]

async function open (options: SessionOptions, durable: boolean): Promise<Reached> {
  const { signal, service, version, pool, shared, minUnits, maxUnits, priority, group, labels, exclude, coresPerUnit, unitType, canPreempt, settings } = options
  if (typeof service !== 'string' || service === '') throw new SoaError('InvalidArgument', { argument: 'service', why: 'the name of a registered service is needed' })
  const body = { service, version, durable, pool, shared, minUnits, maxUnits, priority, group, labels, exclude, coresPerUnit, unitType, canPreempt, settings }
  return reach(options, true, { method: 'POST', path: 'sessions', body, signal, isRepeatable: false })
}

async function join (id: string | number, options: ConnectOptions): Promise<Reached> {
  if (!/^[0-9]{1,10}$/.test(String(id))) throw new SoaError('Broker_InvalidSessionId', { sessionId: String(id) })
  return reach(options, false, { method: 'GET', path: `sessions/${id}`, signal: options.signal, isRepeatable: true })
}

async function reach ({ head, retryForMs = DEFAULT_RETRY_FOR_MS, transport }: ConnectOptions, isOurs: boolean, call: RestCall): Promise<Reached> {
  const heads = new Heads(head)
  // No time limits here: how long an answer may take is each call's own affair. A peer that vanished without a word is found by TCP's keep-alive.
  const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000, connect: { timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 } })
  try {
    const info = await restCall<SessionInfo>({ agent, heads, retryForMs }, call)
    return [info, { agent, heads, head: heads.current, retryForMs, isOurs, transport }]
  } catch (error) {
    await agent.destroy()
    throw error
  }
}
