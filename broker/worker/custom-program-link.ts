import { EventEmitter } from 'node:events'
import type { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { Clock } from '../../core/clock.ts'

/** `lost`: no answer, the connection is gone. `late`: none in time. `notReady`: status 503. `wrong`: an answer that is none. */
export class LinkError extends Error {
  readonly kind: 'lost' | 'late' | 'notReady' | 'wrong'

  constructor (kind: LinkError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

interface LinkOptions {
  readonly port: number
  /** Connections, each with one call at a time. */
  readonly connections: number
  /** Largest answer, bytes; refused as soon as it is known to be larger. */
  readonly maxAnswerBytes: number
  readonly clock: Clock
}

/** How much of an answer that is none is repeated in the error. */
const SHOWN_CHARACTERS = 200

/** JSON to and from a custom broker's program. */
export class ProgramLink {
  readonly #options: LinkOptions
  readonly #pool: Pool

  constructor (options: LinkOptions) {
    this.#options = options
    // Only the call's own time counts: undici's clocks would cut hooks that may take longer.
    this.#pool = new Pool(`http://127.0.0.1:${options.port}`, { connections: options.connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
  }

  /** The value of the answer; undefined: it is empty. Throws LinkError. */
  async call (method: 'GET' | 'POST', path: string, json: string | null, timeoutMs: number): Promise<unknown> {
    const stop = new EventEmitter()
    let isLate = false
    const cancel = this.#options.clock.after(timeoutMs, () => { isLate = true; stop.emit('abort') })
    try {
      const { statusCode, headers, body } = await this.#pool.request({ method, path, body: json, headers: json === null ? {} : { 'content-type': 'application/json' }, signal: stop })
      const bytes = await readAll(body, Number(headers['content-length'] ?? 0), this.#options.maxAnswerBytes)
      return valueOf(statusCode, bytes)
    } catch (error) {
      if (isLate) throw new LinkError('late', `did not return within ${timeoutMs} ms (hookTimeoutMs)`)
      throw error instanceof LinkError ? error : new LinkError('lost', `closed the connection without an answer: ${(error as Error).message}`, { cause: error })
    } finally {
      cancel()
    }
  }

  /** Calls that are under way fail as `lost`. */
  close (): Promise<void> { return this.#pool.destroy() }
}

function valueOf (status: number, bytes: Buffer): unknown {
  const shown = bytes.toString('utf8', 0, SHOWN_CHARACTERS * 4).slice(0, SHOWN_CHARACTERS).replace(/\s+/g, ' ').trim()
  if (status !== 200 && status !== 204) throw new LinkError(status === 503 ? 'notReady' : 'wrong', `answered with status ${status}: ${shown || 'and nothing else'}`)
  if (bytes.length === 0) return undefined
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch (error) {
    throw new LinkError('wrong', `answered what is no JSON (${(error as Error).message}): ${shown}`, { cause: error })
  }
}

/** Refuses before the memory for the excess is taken; the connection is then closed, for what is left of the answer is in the way. */
async function readAll (body: Dispatcher.ResponseData['body'], announced: number, most: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let size = announced
  const check = (): void => { if (size > most) throw new LinkError('wrong', `answered ${size} bytes or more, the limit is ${most}`) }
  try {
    check()
    size = 0
    for await (const part of body as Readable as AsyncIterable<Buffer>) {
      size += part.length
      check()
      parts.push(part)
    }
  } catch (error) {
    body.on('error', () => { /* said already */ }).destroy()
    throw error
  }
  return Buffer.concat(parts)
}
