// HPC Pack's echo sample: Echo answers "machine:input", so a client sees which machine served it.
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'

export default class EchoSvc {
  Echo ({ input }) {
    return { EchoResult: `${hostname()}:${input ?? ''}` }
  }

  /** HPC Pack reads common data (DataClient) here, which this grid does not have. */
  EchoData () {
    throw new Error('common data (DataClient) is not supported here')
  }

  /** Keeps a core busy for so many milliseconds, with a pause now and then in which other calls may start or end. */
  async GenerateLoad ({ runMilliSeconds = 0 }, { signal }) {
    const StartTime = new Date()
    const end = StartTime.getTime() + runMilliSeconds
    for (let slice = Date.now(); Date.now() < end && !signal.aborted; slice = Date.now()) {
      while (Date.now() < Math.min(end, slice + 20));
      await wait(0)
    }
    return { GenerateLoadResult: { EndTime: new Date(), StartTime, TaskId: Number(process.env.CCP_TASKSYSTEMID) || 0 } }
  }
}
