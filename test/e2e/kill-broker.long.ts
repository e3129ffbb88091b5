import t from 'tap'
import { Cluster } from './cluster.ts'
import { survives } from './five-thousand.ts'

// kill -9 in the middle of a durable session of 5,000 requests; each ends with 5,000 right responses, none twice.
t.setTimeout(600_000)

t.test('kill: broker worker, service host and head', async t => {
  const cluster = await Cluster.start(t)
  await t.test('the broker worker: the session is raised again and goes on', t => survives(t, cluster, session => cluster.kill('worker', session.id)))
  await t.test('a service host: its requests go to the others', t => survives(t, cluster, session => cluster.kill('host', session.id)))
  await t.test('the head: a new one finds the living broker', t => survives(t, cluster, () => cluster.kill('head')))
})
