import type { IncomingMessage } from 'node:http'
import { SoaError } from '../../core/errors.ts'
import { unpacked, type codingOf } from './coding.ts'
import type { Room } from './receiving-bytes.ts'

/** The sender went away, or sent nothing for too long: there is nobody to answer. */
export class Gone extends Error { override readonly name = 'Gone' }

/** The slowest body that is waited for, and the time it has to get going: what Kestrel asks of a sender by default (MinRequestBodyDataRate). */
const LEAST_BYTES_A_SECOND = 240
export const PACE_GRACE_MS = 5000
/** How often the pace is looked at. */
const LOOK_MS = 1000

const tooLarge = (limit: number, value: number | string): SoaError => new SoaError('overLimit', { setting: 'maxMessageSize', limit, value })

/** What a request says of its body before a byte of it is read; maxMessageSize where it says nothing. Throws overLimit for a length that is too much. */
export function announced (request: IncomingMessage, maxMessageSize: number): number {
  const length = request.headers['content-length']
  if (length === undefined) return request.headers['transfer-encoding'] === undefined ? 0 : maxMessageSize
  // Packed or not, more than the limit on the wire can only be more in memory.
  if (Number(length) > maxMessageSize) throw tooLarge(maxMessageSize, length)
  return request.headers['content-encoding'] === undefined ? Number(length) : maxMessageSize
}

export interface Receiving {
  readonly coding: NonNullable<ReturnType<typeof codingOf>>
  readonly maxMessageSize: number
  /** Longest silence. */
  readonly idleMs: number
  /** Longest time below the least pace. */
  readonly paceGraceMs: number
  readonly room: Room
}

/** The whole body, unpacked. Counted as it comes: throws overLimit as soon as it is too much; badEnvelope when it cannot be unpacked; Gone. */
export function receive (request: IncomingMessage, { coding, maxMessageSize, idleMs, paceGraceMs, room }: Receiving): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let arrived = 0
    let isWaiting = false
    const began = performance.now()
    const source = unpacked(request, coding)
    const idle = setTimeout(() => {
      if (isWaiting) idle.refresh()
      else done(() => { request.destroy(); reject(new Gone(`no byte of the body for ${idleMs} ms`)) })
    }, idleMs)
    // Room is kept for what has come, so who drips keeps it from others. What comes fast earns time, but never more than may pass in silence.
    const most = LEAST_BYTES_A_SECOND * Math.max(paceGraceMs, idleMs) / 1000
    let credit = LEAST_BYTES_A_SECOND * paceGraceMs / 1000
    const pace = setInterval(() => {
      if (isWaiting) return
      credit -= LEAST_BYTES_A_SECOND * LOOK_MS / 1000
      if (credit >= 0) return
      const seconds = Math.round((performance.now() - began) / 1000)
      done(() => { request.destroy(); reject(new Gone(`${arrived} bytes of the body in ${seconds} s, at last below ${LEAST_BYTES_A_SECOND} a second`)) })
    }, LOOK_MS)
    const done = (tell: () => void): void => {
      clearTimeout(idle)
      clearInterval(pace)
      request.off('data', awake)
      source.off('data', take)
      if (source !== request) { request.unpipe(); source.destroy() }
      tell()
    }
    const awake = (chunk: Buffer): void => {
      arrived += chunk.length
      credit = Math.min(most, credit + chunk.length)
      idle.refresh()
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size > maxMessageSize) { done(() => reject(tooLarge(maxMessageSize, `more than ${maxMessageSize}`))); return }
      chunks.push(chunk)
      const turn = room.hold(size)
      if (turn === undefined) return
      // There is no room for more: the sender is not read until there is, and that is no fault of his.
      isWaiting = true
      source.pause()
      turn.then(() => {
        isWaiting = false
        idle.refresh()
        source.resume()
      }, () => { /* left meanwhile: the request's own close says so */ })
    }
    request.on('data', awake)
    source.on('data', take)
    source.once('end', () => done(() => resolve(chunks.length === 1 ? chunks[0] as Buffer : Buffer.concat(chunks, size))))
    if (source !== request) source.on('error', error => done(() => reject(new SoaError('badEnvelope', { why: `its content coding does not hold what it says: ${error.message}` }, { cause: error }))))
    request.once('error', error => done(() => reject(new Gone('the connection broke', { cause: error }))))
    request.once('close', () => { if (!request.complete) done(() => reject(new Gone('the connection was closed'))) })
  })
}
