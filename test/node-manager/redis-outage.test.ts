import t from 'tap'
import { sleep, systemClock as clock } from '../../core/clock.ts'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

const newSession = (() => { let last = process.pid * 100 + 75; return () => String(++last) })()

t.test('node: Redis killed and back 3 s later: hosts go on and nothing runs twice', needsRedis, async t => {
  const grid = await openGrid(t)
  await grid.script('Listen', LISTENER)
  await Promise.all([grid.node('n1'), grid.node('n2')])
  const id = newSession()
  await grid.demand(id, 'Listen', { target: 4, min: 4 })
  await eventually(async () => (await grid.tasks(id)).filter(({ state }) => state === 'Running').length === 4)
  const before = await grid.tasks(id)
  const hosts = await processesOf(id)
  await grid.server.kill9()
  await sleep(clock, 3000)
  t.same((await processesOf(id)).sort(), [...hosts].sort(), 'while it is away')
  await grid.server.restart()
  // A task of a second session shows that all is well again.
  const other = newSession()
  await grid.demand(id, 'Listen', { target: 3, min: 3 })
  await grid.demand(other, 'Listen')
  await grid.until(other, ({ state }) => state === 'Running')
  const after = await grid.tasks(id)
  t.equal(after.length, 3)
  t.ok(after.every(({ id }) => before.some(task => task.id === id)), 'the same tasks as before')
  t.ok((await processesOf(id)).every(pid => hosts.includes(pid)), 'and no process that was not there before')
})
