import { SoaError } from '../core/errors.ts'
import { sleep, systemClock, type Clock } from '../core/clock.ts'
import { Lifetime } from '../core/lifetime.ts'
import { patiently, type CallNeeds } from './redis-call.ts'
import { sessionKeys, sharedKey } from './redis-keys.ts'
import { int, script } from './redis-script.ts'

const USAGE = script('usage')
const PROBE = script('probe')

const LOOK_MS = 1000
/** Share of maxmemory that requests may fill: what is left takes the responses of those that are in. */
const SHARE = 0.8

export interface UsageNeeds extends CallNeeds {
  readonly prefix: string
  /** Setting maxStoreBytes; 0: 80 % of Redis's maxmemory, measured by what Redis itself uses, or no limit where it has none. */
  readonly maxStoreBytes: number
}

/** What is asked before requests are appended. */
export interface Quota {
  /** Throws StorageSpaceNotSufficient when so many bytes more do not fit. */
  admit (bytes: number): void
}

/**
 * What all durable sessions keep together, as one worker knows it: exact for its own sessions, at most a second old for the others'. The sum lies outside of the
 * sessions' own hash tags, so it cannot be kept by their scripts; the share that is left free below maxmemory is far more than a second of traffic.
 */
export class StoreUsage implements Quota {
  readonly #needs: UsageNeeds
  readonly #clock: Clock
  readonly #life = new Lifetime()
  readonly #sessions = new Set<string>()
  #used = 0
  #limit = 0
  /** Admitted since the last look. */
  #since = 0
  #looking: Promise<void> | undefined

  constructor (needs: UsageNeeds) {
    this.#needs = needs
    this.#clock = needs.clock ?? systemClock
  }

  admit (bytes: number): void {
    const would = this.#used + this.#since + bytes
    if (this.#limit > 0 && would > this.#limit) {
      const setting = this.#needs.maxStoreBytes > 0 ? 'maxStoreBytes (all durable sessions together)' : 'used memory of Redis with this request (maxStoreBytes 0: 80 % of maxmemory)'
      throw new SoaError('StorageSpaceNotSufficient', { setting, value: would, limit: this.#limit })
    }
    this.#since += bytes
  }

  /** A session is served here from now on: the first look at it is made before this resolves. */
  async add (sessionId: string): Promise<void> {
    this.#sessions.add(sessionId)
    await this.#look()
    if (this.#sessions.size === 1) void this.#watch()
  }

  /** It is not served here any more; what it keeps then counts until it is raised again. */
  async drop (sessionId: string): Promise<void> {
    if (!this.#sessions.has(sessionId)) return
    await this.#look().finally(() => this.#sessions.delete(sessionId))
  }

  async close (): Promise<void> { await this.#life.close() }

  async #watch (): Promise<void> {
    const { log } = this.#needs
    while (this.#sessions.size > 0 && !this.#life.signal.aborted) {
      await sleep(this.#clock, LOOK_MS, this.#life.signal).catch(() => {})
      if (!this.#life.signal.aborted) await this.#look().catch(err => log.debug({ err: err as Error }, 'what the store keeps could not be looked at'))
    }
  }

  #look (): Promise<void> { return (this.#looking ??= this.#lookNow().finally(() => { this.#looking = undefined })) }

  async #lookNow (): Promise<void> {
    const { redis, prefix, maxStoreBytes } = this.#needs
    const before = this.#since
    const ids = [...this.#sessions]
    await patiently(this.#needs, async () => {
      const bytes = await Promise.all(ids.map(id => redis.hget(sessionKeys(prefix, id).meta, 'bytes')))
      const total = int(await USAGE().run(redis, usageKeys(prefix), ids.flatMap((id, i) => [id, bytes[i] ?? 0])))
      if (maxStoreBytes > 0) {
        this.#limit = maxStoreBytes
        this.#used = total
      } else {
        const info = await redis.info('memory')
        const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
        this.#limit = Math.floor(figure('maxmemory') * SHARE)
        this.#used = figure('used_memory')
      }
    })
    this.#since -= before // what came meanwhile may or may not be in: counted twice for a second at most
  }
}

/** Bytes of all durable sessions, as their workers said last. */
export const storedBytes = async (needs: CallNeeds & { readonly prefix: string }): Promise<number> => Number(await patiently(needs, () => needs.redis.get(usageKeys(needs.prefix)[1] as string)) ?? 0)

/** A session's queues are gone. */
export async function forgetUsage (needs: CallNeeds & { readonly prefix: string }, sessionId: string): Promise<void> {
  await patiently(needs, () => USAGE().run(needs.redis, usageKeys(needs.prefix), [sessionId, 0]))
}

/** Throws what Redis says when it would refuse a write now. */
export async function probeWrites (redis: CallNeeds['redis']): Promise<void> { await PROBE().run(redis, [], []) }

const usageKeys = (prefix: string): string[] => [sharedKey(prefix, 'stored'), sharedKey(prefix, 'stored', 'total')]
