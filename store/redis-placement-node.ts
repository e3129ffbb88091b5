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
  /** Of the machine; undefined: an older manager, 1. */
  readonly sockets?: number | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly groups: readonly string[]
  /** New for each start of a manager: two managers with one name tell each other apart by it. */
  readonly instance: string
  /** ISO 8601 UTC; undefined: an older manager. */
  readonly startedAt?: string | undefined
  /** Boot and process namespace in which `pid` is its number, and the start time that makes the number unique there: whoever runs there too sees whether it lives. */
  readonly home?: string | undefined
  readonly startTime?: string | undefined
}

/** The manager that has a node's name: which it is, and how long it has been silent by Redis' clock. `epoch` and `beat` say that it has done nothing since. */
export interface NameHolder { readonly record: NodeRecord, readonly epoch: string, readonly beat: string, readonly ageMs: number }

/** Another manager has the node's name, and was not declared dead. */
export class NameHeld extends Error {
  override name = 'NameHeld'
  readonly holder: NameHolder
  constructor (holder: NameHolder) {
    super(`another node manager has the name ${holder.record.id}`)
    this.holder = holder
  }
}

/** A releaseNodeCommandLine that failed: for people, nothing waits for it. */
export interface ReleaseFailure { readonly sessionId: string, readonly at: string, readonly why: string, readonly stderr: string }

/** What a node tells people of itself, beside its tasks. */
export interface NodeNews { readonly releaseFailure: ReleaseFailure }

export type SyncAnswer =
  /** `over`: of the sessions that the node said it is prepared for, those that want nothing any more. */
  | { readonly fenced: false, readonly tasks: PlacedTask[], readonly demands: Map<string, Demand>, readonly over: readonly string[], readonly isDraining: boolean }
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

  /**
   * @param dead a holder of the name that was found dead: it loses the name, unless it has done something since
   * @returns the node's epoch. What the table had for the node has failed.
   * @throws NameHeld
   */
  async register (record: NodeRecord, dead?: NameHolder): Promise<string> {
    const said = [record.id, JSON.stringify(record), iso(), dead?.epoch ?? '', dead?.beat ?? '']
    const [isOurs, is, epoch, beat, ageMs] = list(await SCRIPTS.register().run(this.#redis, [this.#keys.version], said))
    if (int(isOurs) === 1) return text(is)
    throw new NameHeld({ record: JSON.parse(text(is)) as NodeRecord, epoch: text(epoch), beat: text(beat), ageMs: int(ageMs) })
  }

  /** Beat, reports and task list in one exchange. `prepared`: sessions whose prepareNodeCommandLine has run here. */
  async sync (node: string, epoch: string, reports: readonly PlacedTask[], prepared: readonly string[] = [], news?: NodeNews): Promise<SyncAnswer> {
    const said = [node, epoch, JSON.stringify(reports), JSON.stringify(prepared), news === undefined ? '' : JSON.stringify(news)]
    const [isCurrent, tasks, demands, over, isDraining] = list(await SCRIPTS.sync().run(this.#redis, [this.#keys.version], said))
    if (int(isCurrent) === 0) return { fenced: true, takenBy: text(tasks) || undefined }
    const wanted = list(demands).map(demand => JSON.parse(text(demand)) as Demand)
    return {
      fenced: false,
      tasks: list(tasks).map(task => JSON.parse(text(task)) as PlacedTask),
      demands: new Map(wanted.map(demand => [demand.sessionId, demand])),
      over: list(over).map(text),
      isDraining: int(isDraining) === 1
    }
  }

  /** `ending`: no new tasks, those that run are being canceled. `gone`: no node any more. */
  async leave (node: string, epoch: string, stage: 'ending' | 'gone'): Promise<void> {
    await SCRIPTS.leave().run(this.#redis, [this.#keys.version], [node, epoch, iso(), stage === 'gone' ? 1 : 0])
  }
}

const iso = (): string => new Date().toISOString()
