import { setTimeout as wait } from 'node:timers/promises'

export default class SlowEcho {
  async Echo ({ input }) {
    await wait(20)
    return { EchoResult: `slowly:${input ?? ''}` }
  }

  EchoData () { throw new Error('not asked for here') }
  GenerateLoad () { throw new Error('not asked for here') }
}
