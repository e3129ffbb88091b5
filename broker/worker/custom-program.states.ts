import { states } from '../../core/machine.ts'

/**
 * The program of a custom broker. `crashed`: it ended by itself, and not with 0; `tooOften`: once more than it is started again for; `left`: it ended with 0;
 * `stuck`: a hook did not return.
 */
export const PROGRAM = states({
  Starting: { ready: 'Serving', crashed: 'Starting', tooOften: 'Failed', wrong: 'Failed', stop: 'Stopping' },
  Serving: { crashed: 'Starting', tooOften: 'Failed', left: 'Failed', stuck: 'Failed', sessionEnds: 'Ending', stop: 'Stopping' },
  Ending: { stuck: 'Failed', stop: 'Stopping' },
  Failed: { stop: 'Stopping' },
  Stopping: {},
})
