import { youngestFirst } from '../../core/planner.ts'

/** One service instance as grow and shrink see it. */
export interface UnitLoad {
  /** Of its task. */
  readonly id: string
  readonly node: string
  /** Cores of its task. */
  readonly cores: number
  /** Calls that it executes at a time; those that wait there are not in it. */
  readonly capacity: number
  /** Calls that it has, waiting ones too. */
  readonly inFlight: number
  /** It cannot be reached, and is left alone for a while. */
  readonly isBlocked: boolean
}

/** The k-th shrinking pass in a row lets go of 2^k at most. */
const MOST_DOUBLINGS = 30

/**
 * Instances that could leave while others have work ([broker-behaviour] 5.3), those that should go first in front: of nodes with the fewest busy instances, then
 * with the fewest at all, so that whole nodes become free. None, unless those that are busy can do all that is outstanding and more are idle than requests wait.
 */
export function idleUnits (loads: readonly UnitLoad[], outstanding: number): UnitLoad[] {
  const isBusy = ({ inFlight, isBlocked }: UnitLoad): boolean => inFlight > 0 && !isBlocked
  const busyCapacity = loads.reduce((sum, load) => sum + (isBusy(load) ? load.capacity : 0), 0)
  const queued = outstanding - loads.reduce((sum, { inFlight }) => sum + inFlight, 0)
  const idle = loads.filter(load => !isBusy(load))
  if (outstanding > busyCapacity || busyCapacity < queued || idle.length <= queued) return []
  const nodes = new Map<string, { busy: number, all: number }>()
  for (const load of loads) {
    const { busy, all } = nodes.get(load.node) ?? { busy: 0, all: 0 }
    nodes.set(load.node, { busy: busy + (isBusy(load) ? 1 : 0), all: all + 1 })
  }
  const at = (load: UnitLoad): { busy: number, all: number } => nodes.get(load.node)!
  return idle.sort((a, b) => at(a).busy - at(b).busy || at(a).all - at(b).all || compare(a.node, b.node) || Number(b.isBlocked) - Number(a.isBlocked) || youngestFirst(a, b))
}

/** How many of them go in the `pass`-th shrinking pass in a row, from 1: 2, 4, 8, …; `spare` may go without the session having fewer than it must. */
export const goingNow = (idle: number, spare: number, pass: number): number => Math.max(0, Math.min(idle, spare, 2 ** Math.min(pass, MOST_DOUBLINGS)))

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0
