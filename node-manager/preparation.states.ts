import { states } from '../core/machine.ts'

/**
 * What a node has done for one session beside its tasks.
 *
 * prepared: prepareNodeCommandLine ended with 0 · failed: it did not · unwanted: every task that waited for it is canceled ·
 * over: nothing of the session runs here, and it is over or the node drained · released: releaseNodeCommandLine has ended, well or not.
 */
export const PREPARATION = states({
  Preparing: { prepared: 'Prepared', failed: 'Gone', unwanted: 'Gone' },
  Prepared: { over: 'Releasing' },
  Releasing: { released: 'Gone' },
  Gone: {},
})
