import type { Allocations } from '../../store/redis-allocations.ts'
import type { RedisSessionPools } from '../../store/redis-pools.ts'
import type { SessionRecord, SessionStore } from '../../store/session-store.ts'

export interface PoolNeeds {
  pools: Pick<RedisSessionPools, 'take' | 'drop'>
  sessions: Pick<SessionStore, 'get'>
  allocations: Pick<Allocations, 'get'>
}

/** Members that have ended and are met before one that lives, or a free place. */
const MOST_ENDED = 1000

/**
 * Sessions that are used again instead of being started anew ([broker-behaviour] 1.9): one pool for each service, version and kind, of at most
 * `maxSessionPoolSize` (service registration) sessions. When it is full, its members take turns.
 */
export class SessionPools {
  readonly #needs: PoolNeeds

  constructor (needs: PoolNeeds) { this.#needs = needs }

  /** For a session that is about to start, its record or allocation written: undefined when it is to start and is a member now, or the id of the one to use in its place. */
  async enter (record: SessionRecord): Promise<string | undefined> {
    const pool = poolOf(record)
    if (pool === undefined || record.poolSize === undefined) return undefined
    for (let met = 0; met < MOST_ENDED; met++) {
      const member = await this.#needs.pools.take(pool, record.sessionId, record.poolSize)
      if (member === undefined || await this.#isUsable(member)) return member
      await this.#needs.pools.drop(pool, member)
    }
    return undefined // it starts, and is no member
  }

  /** It is closed, or did not start. */
  async leave (record: SessionRecord): Promise<void> {
    const pool = poolOf(record)
    if (pool !== undefined) await this.#needs.pools.drop(pool, record.sessionId)
  }

  /** It works, will be raised when asked for, or is about to start here or at another head: whoever gets it waits for it. */
  async #isUsable (sessionId: string): Promise<boolean> {
    const record = await this.#needs.sessions.get(sessionId)
    if (record === undefined) return await this.#needs.allocations.get(sessionId) !== undefined
    return record.state === 'Starting' || record.state === 'Running' || (record.state === 'Suspended' && record.durable)
  }
}

const poolOf = ({ poolSize, service, version, durable }: SessionRecord): string | undefined =>
  poolSize === undefined ? undefined : `${service.toLowerCase()}:${version ?? ''}:${durable ? 'durable' : 'interactive'}`
