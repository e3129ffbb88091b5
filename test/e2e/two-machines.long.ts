import t, { type Test } from 'tap'
import { DurableSession, Session } from '../../client/index.ts'
import { tcpCaller } from '../../transport/tcp/caller.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import { BROKER_CONTROLLER } from '../../wsdl/contracts.ts'
import { decodeReply, encodeRequest } from '../../wsdl/shapes.ts'
import { startRedis } from '../redis-server.ts'
import { eventually } from './cluster.ts'
import { CLIENT_ID, openSession, readAll, REQUESTS, sendAll } from './five-thousand.ts'
import { Grid, type GridProcess } from './grid.ts'

// Two heads with machines' names of their own on one Redis, in the middle of durable sessions of 5,000 requests.
t.setTimeout(600_000)

const limits = { maxMessageSize: 1_000_000, maxHeaderBytes: 65_536, maxDepth: 64 }

/** What the session's controller says of the client over net.tcp, asked at this head. */
async function statusOf (head: GridProcess, sessionId: string): Promise<unknown> {
  const caller = tcpCaller(`${head.netTcp}/${sessionId}/NetTcp/Controller`, { limits, connections: 1, callsPerConnection: 1 })
  try {
    const operation = BROKER_CONTROLLER.operations.GetRequestsCount
    const result = await caller.call({ v: 1, soap: 12, enc: 'utf8', action: operation.action, otherHeaders: [], prefixesInScope: [], body: encodeRequest(operation, { clientId: CLIENT_ID }) }, { timeoutMs: 20_000, signal: new AbortController().signal })
    if (result.outcome !== 'answered' || result.reading.isFault) throw new Error(`the controller at ${head.netTcp}: ${result.outcome}`)
    return decodeReply(operation, withTextBody(result.reading.envelope).body, result.reading.envelope.prefixesInScope)
  } finally {
    await caller.close()
  }
}

async function twoMachines (t: Test): Promise<{ grid: Grid, alpha: GridProcess, beta: GridProcess }> {
  const grid = new Grid(t, (await startRedis(t)).url)
  const alpha = await grid.head('alpha')
  const beta = await grid.head('beta')
  await grid.register(alpha)
  await grid.node('n1', 4)
  return { grid, alpha, beta }
}

const kill9 = (...pids: number[]): void => { for (const pid of pids) process.kill(pid, 'SIGKILL') }

t.test('two machines: one dies whole; its durable session is raised at the other, its interactive one has failed and says so', async t => {
  const { grid, alpha, beta } = await twoMachines(t)
  const { session, client } = await openSession(alpha.http)
  await sendAll(client)
  t.equal(await client.endRequests(), REQUESTS)
  const interactive = await Session.create({ service: 'CcpEchoSvc', head: alpha.http })
  t.same(await statusOf(beta, session.id), await statusOf(alpha, session.id), 'net.tcp reaches the worker through either head')
  const pids = [...new Set(await Promise.all([session, interactive].map(async ({ id }) => (await grid.session(beta, id)).brokerPid ?? 0)))]
  await eventually('a tenth is processed', async () => ((await grid.session(beta, session.id)).counters?.processed ?? 0) >= REQUESTS / 10)
  kill9(alpha.pid, ...pids)
  const raised = await eventually('beta serves the session', async () => {
    const found = await grid.session(beta, session.id).catch(() => undefined)
    return found?.brokerPid !== undefined && found.brokerPid !== null && !pids.includes(found.brokerPid) && found
  }, 120_000)
  t.match(raised, { state: 'Running' })
  const attached = await DurableSession.attach(session.id, { head: beta.http })
  await readAll(t, attached.client(CLIENT_ID))
  t.ok(await statusOf(beta, session.id))
  t.match(await eventually('the interactive session has failed', async () => { const found = await grid.session(beta, interactive.id); return found.state === 'Failed' && found }), { state: 'Failed', why: /broker worker is gone: it no longer beats/ })
  await attached.close()
})

t.test('two heads: kill -9 of each head in turn costs connections only', async t => {
  const { grid, alpha, beta } = await twoMachines(t)
  const { session, client } = await openSession(alpha.http)
  await sendAll(client)
  t.equal(await client.endRequests(), REQUESTS)
  const before = await grid.session(beta, session.id)
  kill9(alpha.pid)
  const again = await grid.head('alpha')
  const found = await eventually('the new head of the machine serves the session', async () => await grid.session(again, session.id).catch(() => undefined))
  t.match(found, { brokerPid: before.brokerPid }, 'with the same broker, which it adopted')
  t.match(await grid.session(beta, session.id), { brokerPid: before.brokerPid }, 'and the other head reaches it there')
  kill9(beta.pid)
  const attached = await DurableSession.attach(session.id, { head: again.http })
  await readAll(t, attached.client(CLIENT_ID))
  await attached.close()
})
