import { Agent } from 'undici'
import { systemClock } from '../core/clock.ts'
import { ClientError, ProblemError, type ProblemFacts } from './errors.ts'
import type { Heads } from './heads.ts'
import { isBroken, persist, StatusError } from './retry.ts'

/** Longest JSON answer that is read: the session object of a session with many clients. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
/** Raising a durable session may mean starting a broker first. */
const ANSWER_TIMEOUT_MS = 120_000
/** The same where another head can be asked instead; the one that is raising a session goes on with that, and is asked again. */
const PASS_ON_MS = 15_000

export interface RestOptions {
  readonly agent: Agent
  readonly heads: Heads
  readonly retryForMs: number
}

export interface RestCall {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT'
  /** Below `/api/v1/`. */
  readonly path: string
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
  /** The call may be sent again after a connection broke in the middle of it (true for all but creating). */
  readonly isRepeatable: boolean
  /** It does not wait for long: another head is asked next. */
  readonly isOneOfSeveral?: boolean | undefined
}

/**
 * One call of a head's REST API, tried again, at each head in turn, while none can be reached. Resolves to the parsed answer, undefined for 204.
 *
 * @throws `ProblemError` for what a head refuses, `ConnectionError` when none can be reached for `retryForMs`.
 */
export function restCall<T> ({ agent, heads, retryForMs }: RestOptions, call: RestCall): Promise<T> {
  const what = `${call.method} ${heads.areSeveral ? '' : heads.all[0]}/api/v1/${call.path}`
  const one = { ...call, isOneOfSeveral: call.isRepeatable && heads.areSeveral }
  return persist(what, { clock: systemClock, retryForMs, signal: call.signal }, () => heads.ask(call.signal, head => restOnce<T>(agent, head, one)))
}

/** The same at one head, once. */
export async function restOnce<T> (agent: Agent, head: string, call: RestCall): Promise<T> {
  const { status, type, text } = await exchange(agent, head, call).catch(error => {
    if (call.isRepeatable || !isBroken(error) || isUnsent(error)) throw error
    throw new ClientError(`${call.method} ${call.path}: the connection broke, and whether it was done is not known`, {}, { cause: error })
  })
  if (status === 204) return undefined as T
  if (!type.includes('json')) throw new StatusError(status, text)
  const answer = parse(text)
  if (status < 400) return answer as T
  const problem = answer as Partial<ProblemFacts> | null
  throw new ProblemError({ ...problem, status, detail: problem?.detail ?? `HTTP status ${status}` })
}

async function exchange (agent: Agent, head: string, { method, path, body, signal, isOneOfSeveral = false }: RestCall): Promise<{ status: number, type: string, text: string }> {
  const url = new URL(`${head}/api/v1/${path}`)
  const { statusCode, headers, body: answer } = await agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? null : JSON.stringify(body),
    headersTimeout: isOneOfSeveral ? PASS_ON_MS : ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    ...(signal ? { signal } : {})
  })
  return { status: statusCode, type: String(headers['content-type'] ?? ''), text: await readText(answer) }
}

/** Never connected: no byte of the call was sent. */
const isUnsent = (error: unknown): boolean => ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'EAI_AGAIN'].includes(String((error as NodeJS.ErrnoException).code))

async function readText (body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > MAX_ANSWER_BYTES) throw new ClientError(`the head's answer is longer than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse (text: string): unknown {
  try { return JSON.parse(text) } catch (error) { throw new ClientError('the head answered with JSON that cannot be read', {}, { cause: error }) }
}
