/**
 * What tracing costs, and how long a search takes.
 *
 *     node <build>/bench/trace.bench.js [--messages 20000] [--rounds 7] [--rows 100000] [--json]
 *
 * Cost: a session of the broker without sockets, whose one instance answers at once, so that nothing but the broker's own work is measured: messages accepted,
 * dispatched, settled and read, with traceMessages 0 and 10,000 by turns in one process. Per message that is the worst case; sockets and SOAP come on top of both.
 * Search: a durable session in a Redis of its own (appendfsync always), half of the rows waiting and half answered, bodies of 1 KiB.
 */
import { setMaxListeners } from 'node:events'
import { parseArgs } from 'node:util'
import { systemClock } from '../core/clock.ts'
import { silent } from '../core/log.ts'
import { MemoryMessageStore } from '../store/memory-store.ts'
import type { MessageStore } from '../store/message-store.ts'
import { closeRedis, openRedis, type Redis } from '../store/redis.ts'
import { RedisMessageStore } from '../store/redis-store.ts'
import { userDataHeader } from '../wire/soap/hpc-headers.ts'
import { startRedis } from '../test/redis-server.ts'
import { never, openSession, request } from '../test/worker/open-session.ts'

const { values } = parseArgs({ options: { messages: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '7' }, rows: { type: 'string', default: '100000' }, json: { type: 'boolean', default: false } } })
const messages = Number(values.messages)
const rows = Number(values.rows)
const page = { maxBytes: 4 * 1024 * 1024, signal: never, end: () => undefined }
setMaxListeners(0) // whole batches wait for one signal
const body = Buffer.alloc(1024, '<x/>')

/** CPU µs of this process per message. */
async function round (traceMessages: number, store: MessageStore, durable: boolean): Promise<number> {
  const settings = { traceMessages, messageThrottleStartThreshold: 1e9, messageThrottleStopThreshold: 1e9, serviceRequestPrefetchCount: 15 }
  const { session, client } = await openSession({ clock: systemClock, durable, store, settings })
  const c = client()
  const start = process.cpuUsage()
  for (let n = 0; n < messages; n += 500) await Promise.all(Array.from({ length: 500 }, (_, i) => c.accept(request(n + i, { body }), 0, never)))
  await c.endRequests(messages, { batchId: 0, timeoutMs: 60_000, signal: never })
  for (let read = 0; read < messages;) read += (await c.pull('Current', Math.min(256, messages - read), '', page)).responses.length
  const { user, system } = process.cpuUsage(start)
  await session.close('destroyed')
  return (user + system) / messages
}

const median = (all: number[]): number => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] as number

async function cost (name: string, open: () => Promise<MessageStore>, durable: boolean): Promise<object> {
  const off: number[] = []
  const on: number[] = []
  await round(0, await open(), durable)
  await round(10_000, await open(), durable)
  for (let i = 0; i < Number(values.rounds); i++) {
    // Who goes first changes: neither has the warmer machine.
    for (const traced of i % 2 === 0 ? [false, true] : [true, false]) (traced ? on : off).push(await round(traced ? 10_000 : 0, await open(), durable))
  }
  const ratio = median(on.map((value, i) => value / (off[i] as number)))
  return { store: name, messages, offMicroseconds: median(off).toFixed(2), onMicroseconds: median(on).toFixed(2), ratio: ratio.toFixed(3) }
}

async function searches (redis: Redis): Promise<object[]> {
  const store = await RedisMessageStore.open({ redis, prefix: 'bench', sessionId: '99', level: 'disk', create: true, log: silent })
  const { session, client } = await openSession({ clock: systemClock, durable: true, store })
  const c = client()
  const fill = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 1000) await Promise.all(Array.from({ length: 1000 }, (_, i) => c.accept(request(n + i, { body, userData: userDataHeader(`order ${n + i} of the night run`) }), 0, never)))
  }
  await fill(0, rows / 2)
  await c.flush(rows / 2, { batchId: 0, timeoutMs: 60_000, signal: never })
  while (c.queue.responses < rows / 2) await c.queue.changed.next(systemClock, -1, never)
  await fill(rows / 2, rows)
  const found: object[] = []
  const redisCpuMs = async (): Promise<number> => [...(await redis.info('cpu')).matchAll(/used_cpu_(?:sys|user):([\d.]+)/g)].reduce((sum, [, seconds]) => sum + 1000 * Number(seconds), 0)
  const ask = async (what: string, query: Record<string, string>): Promise<void> => {
    const times: number[] = []
    let count = 0
    const before = { redis: await redisCpuMs(), here: process.cpuUsage() }
    for (let i = 0; i < 5; i++) {
      const start = performance.now()
      const { items, message } = await session.tracing.answer(new URLSearchParams(query), never)
      times.push(performance.now() - start)
      count = items?.length ?? (message === undefined ? 0 : 1)
    }
    const { user, system } = process.cpuUsage(before.here)
    const cpu = { redisCpuMs: Math.round((await redisCpuMs() - before.redis) / 5), brokerCpuMs: Math.round((user + system) / 5000) }
    found.push({ what, found: count, ...cpu, medianMs: Math.round(median(times)), longestMs: Math.round(Math.max(...times)) })
  }
  await ask('user data, exact, answered', { userData: `order ${Math.floor(rows / 4)} of the night run`, exact: 'true' })
  await ask('user data, part, waiting', { userData: `order ${Math.floor(rows * 0.75)} of` })
  await ask('user data, nowhere', { userData: 'order that never was' })
  await ask('user data, part, faults alone', { userData: 'order 1', state: 'faulted' })
  await ask('message id, whole', { message: `urn:uuid:${Math.floor(rows / 5)}` })
  await ask('state received, 100 of them', { state: 'received', limit: '100' })
  await ask('the session in short', {})
  await session.close('destroyed')
  return found
}

const ends: Array<() => unknown> = []
try {
  const server = await startRedis({ teardown: end => ends.push(end) }, { appendfsync: 'always' })
  const redis = await openRedis(server.url, { log: silent })
  ends.push(() => closeRedis(redis))
  let session = 0
  const costs = [
    await cost('memory', async () => new MemoryMessageStore(), false),
    await cost('redis', async () => await RedisMessageStore.open({ redis, prefix: 'bench', sessionId: String(++session), level: 'disk', create: true, log: silent }), true)
  ]
  const search = await searches(redis)
  if (values.json) console.log(JSON.stringify({ costs, search }))
  else { console.table(costs); console.table(search) }
} finally {
  for (const end of ends.reverse()) await end()
}
