import type { UnitType } from '../core/planner.ts'

/** What broker, head and node manager share about where tasks run: state, not messages (design.md, Placement). */

export type TaskState = 'Queued' | 'Dispatching' | 'Running' | 'Canceling' | 'Finishing' | 'Finished' | 'Failed' | 'Canceled'

/** HPC's TaskInfo as far as it means something here; one element of TaskStateChanged. */
export interface TaskInfo {
  /** Carries the plan version, so it is never used twice: the dispatcher's identity and the fence. */
  readonly id: string
  readonly sessionId: string
  readonly node: string
  readonly machineName: string
  readonly state: TaskState
  /** Cores of the task. */
  readonly capacity: number
  readonly firstCoreIndex: number
  /** Where the service host listens, e.g. `http://127.0.0.1:41234/`; from Running on. */
  readonly address?: string | undefined
  /** Where its controller (HPC Pack's IHpcServiceHost: Exit) is, if it has one; from Running on. */
  readonly controller?: string | undefined
  readonly pid?: number | undefined
  /** From the end on: exit code or signal, and the last lines of stderr. `isNodeUnfit`: the node could not be prepared, and the next host would not fare better there. */
  readonly exit?: { readonly code: number | null, readonly signal: string | null, readonly stderr: string, readonly why: string, readonly isNodeUnfit?: boolean | undefined } | undefined
  /** ISO 8601 UTC of this state. */
  readonly at: string
}

/** One record per session, written by its broker and asserted again every few seconds, so that a flushed store heals. */
export interface Demand {
  readonly sessionId: string
  readonly service: string
  readonly version?: string | undefined
  /** Units (tasks) wanted now, `min` of them all or none. */
  readonly target: number
  readonly min: number
  /** 0 … 4000, higher first; then age. */
  readonly priority: number
  readonly createdAt: string
  /** 1 … 4096; of unit type core only. */
  readonly coresPerUnit: number
  /** Undefined: core. */
  readonly unitType?: UnitType | undefined
  /** False: its tasks are nobody's victims. */
  readonly canPreempt?: boolean | undefined
  /** Takes what sessions of lower priority have beyond their minimum, not only for its own minimum. */
  readonly growsByPreemption?: boolean | undefined
  readonly environment: Readonly<Record<string, string>>
  /** Node names that must not be used. */
  readonly exclude: readonly string[]
  /** Node names where nothing is started now, though what runs there goes on: the service could not be loaded there lately. */
  readonly avoid?: readonly string[] | undefined
  /** Only nodes that are in all of these groups; undefined: any. */
  readonly groups?: readonly string[] | undefined
  /** Labels that a node must have. */
  readonly labels: Readonly<Record<string, string>>
  /** Milliseconds between SIGTERM and SIGKILL when a task is canceled. */
  readonly cancelGraceMs: number
  /** Ids of tasks that the session has let go of. */
  readonly leaving?: readonly string[] | undefined
}

export interface DemandBoard {
  put (demand: Demand): Promise<void>
  /** The session wants nothing any more: its tasks are canceled. Also deletes the session's event stream when `forget`. */
  remove (sessionId: string, options?: { forget?: boolean }): Promise<void>
}

/** TaskStateChanged for a broker: what is now, then every change in order. */
export interface TaskEvents {
  snapshot (sessionId: string): Promise<{ tasks: TaskInfo[], cursor: string }>
  /** Batches in order, from after `cursor`; ends when `signal` aborts. Survives lost connections. One blocking connection serves all sessions of a process. */
  follow (sessionId: string, cursor: string, signal: AbortSignal): AsyncIterable<{ tasks: TaskInfo[], cursor: string }>
}
