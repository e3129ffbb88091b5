import { once } from 'node:events'
import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { plan } from '../../core/planner.ts'
import type { Demand, TaskInfo } from '../../store/placement-store.ts'
import { closeRedis, openRedis, type Redis } from '../../store/redis.ts'
import { RedisDemandBoard, RedisNodeLink, RedisPlacement, RedisTaskEvents, type NodeRecord } from '../../store/redis-placement.ts'
import { NameHeld, type NameHolder, type SyncAnswer } from '../../store/redis-placement-node.ts'
import type { PlacedTask } from '../../store/redis-placement-scripts.ts'
import { needsRedis, startRedis, type RedisServer } from '../redis-server.ts'

const wish = (sessionId: string, more: Partial<Demand> = {}): Demand => ({
  sessionId, service: 'Echo', target: 1, min: 1, priority: 2000, createdAt: '2026-01-01T00:00:00.000Z', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1000, ...more
})
const record = (id: string, more: Partial<NodeRecord> = {}): NodeRecord => ({ id, machine: `${id}.grid`, pid: 1, cores: 2, labels: {}, groups: [], instance: `${id}-first`, ...more })

interface Grid { redis: Redis, prefix: string, heads: RedisPlacement, board: RedisDemandBoard, events: RedisTaskEvents, node: RedisNodeLink, pass (): Promise<boolean>, keys (): Promise<string[]> }
let grids = 0
async function openGrid (t: Test, server: RedisServer, limits: ConstructorParameters<typeof RedisPlacement>[0]['limits'] = {}): Promise<Grid> {
  const prefix = `place${++grids}`
  const redis = await openRedis(server.url, { log: silent, timeoutMs: 5000 })
  const blocking = await openRedis(server.url, { log: silent, kind: 'blocking' })
  const needs = { redis, prefix, log: silent, timeoutMs: 10_000 }
  const events = new RedisTaskEvents({ ...needs, blocking })
  t.teardown(async () => { await events.close(); await closeRedis(blocking); await closeRedis(redis) })
  const heads = new RedisPlacement({ ...needs, limits })
  const pass = async (): Promise<boolean> => {
    const snapshot = await heads.snapshot('sweep')
    return await heads.commit(snapshot, plan(snapshot))
  }
  return { redis, prefix, heads, board: new RedisDemandBoard(needs), events, node: new RedisNodeLink(needs), pass, keys: () => redis.keys(`{${prefix}}*`) }
}
const forever = new AbortController().signal
/** The next batch of a session after `cursor`. */
async function next (events: RedisTaskEvents, sessionId: string, cursor: string): Promise<TaskInfo[]> {
  const iterator = events.follow(sessionId, cursor, forever)
  const { value } = await iterator.next()
  await iterator.return(undefined)
  return (value as { tasks: TaskInfo[] }).tasks
}
/** Who has the name that this manager would have. */
const holderOf = (node: RedisNodeLink, record: NodeRecord, dead?: NameHolder): Promise<NameHolder> =>
  node.register(record, dead).then(() => { throw new Error('it was given the name') }, (error: unknown) => { if (error instanceof NameHeld) return error.holder; throw error })
const seen = (tasks: TaskInfo[]): string[] => tasks.map(({ node, state }) => `${node} ${state}`)

t.test('placement store', needsRedis, async t => {
  const server = await startRedis(t)

  t.test('placement: from demand to a running task to its end, told in order', async t => {
    const { heads, board, events, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1', { target: 2 }))
    t.ok(await pass())

    const answer = await node.sync('n1', epoch, [])
    if (answer.fenced) return t.fail('fenced')
    const tasks = [...answer.tasks].sort((a, b) => a.id < b.id ? -1 : 1)
    t.match(tasks, [{ sessionId: '1', state: 'Dispatching', machineName: 'n1.grid', capacity: 1, firstCoreIndex: 0, coreIds: [0], cancelGraceMs: 1000 }, { coreIds: [1] }])
    t.match(answer.demands.get('1'), { service: 'Echo' }, 'the demand comes along while something is to be started')
    const [first, second] = tasks as [typeof tasks[0], typeof tasks[0]]
    t.not(first.id, second.id)

    const after = await node.sync('n1', epoch, [{ ...first, state: 'Running', address: 'http://127.0.0.1:1/', pid: 77 }])
    t.notOk(after.fenced)
    const snapshot = await events.snapshot('1')
    t.match(snapshot.tasks.find(({ id }) => id === first.id), { state: 'Running', address: 'http://127.0.0.1:1/', pid: 77, coreIds: undefined }, 'the snapshot has it')
    t.match((await heads.nodes())[0], { id: 'n1', busy: 2, tasks: 2, state: 'Online', cores: 2 })

    await board.remove('1')
    await pass()
    await node.sync('n1', epoch, [first, second].map(task => ({ ...task, state: 'Canceled' as const })))
    const found: string[] = []
    for await (const batch of events.follow('1', '0-0', forever)) {
      found.push(...seen(batch.tasks))
      if (found.length >= 7) break
    }
    t.same(found, ['n1 Dispatching', 'n1 Dispatching', 'n1 Running', 'n1 Canceling', 'n1 Canceling', 'n1 Canceled', 'n1 Canceled'])
    t.match(await events.snapshot('1'), { tasks: [] }, 'nothing is left of an ended task')
  })

  t.test('placement: a plan made from an old snapshot is refused', async t => {
    const { heads, board, node } = await openGrid(t, server)
    await node.register(record('n1'))
    await board.put(wish('1'))
    const old = await heads.snapshot('sweep')
    await board.put(wish('2'))
    t.notOk(await heads.commit(old, plan(old)))
    const fresh = await heads.snapshot('sweep')
    t.ok(await heads.commit(fresh, plan(fresh)))
    t.notOk(await heads.commit(fresh, plan(fresh)), 'and the same plan is not committed twice')
    t.equal((await heads.snapshot('look')).tasks.length, 2)
  })

  t.test('placement: the same demand again changes nothing, another one wakes the heads', async t => {
    const { heads, board, redis } = await openGrid(t, server)
    const listener = redis.duplicate()
    t.teardown(() => closeRedis(listener))
    await once(listener, 'ready')
    await listener.subscribe(heads.changedChannel)
    const told: string[] = []
    listener.on('message', channel => told.push(channel))
    await board.put(wish('1'))
    const { version } = await heads.snapshot('look')
    await board.put({ ...wish('1'), labels: {} })
    t.equal((await heads.snapshot('look')).version, version)
    await board.put(wish('1', { target: 3 }))
    t.ok((await heads.snapshot('look')).version > version)
    await listener.ping()
    t.equal(told.length, 2)
  })

  t.test('placement: a node that missed its lease is dead: its tasks fail, it is fenced, and its reports change nothing', async t => {
    const { heads, board, events, node, pass, redis, prefix } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1'))
    await pass()
    const { tasks: [task] } = await events.snapshot('1')
    await node.register(record('n2'))
    await redis.zincrby(`{${prefix}}:placement:beats`, -5001, 'n1')

    t.ok(await pass())

    t.match(await heads.nodes(), [{ id: 'n1', state: 'Offline', tasks: 0 }, { id: 'n2', state: 'Online', tasks: 1 }], 'and it runs elsewhere')
    const { tasks: now } = await events.snapshot('1')
    t.not(now[0]?.id, task?.id, 'under another id')
    t.same(await node.sync('n1', epoch, [{ ...task!, state: 'Running', coreIds: [0], cancelGraceMs: 0 }]), { fenced: true, takenBy: undefined })
    t.match((await events.snapshot('1')).tasks, [{ node: 'n2', state: 'Dispatching' }])
    const again = await node.register(record('n1'))
    t.ok(Number(again) > Number(epoch), 'it may register anew')
    t.match((await heads.nodes())[0], { state: 'Online' })
  })

  t.test('placement: a node that beat between snapshot and commit is not dead', async t => {
    const { heads, board, node, pass, redis, prefix } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1'))
    await pass()
    await redis.zincrby(`{${prefix}}:placement:beats`, -5001, 'n1')
    const snapshot = await heads.snapshot('sweep')
    t.equal(plan(snapshot).deadNodes.length, 1)
    await node.sync('n1', epoch, [])
    t.notOk(await heads.commit(snapshot, plan(snapshot)))
  })

  t.test('placement: when no pass has run for a while nobody is judged by beats that could not arrive', async t => {
    const { heads, node, pass, redis, prefix } = await openGrid(t, server)
    await node.register(record('n1'))
    await pass()
    await redis.zincrby(`{${prefix}}:placement:beats`, -60_000, 'n1')
    await redis.hincrby(`{${prefix}}:placement:passes`, 'any', -2001)
    const snapshot = await heads.snapshot('sweep')
    t.ok(snapshot.gotFreshLeases)
    t.equal(plan(snapshot).deadNodes.length, 0)
    t.notOk((await heads.snapshot('sweep')).gotFreshLeases, 'once')
  })

  t.test('placement: a node manager is refused a name that another one has, until it has found that one dead and nothing was heard of it since', async t => {
    const { board, events, node, pass, redis, prefix } = await openGrid(t, server)
    const old = await node.register(record('n1'))
    await board.put(wish('1'))
    await pass()
    const { cursor } = await events.snapshot('1')
    const second = record('n1', { instance: 'second' })
    const found = await holderOf(node, second)
    t.match(found, { record: { id: 'n1', machine: 'n1.grid', pid: 1, instance: 'n1-first' }, epoch: old })
    t.ok(found.ageMs >= 0 && found.ageMs < 5000, `heard of ${found.ageMs} ms ago`)
    await redis.zincrby(`{${prefix}}:placement:beats`, -1, 'n1') // two in one millisecond are one
    const later = await holderOf(node, second, found)
    t.not(later.beat, found.beat, 'it has beaten since')
    t.match(await node.sync('n1', old, []), { fenced: false, tasks: [{ sessionId: '1' }] }, 'and nothing was taken from it')
    t.equal(await node.register(record('n1')) > old, true, 'the same manager may say it again')
    const epoch = await node.register(second, await holderOf(node, second))
    t.same(await node.sync('n1', old, []), { fenced: true, takenBy: 'second' })
    t.match(await node.sync('n1', epoch, []), { fenced: false, tasks: [] })
    t.match(await next(events, '1', cursor), [{ state: 'Failed', exit: { why: 'the node manager of n1 started anew', code: null } }])
  })

  t.test('placement: a task that failed is not tried at once on the same node, but on another', async t => {
    const { heads, board, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1', { cores: 8 }))
    await board.put(wish('1'))
    await pass()
    const answer = await node.sync('n1', epoch, [])
    if (answer.fenced) return t.fail('fenced')
    await node.sync('n1', epoch, answer.tasks.map(task => ({ ...task, state: 'Failed' as const })))
    const snapshot = await heads.snapshot('look')
    const until = snapshot.demands[0]?.notBefore?.['n1'] ?? 0
    t.equal(plan({ ...snapshot, now: until - 1 }).starts.length, 0)
    t.equal(plan({ ...snapshot, now: until }).starts.length, 1, 'tried again in the end')
    await node.register(record('n2', { cores: 1 }))
    t.match(plan({ ...await heads.snapshot('look'), now: until - 1 }).starts, [{ node: 'n2' }])
  })

  t.test('placement: hosts that took calls and then ended make the node wait a moment, however many they were', async t => {
    const { heads, board, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1', { cores: 8 }))
    await board.put({ ...wish('1'), target: 8 })
    await pass()
    const answer = await node.sync('n1', epoch, [])
    if (answer.fenced) return t.fail('fenced')
    t.equal(answer.tasks.length, 8)
    await node.sync('n1', epoch, answer.tasks.map(task => ({ ...task, state: 'Running' as const, address: 'http://127.0.0.1:1/' })))
    await node.sync('n1', epoch, answer.tasks.map(task => ({ ...task, state: 'Failed' as const })))
    const snapshot = await heads.snapshot('look')
    const waits = (snapshot.demands[0]?.notBefore?.['n1'] ?? Infinity) - snapshot.now
    t.ok(waits <= 500, `${waits} ms to wait; eight starts that failed would wait a minute`)
  })

  t.test('placement: a demand that nobody asserts is dropped with its tasks; one that is raised again in time keeps them', async t => {
    const { heads, board, node, pass, redis, prefix } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1'))
    await board.put(wish('2'))
    await pass()
    const age = async (): Promise<unknown> => await Promise.all(['1', '2'].map(id => redis.zincrby(`{${prefix}}:placement:asserted`, -59_000, id)))
    await age()
    await board.put(wish('2'))
    await pass()
    t.equal((await heads.snapshot('look')).tasks.length, 2, 'not yet')
    await redis.zincrby(`{${prefix}}:placement:asserted`, -2000, '1')
    t.same((await heads.snapshot('sweep')).dropped, ['1'])
    await pass()
    const answer = await node.sync('n1', epoch, [])
    t.same(answer.fenced ? [] : answer.tasks.map(({ sessionId, state }) => `${sessionId} ${state}`).sort(), ['1 Canceling', '2 Dispatching'])
  })

  t.test('placement: a forgotten session leaves no key, although its tasks end later', async t => {
    const { board, node, pass, keys } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await pass()
    const before = (await keys()).sort()
    await board.put(wish('1'))
    await pass()
    const answer = await node.sync('n1', epoch, [])
    if (answer.fenced) return t.fail('fenced')
    await board.remove('1', { forget: true })
    await pass()
    await node.sync('n1', epoch, answer.tasks.map(task => ({ ...task, state: 'Failed' as const })))
    t.same((await keys()).sort(), before)
  })

  t.test('placement: a draining node gets no task, also after its manager started anew', async t => {
    const { heads, board, node, pass } = await openGrid(t, server)
    await node.register(record('n1'))
    t.notOk(await heads.setDraining('n9', true), 'no such node')
    t.ok(await heads.setDraining('n1', true))
    const second = record('n1', { instance: 'second' })
    await node.register(second, await holderOf(node, second))
    await board.put(wish('1'))
    await pass()
    t.match(await heads.nodes(), [{ state: 'Drained', tasks: 0 }])
    await heads.setDraining('n1', false)
    await pass()
    t.match(await heads.nodes(), [{ state: 'Online', tasks: 1 }])
  })

  t.test('placement: what runs on a draining node is told to finish, its end is told, and the node is empty', async t => {
    const { heads, board, events, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1', { target: 2 }))
    await pass()
    const [first, second] = (await node.sync('n1', epoch, []) as Extract<SyncAnswer, { fenced: false }>).tasks as [PlacedTask, PlacedTask]
    await node.sync('n1', epoch, [{ ...first, state: 'Running' }])
    const { cursor } = await events.snapshot('1')
    await heads.setDraining('n1', true)
    await pass()
    t.same((await next(events, '1', cursor)).map(({ id, state }) => `${id} ${state}`).sort(), [`${first.id} Finishing`, `${second.id} Canceling`].sort(), 'one that only starts is canceled')
    t.match(await node.sync('n1', epoch, [{ ...first, state: 'Running' }, { ...second, state: 'Canceled' }]), { isDraining: true, tasks: [{ id: first.id, state: 'Finishing' }] })
    t.match(await heads.nodes(), [{ state: 'Draining', tasks: 1, busy: 1 }])
    await node.sync('n1', epoch, [{ ...first, state: 'Finished' }])
    await pass()
    t.match(await heads.nodes(), [{ state: 'Drained', tasks: 0, busy: 0 }])
    await node.leave('n1', epoch, 'ending')
    t.match(await heads.nodes(), [{ state: 'Draining' }], 'it is going by itself')
  })

  t.test('placement: a task that its session has let go of is canceled, whichever is the youngest', async t => {
    const { board, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1', { target: 2 }))
    await pass()
    const { tasks } = await node.sync('n1', epoch, []) as Extract<SyncAnswer, { fenced: false }>
    const oldest = tasks.map(({ id }) => id).sort()[0] as string
    await board.put(wish('1', { target: 1, leaving: [oldest] }))
    await pass()
    t.same((await node.sync('n1', epoch, []) as Extract<SyncAnswer, { fenced: false }>).tasks.filter(({ state }) => state === 'Canceling').map(({ id }) => id), [oldest])
  })

  t.test('placement: a node hears which sessions are over; what it says of itself is shown, and forgotten with it', async t => {
    const { heads, board, node, keys } = await openGrid(t, server)
    const epoch = await node.register(record('n1', { sockets: 2 }))
    await board.put(wish('1'))
    const releaseFailure = { sessionId: '2', at: '2026-01-01T00:00:00.000Z', why: 'exit code 1', stderr: 'no' }
    t.match(await node.sync('n1', epoch, [], ['1', '2'], { releaseFailure }), { over: ['2'], isDraining: false })
    t.match(await node.sync('n1', epoch, [], []), { over: [] })
    t.match(await heads.nodes(), [{ sockets: 2, releaseFailure }])
    await node.leave('n1', epoch, 'gone')
    t.notOk((await keys()).some(key => key.endsWith(':news')))
  })

  t.test('placement: a node that leaves has its tasks canceled first and is gone in the end', async t => {
    const { heads, board, events, node, pass } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1'))
    await pass()
    await node.leave('n1', epoch, 'ending')
    t.match((await events.snapshot('1')).tasks, [{ state: 'Canceling' }])
    t.match(await heads.nodes(), [{ state: 'Draining' }])
    await node.leave('n1', epoch, 'gone')
    t.same(await heads.nodes(), [])
    t.match(await events.snapshot('1'), { tasks: [] })
  })

  t.test('placement: the end of a task that Redis has lost is still told', async t => {
    const { board, events, node, pass, redis, prefix } = await openGrid(t, server)
    const epoch = await node.register(record('n1'))
    await board.put(wish('1'))
    await pass()
    const answer = await node.sync('n1', epoch, [])
    if (answer.fenced) return t.fail('fenced')
    const { cursor } = await events.snapshot('1')
    await redis.del(`{${prefix}}:placement:tasks:n1`)
    await node.sync('n1', epoch, answer.tasks.map(task => ({ ...task, state: 'Failed' as const })))
    t.match(await next(events, '1', cursor), [{ state: 'Failed' }])
  })

  t.test('events: one connection follows many sessions; one that comes later is heard at once; abort ends one and not the others', async t => {
    const { board, events, node, pass } = await openGrid(t, server)
    const ids = Array.from({ length: 20 }, (_, i) => String(i + 1))
    await node.register(record('n1', { cores: 64 }))
    const stop = new AbortController()
    const stopped = events.follow('none', '0-0', stop.signal).next()
    for (const id of ids) {
      const heard = next(events, id, '0-0')
      await board.put(wish(id))
      await pass()
      t.match(await heard, [{ sessionId: id, state: 'Dispatching' }])
    }
    stop.abort()
    t.same(await stopped, { done: true, value: undefined })
  })
})

t.test('placement: events survive a lost connection and a Redis that was killed', needsRedis, async t => {
  const server = await startRedis(t)
  const { board, events, node, pass } = await openGrid(t, server)
  const epoch = await node.register(record('n1', { cores: 64 }))
  await board.put(wish('1'))
  await pass()
  const heard: string[] = []
  const { cursor } = await events.snapshot('1')
  const three = (async () => {
    for await (const { tasks } of events.follow('1', cursor, forever)) {
      heard.push(...tasks.map(({ state }) => state))
      if (heard.length === 3) return
    }
  })()
  const answer = await node.sync('n1', epoch, [])
  if (answer.fenced) return t.fail('fenced')
  const task = answer.tasks[0]!
  await node.sync('n1', epoch, [{ ...task, state: 'Running' }])
  await server.kill9()
  await server.restart()
  await board.put(wish('1', { target: 0 }))
  await pass()
  await node.sync('n1', epoch, [{ ...task, state: 'Canceled' }])
  await three
  t.same(heard, ['Running', 'Canceling', 'Canceled'])
})
