import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DurableSession } from '../../client/index.ts'
import { Cluster, eventually } from './cluster.ts'
import { CLIENT_ID, inTheMiddle, openSession, readAll, REQUESTS, survives } from './five-thousand.ts'

t.setTimeout(600_000)

t.test('kill: the client and soa up', async t => {
  const cluster = await Cluster.start(t)

  await t.test('the client after EndRequests: another process attaches and reads', async t => {
    const sender = spawn(process.execPath, [fileURLToPath(new URL('sender.js', import.meta.url)), cluster.head], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => sender.kill('SIGKILL'))
    const [line] = await once(createInterface({ input: sender.stdout }), 'line') as [string]
    const { sessionId, count } = JSON.parse(line) as { sessionId: string, count: number }
    t.equal(count, REQUESTS)
    await inTheMiddle(t, cluster, sessionId, async () => { sender.kill('SIGKILL'); await once(sender, 'exit') })
    const session = await DurableSession.attach(sessionId, { head: cluster.head })
    await readAll(t, session.client(CLIENT_ID))
    await session.close()
  })

  await t.test('soa up itself: started again on its data folder, it carries on', t => survives(t, cluster, async () => {
    await cluster.killUp()
    await cluster.up()
  }))

  await t.test('soa up while requests are sent and nothing is flushed: what was acknowledged is there', async t => {
    const { session, client } = await openSession(cluster.head)
    let acknowledged = 0
    const sends = Promise.all(Array.from({ length: REQUESTS }, (_, i) => client.send('Echo', { input: `<${i}>` }, { userData: String(i) }).then(() => { acknowledged++ })))
    const { total } = await waitForTotal(cluster, session.id)
    t.ok(total < REQUESTS * 0.9, `struck when ${total} had arrived`)
    await cluster.killUp()
    await cluster.up()
    await sends
    t.equal(acknowledged, REQUESTS)
    t.equal(await client.endRequests(), REQUESTS, 'none was lost, and none counted twice')
    await readAll(t, client)
    await session.close()
  })
})

async function waitForTotal (cluster: Cluster, sessionId: string): Promise<{ total: number }> {
  return await eventually('a tenth of the requests has arrived', async () => {
    const { counters } = await cluster.session(sessionId)
    return counters.total >= REQUESTS * 0.1 && counters
  })
}
