import t from 'tap'
import { Cluster, eventually } from './cluster.ts'
import { survives } from './five-thousand.ts'
import { isAlive, proc } from './processes.ts'

t.setTimeout(600_000)

t.test('kill: node manager and redis-server', async t => {
  const cluster = await Cluster.start(t)
  await t.test('the node manager: its hosts die with it, and its tasks are placed anew', t => survives(t, cluster, async session => {
    const hosts = (await cluster.session(session.id)).tasks.flatMap(task => proc(task.pid ?? 0) ?? [])
    t.ok(hosts.length > 0, `${hosts.length} service hosts ran`)
    await cluster.kill('node')
    await eventually('the hosts have died with their node manager', () => !hosts.some(isAlive))
  }))
  await t.test('redis-server: nothing that was promised is lost', t => survives(t, cluster, () => cluster.kill('redis')))
})
