import t from 'tap'
import { DurableSession } from '../../client/index.ts'
import { startRedis } from '../redis-server.ts'
import { Cluster, eventually } from './cluster.ts'
import { CLIENT_ID, openSession, readAll, REQUESTS, sendAll, survives } from './five-thousand.ts'
import { Grid } from './grid.ts'
import { isAlive, proc } from './processes.ts'

// Workers that stand still past their lease (SIGSTOP), in the middle of a durable session of 5,000 requests.
t.setTimeout(600_000)

t.test('frozen: a worker of this machine is ended by its head, and another one raises its sessions', async t => {
  const cluster = await Cluster.start(t)
  await survives(t, cluster, async session => {
    const pid = await cluster.pid('worker', session.id)
    process.kill(pid, 'SIGSTOP')
    const next = await eventually('another worker serves the session', async () => {
      const { brokerPid } = await cluster.session(session.id).catch(() => ({ brokerPid: null }))
      return brokerPid !== null && brokerPid !== pid && brokerPid
    })
    t.not(next, pid)
    // A caller that asked meanwhile has had the session raised before that.
    await eventually('the one that stood still is ended by its head', () => proc(pid) === undefined)
  })
})

t.test('frozen: a whole machine stands still past the lease of its worker; another raises the session; resumed, the worker finds out and ends, and nothing is twice', async t => {
  const grid = new Grid(t, (await startRedis(t)).url)
  const alpha = await grid.head('alpha')
  const beta = await grid.head('beta')
  await grid.register(alpha)
  await grid.node('n1', 4)
  const { session, client } = await openSession(alpha.http)
  await sendAll(client)
  t.equal(await client.endRequests(), REQUESTS)
  const pid = (await grid.session(alpha, session.id)).brokerPid ?? 0
  const worker = proc(pid)
  if (worker === undefined) throw new Error('no worker serves the session')
  // A reader over the other head: its connections go through alpha to the worker there, until both stand still.
  const attached = await DurableSession.attach(session.id, { head: beta.http })
  const reading = readAll(t, attached.client(CLIENT_ID))
  await eventually('a tenth is processed', async () => ((await grid.session(beta, session.id)).counters?.processed ?? 0) >= REQUESTS / 10)
  for (const one of [alpha.pid, pid]) process.kill(one, 'SIGSTOP')
  const next = await eventually('beta\'s worker serves the session', async () => {
    const { brokerPid } = await grid.session(beta, session.id).catch(() => ({ brokerPid: null }))
    return brokerPid !== null && brokerPid !== pid && brokerPid
  }, 120_000)
  t.ok(isAlive(worker), 'the old worker still stands there')
  process.kill(pid, 'SIGCONT')
  await eventually('the old worker has ended by itself', () => !isAlive(worker))
  await eventually('it says why', () => /worker was given up and ends/.test(grid.log))
  process.kill(alpha.pid, 'SIGCONT')
  await reading
  t.equal((await grid.session(alpha, session.id)).brokerPid, next, 'and the old head knows who serves it')
  await session.close()
  await attached.detach()
})
