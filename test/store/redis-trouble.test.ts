import { pino } from 'pino'
import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis, type Redis } from '../../store/redis.ts'
import { RedisMessageStore, type OpenSession } from '../../store/redis-store.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { fault, requestsOf, request, settlement } from './store-promises.ts'

const connect = async (t: Test, url: string, timeoutMs = 20_000): Promise<Redis> => {
  const redis = await openRedis(url, { log: silent, timeoutMs })
  t.teardown(() => closeRedis(redis))
  return redis
}
const session = (redis: Redis, more: Partial<OpenSession> = {}): OpenSession => ({ redis, prefix: 'trouble', sessionId: '1', level: 'disk', create: true, log: silent, ...more })
const end = { seq: 0, committed: 0, endOfMessages: true, batchId: -1 }

t.test('redis store: a second owner takes over, and every write of the first is refused', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const [one, two] = [await connect(t, server.url), await connect(t, server.url)]
  const first = await RedisMessageStore.open(session(one))
  await first.append('c', 'C', requestsOf(1, 3))
  await t.rejects(RedisMessageStore.open(session(two)), fault('Broker_SessionIdAlreadyExists'), 'a new session never gets old data')
  await first.append('c', 'C', requestsOf(4, 4))
  const second = await RedisMessageStore.open(session(two, { create: false }))
  await t.rejects(first.append('c', 'C', requestsOf(5, 5)), fault('storeFenced'))
  const writes: Array<[string, (s: RedisMessageStore) => Promise<unknown>]> = [
    ['append', s => s.append('c', 'C', requestsOf(5, 5))], ['commit', s => s.commit('c', 'C', end)], ['discard', s => s.discard('c', 0)],
    ['settle', s => s.settle([settlement('c', 1)])], ['release', s => s.release('c', 0)], ['purge', s => s.purge('c')], ['read', s => s.read('c', 0, 1, 1)],
    ['requests', s => s.requests('c', [1])], ['load', s => s.load()], ['close', s => s.close(false)]
  ]
  for (const [name, write] of writes) {
    // Each by an owner that does not know yet.
    const owner = await RedisMessageStore.open(session(one, { create: false }))
    const next = await RedisMessageStore.open(session(two, { create: false }))
    await t.rejects(write(owner), fault('storeFenced'), name)
    t.match(await next.load(), [{ appended: 4, outstanding: [1, 2, 3, 4], endOfMessages: false }], `${name}: nothing changed`)
  }
  await t.rejects(second.load(), fault('storeFenced'))
})

t.test('redis store: a session that is not there is not raised as an empty one', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  await t.rejects(RedisMessageStore.open(session(await connect(t, server.url), { create: false })), fault('storeLost'))
})

t.test('redis store: kill -9 of Redis in the middle of appends and settles loses nothing that was acknowledged, and keeps nothing twice', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const redis = await connect(t, server.url)
  const store = await RedisMessageStore.open(session(redis))
  const TOTAL = 2000
  const BATCH = 50
  const KILLS = 3
  let appended = 0
  let killed = 0
  const acknowledged = new Map<number, number>()
  const appends = async (): Promise<void> => {
    while (appended < TOTAL) {
      await store.append('c', 'C', requestsOf(appended + 1, appended + BATCH))
      await store.commit('c', 'C', { seq: appended + BATCH, committed: appended + BATCH, endOfMessages: false, batchId: -1 })
      appended += BATCH
      if (killed < KILLS && appended >= (killed + 1) * TOTAL / (KILLS + 1)) {
        killed++
        void server.kill9().then(() => server.restart()).catch(error => t.fail(String(error)))
      }
    }
  }
  const settles = async (): Promise<void> => {
    for (let next = 1; next <= TOTAL;) {
      const last = Math.min(next + BATCH - 1, appended)
      if (last < next) {
        await redis.ping().catch(() => { /* being killed: the store waits, not we */ })
        await new Promise(setImmediate)
        continue
      }
      for (const { seq, at } of await store.settle(requestsOf(next, last).map(({ seq }) => settlement('c', seq)))) {
        if (acknowledged.has(seq)) t.fail(`seq ${seq} was told twice`)
        acknowledged.set(seq, at)
      }
      next = last + 1
    }
  }
  await Promise.all([appends(), settles()])
  t.equal(killed, KILLS)
  t.equal(acknowledged.size, TOTAL, 'each settle told what it kept, also where the answer was lost')
  t.match(await store.load(), [{ appended: TOTAL, committed: TOTAL, responses: TOTAL, outstanding: [] }])
  const seen = new Map<number, number>()
  for (let from = 0; from < TOTAL;) {
    const page = await store.read('c', from, 500, 1e8)
    for (const { seq, at } of page) seen.set(seq, at)
    from += page.length
    if (page.length === 0) break
  }
  t.same([...seen].sort(([a], [b]) => a - b), [...acknowledged].sort(([a], [b]) => a - b))
  await store.close(false)
  t.same(await redis.keys('*'), [])
})

t.test('redis store: an answer that is lost on the way is found again', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const proxy = await cuttingProxy(t, server.path)
  const store = await RedisMessageStore.open(session(await connect(t, proxy.url)))
  proxy.loseNextAnswer()
  await store.append('c', 'C', requestsOf(1, 6))
  t.match(await store.load(), [{ appended: 6, outstanding: [1, 2, 3, 4, 5, 6] }])
  proxy.loseNextAnswer()
  await store.commit('c', 'C', { seq: 6, committed: 6, endOfMessages: true, batchId: 1 })
  await store.settle([settlement('c', 2)])
  proxy.loseNextAnswer()
  t.same(await store.settle([settlement('c', 5), settlement('c', 2), settlement('c', 1)]), [{ clientId: 'c', seq: 5, at: 1 }, { clientId: 'c', seq: 1, at: 2 }],
    'the settle tells what it kept, although Redis kept it in a try whose answer nobody got')
  t.same(await store.settle([settlement('c', 5)]), [], 'and only once')
  proxy.loseNextAnswer()
  await store.discard('c', 0)
  proxy.loseNextAnswer()
  await store.release('c', 1)
  t.same((await store.read('c', 0, 9, 1e6)).map(r => [r.at, r.seq]), [[2, 1]])
  proxy.loseNextAnswer()
  await store.purge('c')
  t.same(await store.purged(), { total: 6, processed: 3, faulted: 0 }, 'counted once')
  proxy.loseNextAnswer()
  await store.close(false)
  t.same(await (await connect(t, server.url)).keys('*'), [])
})

t.test('redis store: what was sent over a connection that is lost cannot land after the owner has gone on', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const proxy = await cuttingProxy(t, server.path)
  const store = await RedisMessageStore.open(session(await connect(t, proxy.url)))
  await store.append('c', 'C', requestsOf(1, 2))
  proxy.holdNextRequest()
  await store.append('c', 'C', [request(3, '<new/>')])
  t.match(await store.load(), [{ appended: 3, outstanding: [1, 2, 3] }], 'sent again over a new connection')
  await store.discard('c', 2)
  t.match(await proxy.release(), /^-FENCED/, 'the first copy arrives at last')
  t.match(await store.load(), [{ appended: 3, outstanding: [1, 2] }])
  await store.append('c', 'C', requestsOf(4, 4))
  t.match(await store.load(), [{ appended: 4, outstanding: [1, 2, 4] }], 'the owner itself is not fenced')
})

t.test('redis store: FLUSHALL under a session is loud, and for good', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const redis = await connect(t, server.url)
  const store = await RedisMessageStore.open(session(redis))
  await store.append('c', 'C', requestsOf(1, 3))
  await redis.flushall()
  await t.rejects(store.append('c', 'C', requestsOf(4, 4)), fault('storeLost'))
  await t.rejects(store.settle([settlement('c', 1)]), fault('storeLost'))
  t.same(await redis.keys('*'), [], 'nothing was written into the void')
  await store.close(false)
})

t.test('redis store: a Redis that comes back with less than was acknowledged fails the session with both figures', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendonly: false })
  const redis = await connect(t, server.url)
  const store = await RedisMessageStore.open(session(redis))
  await store.append('c', 'C', requestsOf(1, 3))
  await redis.save()
  await store.append('c', 'C', requestsOf(4, 5))
  await server.kill9()
  await server.restart()
  await t.rejects(store.append('c', 'C', requestsOf(6, 6)), fault('storeLost', ['1', '1 writes', '2']))
  await t.rejects(store.load(), fault('storeLost'))
  await store.close(false)
  t.same(await (await connect(t, server.url)).keys('*'), [], 'and can still be removed')
})

t.test('redis store: a full Redis refuses requests with the figures, still takes responses, and goes on when there is room', { ...needsRedis }, async t => {
  const server = await startRedis(t, { maxmemory: '12mb', appendfsync: 'no' })
  const redis = await connect(t, server.url)
  const store = await RedisMessageStore.open(session(redis))
  const big = Buffer.alloc(100_000, 'x')
  let kept = 0
  const fill = async (): Promise<void> => {
    for (;;) {
      await store.append('c', 'C', [request(kept + 1, big)])
      kept++
    }
  }
  await t.rejects(fill(), fault('StorageSpaceNotSufficient', [/maxmemory/, /^\d+$/, String(12 * 1024 * 1024)]))
  t.ok(kept > 10)
  await store.commit('c', 'C', { seq: kept, committed: kept, endOfMessages: false, batchId: -1 })
  t.match(await store.load(), [{ appended: kept, committed: kept }], 'no accepted request is lost, the refused one left nothing')
  t.equal((await store.settle(requestsOf(1, kept).map(({ seq }) => settlement('c', seq)))).length, kept)
  await store.append('c', 'C', [request(kept + 1, big)])
  t.match(await store.load(), [{ appended: kept + 1, responses: kept, outstanding: [kept + 1] }])
  await store.close(false)
  t.same(await redis.keys('*'), [])
})

t.test('redis store: a Redis that stays away is said to be away after storeTimeoutMs, and the session goes on when it is back', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const redis = await connect(t, server.url, 1000)
  const store = await RedisMessageStore.open(session(redis, { limits: { timeoutMs: 300 } }))
  await store.append('c', 'C', requestsOf(1, 1))
  await server.stop()
  await t.rejects(store.append('c', 'C', requestsOf(2, 2)), fault('StorageServiceNotAvailble'))
  await t.rejects(store.settle([settlement('c', 1)]), fault('StorageServiceNotAvailble'))
  await server.restart()
  const patient = await connect(t, server.url)
  await patient.ping()
  if (redis.status !== 'ready') await new Promise(resolve => redis.once('ready', resolve))
  await store.append('c', 'C', requestsOf(2, 2))
  t.match(await store.settle([settlement('c', 1)]), [{ seq: 1, at: 0 }])
})

t.test('redis store: a frozen Redis is waited for, and each call has its answer when it thaws', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const redis = await connect(t, server.url, 3000) // a dead link is given up after a third of it
  const store = await RedisMessageStore.open(session(redis))
  await store.append('c', 'C', requestsOf(1, 4))
  server.freeze()
  const calls = [store.append('c', 'C', requestsOf(5, 6)), store.settle([settlement('c', 1)]), store.commit('c', 'C', { seq: 4, committed: 4, endOfMessages: false, batchId: -1 })]
  await new Promise(resolve => redis.once('close', resolve))
  server.thaw()
  t.match(await Promise.all(calls), [undefined, [{ seq: 1, at: 0 }], undefined])
  t.match(await store.load(), [{ appended: 6, committed: 4, responses: 1, outstanding: [2, 3, 4, 5, 6] }])
})

t.test('redis store: level replicas acknowledges nothing that no replica has', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  await t.rejects(RedisMessageStore.open(session(await connect(t, server.url), { level: 'replicas', limits: { timeoutMs: 500 } })), fault('StorageServiceNotAvailble', [/0 of 1 replicas/]))
})

t.test('redis store: level replicas commits when the replica has it', { ...needsRedis }, async t => {
  const server = await startRedis(t, { extra: { 'repl-diskless-sync-delay': '0' } })
  const replica = await startRedis(t)
  // Replication runs over TCP: the primary gets a free port of loopback for it.
  const redis = await connect(t, server.url)
  const port = await freePort()
  await redis.config('SET', 'port', String(port))
  const copy = await connect(t, replica.url)
  await copy.replicaof('127.0.0.1', port)
  const store = await RedisMessageStore.open(session(redis, { level: 'replicas' }))
  await store.append('c', 'C', requestsOf(1, 3))
  await store.commit('c', 'C', { seq: 3, committed: 3, endOfMessages: true, batchId: -1 })
  t.equal(await copy.hget('{trouble:s:1}:client:c', 'committedSeq'), '3')
  await copy.replicaof('NO', 'ONE')
})

t.test('redis store: closing a session of many clients and 100,000 rows leaves no key', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendfsync: 'no' })
  const redis = await connect(t, server.url)
  const store = await RedisMessageStore.open(session(redis))
  for (let i = 0; i < 700; i += 100) await Promise.all(Array.from({ length: 100 }, (_, j) => store.append(`client ${i + j}`, 'x', requestsOf(1, 2))))
  await store.settle([settlement('client 0', 1), settlement('client 699', 2)])
  // Filled by hand, for speed: what counts here is how they go.
  const fill = 'for i = 1, tonumber(ARGV[1]) do redis.call("HSET", KEYS[1], i, "row") end'
  await redis.eval(fill, 1, '{trouble:s:1}:requests:client 7', 60_000)
  await redis.eval(fill, 1, '{trouble:s:1}:responses:client 7', 40_000)
  t.equal(await redis.hlen('{trouble:s:1}:requests:client 7'), 60_000)
  await store.close(false)
  t.same(await redis.keys('*'), [])
})

t.test('redis store: a Redis that is busy, or for the moment no primary, is waited for', { ...needsRedis }, async t => {
  const server = await startRedis(t, { extra: { 'busy-reply-threshold': '5' } })
  const [redis, admin, script] = [await connect(t, server.url), await connect(t, server.url), await connect(t, server.url)]
  let triedAgain = (): void => {}
  const log = pino({ level: 'warn' }, { write: (line: string) => { if (line.includes('tried again')) triedAgain() } })
  const store = await RedisMessageStore.open(session(redis, { log }))

  const endless = t.rejects(script.eval('while true do end', 0), 'killed below')
  let isBusy = false
  while (!isBusy) isBusy = await admin.ping().then(() => false, () => true)
  let waiting = new Promise<void>(resolve => { triedAgain = resolve })
  const append = store.append('c', 'C', requestsOf(1, 2))
  await waiting
  await admin.script('KILL')
  await append
  await endless

  await admin.replicaof('127.0.0.1', 1)
  waiting = new Promise<void>(resolve => { triedAgain = resolve })
  const settle = store.settle([settlement('c', 2)])
  await waiting
  await admin.replicaof('NO', 'ONE')
  t.same(await settle, [{ clientId: 'c', seq: 2, at: 0 }])
  t.match(await store.load(), [{ appended: 2, outstanding: [1], responses: 1 }])
})

async function freePort (): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}
