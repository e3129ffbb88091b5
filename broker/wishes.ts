import type { Demand } from '../store/placement-store.ts'
import type { SessionRecord } from '../store/session-store.ts'

/** What a session's nodes and units must be like: the part of its record that its demand repeats. Records of older heads have none of it. */
export type Wishes = Pick<Demand, 'groups' | 'labels' | 'exclude' | 'coresPerUnit' | 'unitType' | 'canPreempt'>

export function wishesOf (record: Pick<SessionRecord, keyof Wishes>): Wishes {
  const { groups, labels = {}, exclude = [], coresPerUnit = 1, unitType, canPreempt } = record
  return {
    labels,
    exclude,
    coresPerUnit,
    ...(groups === undefined ? {} : { groups }),
    ...(unitType === undefined ? {} : { unitType }),
    ...(canPreempt === undefined ? {} : { canPreempt }),
  }
}
