import { allows, plan, unitCores, type PlanDemand, type PlanNode, type PlanTask, type Snapshot } from './planner.ts'

/** Why a session does not have the instances that it cannot work without. Numbers are units (service instances) unless they say otherwise. */
export interface Shortage {
  /** What it must have: all of them or none. */
  readonly units: number
  readonly has: number
  /** Nodes that may be used, what they would have room for with nothing else on them, and for how many there is room now. */
  readonly nodes: number
  readonly room: number
  readonly free: number
  /** Cores of these nodes: all, those that tasks have, and those of them that are being freed. */
  readonly cores: number
  readonly busyCores: number
  readonly freeingCores: number
  readonly unusable: ReadonlyArray<{ readonly node: string, readonly why: string }>
  /** All of it in words. */
  readonly why: string
}

/** Nodes named in `why`. */
const NAMED = 5

/**
 * What the planner cannot give this session now; undefined: it has what it must have, wants nothing, or gets it with the next pass.
 * @param offline nodes that are known and have no lease any more, which a snapshot is without
 */
export function shortage (snapshot: Snapshot, offline: readonly string[], sessionId: string): Shortage | undefined {
  const demand = snapshot.demands.find(demand => demand.sessionId === sessionId)
  if (demand === undefined) return undefined
  const isLive = ({ id, state }: PlanTask): boolean => state !== 'Canceling' && state !== 'Finishing' && demand.leaving?.includes(id) !== true
  const alive = new Map(snapshot.nodes.filter(node => node.alive).map(node => [node.id, node]))
  const has = snapshot.tasks.filter(task => task.sessionId === sessionId && isLive(task) && alive.has(task.node)).length
  const units = Math.min(demand.min, demand.target)
  if (has >= units || plan(snapshot).starts.some(start => start.sessionId === sessionId)) return undefined

  const judged = [
    ...snapshot.nodes.map(node => ({ node, why: unusable(demand, node, snapshot.now) })),
    ...offline.map(id => ({ node: { id }, why: 'is offline' }))
  ].sort((a, b) => a.node.id < b.node.id ? -1 : 1)
  const usable = snapshot.nodes.filter(node => judged.some(other => other.node === node && other.why === undefined))
  const coresOf = (tasks: Snapshot['tasks'], node: PlanNode): number => tasks.reduce((sum, task) => sum + (task.node === node.id ? task.coreIds.length : 0), 0)
  const total = (value: (node: PlanNode) => number): number => usable.reduce((sum, node) => sum + value(node), 0)
  const freeing = snapshot.tasks.filter(task => !isLive(task))
  const numbers = {
    units,
    has,
    nodes: usable.length,
    room: total(node => Math.floor(node.cores / unitCores(demand, node))),
    free: total(node => Math.floor(Math.max(0, node.cores - coresOf(snapshot.tasks, node)) / unitCores(demand, node))),
    cores: total(node => node.cores),
    busyCores: total(node => coresOf(snapshot.tasks, node)),
    freeingCores: total(node => coresOf(freeing, node)),
    unusable: judged.flatMap(({ node: { id }, why }) => why === undefined ? [] : [{ node: id, why }])
  }
  return { ...numbers, why: words(numbers, demand) }
}

/** Why nothing of this demand is started on this node; undefined: it may be. */
function unusable (demand: PlanDemand, node: PlanNode, now: number): string | undefined {
  if (!node.alive) return 'has not been heard of'
  if (node.draining) return node.leaving === true ? 'is leaving' : 'is drained'
  const { groups = [], exclude, labels, avoid = [], notBefore = {} } = demand
  const group = groups.find(group => !node.groups.includes(group))
  if (group !== undefined) return `is not in group ${group}`
  const label = Object.entries(labels).find(([name, value]) => node.labels[name] !== value)
  if (label !== undefined) return `has no label ${label.join('=')}`
  if (exclude.includes(node.id) || !allows(demand, node)) return 'is excluded by the session'
  if (avoid.includes(node.id)) return 'could not load the service lately'
  if ((notBefore[node.id] ?? 0) > now) return 'had a task of the session that failed, and pauses'
  return unitCores(demand, node) > node.cores ? `has ${node.cores} cores, a unit needs ${unitCores(demand, node)}` : undefined
}

function words ({ units, has, nodes, room, free, cores, busyCores, freeingCores, unusable }: Omit<Shortage, 'why'>, { coresPerUnit, unitType }: PlanDemand): string {
  const size = unitType !== undefined && unitType !== 'core' ? ` of a ${unitType}` : coresPerUnit > 1 ? ` of ${coresPerUnit} cores` : ''
  const wants = `${plural(units, 'instance')}${size}${has === 0 ? '' : `, ${has} there`}`
  const named = unusable.slice(0, NAMED).map(({ node, why }) => `${node} ${why}`).join(', ') + (unusable.length > NAMED ? `, and ${unusable.length - NAMED} more` : '')
  if (nodes === 0 && unusable.length === 0) return `${wants}: the grid has no node (soa node starts one)`
  if (nodes === 0) return `${wants}: no node may be used: ${named}`
  const those = `the ${nodes === 1 ? 'node' : `${nodes} nodes`} that may be used`
  const others = unusable.length === 0 ? '' : ` (${named})`
  if (room < units) return `${wants}: ${those}${others} ${nodes === 1 ? 'has' : 'have'} room for ${room}`
  return `${wants}: ${free === 0 ? 'none fits' : `${free} fit${free === 1 ? 's' : ''}`} in what is free on ${those}${others}; ${busyCores} of ${cores} cores are taken${freeingCores === 0 ? '' : ` (${freeingCores} being freed)`}`
}

const plural = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
