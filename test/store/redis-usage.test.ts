import t from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisMessageStore } from '../../store/redis-store.ts'
import { forgetUsage, probeWrites, storedBytes, StoreUsage } from '../../store/redis-usage.ts'
import { ManualClock } from '../clock.ts'
import { eventually } from '../e2e/cluster.ts'
import { needsRedis, startRedis, type RedisServerOptions } from '../redis-server.ts'
import { fault, request, settlement } from './store-promises.ts'

async function workerOf (t: { teardown: (end: () => unknown) => unknown }, url: string, maxStoreBytes: number) {
  const redis = await openRedis(url, { log: silent })
  const clock = new ManualClock()
  const usage = new StoreUsage({ redis, prefix: 'soa', log: silent, maxStoreBytes, clock })
  t.teardown(async () => { await usage.close(); await closeRedis(redis) })
  const open = async (sessionId: string, create = true): Promise<RedisMessageStore> => {
    const store = await RedisMessageStore.open({ redis, prefix: 'soa', sessionId, level: 'process', create, log: silent, quota: usage })
    await usage.add(sessionId)
    return store
  }
  return { redis, usage, open, clock }
}
const server = (t: { teardown: (end: () => unknown) => unknown }, options: RedisServerOptions = {}) => startRedis(t, { appendfsync: 'no', ...options })
const kib = (seq: number, count = 1) => request(seq, 'x'.repeat(1024 * count))

t.test('quota of all sessions: two workers share it, settles go on, and what is closed makes room', { ...needsRedis }, async t => {
  const { url } = await server(t)
  const a = await workerOf(t, url, 20_000)
  const b = await workerOf(t, url, 20_000)
  const one = await a.open('1')
  await one.append('c', 'C', Array.from({ length: 10 }, (_, i) => kib(i + 1)))
  await a.clock.advance(1000)
  await eventually('worker a has said what session 1 keeps', async () => await storedBytes({ redis: a.redis, log: silent, prefix: 'soa' }) >= 10 * 1024)
  const two = await b.open('2')
  await two.append('c', 'C', [kib(1, 5)])
  await t.rejects(two.append('c', 'C', [kib(2, 5)]), fault('StorageSpaceNotSufficient', [/^maxStoreBytes/]))
  t.match(await two.load(), [{ appended: 1 }], 'nothing of it was kept')
  t.match(await two.settle([settlement('c', 1, 'y'.repeat(6000))]), [{ seq: 1, at: 0 }], 'a response goes on')
  await one.close(false)
  await b.clock.advance(1000)
  await eventually('room is seen', async () => await two.append('c', 'C', [kib(2, 5)]).then(() => true, () => { void b.clock.advance(1000); return false }))
  await b.usage.drop('2')
  t.ok(await storedBytes({ redis: a.redis, log: silent, prefix: 'soa' }) > 5000, 'a suspended session counts')
  await two.close(false)
  t.strictSame(await a.redis.keys('*'), [])
  await forgetUsage({ redis: a.redis, log: silent, prefix: 'soa' }, '2')
  t.strictSame(await a.redis.keys('*'), [], 'again: nothing happens')
})

t.test('quota of all sessions: without a limit of its own it is 80 % of what Redis may use, and Redis itself never gets full', { ...needsRedis }, async t => {
  const { url } = await server(t, { maxmemory: '8mb' })
  const { open, redis, clock, usage } = await workerOf(t, url, 0)
  const store = await open('1')
  const batch = (from: number) => Array.from({ length: 50 }, (_, i) => kib(from + i, 4))
  let refused: unknown
  let seq = 1
  for (; refused === undefined && seq < 5000; seq += 50) await store.append('c', 'C', batch(seq)).catch(error => { refused = error })
  t.match(refused, fault('StorageSpaceNotSufficient', [/80 % of maxmemory/]))
  t.match(refused, { message: new RegExp(String(Math.floor(8 * 1024 * 1024 * 0.8))) })
  await probeWrites(redis) // it takes writes
  t.equal((await store.settle(Array.from({ length: 50 }, (_, i) => settlement('c', i + 1)))).length, 50)
  await clock.advance(1000)
  await usage.drop('1')
})

t.test('quota of all sessions: none without either', { ...needsRedis }, async t => {
  const { url } = await server(t)
  const { usage, open } = await workerOf(t, url, 0)
  await (await open('1')).append('c', 'C', [kib(1, 1000)])
  t.doesNotThrow(() => usage.admit(1e12))
})

t.test('probe: says that Redis takes no writes while it is full or a replica, and leaves nothing', { ...needsRedis }, async t => {
  const { url } = await server(t)
  const redis = await openRedis(url, { log: silent })
  t.teardown(() => closeRedis(redis))
  await probeWrites(redis)
  await redis.config('SET', 'maxmemory', '1')
  await t.rejects(probeWrites(redis), { message: /^OOM/ })
  await redis.config('SET', 'maxmemory', '0')
  await redis.replicaof('127.0.0.1', '1')
  await t.rejects(probeWrites(redis), { message: /^READONLY/ })
  await redis.replicaof('NO', 'ONE')
  await probeWrites(redis)
  t.strictSame(await redis.keys('*'), [])
})
