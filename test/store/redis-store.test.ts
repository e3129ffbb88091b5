import t from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisMessageStore } from '../../store/redis-store.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { letterPromises } from './letter-promises.ts'
import { scanPromises } from './scan-promises.ts'
import { storePromises, type Open } from './store-promises.ts'

t.test('redis store', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendfsync: 'everysec' })
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  let session = 0
  const opened: Open = async (_t, limits = {}) => {
    const open = { redis, prefix: 'promises', sessionId: String(++session), level: 'process', log: silent, limits } as const
    const store = await RedisMessageStore.open({ ...open, create: true })
    return {
      store,
      reopen: async () => {
        await store.close(true)
        return await RedisMessageStore.open({ ...open, create: false })
      },
      traces: () => redis.keys(`{promises:s:${open.sessionId}}*`)
    }
  }
  storePromises(t, opened)
  letterPromises(t, opened)
  scanPromises(t, opened)
})
