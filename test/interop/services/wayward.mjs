// HPC Pack's echo contract, but for two words that it takes amiss.
import { setTimeout as wait } from 'node:timers/promises'
import { RetryOperationError } from 'soa-broker/service'

export default {
  Echo ({ input }) {
    if (input === 'throw') throw new Error('on purpose')
    if (input === 'retry') throw new RetryOperationError('disk full')
    return { EchoResult: input }
  },
  EchoData: ({ dataClientId }) => ({ EchoDataResult: dataClientId?.length ?? 0 }),
  /** Waits that long, and keeps nothing busy. */
  GenerateLoad: async ({ runMilliSeconds = 0 }) => {
    const StartTime = new Date()
    await wait(runMilliSeconds)
    return { GenerateLoadResult: { EndTime: new Date(), StartTime, TaskId: 0 } }
  }
}
