import t from 'tap'
import { needsRedis } from '../redis-server.ts'
import { startSentinels } from '../redis-sentinel.ts'
import { openSession, readAll, REQUESTS, sendAll } from './five-thousand.ts'
import { eventually } from './cluster.ts'
import { Grid } from './grid.ts'

// Head, node and worker on a Redis with two replicas and three Sentinels, at durability replicas; the primary is killed in the middle of a durable session.
t.setTimeout(300_000)

t.test('fail-over: the primary is killed twice in the middle of a durable session of level replicas; nothing flushed is lost, and the session goes on', { ...needsRedis }, async t => {
  const group = await startSentinels(t)
  const grid = new Grid(t, group.url)
  const head = await grid.head('alpha', ['--durability', 'replicas'])
  await grid.register(head)
  await grid.node('n1', 4)
  const { session, client } = await openSession(head.http)
  const before = await grid.session(head, session.id)
  await sendAll(client)
  t.equal(await client.endRequests(), REQUESTS)
  const read = readAll(t, client)
  for (const share of [0.1, 0.5]) {
    await eventually(`${share * 100} % are processed`, async () => ((await grid.session(head, session.id).catch(() => undefined))?.counters?.processed ?? 0) >= REQUESTS * share)
    const primary = await group.primary()
    await group.kill9(primary)
    await eventually('another one is the primary', async () => await group.primary() !== primary)
    await group.restart(primary)
    await group.replicas(2)
  }
  await read
  t.match(await grid.session(head, session.id), { brokerPid: before.brokerPid, state: 'Running' }, 'the same broker has gone on')
  t.match(grid.log, /store has all that was acknowledged/, 'its ownership was asserted anew')
  await session.close()
})
