import { SoaError } from '../../core/errors.ts'
import { sleep, type Clock } from '../../core/clock.ts'
import { Lifetime } from '../../core/lifetime.ts'
import type { Logger } from '../../core/log.ts'
import type { HeadRecord, HeadWish, RedisHeadDirectory } from '../../store/redis-heads.ts'

export interface MembershipNeeds {
  heads: Pick<RedisHeadDirectory, 'beat' | 'list' | 'wish' | 'remove'>
  headId: string
  /** What does not change while the head lives; asked from `start` on. */
  self: () => Omit<HeadRecord, 'state' | 'sessions'>
  /** Sessions that are served by this head's own workers. */
  sessions: () => number
  /** What is wanted of this head has changed; undefined: that it serves. Called again, one beat later, when it throws. */
  wanted: (wish: HeadWish | undefined) => Promise<void>
  clock: Clock
  log: Logger
}

/** A head as everybody may see it. */
export type HeadView = Omit<HeadRecord, 'secret' | 'headId'> & { readonly id: string }

const BEAT_MS = 1000
const LEASE_MS = 10_000

/** This head among the others: it beats, and does what operators want of it (docs/adr/0023). */
export class Membership {
  readonly #needs: MembershipNeeds
  readonly #life = new Lifetime()
  #wish: HeadWish | undefined

  constructor (needs: MembershipNeeds) { this.#needs = needs }

  /** No new sessions here. */
  get isDraining (): boolean { return this.#wish !== undefined }

  async start (): Promise<void> {
    await this.#beat()
    void this.#beatOnAndOn()
  }

  /** Throws while this head takes no new sessions. */
  refuseNew (): void { if (this.isDraining) throw new SoaError('Broker_BrokerIsOffline', {}) }

  async list (): Promise<HeadView[]> {
    return (await this.#needs.heads.list()).map(({ secret: _secret, headId: id, ...shown }) => ({ id, ...shown }))
  }

  /** Whether another head takes sessions. */
  async hasOthers (): Promise<boolean> {
    const { heads, headId } = this.#needs
    return (await heads.list()).some(head => head.headId !== headId && head.state === 'Online')
  }

  /** Says what is wanted of a head, of this one or another; undefined: that it serves again. Resolves to the head, undefined: there is none of this id. */
  async ask (headId: string, wish: HeadWish | undefined): Promise<HeadView | undefined> {
    const { heads } = this.#needs
    const known = (await this.list()).find(head => head.id === headId)
    if (known === undefined) return undefined
    await heads.wish(headId, wish)
    if (headId === this.#needs.headId) await this.#beat()
    return { ...known, state: wish === undefined ? 'Online' : 'Draining' }
  }

  async close (): Promise<void> {
    await this.#life.close()
    await this.#needs.heads.remove(this.#needs.headId).catch(err => this.#needs.log.warn({ err: err as Error }, 'this head is in the directory until its lease runs out'))
  }

  async #beatOnAndOn (): Promise<void> {
    const { clock, log } = this.#needs
    while (!this.#life.signal.aborted) {
      await sleep(clock, BEAT_MS, this.#life.signal).catch(() => {})
      if (this.#life.signal.aborted) return
      await this.#beat().catch(err => log.debug({ err: err as Error }, 'beat of this head not written'))
    }
  }

  async #beat (): Promise<void> {
    const { heads, self, sessions, wanted, log } = this.#needs
    const open = sessions()
    const wish = await heads.beat({ ...self(), state: this.#wish === undefined ? 'Online' : open === 0 ? 'Drained' : 'Draining', sessions: open }, LEASE_MS)
    if (wish === this.#wish || this.#life.signal.aborted) return
    const before = this.#wish
    this.#wish = wish // first: nothing new comes in while the rest is done
    log.info({ wish: wish ?? 'serve' }, 'what is wanted of this head has changed')
    try { await wanted(wish) } catch (error) { this.#wish = before; throw error }
  }
}
