import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { plan } from '../../core/planner.ts'
import { shortage, type Shortage } from '../../core/shortage.ts'
import type { PassKind, PlacementSnapshot, RedisPlacement } from '../../store/redis-placement.ts'

export interface PlacementNeeds {
  readonly store: Pick<RedisPlacement, 'snapshot' | 'commit'>
  readonly clock: Clock
  readonly log: Logger
}

export interface PassResult { readonly starts: number, readonly cancels: number, readonly finishes: number, readonly deadNodes: number, readonly tries: number }

/** Another head planned at the same time this often in a row: leave it to that one and to the next sweep. */
const MAX_TRIES = 5

/** Passes of this head: read the state, plan, make the plan the state. Two heads at once are harmless: one commit is refused, and that head plans again. */
export class Placement {
  readonly #needs: PlacementNeeds
  #running: Promise<PassResult> | undefined
  #again: Promise<PassResult> | undefined

  constructor (needs: PlacementNeeds) { this.#needs = needs }

  /** One pass. Called while one runs, it waits for that one and then makes one more, shared by all who asked meanwhile: their news is surely in it. */
  pass (kind: PassKind): Promise<PassResult> {
    if (this.#running === undefined) {
      this.#running = this.#pass(kind).finally(() => { this.#running = undefined })
      return this.#running
    }
    this.#again ??= this.#running.catch(() => { /* told to whoever asked for it */ }).then(() => {
      this.#again = undefined
      return this.pass(kind)
    })
    return this.#again
  }

  /** Why a session lacks instances that it must have; undefined: it does not, or the next pass gives them. */
  async shortage (sessionId: string): Promise<Shortage | undefined> {
    const snapshot = await this.#needs.store.snapshot('look')
    return shortage(snapshot, snapshot.rows.flatMap(({ isDead, record }) => isDead ? [record.id] : []), sessionId)
  }

  async #pass (kind: PassKind): Promise<PassResult> {
    const { store, log } = this.#needs
    for (let tries = 1; ; tries++) {
      const snapshot = await store.snapshot(kind)
      this.#tellSweep(snapshot)
      const found = plan(snapshot)
      const result = { starts: found.starts.length, cancels: found.cancels.length, finishes: found.finishes.length, deadNodes: found.deadNodes.length, tries }
      if (await store.commit(snapshot, found)) {
        if (result.starts + result.cancels + result.finishes + result.deadNodes > 0) log.info({ ...result, version: snapshot.version }, 'tasks placed')
        for (const dead of found.deadNodes) log.warn(dead, 'node is dead: its tasks failed')
        return result
      }
      if (tries >= MAX_TRIES) {
        log.warn({ tries, version: snapshot.version }, 'plan refused again and again; the next pass tries anew')
        return { starts: 0, cancels: 0, finishes: 0, deadNodes: 0, tries }
      }
    }
  }

  #tellSweep ({ gotFreshLeases, dropped, nodes }: PlacementSnapshot): void {
    const { log } = this.#needs
    if (gotFreshLeases && nodes.length > 0) log.warn({ nodes: nodes.length }, 'no pass has run for a while: every node gets a fresh lease')
    for (const sessionId of dropped) log.warn({ sessionId }, 'demand dropped: no broker asserts it any more')
  }
}
