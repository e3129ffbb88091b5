import type { Demand, DemandBoard } from './placement-store.ts'
import { placementKeys, SCRIPTS, STREAM_KEPT_MS } from './redis-placement-scripts.ts'
import { patiently, type CallNeeds } from './redis-call.ts'

/** Where brokers say what they want. `put` again and again: a demand that nobody asserts for a minute is dropped, and a Redis that lost it learns it anew. */
export class RedisDemandBoard implements DemandBoard {
  readonly #needs: CallNeeds
  readonly #version: string

  constructor (needs: CallNeeds & { readonly prefix: string }) {
    this.#needs = needs
    this.#version = placementKeys(needs.prefix).version
  }

  async put (demand: Demand): Promise<void> {
    await patiently(this.#needs, () => SCRIPTS.put().run(this.#needs.redis, [this.#version], [demand.sessionId, canonical(demand)]))
  }

  async remove (sessionId: string, { forget = false }: { forget?: boolean } = {}): Promise<void> {
    await patiently(this.#needs, () => SCRIPTS.remove().run(this.#needs.redis, [this.#version], [sessionId, forget ? 1 : 0, STREAM_KEPT_MS]))
  }
}

/** Equal demands give equal text, whatever order their fields were written in: only a real change makes heads plan. */
function canonical (value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => field !== null && typeof field === 'object' && !Array.isArray(field)
    ? Object.fromEntries(Object.entries(field).sort(([a], [b]) => a < b ? -1 : 1))
    : field)
}
