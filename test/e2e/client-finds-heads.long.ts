import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DurableSession, Session, type BrokerClient, type SessionOptions } from '../../client/index.ts'
import { startRedis } from '../redis-server.ts'
import { eventually } from './cluster.ts'
import { Grid, type GridProcess } from './grid.ts'

// A program that is told both heads, or only one of them, and does nothing when the one that it uses is killed.
t.setTimeout(600_000)
// Most of each is waiting for a lease to be over.
t.jobs = 3

const REQUESTS = 1000
const HALF = REQUESTS / 2
const ID = 'rows'

/** Rows `from` … `to` - 1. */
const send = (client: BrokerClient, from: number, to: number): Promise<string[]> =>
  Promise.all(Array.from({ length: to - from }, (_, i) => client.send('Echo', { input: `<${from + i}>` }, { userData: String(from + i) })))

/** Reads to the end; `at` is called when a tenth is read. */
async function everyOnce (t: Test, client: BrokerClient, at: () => Promise<void> = async () => {}): Promise<void> {
  const times = new Map<number, number>()
  const wrong: string[] = []
  let read = 0
  for await (const response of client.responses({ timeoutMs: 120_000 })) {
    const row = Number(response.userData)
    times.set(row, (times.get(row) ?? 0) + 1)
    if (response.fault !== undefined || !String((response.result() as { EchoResult?: unknown }).EchoResult).endsWith(`<${row}>`)) wrong.push(`${row}: ${response.fault?.message ?? 'another row\'s'}`)
    if (++read === REQUESTS / 10) await at()
  }
  t.same(wrong.slice(0, 5), [], 'every response is right')
  t.equal(times.size, REQUESTS, 'all of them came')
  t.same([...times].filter(([, n]) => n !== 1).slice(0, 5), [], 'each once')
}

async function kill9 (...pids: number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await eventually('they are gone', () => pids.every(pid => { try { process.kill(pid, 0); return false } catch { return true } }))
}

async function twoHeads (t: Test, machines: readonly [string, string]): Promise<{ grid: Grid, first: GridProcess, second: GridProcess, head: string }> {
  const grid = new Grid(t, (await startRedis(t)).url)
  const first = await grid.head(machines[0])
  const second = await grid.head(machines[1], ['--run-dir', join(grid.dir, 'second')])
  await grid.register(second)
  await grid.node('n1', 4)
  return { grid, first, second, head: `${first.http},${second.http}` }
}

const open = (options: SessionOptions): Promise<Session> => options.durable === true ? DurableSession.create(options) : Session.create(options)

for (const [kind, durable, transport] of [['a durable session over net.tcp', true, 'netTcp'], ['a durable session over HTTP', true, 'http'], ['an interactive session', false, 'netTcp']] as const) {
  t.test(`two heads on one machine, one is killed between the requests of ${kind}: they all are answered once, by the same broker`, { buffered: true }, async t => {
    const { grid, first, second, head } = await twoHeads(t, ['alpha', 'alpha'])
    const session = await open({ service: 'CcpEchoSvc', head, durable, transport, settings: { messageThrottleStartThreshold: 100_000, messageThrottleStopThreshold: 50_000 } })
    const client = session.client(ID)
    const { brokerPid } = await session.status()
    await send(client, 0, HALF)
    const others = send(client, HALF, REQUESTS)
    await kill9(first.pid)
    await others
    t.equal(await client.endRequests(), REQUESTS)
    await everyOnce(t, client)
    t.ok(session.endpoint.startsWith(second.http), session.endpoint)
    t.match(await grid.session(second, session.id), { brokerPid })
    await session.close()
  })
}

t.test('two heads on one machine, the one that was named is killed while responses are read: the program has heard of the other', { buffered: true }, async t => {
  const { first, second } = await twoHeads(t, ['alpha', 'alpha'])
  const session = await DurableSession.create({ service: 'CcpEchoSvc', head: first.http })
  const client = session.client(ID)
  await send(client, 0, REQUESTS)
  t.equal(await client.endRequests(), REQUESTS)
  await everyOnce(t, client, () => kill9(first.pid))
  t.ok(session.endpoint.startsWith(second.http), session.endpoint)
  await session.close()
})

t.test('two heads on one machine, one stands still with all connections open: after a while without a word the program goes on through the other', { buffered: true }, async t => {
  const { first, second, head } = await twoHeads(t, ['alpha', 'alpha'])
  const session = await DurableSession.create({ service: 'CcpEchoSvc', head })
  const client = session.client(ID)
  await send(client, 0, HALF)
  process.kill(first.pid, 'SIGSTOP')
  await send(client, HALF, REQUESTS)
  t.equal(await client.endRequests(), REQUESTS)
  await everyOnce(t, client)
  t.ok(session.endpoint.startsWith(second.http), session.endpoint)
  process.kill(first.pid, 'SIGCONT')
  await session.close()
})

for (const when of ['before EndRequests', 'after EndRequests'] as const) {
  t.test(`two machines, one dies with head and broker ${when}: the session is raised at the other, and the program goes on there`, { buffered: true }, async t => {
    const { first, second, head } = await twoHeads(t, ['alpha', 'beta'])
    const session = await DurableSession.create({ service: 'CcpEchoSvc', head, retryForMs: 120_000 })
    const client = session.client(ID)
    const { brokerPid } = await session.status()
    const die = (): Promise<void> => kill9(first.pid, brokerPid as number)
    await send(client, 0, HALF)
    t.equal(await client.flush(), HALF)
    if (when === 'before EndRequests') {
      const others = send(client, HALF, REQUESTS)
      await die()
      await others
      t.equal(await client.endRequests(), HALF)
      await everyOnce(t, client)
    } else {
      await send(client, HALF, REQUESTS)
      t.equal(await client.endRequests(), HALF)
      await everyOnce(t, client, die)
    }
    t.ok(session.endpoint.startsWith(second.http), session.endpoint)
    t.not((await session.status()).brokerPid, brokerPid)
    await session.close()
  })
}
