import type { FailedTry } from '../store/dead-letters.ts'
import type { SessionRecord } from '../store/session-store.ts'
import type { TaskInfo } from '../store/placement-store.ts'

/**
 * How head and worker meet: JSON over HTTP on the worker's control socket (a Unix socket that only this user can open).
 *
 * | request | body | answer |
 * | --- | --- | --- |
 * | `POST /claim` | `{head, socket}` | 200 `WorkerStatus`: "this head looks after you and takes what you got for others". Unclaimed for `workerClaimTimeoutMs` it suspends all and exits |
 * | `POST /sessions` | `SessionRecord` | 201 `SessionView` once requests are taken; raises it from the store when it was there before. 409 when this worker serves it already |
 * | `GET /figures` | | 200 `WorkerFigures`, as in `WorkerStatus` |
 * | `GET /sessions/{id}` | | 200 `SessionView`, 404 |
 * | `POST /sessions/{id}/cancel` | | 200 `SessionView`: work stops, stored responses stay readable |
 * | `DELETE /sessions/{id}` | | 204: destroyed, no key left |
 * | `POST /sessions/{id}/suspend` | | 204: let go of; a durable session can be raised elsewhere |
 * | `GET /sessions/{id}/clients`, `/tasks` | | 200 array |
 * | `GET /sessions/{id}/events` | | SSE: `task`, `client`, `counters`, `state` events as they come |
 * | `POST /sessions/{id}/clients/{c}/requests` | NDJSON of `{action, body, userData?, messageId?}` | `{accepted}` |
 * | `POST /sessions/{id}/clients/{c}/flush`, `/end` | | `{count}` |
 * | `GET /sessions/{id}/clients/{c}/responses?from=begin\|current&limit=` | | NDJSON as they come |
 * | `DELETE /sessions/{id}/clients/{c}` | | 204: purged |
 * | `GET /sessions/{id}/dead-letters?client=&cursor=&limit=` | | 200 `DeadLetterPage` |
 * | `GET /sessions/{id}/dead-letters/{letter}` | | 200 `WholeDeadLetter`, 404 |
 * | `POST /sessions/{id}/dead-letters/{letter}/replay` | | 202 `DeadLetterView`: it runs again |
 * | `DELETE /sessions/{id}/dead-letters/{letter}` | | 204 |
 * | `GET /sessions/{id}/trace?message=&client=&userData=&exact=&state=&limit=&cursor=` | | 200 `TraceAnswer`: one message, a search, or the session |
 * | `POST /stop` | | 202 `WorkerStatus`: suspend all sessions, exit 0 |
 *
 * Errors: `application/problem+json`, the same object as REST gives (surface.md): `{title, status, detail, code?, name, setting?, limit?, value?}`.
 */
/** `isAlone`: it serves, or has served, a session with a custom broker. */
export interface WorkerStatus { workerId: string, pid: number, sessions: string[], rssBytes: number, isAlone: boolean, figures: WorkerFigures }

/** What `grown` and `now` count, in words for whoever scrapes them: broker/head/metrics-table.ts. */
export type Grown = 'received' | 'flushed' | 'discarded' | 'refused' | 'stored' | 'direct' | 'faults' | 'fetched' | 'retried' | 'resent' | 'duplicates' | 'deadLetters' | 'mended' |
  'calls' | 'callSeconds' | 'storeBatches' | 'storeSeconds'
export type Now = 'sessions' | 'queued' | 'processing' | 'replaying' | 'dispatchers' | 'starting' | 'running' | 'leaving' | 'blocked'
/** `grown`: since the worker began, of sessions that have ended too, so it never goes down. `now`: of those that it serves. */
export interface Figures { grown: Record<Grown, number>, now: Record<Now, number> }
/** By service, as it is registered. */
export type WorkerFigures = Record<string, Figures>

/** [broker-behaviour] 9.1: total = processed + processing + queued, outstanding = total − processed − purgedTotal + purgedProcessed. */
export interface Counters {
  total: number
  processed: number
  processing: number
  faulted: number
  queued: number
  outstanding: number
  directlyReplied: number
  replyFetched: number
  purgedTotal: number
  purgedProcessed: number
  purgedFaulted: number
  reemitted: number
  duplicates: number
  refused: number
  deadLettered: number
  replaying: number
  callDurationMs: number
  callsPerSecond: number
}

export interface ClientView {
  clientId: string
  state: string
  status: 'Ready' | 'Processing' | 'Finished' | 'Unknown'
  total: number
  flushed: number
  processed: number
  faulted: number
  endRequests: boolean
}

/** What a broker shows of one session: the live half of the session object in REST and CLI. */
export interface SessionView {
  sessionId: string
  state: SessionRecord['state']
  brokerPid: number
  brokerUniqueId: string
  counters: Counters
  clients: ClientView[]
  /** Those that run or start, and behind them the latest that ended by themselves, with how. */
  tasks: Array<Pick<TaskInfo, 'id' | 'node' | 'pid' | 'state' | 'capacity' | 'at' | 'exit'>>
  bytes: number
  /** The latest service host that ended before it took a call: why, and its last lines on stderr. */
  lastFailure?: { taskId: string, node: string, at: string, why: string, stderr: string } | undefined
}

/** A request that was given up. `state` Replaying: it was asked to run again, and has not come to an end yet. */
export interface DeadLetterView {
  id: string
  sessionId: string
  clientId: string
  seq: number
  messageId: string
  action: string
  /** As text, cut when it is long. */
  userData: string
  state: 'Dead' | 'Replaying'
  /** When it was given up. */
  at: string
  why: string
  /** The latest executions that came to nothing, oldest first. */
  tries: FailedTry[]
}
/** `body`: the markup inside the SOAP Body; `envelope`: the whole request, SOAP 1.2. */
export interface WholeDeadLetter extends DeadLetterView { body: string, envelope: string }
/** `dropped`: the oldest, which went when there were more than maxDeadLetters. */
export interface DeadLetterPage { items: DeadLetterView[], next?: string | undefined, total: number, dropped: number }

/** received: not flushed yet (durable) · waiting: for a service instance · running: at one, or its response is on its way to the store. */
export type MessageState = 'received' | 'waiting' | 'running' | 'answered' | 'faulted'

export interface TraceStep {
  /** replied: the service instance answered · failed: a run came to nothing · answered: the response is stored, or sent in the same exchange · delivered: to a reader, the first time */
  step: 'received' | 'queued' | 'dispatched' | 'replied' | 'failed' | 'answered' | 'delivered'
  /** ISO 8601; null: it happened, and when was not kept. */
  at: string | null
  /** Since the latest step before it whose time is known. */
  sinceMs?: number | undefined
  /** The request's first run is 1. */
  try?: number | undefined
  taskId?: string | undefined
  node?: string | undefined
  address?: string | undefined
  /** failed: a row of OUTCOMES (broker/worker/retry.ts), and what became of the request. */
  outcome?: string | undefined
  why?: string | undefined
  then?: 'put back' | 'given up' | undefined
  /** delivered: how often. */
  times?: number | undefined
}

/** One message in a list. Times that are not known are left out. */
export interface TraceLine {
  messageId: string
  clientId: string
  /** Its place among its client's requests; 0: a call in the same exchange. */
  seq: number
  action: string
  /** As text, cut when it is long; absent: it is not kept any more. */
  userData?: string | undefined
  state: MessageState
  receivedAt?: string | undefined
  /** From queued to the first run; of the run that answered; from received to answered. */
  waitMs?: number | undefined
  runMs?: number | undefined
  totalMs?: number | undefined
  tries?: number | undefined
  taskId?: string | undefined
  node?: string | undefined
  /** The latest run that came to nothing. */
  outcome?: string | undefined
  isDelivered?: boolean | undefined
}
/** `from`: whether this broker has seen it run, or all that is known of it is what the store has. */
export interface MessageTrace extends TraceLine { from: 'memory' | 'store', steps: TraceStep[] }
export interface Spread { p50: number, p95: number, max: number }
export interface TraceSummary {
  /** Messages whose way is known, at most so many (traceMessages), and those that made room for later ones. */
  traced: number
  most: number
  forgotten: number
  /** Since when this broker has the session. */
  since: string
  waiting: number
  running: number
  answered: number
  faulted: number
  waitMs?: Spread | undefined
  runMs?: Spread | undefined
  storeMs?: Spread | undefined
  totalMs?: Spread | undefined
}
/** Of one message: `message`. Of a search: `items`, `looked` (messages looked at) and `next` while there is more. Else the three lists and `summary`. */
export interface TraceAnswer {
  sessionId: string
  message?: MessageTrace | undefined
  items?: TraceLine[] | undefined
  looked?: number | undefined
  next?: string | undefined
  summary?: TraceSummary | undefined
  latest?: TraceLine[] | undefined
  slowest?: TraceLine[] | undefined
  failed?: TraceLine[] | undefined
}

/** `application/problem+json` (surface.md). */
export interface Problem {
  title: string
  status: number
  detail: string
  /** HPC Pack's number, where the refusal has one. */
  code?: number | undefined
  name?: string | undefined
  setting?: string | undefined
  limit?: string | undefined
  value?: string | undefined
}

/** JSON in a file beside the control socket (`lastWordsFile`), written by a worker that ends itself: this session must not be raised again. */
export interface LastWords { sessionId: string, why: string }
export const lastWordsFile = (control: string): string => `${control}.last`
