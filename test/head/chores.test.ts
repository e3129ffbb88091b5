import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Queue } from 'bullmq'
import t, { type Test } from 'tap'
import { systemClock as clock } from '../../core/clock.ts'
import { silent as log } from '../../core/log.ts'
import { Chores, type ChoresNeeds } from '../../broker/head/chores.ts'
import { Placement } from '../../broker/head/placement.ts'
import { RedisDemandBoard, RedisNodeLink, RedisPlacement, type PassKind } from '../../store/redis-placement.ts'
import { RedisTimers } from '../../store/redis-timers.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { needsRedis, startRedis, type RedisServer } from '../redis-server.ts'

type Seen = EventEmitter<{ pass: [PassKind], raise: [string], timer: [string, number] }>
interface Head { chores: Chores, placement: Placement, store: RedisPlacement, seen: Seen, board: RedisDemandBoard, node: RedisNodeLink }

async function openHead (t: Test, server: RedisServer, prefix: string, more: Partial<ChoresNeeds> = {}): Promise<Head> {
  const redis = await openRedis(server.url, { log })
  const connection = await openRedis(server.url, { log, kind: 'bullmq' })
  const needs = { redis, prefix, log, timeoutMs: 5000 }
  const seen: Seen = new EventEmitter()
  const store = new RedisPlacement(needs)
  const placement = new Placement({ store, clock, log })
  const chores = new Chores({
    connection,
    prefix,
    placement: { async pass (kind) { await placement.pass(kind); seen.emit('pass', kind) } },
    sinceSweepMs: () => store.sinceSweepMs(),
    timers: new RedisTimers(needs),
    sessions: { async raise (id) { seen.emit('raise', id) }, async suspend () {}, async purge () {} },
    onTimer: { async idle (id) { seen.emit('timer', id, Date.now()) } },
    clock,
    log,
    ...more
  })
  await chores.start()
  t.teardown(async () => { await chores.close(); await closeRedis(connection); await closeRedis(redis) })
  return { chores, placement, store, seen, board: new RedisDemandBoard(needs), node: new RedisNodeLink(needs) }
}

t.test('chores', needsRedis, async t => {
  const server = await startRedis(t)

  t.test('chores: a sweep each second places tasks without being asked', async t => {
    const { seen, board, node, store, chores } = await openHead(t, server, 'sweep')
    await node.register({ id: 'n1', machine: 'm', pid: 1, cores: 2, labels: {}, groups: [], instance: 'a' })
    await board.put({
      sessionId: '1', service: 'Echo', target: 2, min: 1, priority: 2000, createdAt: '2026-01-01', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 0
    })
    for (let placed = 0; placed < 2; placed = (await store.snapshot('look')).tasks.length) await once(seen, 'pass')
    t.ok(chores.healthy)
    t.ok(await store.sinceSweepMs() < 3000)
  })

  t.test('chores: a new demand is planned for at once, without waiting for a sweep', async t => {
    const { seen, board } = await openHead(t, server, 'changed')
    const planned = new Promise<void>(resolve => { seen.on('pass', kind => { if (kind === 'plan') resolve() }) })
    await board.put({
      sessionId: '1', service: 'Echo', target: 2, min: 1, priority: 2000, createdAt: '2026-01-01', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 0
    })
    await planned
    t.pass('nobody but the board said anything')
  })

  t.test('chores: a hundred wishes to plan are a few passes', async t => {
    const { chores, seen } = await openHead(t, server, 'plan')
    let passes = 0
    seen.on('pass', kind => { if (kind === 'plan') passes++ })
    const planned = once(seen, 'pass')
    for (let i = 0; i < 100; i++) chores.planSoon()
    await planned
    await once(seen, 'pass')
    t.ok(passes > 0 && passes < 20, `${passes} passes`)
  })

  t.test('chores: a chore that fails is tried again, and asked twice it is done once', async t => {
    let tries = 0
    const done = new EventEmitter()
    const { chores } = await openHead(t, server, 'ask', {
      sessions: {
        async raise (id) { if (++tries < 3) throw new Error('not yet'); done.emit('raised', id) },
        async suspend () {},
        async purge () {}
      }
    })
    const raised = once(done, 'raised')
    await Promise.all([chores.ask('raise', '7'), chores.ask('raise', '7')])
    t.same(await raised, ['7'])
    t.equal(tries, 3)
  })

  t.test('chores: a timer fires when it is due; moved to later it waits, moved to sooner it does not; cleared it is silent', async t => {
    const { chores, seen } = await openHead(t, server, 'timers')
    const now = Date.now()
    const at = new Map<string, number>()
    seen.on('timer', (id, when) => { t.notOk(at.has(id), `${id} fires once`); at.set(id, when) })
    await chores.setTimer('idle', 'plain', now + 200)
    await chores.setTimer('idle', 'later', now + 200)
    await chores.setTimer('idle', 'later', now + 900)
    await chores.setTimer('idle', 'sooner', now + 60_000)
    await chores.setTimer('idle', 'sooner', now + 300)
    await chores.setTimer('idle', 'cleared', now + 200)
    await chores.clearTimer('idle', 'cleared')
    while (at.size < 3) await once(seen, 'timer')
    t.same([...at.keys()].sort(), ['later', 'plain', 'sooner'])
    t.ok((at.get('later') ?? 0) >= now + 850, 'not before the time that was set last')
  })

  t.test('chores: what one head has set fires in another when the first is gone', async t => {
    // Without a handler of its own: should the timer be due while the first head is still closing, it must not be lost either.
    const first = await openHead(t, server, 'two', { onTimer: {} })
    await first.chores.setTimer('idle', '9', Date.now() + 400)
    await first.chores.close()
    const second = await openHead(t, server, 'two')
    const [id] = await once(second.seen, 'timer') as [string]
    t.equal(id, '9')
  })

  t.test('chores: without sweeps a head is not healthy, makes passes and runs due timers itself, until they are back', async t => {
    const { chores, seen, store } = await openHead(t, server, 'fallback')
    while (await store.sinceSweepMs() === Infinity) await once(seen, 'pass')
    const connection = await openRedis(server.url, { log, kind: 'bullmq' })
    const queues = ['placement', 'timers'].map(name => new Queue(name, { connection, prefix: '{fallback:bull}' }))
    t.teardown(async () => { await Promise.all(queues.map(queue => queue.close())); await closeRedis(connection) })
    await Promise.all(queues.map(queue => queue.pause()))
    await chores.setTimer('idle', '5', Date.now())
    const fired = once(seen, 'timer')
    for (let kind; kind !== 'fallback';) [kind] = await once(seen, 'pass') as [PassKind]
    t.notOk(chores.healthy)
    t.match(await fired, ['5'])
    await Promise.all(queues.map(queue => queue.resume()))
    while (!chores.healthy) await once(seen, 'pass')
    t.pass('healthy again')
  })

  t.test('chores: timers and chores that are done leave no key', async t => {
    const redis = await openRedis(server.url, { log })
    t.teardown(() => closeRedis(redis))
    const { chores, seen } = await openHead(t, server, 'keys')
    const raised = Promise.all(Array.from({ length: 10 }, () => once(seen, 'raise')))
    for (let i = 0; i < 10; i++) {
      await chores.setTimer('idle', `s${i}`, Date.now())
      await chores.ask('raise', `s${i}`)
    }
    await raised
    const left = async (): Promise<string[]> => (await redis.keys('{keys*')).filter(key => /idle|raise|timers$|(sessions|timers):\d+$/.test(key))
    while ((await left()).length > 0) await once(seen, 'pass')
    t.same(await left(), [])
  })
})

t.test('chores: a head can stop while Redis is away', needsRedis, async t => {
  const server = await startRedis(t)
  const child = spawn(process.execPath, [fileURLToPath(new URL('./chores-alone.js', import.meta.url)), server.url], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill('SIGKILL') })
  await once(child.stdout, 'data')
  const ended = once(child, 'exit')
  await server.kill9()
  child.kill('SIGTERM')
  t.same(await ended, [0, null])
})

t.test('placement: passes asked for at once are two, and whoever asked is in one that began later', needsRedis, async t => {
  const begun: number[] = []
  let free: () => void = () => {}
  const store = {
    async snapshot () {
      begun.push(begun.length)
      await new Promise<void>(resolve => { free = resolve })
      return { now: 0, version: 1, demands: [], nodes: [], tasks: [], rows: [], dropped: [], gotFreshLeases: false }
    },
    async commit () { return true }
  }
  const placement = new Placement({ store, clock, log })
  const passes = [placement.pass('plan'), placement.pass('plan'), placement.pass('plan')]
  free()
  await passes[0]
  t.same(begun, [0])
  await new Promise(setImmediate)
  free()
  await Promise.all(passes)
  t.same(begun, [0, 1])
})
