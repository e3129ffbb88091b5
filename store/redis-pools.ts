import { patiently } from './redis-call.ts'
import { sharedKey } from './redis-keys.ts'
import { script, text } from './redis-script.ts'
import type { DirectoryNeeds } from './redis-sessions.ts'

const TAKE = script('pool-take')

/** Pools of sessions, one list each: `{soa}:pool:<name>`. */
export class RedisSessionPools {
  readonly #needs: DirectoryNeeds

  constructor (needs: DirectoryNeeds) { this.#needs = needs }

  /** undefined: the new session has a place in the pool. Otherwise the member whose turn it is. */
  async take (pool: string, newId: string, size: number): Promise<string | undefined> {
    const member = text(await patiently(this.#needs, () => TAKE().run(this.#needs.redis, [this.#key(pool)], [newId, size])))
    return member === '' ? undefined : member
  }

  /** It is no member any more. */
  async drop (pool: string, sessionId: string): Promise<void> { await patiently(this.#needs, () => this.#needs.redis.lrem(this.#key(pool), 0, sessionId)) }

  #key (pool: string): string { return sharedKey(this.#needs.prefix, 'pool', pool) }
}
