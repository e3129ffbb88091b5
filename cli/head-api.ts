import { request } from 'undici'
import { headUrls } from '../config/head-urls.ts'
import type { Problem } from '../broker/contract.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'

/** Longest wait for an answer of the head. Raising a session includes starting a worker ([broker-behaviour] 1.5: 60 s). */
const ANSWER_TIMEOUT_MS = 90_000
/** The same of what may be asked of another head. */
const PASS_ON_MS = 15_000
/** A door without a room behind it, just now; a head that is being drained says 503 too. */
const CANNOT_NOW: ReadonlySet<number> = new Set([502, 503, 504])
/** Never connected: no byte of the call was sent. */
const UNSENT: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])

interface Answer { readonly status: number, readonly text: string, readonly wasHere: boolean }
interface Failure { readonly url: string, readonly why: string, readonly isUnsent: boolean, readonly cause: unknown }
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** Calls the REST API of a head, of several that of the first that can answer. Refusals become one line: `Service_NotFound: no service X is registered`. */
export class HeadApi {
  /** In the order in which they are tried: the one that answered last comes first. */
  #urls: string[]
  readonly #signal: AbortSignal

  /** @param said URLs with commas between them, as --head or SOA_HEAD says it */
  constructor (said: string, signal: AbortSignal) {
    this.#urls = headUrls(said, why => new CommandFailed(EXIT.usage, `--head / SOA_HEAD: ${why}`))
    this.#signal = signal
  }

  /** The head that answered last, or is asked first. */
  get url (): string { return this.#urls[0] as string }

  /** @param path below /api/v1, each part already encoded. Resolves to the answer's JSON, undefined for 204. */
  async call (method: Method, path: string, body?: unknown): Promise<unknown> {
    const { answer, failures } = await this.#answer(method, path, body)
    return read(answer, `${this.url} answered ${method} /api/v1/${path}`, failures)
  }

  /** DELETE; false: nothing was there to delete. */
  async remove (path: string): Promise<boolean> {
    const { answer, failures } = await this.#answer('DELETE', path)
    read(answer, `${this.url} answered DELETE /api/v1/${path}`, failures)
    return answer.wasHere
  }

  async #answer (method: Method, path: string, body?: unknown): Promise<{ answer: Answer, failures: readonly Failure[] }> {
    const failures: Failure[] = []
    for (const [i, url] of this.#urls.entries()) {
      const isLast = i === this.#urls.length - 1
      const answer = await this.#ask(url, method, path, body, isLast || method === 'POST' ? ANSWER_TIMEOUT_MS : PASS_ON_MS)
      if ('why' in answer) {
        failures.push(answer)
        if (method === 'POST' && !answer.isUnsent) break // it may have been done
      } else if (CANNOT_NOW.has(answer.status) && !isLast) {
        failures.push({ url, why: lineOf(answer), isUnsent: true, cause: undefined })
      } else {
        this.#urls = [url, ...this.#urls.filter(other => other !== url)]
        return { answer, failures }
      }
    }
    throw unreachable(failures)
  }

  async #ask (url: string, method: Method, path: string, body: unknown, timeoutMs: number): Promise<Answer | Failure> {
    try {
      const answer = await request(`${url}/api/v1/${path}`, {
        method,
        signal: this.#signal,
        headersTimeout: timeoutMs,
        bodyTimeout: ANSWER_TIMEOUT_MS,
        headers: { accept: 'application/json', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body)
      })
      return { status: answer.statusCode, text: await answer.body.text(), wasHere: answer.headers['soa-was-here'] !== 'false' }
    } catch (error) {
      if (this.#signal.aborted) throw new CommandFailed(EXIT.failed, 'interrupted', { cause: error })
      const { code = '', message } = error as NodeJS.ErrnoException
      const isUnsent = UNSENT.has(code)
      const why = code === 'ECONNREFUSED' ? 'nobody listens there' : code === 'UND_ERR_HEADERS_TIMEOUT' ? `no answer within ${timeoutMs / 1000} s` : message || code
      return { url, why: isUnsent || method !== 'POST' ? why : `${why}, and whether it was done is not known`, isUnsent, cause: error }
    }
  }
}

const all = (failures: readonly Failure[]): string => failures.map(({ url, why }) => `${url}: ${why}`).join('; ')

function read (answer: Answer, what: string, before: readonly Failure[]): unknown {
  if (answer.status >= 400) throw new CommandFailed(exitCodeOf(answer), before.length === 0 ? lineOf(answer) : `${lineOf(answer)} (before that, ${all(before)})`)
  if (answer.text === '') return undefined
  try {
    return JSON.parse(answer.text) as unknown
  } catch (error) {
    throw new CommandFailed(EXIT.failed, `${what} with no JSON; is a head of soa-broker there?`, { cause: error })
  }
}

const unreachable = (failures: readonly Failure[]): CommandFailed => new CommandFailed(EXIT.failed,
  `no head at ${all(failures)}. Start one with "soa up" (all on this machine) or "soa head", or say where it is with SOA_HEAD or --head`, { cause: failures.at(-1)?.cause })

function problemIn (text: string): Partial<Problem> | undefined {
  try {
    const problem = JSON.parse(text) as Partial<Problem>
    return problem.detail !== undefined || problem.title !== undefined ? problem : undefined
  } catch { return undefined } // no JSON: somebody else's answer, shown as it is
}

function lineOf ({ status, text }: Answer): string {
  const problem = problemIn(text)
  return problem === undefined ? `HTTP ${status}: ${text.replace(/\s+/g, ' ').slice(0, 300)}` : problem.name === undefined && problem.detail !== undefined ? problem.detail : `${problem.name ?? `HTTP ${status}`}: ${problem.detail ?? problem.title ?? ''}`
}

function exitCodeOf ({ status, text }: Answer): number {
  const name = problemIn(text)?.name
  if (status === 404) return EXIT.notFound
  if (name === 'InvalidArgument' || name === 'Broker_InvalidConfiguration') return EXIT.usage // what was typed, and only the head could tell
  return status < 500 ? EXIT.refused : EXIT.failed
}
