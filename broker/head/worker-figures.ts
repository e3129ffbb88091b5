import type { Figures, WorkerFigures } from '../contract.ts'

/** Services that are told apart; what others do is counted together. Registered ones are fewer by far; a label for each is a time series for each. */
const MOST_SERVICES = 500
export const OTHERS = '(others)'

/**
 * What this head's workers have done since the head began, by service. Each worker tells its own totals with every claim; those of a worker that is
 * gone stay as it told them last, so that no sum goes down. A worker that was there before this head counts from when it was first asked.
 */
export class FigureBook {
  readonly #workers = new Map<string, { before: WorkerFigures, last: WorkerFigures }>()
  readonly #past: Map<string, Figures['grown']> = new Map()
  readonly #services = new Set<string>()

  /** @param isOld it worked before this head began */
  told (workerId: string, figures: WorkerFigures | undefined, isOld: boolean): void {
    if (figures === undefined) return // a worker of an older version
    const known = this.#workers.get(workerId)
    if (known === undefined) this.#workers.set(workerId, { before: isOld ? figures : {}, last: figures })
    else known.last = Object.fromEntries(Object.entries(figures).map(([service, { grown, now }]) => [service, { grown: atLeast(grown, known.last[service]?.grown), now }]))
  }

  gone (workerId: string): void {
    const worker = this.#workers.get(workerId)
    if (worker === undefined || !this.#workers.delete(workerId)) return
    for (const [service, { grown }] of Object.entries(worker.last)) {
      const name = this.#named(service)
      this.#past.set(name, add(this.#past.get(name), grown, worker.before[service]?.grown))
    }
  }

  /** By service; `now` is undefined when no worker has it. */
  view (): Map<string, { grown: Figures['grown'], now?: Figures['now'] | undefined }> {
    const found = new Map<string, { grown: Figures['grown'], now?: Figures['now'] | undefined }>([...this.#past].map(([name, grown]) => [name, { grown }]))
    for (const { before, last } of this.#workers.values()) {
      for (const [service, { grown, now }] of Object.entries(last)) {
        const name = this.#named(service)
        const there = found.get(name)
        found.set(name, { grown: add(there?.grown, grown, before[service]?.grown), now: add(there?.now, now) })
      }
    }
    return found
  }

  #named (service: string): string {
    if (this.#services.has(service)) return service
    if (this.#services.size >= MOST_SERVICES) return OTHERS
    this.#services.add(service)
    return service
  }
}

/** Two answers that were asked for at a time may come in another order. */
function atLeast<K extends string> (grown: Record<K, number>, before: Record<K, number> | undefined): Record<K, number> {
  return before === undefined ? grown : Object.fromEntries(Object.entries<number>(grown).map(([name, value]) => [name, Math.max(value, before[name as K])])) as Record<K, number>
}

function add<K extends string> (sum: Record<K, number> | undefined, more: Record<K, number>, less?: Record<K, number>): Record<K, number> {
  return Object.fromEntries(Object.entries<number>(more).map(([name, value]) => [name, (sum?.[name as K] ?? 0) + value - (less?.[name as K] ?? 0)])) as Record<K, number>
}
