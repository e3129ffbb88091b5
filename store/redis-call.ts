import { SoaError, isSoaError } from '../core/errors.ts'
import { sleep, systemClock, type Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import { waitReady, type Redis } from './redis.ts'

export interface CallNeeds {
  readonly redis: Redis
  readonly log: Logger
  /** storeTimeoutMs: longest time of one call with all its tries. Default 30 s. */
  readonly timeoutMs?: number | undefined
  readonly clock?: Clock | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * What a failed command means.
 *
 * `lost`: nobody knows whether it ran (connection broken, no answer). `busy`: it did not run, later it may. `full`: Redis is at maxmemory.
 * `said`: an answer of one of our own scripts (first word FENCED, LOST …). `bad`: anything else, not worth trying again.
 */
export type Failure = { readonly kind: 'lost' | 'busy' | 'full' | 'said' | 'bad', readonly word: string, readonly error: Error }

/** Replies that pass by themselves. READONLY and MASTERDOWN: a primary is being replaced, so the connection is made anew. */
const PASSING = new Set(['LOADING', 'BUSY', 'READONLY', 'NOREPLICAS', 'MISCONF', 'MASTERDOWN', 'TRYAGAIN', 'CLUSTERDOWN'])
const MOVED_ON = new Set(['READONLY', 'MASTERDOWN'])
/** First words of error replies made by store/lua. */
const OURS = new Set(['FENCED', 'LOST', 'EXISTS', 'BEYOND'])

/** Thrown by `work` itself: it ran, has not met its promise yet, and may be run again. */
export class NotYet extends Error {}

export function failureOf (error: unknown): Failure {
  const err = error instanceof Error ? error : new Error(String(error))
  if (err instanceof NotYet) return { kind: 'busy', word: '', error: err }
  // ioredis: an error that Redis sent is a ReplyError; all others are about the connection.
  if (err.name !== 'ReplyError') return { kind: err instanceof TypeError || err instanceof RangeError || isSoaError(err) ? 'bad' : 'lost', word: '', error: err }
  // An error raised inside a script may be wrapped by Redis; its own word is first all the same since 7.0.
  const word = /^-?([A-Z]+)\b/.exec(err.message)?.[1] ?? ''
  if (OURS.has(word)) return { kind: 'said', word, error: err }
  if (word === 'OOM') return { kind: 'full', word, error: err }
  if (PASSING.has(word)) return { kind: 'busy', word, error: err }
  return { kind: 'bad', word, error: err }
}

/**
 * Runs `work` until it has an answer: waits for the connection, tries again what may be tried again, all within the time limit.
 * `work` must therefore be idempotent. Refuses with StorageServiceNotAvailble (time is up), StorageSpaceNotSufficient (Redis is full) or
 * StorageFailure; a `said` error is passed on as it is, and so is a SoaError.
 *
 * @param lost called before the next try when nobody knows whether the last one ran
 */
export async function patiently<T> (needs: CallNeeds, work: () => Promise<T>, lost: () => void = () => {}): Promise<T> {
  const { redis, log, timeoutMs = 30_000, clock = systemClock, signal } = needs
  const deadline = clock.now() + timeoutMs
  for (let tries = 1; ; tries++) {
    let failure: Failure
    try {
      if (redis.status !== 'ready') await waitReady(redis, Math.max(0, deadline - clock.now()), clock, signal)
      return await work()
    } catch (error) {
      if (signal?.aborted) throw new SoaError('StorageClosed', {}, { cause: error })
      failure = failureOf(error)
      if (failure.kind === 'lost') lost()
      if (failure.kind === 'said' || isSoaError(failure.error)) throw failure.error
      if (failure.kind === 'full') throw await spaceFault(redis, failure.error)
      if (failure.kind === 'bad') throw badFault(failure)
      if (redis.status === 'end' || clock.now() >= deadline) throw unavailable(failure, timeoutMs)
    }
    // A lost connection is in the log already, once and not for each call that waits for it.
    if (tries === 1) log[failure.kind === 'lost' ? 'debug' : 'warn']({ err: failure.error, word: failure.word || undefined }, 'store call is tried again')
    // Nobody answered in time, or the wrong one did: what else is in flight on this connection has no better chance.
    if ((failure.error.message === 'Command timed out' || MOVED_ON.has(failure.word)) && redis.status === 'ready') redis.disconnect(true)
    const pause = Math.min(50 * 2 ** Math.min(tries - 1, 6), 1000, Math.max(0, deadline - clock.now()))
    if (redis.status === 'ready') {
      await sleep(clock, pause, signal).catch(() => { throw new SoaError('StorageClosed', {}) })
    }
  }
}

function unavailable ({ error, kind }: Failure, timeoutMs: number): SoaError {
  if (/no space left on device/i.test(error.message)) {
    return new SoaError('StorageSpaceNotSufficient', { setting: 'the disk of Redis', value: 'full', limit: error.message }, { cause: error })
  }
  return new SoaError('StorageServiceNotAvailble', { why: `${kind === 'busy' ? 'not yet' : 'no answer'} after ${timeoutMs} ms: ${error.message}` }, { cause: error })
}

function badFault ({ error, word }: Failure): SoaError {
  if (word === 'NOAUTH' || word === 'WRONGPASS' || word === 'NOPERM') return new SoaError('StorageServiceNotAvailble', { why: `Redis does not let us in: ${error.message}` }, { cause: error })
  return new SoaError('StorageFailure', { why: error.message }, { cause: error })
}

/** The figures are asked for now, since the error reply has none; when that fails too, the fault goes out without them. */
async function spaceFault (redis: Redis, cause: Error): Promise<SoaError> {
  const info = await redis.info('memory').catch(() => '')
  const figure = (name: string): string => new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 'unknown'
  return new SoaError('StorageSpaceNotSufficient', { setting: 'used memory of Redis (maxmemory), in bytes,', value: figure('used_memory'), limit: figure('maxmemory') }, { cause })
}
