/**
 * Where service tasks run: a pure function of one snapshot. It knows no Redis and no clock of its own, so it is tested with plain values.
 *
 * Rules, in their order ([placement] "The pattern"):
 * 1. Nodes that missed their lease are dead; their tasks no longer count.
 * 2. Tasks whose demand is gone, that it has let go of, or on a node that it no longer allows, are canceled; so is what exceeds the target, youngest first.
 *    On a draining node a task that runs is told to finish what it has in hand, however long that takes; it counts no longer.
 * 3. By priority, and within one priority first every session's minimum (all or none), then growth; older sessions first.
 * 4. The node with most free cores is taken first, so a session spreads.
 * 5. A session that lacks its minimum takes victims of lower priority, and what equals have beyond their minimum, youngest first; one that grows by preemption takes what lower ones have
 *    beyond theirs. Cores that are already being freed are counted before any new victim is, and what it waits for is kept from those behind it. Who may not be preempted is no victim.
 */

/** What one unit (task) is made of. `socket`: as many cores as a socket of its node has; `node`: all of them ([broker-behaviour] 5.5, ResourceUnitType). */
export type UnitType = 'core' | 'socket' | 'node'

export interface PlanDemand {
  readonly sessionId: string
  readonly target: number
  /** As many at once, or none. Above `target` it is the target that counts. */
  readonly min: number
  /** Higher goes first. */
  readonly priority: number
  /** ISO 8601 UTC: the older of equals goes first. */
  readonly createdAt: string
  /** Of unit type core; undefined is that too. */
  readonly coresPerUnit: number
  readonly unitType?: UnitType | undefined
  /** False: its tasks are nobody's victims. */
  readonly canPreempt?: boolean | undefined
  /** Takes victims for growth too, not only for its minimum. */
  readonly growsByPreemption?: boolean | undefined
  readonly exclude: readonly string[]
  /** As `exclude`, but what runs there goes on. */
  readonly avoid?: readonly string[] | undefined
  /** A node must be in all of these groups. */
  readonly groups?: readonly string[] | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Node → time (ms, the snapshot's clock) before which no task of this session is started there: its tasks failed there lately. */
  readonly notBefore?: Readonly<Record<string, number>> | undefined
  /** Tasks that the session has let go of: they are canceled, and count no longer. */
  readonly leaving?: readonly string[] | undefined
}

export interface PlanNode {
  readonly id: string
  readonly cores: number
  /** 1 when it is not known. */
  readonly sockets?: number | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly groups: readonly string[]
  readonly epoch: number
  /** False: its lease ran out. */
  readonly alive: boolean
  /** Takes no new task; those that run are told to finish. */
  readonly draining: boolean
  /** Its manager is going, and is ending them itself. */
  readonly leaving?: boolean | undefined
}

export interface PlanTask {
  /** `<version>-<n>`: later ids are younger. */
  readonly id: string
  readonly sessionId: string
  readonly node: string
  readonly coreIds: readonly number[]
  readonly state: string
}

export interface Snapshot {
  /** ms, any clock that `notBefore` is told in. */
  readonly now: number
  readonly version: number
  readonly demands: readonly PlanDemand[]
  readonly nodes: readonly PlanNode[]
  readonly tasks: readonly PlanTask[]
}

export type CancelReason = 'demandGone' | 'letGo' | 'surplus' | 'unfit' | 'preempted' | 'drained'
export interface Start { readonly sessionId: string, readonly node: string, readonly coreIds: readonly number[] }
export interface Cancel { readonly id: string, readonly sessionId: string, readonly node: string, readonly why: CancelReason }
export interface Plan {
  readonly starts: Start[]
  readonly cancels: Cancel[]
  /** Tasks to be in state Finishing: no new calls, those in hand have all the time that they need. */
  readonly finishes: Cancel[]
  readonly deadNodes: Array<{ node: string, epoch: number }>
}

/** One node while planning. `soon`: cores being freed and not yet promised to anybody. Free and soon never count the same core. */
interface Room { readonly node: PlanNode, readonly usedIds: Set<number>, free: number, soon: number }

/** Cores of one unit of this demand on this node. */
export function unitCores ({ unitType, coresPerUnit }: Pick<PlanDemand, 'unitType' | 'coresPerUnit'>, { cores, sockets = 1 }: Pick<PlanNode, 'cores' | 'sockets'>): number {
  if (unitType === 'node') return cores
  return unitType === 'socket' ? Math.max(1, Math.floor(cores / sockets)) : coresPerUnit
}

type Age = readonly [version: number, n: number]

/** Ids are `<version>-<n>`, both numbers. */
function ageOf (id: string): Age {
  const at = id.indexOf('-')
  return [Number(id.slice(0, at)), Number(id.slice(at + 1))]
}

const byAge = (a: Age, b: Age): number => b[0] - a[0] || b[1] - a[1]

/** Younger first. */
export const youngestFirst = (a: { id: string }, b: { id: string }): number => byAge(ageOf(a.id), ageOf(b.id))

const inOrder = (a: PlanDemand, b: PlanDemand): number =>
  b.priority - a.priority || compare(a.createdAt, b.createdAt) || compare(a.sessionId, b.sessionId)
const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

/** Whether the demand allows this node at all, whatever is free there. */
export function allows (demand: Pick<PlanDemand, 'groups' | 'exclude' | 'labels'>, node: Pick<PlanNode, 'id' | 'groups' | 'labels'>): boolean {
  return (demand.groups ?? []).every(group => node.groups.includes(group)) &&
    !demand.exclude.includes(node.id) &&
    Object.entries(demand.labels).every(([name, value]) => node.labels[name] === value)
}

export function plan (snapshot: Snapshot): Plan {
  const deadNodes = snapshot.nodes.filter(node => !node.alive).map(({ id, epoch }) => ({ node: id, epoch }))
  return new Planning(snapshot).run(deadNodes)
}

/** The working memory of one pass. */
class Planning {
  readonly #snapshot: Snapshot
  readonly #demands: PlanDemand[]
  readonly #rooms = new Map<string, Room>()
  readonly #live = new Map<string, PlanTask[]>()
  readonly #starts: Start[] = []
  readonly #startedUnits = new Map<string, number>()
  readonly #cancels: Cancel[] = []
  readonly #finishes: Cancel[] = []
  /** Tasks that their sessions have let go of. */
  readonly #letGo: ReadonlySet<string>
  readonly #canceled = new Set<PlanTask>()
  /** Who may go for sessions of the level at hand, in their order; made when the first one asks, since a full grid has thousands. */
  #victims: PlanTask[] | undefined

  constructor (snapshot: Snapshot) {
    this.#snapshot = snapshot
    this.#demands = [...snapshot.demands].sort(inOrder)
    for (const node of snapshot.nodes) if (node.alive) this.#rooms.set(node.id, { node, usedIds: new Set(), free: node.cores, soon: 0 })
    for (const { sessionId } of this.#demands) this.#live.set(sessionId, [])
    this.#letGo = new Set(this.#demands.flatMap(({ leaving = [] }) => leaving))
  }

  run (deadNodes: Plan['deadNodes']): Plan {
    this.#seatTasks()
    this.#trim()
    for (const level of levels(this.#demands)) {
      this.#victims = undefined
      for (const demand of level) this.#minimum(demand)
      this.#victims = undefined
      for (const demand of level) this.#grow(demand)
    }
    return { starts: this.#starts, cancels: this.#cancels, finishes: this.#finishes, deadNodes }
  }

  #seatTasks (): void {
    for (const task of this.#snapshot.tasks) {
      const room = this.#rooms.get(task.node)
      if (room === undefined) continue // its node is dead: it fails with it
      room.free -= task.coreIds.length
      for (const id of task.coreIds) room.usedIds.add(id)
      const mine = this.#live.get(task.sessionId)
      const isUnwanted = mine === undefined ? 'demandGone' : this.#letGo.has(task.id) ? 'letGo' : undefined
      if (task.state === 'Canceling' || (task.state === 'Finishing' && isUnwanted === undefined)) { room.soon += task.coreIds.length; continue }
      if (isUnwanted !== undefined) this.#cancel(task, isUnwanted)
      else if (room.node.draining && room.node.leaving !== true) this.#drain(task)
      else mine!.push(task)
    }
  }

  /** What runs where it may not, and what is more than wanted. */
  #trim (): void {
    for (const demand of this.#demands) {
      const mine = this.#live.get(demand.sessionId)!
      for (const task of [...mine]) if (!allows(demand, this.#rooms.get(task.node)!.node)) this.#cancel(task, 'unfit')
      mine.sort(youngestFirst)
      for (const task of mine.slice(0, Math.max(0, mine.length - demand.target))) this.#cancel(task, 'surplus')
    }
  }

  #cancel (task: PlanTask, why: CancelReason): void {
    this.#canceled.add(task)
    this.#cancels.push({ id: task.id, sessionId: task.sessionId, node: task.node, why })
    this.#rooms.get(task.node)!.soon += task.coreIds.length
    const mine = this.#live.get(task.sessionId)
    const at = mine?.indexOf(task) ?? -1
    if (at >= 0) mine!.splice(at, 1)
  }

  /** A host that only starts has nothing to finish. */
  #drain (task: PlanTask): void {
    if (task.state === 'Dispatching') { this.#cancel(task, 'drained'); return }
    this.#finishes.push({ id: task.id, sessionId: task.sessionId, node: task.node, why: 'drained' })
    this.#rooms.get(task.node)!.soon += task.coreIds.length
  }

  #units (demand: PlanDemand): number {
    return this.#live.get(demand.sessionId)!.length + (this.#startedUnits.get(demand.sessionId) ?? 0)
  }

  #lacks (demand: PlanDemand): number { return Math.min(demand.min, demand.target) - this.#units(demand) }

  #minimum (demand: PlanDemand): void {
    const lacks = this.#lacks(demand)
    if (lacks <= 0) return
    const rooms = this.#open(demand)
    if (seats(rooms, demand, room => room.free) >= lacks) { this.#start(demand, lacks); return }
    const candidates = this.#victimsFor(demand, rooms, false)
    if (new Freed(demand, rooms, candidates).seats < lacks) return // all or none: nobody is thrown out for nothing
    this.#preempt(candidates, demand, rooms, lacks)
  }

  #grow (demand: PlanDemand): void {
    if (this.#lacks(demand) > 0) return // its minimum must come first, in one piece
    this.#start(demand, demand.target - this.#units(demand))
    const lacks = demand.target - this.#units(demand)
    if (lacks <= 0 || demand.growsByPreemption !== true) return
    const rooms = this.#open(demand)
    const candidates = this.#victimsFor(demand, rooms, true)
    this.#preempt(candidates, demand, rooms, Math.min(lacks, new Freed(demand, rooms, candidates).seats))
  }

  /** Cancels the first of the candidates that make room for `count` units, and keeps that room. */
  #preempt (candidates: PlanTask[], demand: PlanDemand, rooms: Room[], count: number): void {
    if (count <= 0) return
    const freed = new Freed(demand, rooms)
    const chosen: PlanTask[] = []
    for (const victim of candidates) { if (freed.seats >= count) break; freed.add(victim); chosen.push(victim) }
    // A victim on a node where the rest did not add up to a unit would die for nothing. The last chosen are the oldest: spared first.
    const spared = new Set<PlanTask>()
    for (const victim of chosen.toReversed()) {
      freed.add(victim, -1)
      if (freed.seats >= count) spared.add(victim); else freed.add(victim)
    }
    for (const victim of chosen) if (!spared.has(victim)) this.#cancel(victim, 'preempted')
    this.#reserve(demand, rooms, count)
  }

  /** Nodes that may take a task of this demand now. */
  #open (demand: PlanDemand): Room[] {
    return [...this.#rooms.values()].filter(({ node }) =>
      !node.draining && allows(demand, node) && demand.avoid?.includes(node.id) !== true && (demand.notBefore?.[node.id] ?? 0) <= this.#snapshot.now)
  }

  /** Tasks on these nodes that may go for this demand's minimum, or its growth: lowest priority first, then the youngest. */
  #victimsFor (demand: PlanDemand, rooms: Room[], isForGrowth: boolean): PlanTask[] {
    this.#victims ??= this.#demands
      .filter(other => (isForGrowth ? other.priority < demand.priority : other.priority <= demand.priority) && other.canPreempt !== false)
      .flatMap(other => this.#sparable(other, demand, isForGrowth).map(task => ({ priority: other.priority, age: ageOf(task.id), task })))
      .sort((a, b) => a.priority - b.priority || byAge(a.age, b.age))
      .map(({ task }) => task)
    if (this.#victims.length === 0) return []
    const here = new Set(rooms.map(({ node }) => node.id))
    return this.#victims.filter(task => !this.#canceled.has(task) && here.has(task.node) && task.sessionId !== demand.sessionId)
  }

  /**
   * Of a lower priority all may go for a minimum; for growth, and from an equal, what is beyond its own minimum, youngest first, so that nobody starves behind
   * a session that came before.
   */
  #sparable (other: PlanDemand, demand: PlanDemand, isForGrowth: boolean): PlanTask[] {
    const tasks = this.#live.get(other.sessionId)! // youngest first
    if (other.priority < demand.priority && !isForGrowth) return tasks
    return tasks.slice(0, Math.max(0, tasks.length - Math.min(other.min, other.target)))
  }

  /** Keeps room for `count` units from the sessions behind: cores being freed first, since free ones may serve somebody meanwhile. */
  #reserve (demand: PlanDemand, rooms: Room[], count: number): void {
    for (let n = 0; n < count; n++) {
      const room = best(rooms, demand, room => room.free + room.soon)
      if (room === undefined) return
      const cores = unitCores(demand, room.node)
      const fromSoon = Math.min(room.soon, cores)
      room.soon -= fromSoon
      room.free -= cores - fromSoon
    }
  }

  #start (demand: PlanDemand, count: number): void {
    const rooms = this.#open(demand)
    for (let n = 0; n < count; n++) {
      const room = best(rooms, demand, room => room.free)
      if (room === undefined) return
      const cores = unitCores(demand, room.node)
      room.free -= cores
      this.#startedUnits.set(demand.sessionId, (this.#startedUnits.get(demand.sessionId) ?? 0) + 1)
      this.#starts.push({ sessionId: demand.sessionId, node: room.node.id, coreIds: takeIds(room, cores) })
    }
  }
}

/** Units that fit when what is being freed is free, and these tasks are gone; counted as they are added, since a grid may have thousands. */
class Freed {
  seats = 0
  readonly #demand: PlanDemand
  readonly #rooms: ReadonlyMap<string, { room: Room, freed: number }>

  constructor (demand: PlanDemand, rooms: readonly Room[], tasks: readonly PlanTask[] = []) {
    this.#demand = demand
    this.#rooms = new Map(rooms.map(room => [room.node.id, { room, freed: 0 }]))
    for (const at of this.#rooms.values()) this.seats += this.#seatsIn(at)
    for (const task of tasks) this.add(task)
  }

  /** @param sign -1: it stays after all */
  add ({ node, coreIds }: PlanTask, sign: 1 | -1 = 1): void {
    const at = this.#rooms.get(node)
    if (at === undefined) return
    this.seats -= this.#seatsIn(at)
    at.freed += sign * coreIds.length
    this.seats += this.#seatsIn(at)
  }

  #seatsIn ({ room, freed }: { room: Room, freed: number }): number {
    return Math.floor(Math.max(0, room.free + room.soon + freed) / unitCores(this.#demand, room.node))
  }
}

/** Demands in order, cut where the priority changes. */
function levels (ordered: readonly PlanDemand[]): PlanDemand[][] {
  const found: PlanDemand[][] = []
  for (const demand of ordered) {
    const last = found.at(-1)
    if (last?.[0]?.priority === demand.priority) last.push(demand); else found.push([demand])
  }
  return found
}

/** Units that fit, each whole on one node. */
function seats (rooms: Room[], demand: PlanDemand, cores: (room: Room) => number): number {
  return rooms.reduce((sum, room) => sum + Math.floor(Math.max(0, cores(room)) / unitCores(demand, room.node)), 0)
}

function best (rooms: Room[], demand: PlanDemand, cores: (room: Room) => number): Room | undefined {
  let found: Room | undefined
  for (const room of rooms) if (cores(room) >= unitCores(demand, room.node) && (found === undefined || cores(room) > cores(found))) found = room
  return found
}

/** The lowest core indices that nobody on the node has: CCP_COREIDS. */
function takeIds (room: Room, count: number): number[] {
  const ids: number[] = []
  for (let id = 0; ids.length < count; id++) if (!room.usedIds.has(id)) { room.usedIds.add(id); ids.push(id) }
  return ids
}
