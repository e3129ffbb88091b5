import t from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisMessageStore } from '../../store/redis-store.ts'
import { needsRedis } from '../redis-server.ts'
import { startSentinels } from '../redis-sentinel.ts'
import { request, settlement } from './store-promises.ts'

t.setTimeout(120_000)

t.test('redis store: the primary is killed under a session of level replicas; all that was acknowledged is at the next one, and the session goes on', { ...needsRedis }, async t => {
  const group = await startSentinels(t)
  const redis = await openRedis(group.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  const store = await RedisMessageStore.open({ redis, prefix: 'soa', sessionId: '7', level: 'replicas', create: true, log: silent })
  const first = await group.primary()
  const appended = new Set<number>()
  const answered = new Map<number, number>()
  let seq = 0
  let killing: Promise<void> | undefined
  for (let round = 0; round < 60; round++) {
    const batch = Array.from({ length: 10 }, () => request(++seq))
    // In the middle of a round, whose calls are all in flight then.
    if (round === 30) killing = group.kill9(first)
    await store.append('c', 'C', batch)
    for (const { seq } of batch) appended.add(seq)
    await store.commit('c', 'C', { seq, committed: seq, endOfMessages: false, batchId: -1 })
    for (const kept of await store.settle(batch.slice(0, 5).map(({ seq }) => settlement('c', seq)))) {
      if (answered.has(kept.seq)) t.fail(`request ${kept.seq} was kept twice`)
      answered.set(kept.seq, kept.at)
    }
  }
  await killing
  t.not(await group.primary(), first, 'another one is the primary')
  t.equal(answered.size, 300, 'each settled request is told where its response is')
  const [client] = await store.load()
  t.match(client, { appended: 600, committed: 600, responses: 300 })
  t.equal(client?.outstanding.length, 300)
  const read = [...await store.read('c', 0, 1000, 1e9)]
  t.strictSame(read.map(({ seq, at }) => [seq, at]), [...answered].sort((a, b) => a[1] - b[1]), 'in the places that were told')
  await store.close(false)
  t.strictSame(await redis.keys('{soa:s:7}*'), [])
})
