import t from 'tap'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { letterPromises } from './letter-promises.ts'
import { scanPromises } from './scan-promises.ts'
import { storePromises, type Open } from './store-promises.ts'

const open: Open = async (_t, limits) => {
  const store = new MemoryMessageStore(limits)
  return { store, reopen: async () => store, traces: async () => [] }
}

storePromises(t, open)
letterPromises(t, open)
scanPromises(t, open)
