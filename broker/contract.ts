import type { SessionRecord } from '../store/session-store.ts'
import type { TaskInfo } from '../store/placement-store.ts'

/**
 * How head and worker meet: JSON over HTTP on the worker's control socket (a Unix socket that only this user can open).
 *
 * | request | body | answer |
 * | --- | --- | --- |
 * | `POST /claim` | `{head}` | 200 `WorkerStatus`: "this head looks after you". A worker that nobody claims for `workerClaimTimeoutMs` suspends its sessions and exits |
 * | `POST /sessions` | `SessionRecord` | 201 `SessionView` once requests are taken; raises it from the store when it was there before. 409 when this worker serves it already |
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
 * | `POST /stop` | | 202: suspend all sessions, exit 0 |
 *
 * Errors: `application/problem+json`, the same object as REST gives (surface.md): `{title, status, detail, code?, name, setting?, limit?, value?}`.
 */
export interface WorkerStatus { workerId: string, pid: number, sessions: string[], rssBytes: number }

export interface Counters { total: number, processed: number, processing: number, faulted: number }

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
