import { states } from '../core/machine.ts'

/**
 * One task on its node. The states are those of TaskStateChanged; Queued and Finishing are never a node's to say.
 *
 * accepted: its port takes connections · cancel: it is not wanted any more (SIGTERM, grace, SIGKILL) · ended: its process group is gone ·
 * endedWell: so it is, and its exit code was 0.
 */
export const TASK = states({
  Dispatching: { accepted: 'Running', cancel: 'Canceling', ended: 'Failed', endedWell: 'Failed' }, // a host that ends before it accepts has failed, whatever it says
  Running: { cancel: 'Canceling', ended: 'Failed', endedWell: 'Finished' },
  Canceling: { ended: 'Canceled', endedWell: 'Canceled' },
  Finished: {},
  Failed: {},
  Canceled: {},
})
