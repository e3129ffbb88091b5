import t from 'tap'
import { Cluster, eventually, type Role } from './cluster.ts'
import { openSession, readAll, REQUESTS, sendAll } from './five-thousand.ts'

/** Rounds of one session each, and how much work lies between two kills. */
const ROUNDS = 12
const STEP = REQUESTS / 12
const ROLES: readonly Role[] = ['host', 'worker', 'head', 'host', 'worker', 'node', 'host', 'worker', 'redis']

/** `soa up` gives up after ten restarts in a minute, and a session whose brokers die twenty times in one waits for its next call: as designed, so no kind is killed that often. */
const MOST_A_MINUTE = 6

t.setTimeout(900_000)

t.test('kill: anything, again and again, and every session still ends with each response once and right', async t => {
  const cluster = await Cluster.start(t)
  t.teardown(() => { if (!t.passing()) t.comment(cluster.log.slice(-5000)) })
  const kills: Record<Role, number> = { host: 0, worker: 0, head: 0, node: 0, redis: 0 }
  const lately: Array<{ role: Role, at: number }> = []
  const isRested = (role: Role): boolean => {
    const like = role === 'worker' ? ['worker'] : ['head', 'node', 'redis']
    return lately.filter(kill => like.includes(kill.role) && kill.at > performance.now() - 60_000).length < MOST_A_MINUTE
  }
  for (let round = 0; round < ROUNDS; round++) {
    const { session, client } = await openSession(cluster.head)
    await sendAll(client)
    t.equal(await client.endRequests(), REQUESTS)
    const read = readAll(t, client)
    // One after the other in a new order each round, so that every kind of end meets every other.
    for (let n = 1; n < 10; n++) {
      const processed = await eventually(`${n} steps are done`, async () => {
        const { counters } = await cluster.session(session.id).catch(() => ({ counters: null }))
        return counters !== null && counters.processed >= n * STEP && counters.processed
      })
      if (processed >= REQUESTS * 0.9) break
      const wish = ROLES[(n * (1 + round % 4) + round) % ROLES.length] as Role
      const role = wish === 'host' || isRested(wish) ? wish : 'host'
      lately.push({ role, at: performance.now() })
      await cluster.kill(role, session.id)
      kills[role]++
    }
    await read
    await session.close()
  }
  t.comment(`kill -9 of ${Object.entries(kills).map(([role, n]) => `${role} ${n}`).join(', ')}`)
  t.ok(Object.values(kills).every(n => n > 0), 'each kind of process was killed')
})
