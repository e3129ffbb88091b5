import t from 'tap'
import { ClientError, DurableSession, type BrokerClient } from '../../client/index.ts'
import { sleep, systemClock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { startRedis } from '../redis-server.ts'
import { troubleProxy } from '../redis-trouble-proxy.ts'
import { eventually } from './cluster.ts'
import { Grid, type GridProcess } from './grid.ts'

// Every trouble that a Redis can have, one after the other, under one durable session that works all the while. Each is loud where it must be, nothing is lost
// or kept twice, and the rate comes back: it is printed for each trouble as a share of the rate before it, and asserted only as "work goes on".
t.setTimeout(800_000)

const CLIENTS = 4
const A_BATCH = 100
/** Requests that wait for the service: so many that it is never idle, so few that the end is near. */
const MOST_WAITING = 1200
const MEASURED_MS = 5000
/** After the trouble is over, until the rate is measured again. */
const REST_MS = 6000

t.test('troubles of Redis: restarted, slow, cut off, away, full, read-only; and flushed, which ends the session in words', async t => {
  const redis = await startRedis(t)
  const proxy = await troubleProxy(t, redis.path)
  const direct = await openRedis(redis.url, { log: silent })
  t.teardown(() => closeRedis(direct))
  const grid = new Grid(t, proxy.url)
  const head = await grid.head('alpha')
  await grid.register(head)
  await grid.register(head, 'test/e2e/services/SlowEcho.config')
  await grid.node('n1', 4)
  const session = await DurableSession.create({ service: 'SlowEcho', head: head.http })
  const load = new Load(grid, head, session)

  const ready = async (): Promise<string[]> => (await (await fetch(`${head.http}/readyz`)).json() as { failing: string[] }).failing
  const survives = async (name: string, trouble: () => Promise<void>): Promise<void> => {
    const before = await load.rate()
    await trouble()
    await eventually(`${name}: the head is ready again`, async () => (await ready()).length === 0)
    await sleep(systemClock, REST_MS)
    const after = await load.rate()
    t.ok(after > 0, `${name}: ${Math.round(before)} responses a second before, ${Math.round(after)} after it: ${Math.round(after / before * 100)} %`)
  }
  await eventually('work has begun', async () => await load.processed() > 500)
  await eventually('all four instances work', async () => (await grid.session(head, session.id)).tasks.filter(task => task.state === 'Running').length === 4)
  await survives('nothing, for comparison', async () => {})
  await survives('kill -9, and started again after 3 s', async () => { await redis.kill9(); await sleep(systemClock, 3000); await redis.restart() })
  await survives('each answer 2 s late, for 12 s', async () => { proxy.set('slow', 2000); await sleep(systemClock, 12_000); proxy.set('pass') })
  await survives('partition, for 15 s', async () => {
    proxy.set('hole')
    await sleep(systemClock, 15_000)
    t.ok((await ready()).includes('redis'), 'readiness says that Redis is away')
    proxy.set('pass')
  })
  await survives('connections cut and refused, for 12 s', async () => { proxy.set('cut'); await sleep(systemClock, 12_000); proxy.set('pass') })
  await survives('full, for 5 s', async () => {
    await direct.config('SET', 'maxmemory', '1')
    await eventually('senders are told', () => load.refused.some(name => name === 'StorageSpaceNotSufficient'))
    t.ok((await ready()).includes('redis'), 'readiness says that Redis takes no writes')
    await sleep(systemClock, 5000)
    await direct.config('SET', 'maxmemory', '0')
  })
  await survives('read-only, as after a fail-over, for 5 s', async () => { await direct.replicaof('127.0.0.1', '1'); await sleep(systemClock, 5000); await direct.replicaof('NO', 'ONE') })
  await load.end(t)
  t.match(load.failed, [], 'no sender saw anything but refusals for want of space')

  await session.close()
  const doomed = await DurableSession.create({ service: 'CcpEchoSvc', head: head.http })
  const client = doomed.client('c')
  await client.send('Echo', { input: 'x' })
  await direct.flushall()
  const told = await client.send('Echo', { input: 'x' }).then(() => client.flush()).then(() => undefined, (error: Error) => error)
  t.match(told, { message: /.+/ }, `flushed, and who calls is told: ${String(told?.message)}`)
  t.match(grid.log, /the store refuses this broker for good/)
  await doomed.detach()
})

/** Senders that keep the service busy, and what they have sent. */
class Load {
  /** Names of faults that senders were answered for a while. */
  readonly refused: string[] = []
  readonly failed: unknown[] = []
  readonly #grid: Grid
  readonly #head: GridProcess
  readonly #session: DurableSession
  readonly #clients: Array<{ client: BrokerClient, sent: number, done: Promise<void> }>
  #isOver = false

  constructor (grid: Grid, head: GridProcess, session: DurableSession) {
    this.#grid = grid
    this.#head = head
    this.#session = session
    this.#clients = Array.from({ length: CLIENTS }, (_, i) => {
      const one = { client: session.client(`c${i}`), sent: 0, done: Promise.resolve() }
      one.done = this.#send(one).catch(error => { this.failed.push(error) })
      return one
    })
  }

  async processed (): Promise<number> { return (await this.#counters()).processed }

  /** Responses a second, over some seconds. */
  async rate (): Promise<number> {
    const [from, at] = [await this.processed(), performance.now()]
    await sleep(systemClock, MEASURED_MS)
    return (await this.processed() - from) / (performance.now() - at) * 1000
  }

  /** No more is sent, and each request has its one right response. */
  async end (t: { equal: (a: unknown, b: unknown, what: string) => unknown, same: (a: unknown, b: unknown, what: string) => unknown }): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients.map(async ({ client, done }) => { await done; await client.endRequests() }))
    for (const { client, sent } of this.#clients) {
      const seen = new Map<string, number>()
      const wrong: string[] = []
      for await (const response of client.responses({ timeoutMs: 120_000 })) {
        const row = String(response.userData)
        seen.set(row, (seen.get(row) ?? 0) + 1)
        if (response.fault !== undefined || !String((response.result() as { EchoResult?: unknown }).EchoResult).endsWith(`<${row}>`)) wrong.push(row)
      }
      t.equal(seen.size, sent, `${sent} responses`)
      t.same([...seen].filter(([, n]) => n !== 1).slice(0, 5), [], 'none twice')
      t.same(wrong.slice(0, 5), [], 'all right')
    }
  }

  async #counters (): Promise<{ total: number, processed: number }> {
    return await eventually('the session shows its counters', async () => (await this.#grid.session(this.#head, this.#session.id).catch(() => undefined))?.counters ?? undefined, 120_000)
  }

  async #send (one: { client: BrokerClient, sent: number }): Promise<void> {
    while (!this.#isOver) {
      const { total, processed } = await this.#counters()
      if (total - processed > MOST_WAITING) { await sleep(systemClock, 50); continue }
      await Promise.all(Array.from({ length: A_BATCH }, async () => {
        const row = String(one.sent++)
        await this.#patiently(() => one.client.send('Echo', { input: `<${row}>` }, { userData: row, messageId: `urn:row:${row}` }))
      }))
      await this.#patiently(() => one.client.flush())
    }
  }

  /** Tries again when the store was full; anything else is a failure. */
  async #patiently<T> (work: () => Promise<T>): Promise<T> {
    for (;;) {
      try { return await work() } catch (error) {
        if (!(error instanceof ClientError) || error.fault !== 'StorageSpaceNotSufficient') throw error
        this.refused.push('StorageSpaceNotSufficient')
        await sleep(systemClock, 200)
      }
    }
  }
}
