import t from 'tap'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { model } from './model/run.ts'

const KINDS = [
  { kind: 'durable', durable: true, settings: {} },
  { kind: 'interactive', durable: false, settings: {} },
  // A request may be at several instances, and have several answers.
  { kind: 'durable, what is slow is sent twice', durable: true, settings: { multiEmissionDelayTime: 500 } },
]

// A hundred and fifty lists of up to forty commands each, in this process; model.long.ts runs more of them, longer, over Redis.
for (const { kind, durable, settings } of KINDS) {
  t.test(`model (${kind}): whatever happens in whatever order, what was promised is kept`, { timeout: 3_600_000 }, t => model(t, {
    durable,
    settings,
    runs: 150,
    length: 40,
    backing: () => {
      const store = new MemoryMessageStore()
      return { open: async () => store, keeps: true }
    },
  }))
}
