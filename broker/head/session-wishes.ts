import { allows, unitCores, type UnitType } from '../../core/planner.ts'
import { SoaError } from '../../core/errors.ts'
import type { NodeView } from '../../store/redis-placement.ts'
import type { Wishes } from '../wishes.ts'

/** Which nodes a session is for and what a unit of it is, as callers say it. */
export interface AskedWishes {
  /** Node group; several with commas between them: nodes that are in all of them (HPC's NodeGroups). */
  group?: string | undefined
  /** Labels that a node must have, by name. */
  labels?: Readonly<Record<string, string>> | undefined
  /** Names of nodes that are not to be used. */
  exclude?: readonly string[] | undefined
  coresPerUnit?: number | undefined
  unitType?: UnitType | undefined
  canPreempt?: boolean | undefined
}

/** As a node offers at most (setting `cores`). */
const MOST_CORES = 4096
const UNIT_TYPES: readonly UnitType[] = ['core', 'socket', 'node']
/** Of groups, labels and excluded nodes each, and characters of a name: a demand is read whole at each pass of the planner. */
const MOST_NAMES = 1000
const LONGEST_NAME = 255
const SHOWN = 20

/** What was asked for, in the form of the session's record; refuses what cannot be meant. Whether any node fits is `refuseUnlessPossible`'s to say. */
export function readWishes (asked: AskedWishes): Partial<Wishes> {
  const { group, labels, exclude, coresPerUnit, unitType, canPreempt } = asked
  const groups = group === undefined ? [] : [...new Set(group.split(',').map(name => name.trim()))]
  names('group', groups)
  names('labels', Object.entries(labels ?? {}).flat())
  names('exclude', exclude ?? [])
  if (unitType !== undefined && !UNIT_TYPES.includes(unitType)) refuse('unitType', `${UNIT_TYPES.join(', ')}, not ${JSON.stringify(String(unitType).slice(0, 100))}`)
  if (coresPerUnit !== undefined) {
    if (unitType !== undefined && unitType !== 'core') refuse('coresPerUnit', `a unit of type ${unitType} has the cores that its ${unitType} has; say either the one or the other`)
    if (!Number.isInteger(coresPerUnit) || coresPerUnit < 1 || coresPerUnit > MOST_CORES) refuse('coresPerUnit', `a whole number from 1 to ${MOST_CORES}, not ${coresPerUnit}`)
  }
  return {
    ...(groups.length === 0 ? {} : { groups }),
    ...(labels === undefined || Object.keys(labels).length === 0 ? {} : { labels }),
    ...(exclude === undefined || exclude.length === 0 ? {} : { exclude: [...new Set(exclude)].sort() }),
    ...(coresPerUnit === undefined ? {} : { coresPerUnit }),
    ...(unitType === undefined ? {} : { unitType }),
    ...(canPreempt === undefined ? {} : { canPreempt })
  }
}

/**
 * Refuses what no node of the grid can give, with what there is: a session that waits for a group with a typing error in it would wait in silence. Nodes that are
 * away count (they are known for an hour), full ones and draining ones too; a grid without any node refuses nothing, since its nodes are still to come.
 */
export function refuseUnlessPossible (wishes: Partial<Wishes>, nodes: readonly NodeView[]): void {
  if (nodes.length === 0) return
  const { groups = [], labels = {}, exclude = [], coresPerUnit = 1, unitType } = wishes
  for (const group of groups) {
    if (!nodes.some(node => node.groups.includes(group))) refuse('group', `no node is in the group ${shown(group)}; known groups: ${list(nodes.flatMap(node => node.groups))}`)
  }
  const grouped = nodes.filter(node => allows({ groups, exclude: [], labels: {} }, node))
  if (grouped.length === 0) refuse('group', `no node is in all of the groups ${list(groups)}`)
  const where = groups.length === 0 ? '' : ` of ${list(groups)}`
  for (const [name, value] of Object.entries(labels)) {
    if (!grouped.some(node => node.labels[name] === value)) refuse('labels', `no node${where} has ${shown(`${name}=${value}`)}; known values of ${shown(name)}: ${list(grouped.flatMap(node => node.labels[name] ?? []))}`)
  }
  const labelled = grouped.filter(node => allows({ exclude: [], labels }, node))
  if (labelled.length === 0) refuse('labels', `no node${where} has all of ${list(Object.entries(labels).map(([name, value]) => `${name}=${value}`))}`)
  const left = labelled.filter(node => !exclude.includes(node.id))
  if (left.length === 0) refuse('exclude', `every node that fits is excluded: ${list(labelled.map(({ id }) => id))}`)
  const largest = Math.max(...left.map(({ cores }) => cores))
  if (left.every(node => unitCores({ coresPerUnit, unitType }, node) > node.cores)) refuse('coresPerUnit', `${coresPerUnit} cores are more than any node that fits has; the largest has ${largest}`)
}

/** Whether nodes need be looked at for it. */
export const wishesForNodes = ({ groups, labels, exclude, coresPerUnit = 1 }: Partial<Wishes>): boolean =>
  groups !== undefined || labels !== undefined || exclude !== undefined || coresPerUnit > 1

function names (argument: string, given: readonly string[]): void {
  if (given.length > MOST_NAMES) refuse(argument, `${given.length} names, the limit is ${MOST_NAMES}`)
  for (const name of given) {
    if (typeof name !== 'string' || name === '' || name.length > LONGEST_NAME) refuse(argument, `names of 1 to ${LONGEST_NAME} characters, not ${shown(String(name))}`)
  }
}

function refuse (argument: string, why: string): never { throw new SoaError('InvalidArgument', { argument, why }) }

const shown = (name: string): string => JSON.stringify(name.slice(0, 100))

function list (found: readonly string[]): string {
  const all = [...new Set(found)].sort()
  return all.length === 0 ? 'none' : all.slice(0, SHOWN).join(', ') + (all.length > SHOWN ? ` and ${all.length - SHOWN} more` : '')
}
