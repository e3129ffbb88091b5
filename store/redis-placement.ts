import type { Plan, PlanDemand, PlanNode, Snapshot } from '../core/planner.ts'
import { nodeState, type NodeState } from './node.states.ts'
import type { Demand } from './placement-store.ts'
import type { NodeNews, NodeRecord, ReleaseFailure } from './redis-placement-node.ts'
import { placementKeys, SCRIPTS, STREAM_KEPT_MS, type PlacedTask, type PlacementKeys } from './redis-placement-scripts.ts'
import { patiently, type CallNeeds } from './redis-call.ts'
import { int, list, text, type Reply } from './redis-script.ts'

export { RedisDemandBoard } from './redis-placement-demand.ts'
export { RedisTaskEvents } from './redis-placement-events.ts'
export { RedisNodeLink, type NodeNews, type NodeRecord, type ReleaseFailure } from './redis-placement-node.ts'

export interface PlacementLimits {
  /** A node that has not beaten for this long is dead. */
  readonly nodeLeaseMs: number
  /** A demand that no broker has asserted for this long is dropped. */
  readonly demandLeaseMs: number
  /** No pass for this long: nobody is judged by beats that could not arrive. Under the node lease. */
  readonly sweepGapMs: number
  /** Dead nodes are shown for this long. */
  readonly deadShownMs: number
}
export const PLACEMENT_LIMITS: PlacementLimits = { nodeLeaseMs: 5000, demandLeaseMs: 60_000, sweepGapMs: 2000, deadShownMs: 3_600_000 }

/** Who makes a pass: BullMQ's scheduler, its trigger, or a head that misses both. `look` changes nothing. */
export type PassKind = 'sweep' | 'plan' | 'fallback' | 'look'

/** What people and REST see of a node. */
export interface NodeView {
  readonly id: string
  readonly machine: string
  readonly pid: number
  readonly state: NodeState
  readonly cores: number
  /** Cores that tasks have. */
  readonly busy: number
  readonly tasks: number
  /** Since the last beat, by Redis' clock; of an Offline node: since it was declared dead. */
  readonly heartbeatAgeMs: number
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly sockets?: number | undefined
  /** Of its node manager, ISO 8601 UTC; undefined: an older one. */
  readonly startedAt?: string | undefined
  /** The latest releaseNodeCommandLine that failed there. */
  readonly releaseFailure?: ReleaseFailure | undefined
}

interface NodeRow {
  readonly record: NodeRecord
  readonly epoch: string
  readonly beat: string
  readonly isDraining: boolean
  /** Its manager has said goodbye, and ends its tasks itself. */
  readonly isLeaving: boolean
  readonly isDead: boolean
  readonly tasks: PlacedTask[]
  readonly news: NodeNews | undefined
}
type Failures = Readonly<Record<string, { readonly n: number, readonly at: number }>>

/** Everything that a plan is made from, and what its commit needs to know again. */
export interface PlacementSnapshot extends Snapshot {
  readonly demands: ReadonlyArray<PlanDemand & Demand>
  /** True: no pass had run for long, so every node just got a fresh lease. */
  readonly gotFreshLeases: boolean
  /** Sessions whose demand nobody asserted any more. */
  readonly dropped: readonly string[]
  readonly rows: readonly NodeRow[]
}

/** Longest pause before a session's task is tried again on a node where it failed; the first is 0.5 s, and each doubles. */
const LONGEST_PAUSE_MS = 60_000
const pauseMs = (failures: number): number => Math.min(500 * 2 ** Math.min(failures - 1, 20), LONGEST_PAUSE_MS)

/** The heads' side of placement: reads the state, makes a plan the state, shows and drains nodes. */
export class RedisPlacement {
  readonly #needs: CallNeeds
  readonly #keys: PlacementKeys
  readonly #limits: PlacementLimits

  constructor (needs: CallNeeds & { readonly prefix: string, readonly limits?: Partial<PlacementLimits> | undefined }) {
    this.#needs = needs
    this.#keys = placementKeys(needs.prefix)
    this.#limits = { ...PLACEMENT_LIMITS, ...needs.limits }
  }

  /** Channel on which heads hear that a new plan is due. A lost message costs no more than the next sweep. */
  get changedChannel (): string { return this.#keys.changed }

  async snapshot (kind: PassKind): Promise<PlacementSnapshot> {
    const { nodeLeaseMs, demandLeaseMs, sweepGapMs, deadShownMs } = this.#limits
    const [at, version, fresh, dropped, demands, failed, nodes] = list(await this.#run('snapshot', [kind, sweepGapMs, demandLeaseMs, deadShownMs, STREAM_KEPT_MS]))
    const now = int(at)
    const failures = pairs(failed)
    const rows = list(nodes).map(toRow)
    return {
      now,
      version: int(version),
      gotFreshLeases: int(fresh) === 1,
      dropped: list(dropped).map(text),
      rows,
      demands: list(demands).map(json => withPauses(JSON.parse(text(json)) as Demand, failures)),
      nodes: rows.filter(({ isDead }) => !isDead).map(row => toPlanNode(row, now - Number(row.beat) <= nodeLeaseMs)),
      tasks: rows.flatMap(({ tasks }) => tasks)
    }
  }

  /** False: the state has moved since the snapshot, and nothing was done. An empty plan is always committed. */
  async commit (snapshot: PlacementSnapshot, plan: Plan): Promise<boolean> {
    if (plan.starts.length + plan.cancels.length + plan.finishes.length + plan.deadNodes.length === 0) return true
    const version = Math.max(snapshot.version + 1, snapshot.now)
    const at = new Date().toISOString()
    const rows = new Map(snapshot.rows.map(row => [row.record.id, row]))
    const demands = new Map(snapshot.demands.map(demand => [demand.sessionId, demand]))
    const starts = plan.starts.map(({ sessionId, node, coreIds }, n): PlacedTask => ({
      id: `${version}-${n + 1}`,
      sessionId,
      node,
      machineName: rows.get(node)?.record.machine ?? node,
      state: 'Dispatching',
      capacity: coreIds.length,
      firstCoreIndex: coreIds[0] ?? 0,
      at,
      coreIds,
      cancelGraceMs: demands.get(sessionId)?.cancelGraceMs ?? 0
    }))
    const dead = plan.deadNodes.map(({ node }) =>
      ({ node, epoch: rows.get(node)?.epoch, beat: rows.get(node)?.beat, why: `node ${node} has not been heard of for ${this.#limits.nodeLeaseMs} ms` }))
    return int(await this.#run('commit', [snapshot.version, version, at, JSON.stringify({ starts, cancels: plan.cancels, finishes: plan.finishes, dead })])) === 1
  }

  async nodes (): Promise<NodeView[]> {
    const { now, rows } = await this.snapshot('look')
    return rows.map(({ record: { instance: _, home: __, startTime: ___, ...record }, beat, isDraining, isLeaving, isDead, tasks, news }): NodeView => ({
      ...record,
      state: nodeState({ isDraining, isLeaving, isDead, tasks }),
      busy: tasks.reduce((sum, { capacity }) => sum + capacity, 0),
      tasks: tasks.length,
      heartbeatAgeMs: now - Number(beat),
      ...(news?.releaseFailure === undefined ? {} : { releaseFailure: news.releaseFailure })
    })).sort((a, b) => a.id < b.id ? -1 : 1)
  }

  /** False: no such node. */
  async setDraining (node: string, isDraining: boolean): Promise<boolean> {
    return int(await this.#run('drain', [node, isDraining ? 1 : 0])) === 1
  }

  /** ms since BullMQ last ran a sweep, by Redis' clock; Infinity: never. */
  async sinceSweepMs (): Promise<number> {
    const { redis } = this.#needs
    const [sweep, [seconds, micros]] = await patiently(this.#needs, async () => await Promise.all([redis.hget(this.#keys.passes, 'sweep'), redis.time()]))
    return sweep === null ? Infinity : Number(seconds) * 1000 + Math.floor(Number(micros) / 1000) - Number(sweep)
  }

  #run (name: 'snapshot' | 'commit' | 'drain', args: ReadonlyArray<string | number>): Promise<Reply> {
    return patiently(this.#needs, () => SCRIPTS[name]().run(this.#needs.redis, [this.#keys.version], args))
  }
}

function toRow (reply: Reply): NodeRow {
  const [, record, epoch, beat, draining, dead, tasks, news] = list(reply)
  return {
    record: JSON.parse(text(record)) as NodeRecord,
    epoch: text(epoch),
    beat: text(beat),
    isDraining: int(draining) > 0,
    isLeaving: int(draining) === 2,
    isDead: int(dead) === 1,
    tasks: list(tasks).map(task => JSON.parse(text(task)) as PlacedTask),
    news: text(news) === '' ? undefined : JSON.parse(text(news)) as NodeNews
  }
}

const toPlanNode = ({ record: { id, cores, sockets, labels, groups }, epoch, isDraining, isLeaving }: NodeRow, alive: boolean): PlanNode =>
  ({ id, cores, sockets, labels, groups, epoch: Number(epoch), alive, draining: isDraining, leaving: isLeaving })

function pairs (reply: Reply | undefined): Map<string, Failures> {
  const flat = list(reply).map(text)
  return new Map(flat.flatMap((session, i) => i % 2 === 0 ? [[session, JSON.parse(flat[i + 1] ?? '{}') as Failures] as const] : []))
}

function withPauses (demand: Demand, failures: ReadonlyMap<string, Failures>): Demand & PlanDemand {
  const mine = failures.get(demand.sessionId)
  if (mine === undefined) return demand
  return { ...demand, notBefore: Object.fromEntries(Object.entries(mine).map(([node, { n, at }]) => [node, at + pauseMs(n)])) }
}
