import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { SessionRecord } from '../../store/session-store.ts'
import type { Problem, SessionView, WorkerFigures, WorkerStatus } from '../contract.ts'
import { Refusal } from '../problem.ts'

/** Milliseconds until the worker must have begun to answer. A raise reads the whole session from the store; an answer to anything else comes from memory. */
const ANSWER_MS = { claim: 4000, raise: 60_000, end: 60_000, look: 5000 }
/** Largest JSON answer that is kept in memory: a view names every client and task of a session. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** An answer that is passed on as it comes: events, NDJSON. */
export interface Passed { status: number, headers: IncomingHttpHeaders, body: Readable }

/** A broker worker that this head can reach. */
export interface Worker {
  readonly id: string
  readonly pid: number
  /** Unix socket where SOAP over HTTP is served. */
  readonly socket: string
  /** Unix socket where SOAP over net.tcp is served. */
  readonly netTcp?: string | undefined
  readonly link: WorkerLink
  /** On another machine (far-workers.ts): that it cannot be reached from here does not mean that it is gone. */
  readonly isFar?: true
}

/**
 * One worker's control socket (broker/contract.ts). Refusals of the worker are thrown as `Refusal`; a worker that cannot be reached, or does not
 * answer in time, shows as undici's or the system's error, which `isUnreachable` knows.
 */
export class WorkerLink {
  readonly #pool: Pool

  constructor (controlSocket: string) {
    this.#pool = new Pool('http://worker', { socketPath: controlSocket, connect: { timeout: 4000 }, keepAliveTimeout: 10_000, bodyTimeout: 60_000 })
  }

  claim (head: string, socket: string): Promise<WorkerStatus> { return this.#json('POST', '/claim', ANSWER_MS.claim, { head, socket }) as Promise<WorkerStatus> }
  raise (record: SessionRecord): Promise<SessionView> { return this.#json('POST', '/sessions', ANSWER_MS.raise, record) as Promise<SessionView> }
  view (sessionId: string): Promise<SessionView> { return this.#json('GET', `/sessions/${sessionId}`, ANSWER_MS.look) as Promise<SessionView> }
  cancel (sessionId: string): Promise<SessionView> { return this.#json('POST', `/sessions/${sessionId}/cancel`, ANSWER_MS.end) as Promise<SessionView> }
  async destroy (sessionId: string): Promise<void> { await this.#json('DELETE', `/sessions/${sessionId}`, ANSWER_MS.end) }
  async suspend (sessionId: string): Promise<void> { await this.#json('POST', `/sessions/${sessionId}/suspend`, ANSWER_MS.end) }
  figures (): Promise<WorkerFigures> { return this.#json('GET', '/figures', ANSWER_MS.look) as Promise<WorkerFigures> }
  stop (): Promise<Partial<WorkerStatus>> { return this.#json('POST', '/stop', ANSWER_MS.look) as Promise<Partial<WorkerStatus>> }

  /** Sends a request on and hands the answer back as it comes. `body` may be a stream; nothing of either is kept. */
  async pass (method: 'GET' | 'POST' | 'DELETE', path: string, options: { body?: Readable | undefined, headers?: Record<string, string>, signal: AbortSignal }): Promise<Passed> {
    const { statusCode, headers, body } = await this.#pool.request({
      method,
      path,
      body: options.body ?? null,
      headers: options.headers ?? {},
      signal: options.signal,
      headersTimeout: 0,
      bodyTimeout: 0 // responses are waited for, events come when there are some: the caller's signal is the bound
    })
    return { status: statusCode, headers, body }
  }

  close (): Promise<void> { return this.#pool.destroy() }

  async #json (method: 'GET' | 'POST' | 'DELETE', path: string, answerMs: number, body?: unknown): Promise<unknown> {
    const answer = await this.#pool.request({
      method,
      path,
      headersTimeout: answerMs,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    })
    const text = await wholeText(answer)
    if (answer.statusCode < 400) return text === '' ? undefined : JSON.parse(text)
    throw new Refusal(problemIn(answer.statusCode, text))
  }
}

async function wholeText ({ body }: Dispatcher.ResponseData): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`a worker's answer is over ${MAX_ANSWER_BYTES} bytes`) // leaving the loop destroys the body
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}

function problemIn (status: number, text: string): Problem {
  try {
    const said = JSON.parse(text) as Partial<Problem>
    if (typeof said.detail === 'string' && typeof said.title === 'string') return { ...said, title: said.title, detail: said.detail, status }
  } catch {} // not JSON: told below, with what it is
  return { title: 'Bad Gateway', status: 502, detail: `the broker worker answered ${status}: ${text.slice(0, 200)}`, name: 'UnknownError' }
}

const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_DESTROYED', 'UND_ERR_CLOSED'])

/** The worker did not answer: it is gone, going, or stuck. Whether it did what it was asked is not known. */
export const isUnreachable = (error: unknown): boolean => error instanceof Error && 'code' in error && UNREACHABLE.has(String(error.code))

/** The worker says that it does not have the session. */
export const isUnknownThere = (error: unknown): boolean => error instanceof Refusal && error.problem.status === 404
/** The worker says that it serves the session already. */
export const isServedThere = (error: unknown): boolean => error instanceof Refusal && error.problem.status === 409
