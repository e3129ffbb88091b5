import type { Clock } from '../../core/clock.ts'

/**
 * Nodes where a session starts nothing for a while, since its service could not be loaded there, or the node not be prepared ([broker-behaviour] 4.8, where HPC Pack
 * excludes them through its scheduler). They stand in the demand, so no task of the session appears there before the time is over. A broker that is
 * raised anew knows none of them, and finds out again.
 */
export class AvoidedNodes {
  readonly #clock: Clock
  readonly #periodMs: number
  /** Ways to stop each node's timer. */
  readonly #nodes = new Map<string, () => void>()
  readonly #changed: () => void

  /** @param periodMs endpointNotFoundRetryPeriod */
  constructor (clock: Clock, periodMs: number, changed: () => void) {
    this.#clock = clock
    this.#periodMs = periodMs
    this.#changed = changed
  }

  /** In order, so that equal sets are written alike. */
  get names (): string[] { return [...this.#nodes.keys()].sort() }

  /** Once per node: hosts that were started there beside the first one tell nothing new. */
  add (node: string): void {
    if (this.#nodes.has(node)) return
    this.#nodes.set(node, this.#clock.after(this.#periodMs, () => { this.#nodes.delete(node); this.#changed() }, { unref: true }))
    this.#changed()
  }

  close (): void {
    for (const disarm of this.#nodes.values()) disarm()
    this.#nodes.clear()
  }
}
