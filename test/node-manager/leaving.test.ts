import { readdir } from 'node:fs/promises'
import t from 'tap'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

let sessions = process.pid * 100 + 25
const newSession = (): string => String(++sessions)

t.test('node manager', needsRedis, async t => {
  const grid = await openGrid(t)
  await grid.script('Listen', LISTENER)
  await grid.node('n1', 4)

  t.test('node: SIGTERM ends its hosts, says goodbye, exits 0 and leaves no file', async t => {
    const leaving = await grid.node('n2', 8)
    const id = newSession()
    await grid.demand(id, 'Listen', { target: 6 })
    const task = await grid.until(id, ({ node, state }) => node === 'n2' && state === 'Running')
    leaving.child.kill('SIGTERM')
    t.equal(await leaving.exited, 0)
    t.match(await grid.until(id, ({ id, state }) => id === task.id && state === 'Canceling'), { node: 'n2' }, 'the session is told before')
    t.match(await grid.until(id, ({ id, state }) => id === task.id && state === 'Canceled'), { node: 'n2' })
    t.same((await grid.store.nodes()).map(({ id }) => id), ['n1'])
    t.notOk((await readdir(grid.dir)).includes(`node-${leaving.pid}`))
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await processesOf(id)).length === 0)
  })
})
