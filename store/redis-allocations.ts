import { SoaError } from '../core/errors.ts'
import { systemClock } from '../core/clock.ts'
import { patiently } from './redis-call.ts'
import { sharedKey } from './redis-keys.ts'
import type { DirectoryNeeds } from './redis-sessions.ts'
import type { SessionRecord } from './session-store.ts'

/** A session as it will start, but for its id. */
export type SessionOrder = Omit<SessionRecord, 'sessionId'>

/** Orders that were checked and have an id, but are not started yet: any head can start them, for a while. */
export interface Allocations {
  /** Keeps the order under the id if no other order has it; false: one has. Refuses with `Broker_TooManyBrokerRunning` when as many are waiting as may. */
  keep (sessionId: string, order: SessionOrder): Promise<boolean>
  get (sessionId: string): Promise<SessionOrder | undefined>
  remove (sessionId: string): Promise<void>
}

/** `{soa}:allocation:<id>`: the order as JSON, which goes by itself; `{soa}:allocations`: sorted set, id → ms since the epoch when it goes, to count by. */
export class RedisAllocations implements Allocations {
  readonly #needs: DirectoryNeeds
  readonly #limits: { readonly keptMs: number, readonly most: number }
  readonly #index: string

  constructor (needs: DirectoryNeeds, limits: { keptMs: number, most: number }) {
    this.#needs = needs
    this.#limits = limits
    this.#index = sharedKey(needs.prefix, 'allocations')
  }

  async keep (sessionId: string, order: SessionOrder): Promise<boolean> {
    const { redis, clock = systemClock } = this.#needs
    const { keptMs, most } = this.#limits
    return patiently(this.#needs, async () => {
      const now = clock.now()
      await redis.zremrangebyscore(this.#index, '-inf', now)
      // Two at once may both see the last place: one order more than allowed harms nobody.
      if (await redis.zcard(this.#index) >= most) throw new SoaError('Broker_TooManyBrokerRunning', { limit: most })
      // Tried again after a lost answer it finds its own order and says false; the caller draws another id, and this one goes in time.
      if (await redis.set(this.#key(sessionId), JSON.stringify(order), 'PX', keptMs, 'NX') === null) return false
      await redis.zadd(this.#index, now + keptMs, sessionId)
      return true
    })
  }

  async get (sessionId: string): Promise<SessionOrder | undefined> {
    const json = await patiently(this.#needs, () => this.#needs.redis.get(this.#key(sessionId)))
    return json === null ? undefined : JSON.parse(json) as SessionOrder
  }

  async remove (sessionId: string): Promise<void> {
    await patiently(this.#needs, () => Promise.all([this.#needs.redis.del(this.#key(sessionId)), this.#needs.redis.zrem(this.#index, sessionId)]))
  }

  #key (sessionId: string): string { return sharedKey(this.#needs.prefix, 'allocation', sessionId) }
}
