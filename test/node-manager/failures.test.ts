import t from 'tap'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

let sessions = process.pid * 100 + 50
const newSession = (): string => String(++sessions)

t.test('node failures: kill -9 of a node manager: its tasks run elsewhere within 10 s and no process of it is left', needsRedis, async t => {
  const grid = await openGrid(t)
  await grid.script('Listen', LISTENER)
  const first = await grid.node('n1')
  const id = newSession()
  await grid.demand(id, 'Listen', { target: 2 })
  const task = await grid.until(id, ({ state }) => state === 'Running')
  await grid.node('n2')
  const hosts = await processesOf(id)
  t.ok(hosts.length >= 2, 'the host and its child run')
  const before = Date.now()
  first.child.kill('SIGKILL')
  await eventually(async () => { const now = await processesOf(id); return hosts.every(pid => !now.includes(pid)) })
  t.match(await grid.until(id, ({ id, state }) => id === task.id && state === 'Failed'), { exit: { why: /node n1 has not been heard of for 5000 ms/ } })
  t.match(await grid.until(id, ({ node, state }) => node === 'n2' && state === 'Running'), { capacity: 1 })
  t.comment(`elsewhere after ${Date.now() - before} ms`)
  t.match(await grid.store.nodes(), [{ id: 'n1', state: 'Offline' }, { id: 'n2', state: 'Online' }])
})

t.test('node failures: a node that was stopped is fenced, ends its hosts when it goes on, and serves again', needsRedis, async t => {
  const grid = await openGrid(t, { nodeLeaseMs: 2500 })
  await grid.script('Listen', LISTENER)
  const first = await grid.node('n1')
  const id = newSession()
  await grid.demand(id, 'Listen')
  const task = await grid.until(id, ({ state }) => state === 'Running')
  await grid.node('n2')
  const hosts = await processesOf(id)
  first.child.kill('SIGSTOP')
  await grid.until(id, ({ node, state }) => node === 'n2' && state === 'Running')
  t.ok((await processesOf(id)).includes(task.pid ?? -1), 'the old host still runs')
  first.child.kill('SIGCONT')
  await eventually(async () => { const now = await processesOf(id); return hosts.every(pid => !now.includes(pid)) })
  await eventually(async () => (await grid.store.nodes()).every(({ state }) => state === 'Online'))
  t.equal((await grid.tasks(id)).length, 1)
  await grid.demand(id, 'Listen', { target: 4 })
  await grid.until(id, ({ id, node, state }) => node === 'n1' && state === 'Running' && id !== task.id)
})
