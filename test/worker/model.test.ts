import t from 'tap'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { model } from './model/run.ts'

// A hundred and fifty lists of up to forty commands each, in this process; model.long.ts runs more of them, longer, over Redis.
for (const durable of [true, false]) {
  t.test(`model (${durable ? 'durable' : 'interactive'}): whatever happens in whatever order, what was promised is kept`, { timeout: 3_600_000 }, t => model(t, {
    durable,
    runs: 150,
    length: 40,
    backing: () => {
      const store = new MemoryMessageStore()
      return { open: async () => store, keeps: true }
    },
  }))
}
