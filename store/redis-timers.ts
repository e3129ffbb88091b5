import { placementKeys } from './redis-placement-scripts.ts'
import { patiently, type CallNeeds } from './redis-call.ts'

export interface DueTimer { readonly name: string, readonly sessionId: string, readonly atMs: number }

/** Durable timers: what is to happen for which session, and when. Whoever wakes people up looks here; this is the truth, a job is only the alarm. */
export interface DurableTimers {
  /** @returns the time that was set before, undefined: none. */
  set (name: string, sessionId: string, atMs: number): Promise<number | undefined>
  get (name: string, sessionId: string): Promise<number | undefined>
  /** `atMs` given: only if it is still set to this time. */
  clear (name: string, sessionId: string, atMs?: number): Promise<void>
  /** Those at or before `untilMs`, the oldest first. */
  due (untilMs: number, count: number): Promise<DueTimer[]>
  all (): Promise<DueTimer[]>
}

const CLEAR_IF = 'if redis.call("ZSCORE", KEYS[1], ARGV[1]) == ARGV[2] then return redis.call("ZREM", KEYS[1], ARGV[1]) end return 0'

/** One sorted set, `<name>/<session>` → ms since the epoch. */
export class RedisTimers implements DurableTimers {
  readonly #needs: CallNeeds
  readonly #key: string

  constructor (needs: CallNeeds & { readonly prefix: string }) {
    this.#needs = needs
    this.#key = placementKeys(needs.prefix).timers
  }

  async set (name: string, sessionId: string, atMs: number): Promise<number | undefined> {
    const { redis } = this.#needs
    const before = await this.get(name, sessionId)
    await patiently(this.#needs, () => redis.zadd(this.#key, atMs, member(name, sessionId)))
    return before
  }

  async get (name: string, sessionId: string): Promise<number | undefined> {
    const score = await patiently(this.#needs, () => this.#needs.redis.zscore(this.#key, member(name, sessionId)))
    return score === null ? undefined : Number(score)
  }

  async clear (name: string, sessionId: string, atMs?: number): Promise<void> {
    const { redis } = this.#needs
    await patiently(this.#needs, async () => atMs === undefined
      ? await redis.zrem(this.#key, member(name, sessionId))
      : await redis.eval(CLEAR_IF, 1, this.#key, member(name, sessionId), String(atMs)))
  }

  async due (untilMs: number, count: number): Promise<DueTimer[]> {
    return toTimers(await patiently(this.#needs, () => this.#needs.redis.zrange(this.#key, '-inf', String(untilMs), 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES')))
  }

  async all (): Promise<DueTimer[]> {
    return toTimers(await patiently(this.#needs, () => this.#needs.redis.zrange(this.#key, '0', '-1', 'WITHSCORES')))
  }
}

function member (name: string, sessionId: string): string {
  if (!/^[A-Za-z]\w*$/.test(name)) throw new TypeError(`a timer's name has letters, digits and _, not "${name}"`)
  return `${name}/${sessionId}`
}

function toTimers (flat: string[]): DueTimer[] {
  return flat.flatMap((member, i) => {
    if (i % 2 === 1) return []
    const slash = member.indexOf('/')
    return [{ name: member.slice(0, slash), sessionId: member.slice(slash + 1), atMs: Number(flat[i + 1]) }]
  })
}
