import type { StateChange } from '../../store/message-store.ts'
import type { CustomWork } from './custom-work.ts'

/** Where changes of a custom broker's state wait for a batch. */
export type ChangesSource = Pick<CustomWork, 'takeChanges' | 'giveBack'>

/** What a batch takes along: the changes of its own messages, and those that belong to none. Undefined: there is no custom broker. */
export function changesOf (batch: ReadonlyArray<{ changes: readonly StateChange[] | undefined }>, source: ChangesSource | undefined): StateChange[] | undefined {
  return source === undefined ? undefined : [...batch.flatMap(({ changes }) => changes ?? []), ...source.takeChanges()]
}
