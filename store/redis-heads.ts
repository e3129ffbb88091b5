import { patiently } from './redis-call.ts'
import { sharedKey } from './redis-keys.ts'
import { script } from './redis-script.ts'
import type { DirectoryNeeds } from './redis-sessions.ts'

const BEAT = script('worker-beat')
const TAKE_OFF = script('worker-remove')

/** Online: takes new sessions · Draining: takes none, those that run go on · Drained: and none is left. */
export type HeadState = 'Online' | 'Draining' | 'Drained'

/** `drain`: no new sessions here · `force`: and those that run are suspended, for other heads to raise. */
export type HeadWish = 'drain' | 'force'

/** A head as the other heads see it. */
export interface HeadRecord {
  readonly headId: string
  readonly machine: string
  readonly pid: number
  /** `http://127.0.0.1:8080` */
  readonly http: string
  readonly netTcp?: string | undefined
  /** HOST:PORT where other heads reach the workers of its machine (transport/peer.ts). */
  readonly peer: string
  /** What they show that they know, new with each start. Whoever can read this directory is trusted wholly anyway. */
  readonly secret: string
  readonly state: HeadState
  /** Served by its workers. */
  readonly sessions: number
  /** ISO 8601 UTC. */
  readonly startedAt: string
}

/** The heads that beat: `{soa}:head:<id>` runs out with its lease, `{soa}:heads` lists them, `{soa}:headwishes` says what operators want of them. */
export class RedisHeadDirectory {
  readonly #needs: DirectoryNeeds
  readonly #all: string
  readonly #wishes: string

  constructor (needs: DirectoryNeeds) {
    this.#needs = needs
    this.#all = sharedKey(needs.prefix, 'heads')
    this.#wishes = sharedKey(needs.prefix, 'headwishes')
  }

  /** Gone `leaseMs` after the last beat. Resolves to what is wanted of this head, undefined: that it serves. */
  async beat (record: HeadRecord, leaseMs: number): Promise<HeadWish | undefined> {
    const { redis } = this.#needs
    return await patiently(this.#needs, async () => {
      await BEAT().run(redis, [this.#key(record.headId), this.#all], [record.headId, JSON.stringify(record), Math.max(1, Math.round(leaseMs))])
      const wish = await redis.hget(this.#wishes, record.headId)
      return wish === 'drain' || wish === 'force' ? wish : undefined
    })
  }

  /** In order of their ids. */
  async list (): Promise<HeadRecord[]> {
    const { redis } = this.#needs
    return await patiently(this.#needs, async () => {
      const ids = (await redis.smembers(this.#all)).sort()
      if (ids.length === 0) return []
      const found = await redis.mget(ids.map(id => this.#key(id)))
      const expired = ids.filter((_, i) => found[i] === null)
      if (expired.length > 0) await this.#takeOff('expired', expired)
      return found.filter(json => json !== null && json !== undefined).map(json => JSON.parse(json) as HeadRecord)
    })
  }

  /** What is wanted of a head from its next beat on; undefined: that it serves. */
  async wish (headId: string, wish: HeadWish | undefined): Promise<void> {
    await patiently(this.#needs, async () => wish === undefined ? await this.#needs.redis.hdel(this.#wishes, headId) : await this.#needs.redis.hset(this.#wishes, headId, wish))
  }

  async remove (headId: string): Promise<void> { await patiently(this.#needs, () => this.#takeOff('gone', [headId])) }

  async #takeOff (why: 'gone' | 'expired', ids: string[]): Promise<void> {
    await TAKE_OFF().run(this.#needs.redis, [this.#all, ...ids.map(id => this.#key(id))], [why, ...ids])
    await this.#needs.redis.hdel(this.#wishes, ...ids) // ids are never used twice
  }

  #key (headId: string): string { return sharedKey(this.#needs.prefix, 'head', headId) }
}
