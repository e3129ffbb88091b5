import type { Outcome, Verdict } from './retry.ts'

/** Where a run was: one object for all runs of a task. */
export interface RunPlace { readonly taskId: string, readonly node: string | undefined, readonly address: string | undefined }

/** One execution of a request. Times here and below: ms since 1970. */
export interface Run {
  readonly place: RunPlace
  /** The request's first run is 1. */
  readonly nth: number
  readonly at: number
  /** Undefined: it is there. */
  endedAt?: number
  /** A run that came to nothing: why, and what then became of the request. */
  outcome?: Outcome
  why?: string
  action?: Verdict['action']
}

/** A request's way through this broker, from its first run on. */
export interface TraceRow {
  readonly clientKey: string
  /** 0: a call in the same exchange. */
  readonly seq: number
  readonly messageId: string
  readonly action: string
  readonly receivedAt: number | undefined
  readonly queuedAt: number | undefined
  /** The latest ones, oldest first. */
  readonly runs: Run[]
  /** Runs that there were. */
  tries: number
  /** A response came, or was made. */
  repliedAt?: number
  isFault: boolean
  isGivenUp: boolean
  /** The store has the response; of a call in the same exchange: it was sent. */
  answeredAt?: number
  /** Place among the client's responses. */
  at?: number
  /** Its client was purged. */
  isGone: boolean
}
