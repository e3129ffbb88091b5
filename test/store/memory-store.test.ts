import t from 'tap'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { storePromises } from './store-promises.ts'

storePromises(t, async (_t, limits) => {
  const store = new MemoryMessageStore(limits)
  return { store, reopen: async () => store, traces: async () => [] }
})
