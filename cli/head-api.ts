import { request } from 'undici'
import type { Problem } from '../broker/contract.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'

/** Longest wait for an answer of the head. Raising a session includes starting a worker ([broker-behaviour] 1.5: 60 s). */
const ANSWER_TIMEOUT_MS = 90_000

/** Calls the head's REST API. Refusals become one line: `Service_NotFound: no service X is registered`. */
export class HeadApi {
  readonly url: string
  readonly #signal: AbortSignal

  constructor (url: string, signal: AbortSignal) {
    if (!/^https?:\/\/[^/]/.test(url)) throw new CommandFailed(EXIT.usage, `--head / SOA_HEAD: a URL such as http://127.0.0.1:8080 is expected, not ${JSON.stringify(url)}`)
    this.url = url.replace(/\/+$/, '')
    this.#signal = signal
  }

  /** @param path below /api/v1, each part already encoded. Resolves to the answer's JSON, undefined for 204. */
  async call (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const answer = await request(`${this.url}/api/v1/${path}`, {
      method,
      signal: this.#signal,
      headersTimeout: ANSWER_TIMEOUT_MS,
      bodyTimeout: ANSWER_TIMEOUT_MS,
      headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      body: body === undefined ? null : JSON.stringify(body)
    }).catch((error: unknown) => { throw this.#unreachable(error) })
    const text = await answer.body.text()
    if (answer.statusCode >= 400) throw refusal(answer.statusCode, text)
    if (text === '') return undefined
    try {
      return JSON.parse(text) as unknown
    } catch (error) {
      throw new CommandFailed(EXIT.failed, `${this.url} answered ${method} /api/v1/${path} with no JSON; is a head of soa-broker there?`, { cause: error })
    }
  }

  #unreachable (error: unknown): unknown {
    if (this.#signal.aborted) return new CommandFailed(EXIT.failed, 'interrupted', { cause: error })
    const { code = '', message } = error as NodeJS.ErrnoException
    const why = code === 'ECONNREFUSED' ? 'nobody listens there' : code === 'UND_ERR_HEADERS_TIMEOUT' ? `no answer within ${ANSWER_TIMEOUT_MS / 1000} s` : message || code
    return new CommandFailed(EXIT.failed, `no head at ${this.url}: ${why}. Start one with "soa up" (all on this machine) or "soa head", or say where it is with SOA_HEAD or --head`, { cause: error })
  }
}

function refusal (status: number, text: string): CommandFailed {
  const exitCode = status === 404 ? EXIT.notFound : status < 500 ? EXIT.refused : EXIT.failed
  try {
    const { name, detail, title } = JSON.parse(text) as Partial<Problem>
    const isUsage = status !== 404 && (name === 'InvalidArgument' || name === 'Broker_InvalidConfiguration') // what was typed, and only the head could tell
    if (detail !== undefined || title !== undefined) return new CommandFailed(isUsage ? EXIT.usage : exitCode, `${name ?? `HTTP ${status}`}: ${detail ?? title ?? ''}`)
  } catch { /* no JSON: somebody else's answer, shown as it is */ }
  return new CommandFailed(exitCode, `HTTP ${status}: ${text.replace(/\s+/g, ' ').slice(0, 300)}`)
}
