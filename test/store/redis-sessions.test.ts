import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisSessionStore, RedisWorkerDirectory } from '../../store/redis-sessions.ts'
import type { SessionRecord, WorkerRecord } from '../../store/session-store.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { fault } from './store-promises.ts'

const record = (sessionId: string, more: Partial<SessionRecord> = {}): SessionRecord => ({
  sessionId, service: 'CcpEchoSvc', durable: true, priority: 2000, settings: { messageResendLimit: 3, note: 'a"b' }, environment: {}, state: 'Starting', createdAt: '2026-01-01T00:00:00.000Z', ...more
})

t.test('directories in Redis', { ...needsRedis }, async t => {
  const server = await startRedis(t, { appendfsync: 'no' })
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  let fresh = 0
  const sessions = (): RedisSessionStore => new RedisSessionStore({ redis, prefix: `d${++fresh}`, log: silent })

  t.test('sessions: an id is taken once, and the record comes back as it was', async t => {
    const store = sessions()
    const full = record('1', { version: '1.0', minUnits: 1, maxUnits: 4, worker: 'w', brokerUniqueId: 'b', why: '', environment: { A: '' } })
    t.equal(await store.create(full), true)
    t.equal(await store.create(record('1')), false)
    t.same(await store.get('1'), full)
    t.equal(await store.get('2'), undefined)
  })

  t.test('sessions: of many that want one id, one gets it', async t => {
    const store = sessions()
    const won = await Promise.all(Array.from({ length: 20 }, (_, i) => store.create(record('1', { service: `s${i}` }))))
    t.equal(won.filter(Boolean).length, 1)
    t.equal((await store.get('1'))?.service, `s${won.indexOf(true)}`)
  })

  t.test('sessions: a change is one step, and happens only while its guard holds', async t => {
    const store = sessions()
    await store.create(record('1'))
    t.match(await store.update('1', { state: 'Running', worker: 'w1' }, { state: ['Starting', 'Suspended'], worker: undefined }), { state: 'Running', worker: 'w1', service: 'CcpEchoSvc' })
    t.equal(await store.update('1', { worker: 'w2' }, { worker: undefined }), undefined, 'somebody serves it')
    t.equal(await store.update('1', { worker: 'w2' }, { worker: 'w3' }), undefined)
    t.equal(await store.update('1', { state: 'Failed' }, { state: ['Suspended'] }), undefined)
    t.equal(await store.update('1', { state: 'Failed' }, { state: [] }), undefined)
    t.equal(await store.update('9', { state: 'Failed' }), undefined, 'it is gone')
    t.same(await store.update('1', { worker: undefined, why: 'idle', state: 'Suspended' }, { worker: 'w1', state: ['Running'] }), { ...record('1'), state: 'Suspended', why: 'idle' })
    t.notOk('worker' in (await store.get('1') ?? {}), 'undefined takes the field away')
    const claims = await Promise.all(Array.from({ length: 20 }, (_, i) => store.update('1', { worker: `w${i}` }, { worker: undefined })))
    t.equal(claims.filter(Boolean).length, 1, 'of many workers that raise it, one does')
  })

  t.test('sessions: they are counted by state, first out of the records, then with each change, and the count goes with the last one', async t => {
    const store = sessions()
    const key = `{d${fresh}}:session-states`
    await store.create(record('1'))
    await store.create(record('2', { state: 'Running' }))
    t.equal(await redis.exists(key), 0, 'nobody has asked')
    t.same(await store.countByState(), { Starting: 1, Running: 1 })
    await store.create(record('3'))
    await store.create(record('3'))
    await store.update('1', { state: 'Running' })
    await store.update('1', { state: 'Running', why: 'again' })
    await store.update('2', { state: 'Failed' }, { state: ['Suspended'] })
    t.same(await store.countByState(), { Starting: 1, Running: 2 }, 'what was refused, or said again, counts for nothing')
    await store.remove('3')
    await store.remove('3')
    t.match(await store.countByState(), { Starting: 0, Running: 2 })
    t.ok(await redis.pttl(key) > 0, 'it is counted anew some day')
    await redis.hset(key, '"Running"', 70)
    await redis.del(key)
    t.same(await store.countByState(), { Running: 2 })
    await store.remove('1')
    await store.remove('2')
    t.equal(await redis.exists(key), 0, 'no key is left')
    t.same(await store.countByState(), {})
    t.equal(await redis.exists(key), 0)
  })

  t.test('sessions: a worker finds those that it serves', async t => {
    const store = sessions()
    await store.create(record('1', { worker: 'a' }))
    await store.create(record('2'))
    await store.create(record('3', { worker: 'b' }))
    await store.update('2', { worker: 'a' })
    t.same((await store.ofWorker('a')).map(r => r.sessionId).sort(), ['1', '2'])
    await store.update('1', { worker: 'b' })
    await store.update('3', { worker: undefined })
    await store.remove('2')
    t.same(await store.ofWorker('a'), [])
    t.same((await store.ofWorker('b')).map(r => r.sessionId), ['1'])
  })

  t.test('sessions: lists go from the oldest on, in pages, filtered, and end', async t => {
    const store = sessions()
    for (let i = 0; i < 450; i++) await store.create(record(String(1000 - i), { service: i % 3 === 0 ? 'Pricer' : 'Echo', state: i % 2 === 0 ? 'Running' : 'Finished' }))
    const all: string[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await store.list({ cursor, limit: 150 })
      all.push(...page.items.map(r => r.sessionId))
      cursor = page.next
      pages++
    } while (cursor !== undefined)
    t.same(all, Array.from({ length: 450 }, (_, i) => String(1000 - i)))
    t.equal(pages, 3, 'the last page knows that it is the last')
    t.equal((await store.list({})).items.length, 100)
    const some = await store.list({ service: 'pricer', state: 'Running', limit: 60 })
    t.same(some.items.map(r => r.sessionId), Array.from({ length: 60 }, (_, i) => String(1000 - 6 * i)))
    const rest = await store.list({ service: 'pricer', state: 'Running', limit: 60, cursor: some.next })
    t.equal(some.items.length + rest.items.length, 75)
    t.equal(rest.next, undefined)
    await store.remove(rest.items[0]?.sessionId ?? '')
    t.equal((await store.list({ cursor: some.next, service: 'Pricer', state: 'Running' })).items.length, 14)
    await t.rejects(store.list({ limit: 0 }), fault('InvalidArgument', ['limit']))
    await t.rejects(store.list({ limit: 1001 }), fault('InvalidArgument', ['limit']))
    await t.rejects(store.list({ cursor: '-inf' }), fault('InvalidArgument', ['cursor']))
  })

  t.test('sessions: a removed session leaves no key, and may be removed twice', async t => {
    const store = sessions()
    await store.create(record('1', { worker: 'w' }))
    await store.create(record('2'))
    await store.remove('1')
    await store.remove('1')
    t.same((await store.list({})).items.map(r => r.sessionId), ['2'])
    await store.remove('2')
    t.same(await redis.keys(`{d${fresh}}*`), [])
  })

  t.test('sessions: a change whose answer is lost is not refused by its own guard', async t => {
    const proxy = await cuttingProxy(t, server.path)
    const cut = await openRedis(proxy.url, { log: silent })
    t.teardown(() => closeRedis(cut))
    const store = new RedisSessionStore({ redis: cut, prefix: 'cut', log: silent })
    proxy.loseNextAnswer()
    t.equal(await store.create(record('1')), true)
    proxy.loseNextAnswer()
    t.match(await store.update('1', { state: 'Running', worker: 'w' }, { state: ['Starting'], worker: undefined }), { state: 'Running', worker: 'w' })
    proxy.loseNextAnswer()
    t.match(await store.get('1'), { state: 'Running' })
  })

  t.test('workers: one that beats is listed, and is gone when its lease has run out', async t => {
    const directory = new RedisWorkerDirectory({ redis, prefix: `d${++fresh}`, log: silent })
    const worker = (workerId: string): WorkerRecord => ({ workerId, pid: 1, socket: '/s', control: '/c', machine: 'm', startedAt: '2026-01-01T00:00:00.000Z' })
    await directory.beat(worker('a'), 60_000)
    await directory.beat(worker('b'), 60_000)
    await directory.beat({ ...worker('b'), pid: 2 }, 60_000)
    t.match(await directory.list(), [{ workerId: 'a', pid: 1 }, { workerId: 'b', pid: 2 }])
    await expire(`{d${fresh}}:worker:a`)
    t.match(await directory.list(), [{ workerId: 'b' }])
    t.equal(await directory.get('a'), undefined)
    t.same(await redis.smembers(`{d${fresh}}:workers`), ['b'], 'and taken off the list')
    await directory.beat(worker('a'), 60_000)
    t.match(await directory.get('a'), worker('a'), 'one that was away comes back by its next beat')
    await directory.remove('a')
    await directory.remove('b')
    await directory.remove('b')
    t.same(await directory.list(), [])
    t.same(await redis.keys(`{d${fresh}}*`), [])
    await directory.beat(worker('c'), 250)
    t.ok(await redis.pttl(`{d${fresh}}:worker:c`) <= 250)
  })

  /** Makes a lease run out now, by Redis's own means. */
  async function expire (key: string): Promise<void> { await redis.pexpireat(key, 1) }
})

t.test('sessions: they are there again after kill -9 of Redis', { ...needsRedis }, async (t: Test) => {
  const server = await startRedis(t)
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  const store = new RedisSessionStore({ redis, prefix: 'k', log: silent })
  await store.create(record('1'))
  await server.kill9()
  const waiting = store.update('1', { state: 'Running' })
  await server.restart()
  t.match(await waiting, { state: 'Running' })
})
