import { sharedKey } from './redis-keys.ts'
import { script } from './redis-script.ts'
import type { TaskInfo } from './placement-store.ts'

/** The scripts of store/lua/placement-*.lua. Each takes the version's key only and derives the others from it. */
export const SCRIPTS = {
  put: script('placement-put'),
  remove: script('placement-remove'),
  session: script('placement-session'),
  snapshot: script('placement-snapshot'),
  commit: script('placement-commit'),
  register: script('placement-register'),
  sync: script('placement-sync'),
  leave: script('placement-leave'),
  drain: script('placement-drain'),
}

export interface PlacementKeys {
  readonly version: string
  readonly passes: string
  readonly timers: string
  /** Channel: something that a plan depends on is another now. */
  readonly changed: string
  /** Channel of one node: its task list is another now. */
  wake (node: string): string
  /** Stream of TaskStateChanged. */
  events (sessionId: string): string
}

export function placementKeys (prefix: string): PlacementKeys {
  const key = (...parts: string[]): string => sharedKey(prefix, 'placement', ...parts)
  return {
    version: key('version'),
    passes: key('passes'),
    timers: key('timers'),
    changed: key('changed'),
    wake: node => key('wake', node),
    events: sessionId => sharedKey(prefix, 'events', sessionId)
  }
}

/** A task as the node's table holds it. */
export interface PlacedTask extends TaskInfo {
  /** CCP_COREIDS; `capacity` of them. */
  readonly coreIds: readonly number[]
  readonly cancelGraceMs: number
}

/** What a session is told of a task: the table's own columns stay behind. */
export function toTaskInfo (json: string | PlacedTask): TaskInfo {
  const { coreIds: _, cancelGraceMs: __, ...info } = typeof json === 'string' ? JSON.parse(json) as PlacedTask : json
  return info
}

/** How long the stream of a session lives on that was dropped or removed, but not forgotten: who attaches within a day still sees how its tasks ended. */
export const STREAM_KEPT_MS = 24 * 3600 * 1000
