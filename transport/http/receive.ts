import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { createInflate, createUnzip } from 'node:zlib'
import { SoaError } from '../../core/errors.ts'

/** The sender went away, or sent nothing for too long: there is nobody to answer. */
export class Gone extends Error { override readonly name = 'Gone' }

/**
 * Bytes of bodies that may be on their way in at once. Who does not fit waits in line with its socket unread, so that memory is asked for only when it is there,
 * and those who are let in can always finish.
 */
export class ReceivingBytes {
  readonly #limit: number
  #taken = 0
  readonly #waiting: Array<{ bytes: number, admit: () => void }> = []

  constructor (limit: number) { this.#limit = limit }

  /** Resolves once there is room; the function given back makes room again. A message larger than all there is goes alone. */
  async take (bytes: number, caller: { readonly signal: AbortSignal }): Promise<() => void> {
    bytes = Math.min(bytes, this.#limit)
    if (this.#waiting.length > 0 || this.#taken + bytes > this.#limit) await this.#turn(bytes, caller.signal)
    else this.#taken += bytes
    let given = false
    return () => {
      if (given) return
      given = true
      this.#taken -= bytes
      this.#admit()
    }
  }

  #turn (bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = { bytes, admit: () => { signal.removeEventListener('abort', leave); resolve() } }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1)
        this.#admit()
        reject(new Gone('gone while it waited for its turn'))
      }
      if (signal.aborted) { reject(new Gone('gone before its turn')); return }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(turn)
    })
  }

  #admit (): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#taken + next.bytes <= this.#limit; next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#taken += next.bytes
      next.admit()
    }
  }
}

/** The slowest body that is waited for, and the time it has to get going: what Kestrel asks of a sender by default (MinRequestBodyDataRate). */
const LEAST_BYTES_A_SECOND = 240
export const PACE_GRACE_MS = 5000

const tooLarge = (limit: number, value: number | string): SoaError => new SoaError('overLimit', { setting: 'maxMessageSize', limit, value })

/** What a request says of its body before a byte of it is read. Throws overLimit for a length that is too much. */
export function announced (request: IncomingMessage, maxMessageSize: number): number {
  const length = request.headers['content-length']
  if (length === undefined) return request.headers['transfer-encoding'] === undefined ? 0 : maxMessageSize
  // Packed or not, more than the limit on the wire can only be more in memory.
  if (Number(length) > maxMessageSize) throw tooLarge(maxMessageSize, length)
  return request.headers['content-encoding'] === undefined ? Number(length) : maxMessageSize
}

/** Content codings that are taken; undefined: another one (415). */
export function unpacker (request: IncomingMessage): (() => Readable) | undefined {
  switch (request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity') {
    case 'identity': case '': return () => request
    case 'gzip': case 'x-gzip': return () => request.pipe(createUnzip())
    case 'deflate': return () => request.pipe(createInflate())
    default: return undefined
  }
}

/** The whole body, unpacked. Counted as it comes: throws overLimit as soon as it is too much; badEnvelope when it cannot be unpacked; Gone. */
export function receive (request: IncomingMessage, open: () => Readable, limits: { maxMessageSize: number, idleMs: number, paceGraceMs: number }): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let arrived = 0
    const began = performance.now()
    const source = open()
    const idle = setTimeout(() => done(() => { request.destroy(); reject(new Gone(`no byte of the body for ${limits.idleMs} ms`)) }), limits.idleMs)
    // Room is kept for what is still to come, so who drips keeps it from others.
    const pace = setInterval(() => {
      const seconds = (performance.now() - began) / 1000
      const paced = seconds - limits.paceGraceMs / 1000
      if (paced > 0 && arrived < LEAST_BYTES_A_SECOND * paced) {
        done(() => { request.destroy(); reject(new Gone(`${arrived} bytes of the body in ${Math.round(seconds)} s, below ${LEAST_BYTES_A_SECOND} a second`)) })
      }
    }, 1000)
    const done = (tell: () => void): void => {
      clearTimeout(idle)
      clearInterval(pace)
      request.off('data', awake)
      source.off('data', take)
      if (source !== request) { request.unpipe(); source.destroy() }
      tell()
    }
    const awake = (chunk: Buffer): void => { arrived += chunk.length; idle.refresh() }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limits.maxMessageSize) { done(() => reject(tooLarge(limits.maxMessageSize, `more than ${limits.maxMessageSize}`))); return }
      chunks.push(chunk)
    }
    request.on('data', awake)
    source.on('data', take)
    source.once('end', () => done(() => resolve(chunks.length === 1 ? chunks[0] as Buffer : Buffer.concat(chunks, size))))
    if (source !== request) source.on('error', error => done(() => reject(new SoaError('badEnvelope', { why: `its content coding does not hold what it says: ${error.message}` }, { cause: error }))))
    request.once('error', error => done(() => reject(new Gone('the connection broke', { cause: error }))))
    request.once('close', () => { if (!request.complete) done(() => reject(new Gone('the connection was closed'))) })
  })
}
