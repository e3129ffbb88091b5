import t from 'tap'
import { Cluster, eventually, type Role } from './cluster.ts'
import { inputOf, openSession, readAll, REQUESTS } from './five-thousand.ts'

t.setTimeout(600_000)

// kill -9 while the requests are still being sent: what was acknowledged is kept, what was not is sent again, and nothing is counted twice.
t.test('kill: while requests are sent', async t => {
  const cluster = await Cluster.start(t)
  for (const role of ['worker', 'redis'] satisfies Role[]) {
    await t.test(role, async t => {
      const { session, client } = await openSession(cluster.head)
      const sends = Promise.all(Array.from({ length: REQUESTS }, (_, i) => client.send('Echo', { input: inputOf(i) }, { userData: String(i) })))
      const arrived = await eventually('a tenth of the requests has arrived', async () => {
        const { counters } = await cluster.session(session.id)
        return counters.total >= REQUESTS * 0.1 && counters.total
      })
      t.ok(arrived <= REQUESTS * 0.9, `struck when ${arrived} of ${REQUESTS} had arrived`)
      await cluster.kill(role, session.id)
      await sends
      t.equal(await client.endRequests(), REQUESTS, 'none was lost, and none counted twice')
      await readAll(t, client)
      await session.close()
    })
  }
})
