import { SoaError } from '../core/errors.ts'

/** Longest client id, in characters, and what it may be made of ([wire-contract] 1.3). */
const MAX_CLIENT_ID = 128
const CLIENT_ID = /^[0-9a-zA-Z_\-{}\s]*$/

/** What a client id is compared by: two that differ in case are the same client. @throws `SoaError` with `Broker_InvalidClientIdOrTooLong`. */
export function clientKey (clientId: string): string {
  if (typeof clientId !== 'string' || clientId.length > MAX_CLIENT_ID || !CLIENT_ID.test(clientId)) throw new SoaError('Broker_InvalidClientIdOrTooLong', {})
  return clientId.toLowerCase()
}

let lastBatchId = -1

/**
 * The number that says which life of a client a request belongs to (ClientInstanceIdNS): the broker forgets what an earlier life did not flush.
 * HPC Pack counts from 0 in each process, so a program that starts again repeats its numbers and is merged with its former self or dropped.
 * Seconds since 2020 grow across processes and fit int32 until 2088; within a process no number is given twice.
 */
export function nextBatchId (nowMs: number): number {
  lastBatchId = Math.max(lastBatchId + 1, Math.floor(nowMs / 1000) - 1_577_836_800)
  return lastBatchId
}
