import type { UnitType } from '../core/planner.ts'

/** The directory of sessions: one record each, in Redis for every session, so that any head can find, list and raise it. */

/** Starting: no broker yet · Running · Suspended: durable, without a broker, raised on the next call · Canceled: stored responses readable · Finished · Failed. */
export type SessionState = 'Starting' | 'Running' | 'Suspended' | 'Finished' | 'Failed' | 'Canceled'

export interface SessionRecord {
  readonly sessionId: string
  readonly service: string
  readonly version?: string | undefined
  readonly durable: boolean
  readonly minUnits?: number | undefined
  readonly maxUnits?: number | undefined
  /** HPC's ExtendedPriority, 0 … 4000, default 2000; higher goes first. */
  readonly priority: number
  /** What its nodes must be like (placement-store.ts, Demand); undefined, as in records from before: no wish. */
  readonly groups?: readonly string[] | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly exclude?: readonly string[] | undefined
  /** What one service instance gets: so many cores (1), a socket, or a node. */
  readonly coresPerUnit?: number | undefined
  readonly unitType?: UnitType | undefined
  readonly canPreempt?: boolean | undefined
  /** It belongs to a pool of so many sessions of its service, version and kind: whoever asks for one of the pool may get this one. */
  readonly poolSize?: number | undefined
  /** Not its creator's alone: a client that lets go of it does not close it. */
  readonly isShared?: boolean | undefined
  /** It has a custom broker: its worker serves no other session. */
  readonly isAlone?: boolean | undefined
  /** Overrides by setting name, as config/settings.ts names them. */
  readonly settings: Readonly<Record<string, number | string | boolean>>
  /** Given to the service host's environment. */
  readonly environment: Readonly<Record<string, string>>
  readonly state: SessionState
  /** Why it is no longer running, for people. */
  readonly why?: string | undefined
  /** ISO 8601 UTC. */
  readonly createdAt: string
  /** Id of the worker that serves it; undefined while nobody does. */
  readonly worker?: string | undefined
  /** New for every incarnation of its broker: PingBroker2's answer. */
  readonly brokerUniqueId?: string | undefined
}

/** Its work is over: only what is stored is read. */
export const isReadOnly = <R extends { readonly state: SessionState }>(record: R): record is R & { readonly state: 'Canceled' | 'Failed' } => record.state === 'Canceled' || record.state === 'Failed'

/** Holds while the record is in one of these states and served by this worker (`worker: undefined` given: by nobody). */
export interface RecordGuard { state?: readonly SessionState[], worker?: string | undefined }

/** `limit`: 1 … 1000, default 100. */
export interface SessionQuery { state?: SessionState | undefined, service?: string | undefined, cursor?: string | undefined, limit?: number | undefined }

export interface SessionStore {
  /** Takes the id if it is free. False: somebody has it. */
  create (record: SessionRecord): Promise<boolean>
  get (sessionId: string): Promise<SessionRecord | undefined>
  /** Changes fields of an existing record in one step, only while `when` holds. Resolves to the new record, or undefined when it is gone or `when` did not hold. */
  update (sessionId: string, change: Partial<SessionRecord>, when?: RecordGuard): Promise<SessionRecord | undefined>
  /** Oldest first. `next` is the cursor of the following page, undefined at the end. */
  list (query: SessionQuery): Promise<{ items: SessionRecord[], next?: string | undefined }>
  remove (sessionId: string): Promise<void>
  /** How many there are, without a look at each of them. */
  countByState (): Promise<Partial<Record<SessionState, number>>>
  /** Records served by this worker. */
  ofWorker (workerId: string): Promise<SessionRecord[]>
}

/** A broker worker as the heads see it. */
export interface WorkerRecord {
  readonly workerId: string
  readonly pid: number
  /** Unix socket where SOAP over HTTP is served. */
  readonly socket: string
  /** Unix socket where SOAP over net.tcp is served; undefined: by an older worker, nowhere. */
  readonly netTcp?: string | undefined
  /** Unix socket where heads give orders (broker/contract.ts). */
  readonly control: string
  /** The machine it runs on: sockets are of use there only. */
  readonly machine: string
  readonly startedAt: string
}

export interface WorkerDirectory {
  /** Kept while the worker beats: gone `leaseMs` after its last beat. */
  beat (record: WorkerRecord, leaseMs: number): Promise<void>
  get (workerId: string): Promise<WorkerRecord | undefined>
  list (): Promise<WorkerRecord[]>
  remove (workerId: string): Promise<void>
}
