import t from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisMessageStore } from '../../store/redis-store.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { model } from './model/run.ts'

// The model over the real store: a broker that crashes leaves its connection to the next one, which takes the session over as in the house.
t.test('model (Redis): whatever happens in whatever order, what was promised is kept', { ...needsRedis, timeout: 3_600_000 }, async t => {
  const server = await startRedis(t, { appendfsync: 'everysec' })
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  await model(t, {
    durable: true,
    runs: 400,
    length: 60,
    backing: run => ({
      open: create => RedisMessageStore.open({ redis, prefix: 'model', sessionId: String(run), level: 'process', create, log: silent }),
      keeps: false,
    }),
  })
  t.same(await redis.keys('{model:*'), [], 'and closed sessions leave no key')
})
