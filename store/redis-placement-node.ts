import type { Demand } from './placement-store.ts'
import { placementKeys, SCRIPTS, type PlacedTask, type PlacementKeys } from './redis-placement-scripts.ts'
import { int, list, text } from './redis-script.ts'
import type { Redis } from './redis.ts'

/** A node as its manager describes it. */
export interface NodeRecord {
  /** Letters, digits, `.`, `_`, `-`; at most 64. */
  readonly id: string
  readonly machine: string
  readonly pid: number
  readonly cores: number
  readonly labels: Readonly<Record<string, string>>
  readonly groups: readonly string[]
  /** New for each start of a manager: two managers with one name tell each other apart by it. */
  readonly instance: string
}

export type SyncAnswer =
  | { readonly fenced: false, readonly tasks: PlacedTask[], readonly demands: Map<string, Demand> }
  /** `takenBy`: instance of the manager that has this name now; undefined: nobody, the node was declared dead or Redis forgot it. */
  | { readonly fenced: true, readonly takenBy: string | undefined }

/** The node manager's side of placement. No call tries again by itself: the manager's loop does, on its next beat. Every call may be repeated. */
export class RedisNodeLink {
  readonly #redis: Redis
  readonly #keys: PlacementKeys

  constructor ({ redis, prefix }: { readonly redis: Redis, readonly prefix: string }) {
    this.#redis = redis
    this.#keys = placementKeys(prefix)
  }

  /** Channel on which the node is told that its list is another now. */
  wakeChannel (node: string): string { return this.#keys.wake(node) }

  /** @returns the node's epoch. What the table had for the node has failed. */
  async register (record: NodeRecord): Promise<string> {
    return text(await SCRIPTS.register().run(this.#redis, [this.#keys.version], [record.id, JSON.stringify(record), iso()]))
  }

  /** Beat, reports and task list in one exchange. */
  async sync (node: string, epoch: string, reports: readonly PlacedTask[]): Promise<SyncAnswer> {
    const [isCurrent, tasks, demands] = list(await SCRIPTS.sync().run(this.#redis, [this.#keys.version], [node, epoch, JSON.stringify(reports)]))
    if (int(isCurrent) === 0) return { fenced: true, takenBy: text(tasks) || undefined }
    const wanted = list(demands).map(demand => JSON.parse(text(demand)) as Demand)
    return {
      fenced: false,
      tasks: list(tasks).map(task => JSON.parse(text(task)) as PlacedTask),
      demands: new Map(wanted.map(demand => [demand.sessionId, demand]))
    }
  }

  /** `ending`: no new tasks, those that run are being canceled. `gone`: no node any more. */
  async leave (node: string, epoch: string, stage: 'ending' | 'gone'): Promise<void> {
    await SCRIPTS.leave().run(this.#redis, [this.#keys.version], [node, epoch, iso(), stage === 'gone' ? 1 : 0])
  }
}

const iso = (): string => new Date().toISOString()
