/**
 * Appends, settles and reads a second of the message stores: batches of 100, bodies of 1 KiB, one session, one call in flight.
 *
 *     node <build>/bench/store.bench.js [--rows 20000] [--batch 100] [--bytes 1024] [--json]
 *
 * Redis is one of its own on a Unix socket: level `process` runs appendfsync everysec, level `disk` appendfsync always, level `replicas` the same with a replica beside it.
 */
import { parseArgs } from 'node:util'
import { silent } from '../core/log.ts'
import { MemoryMessageStore } from '../store/memory-store.ts'
import type { MessageStore, Settlement, StoredRequest } from '../store/message-store.ts'
import { closeRedis, openRedis } from '../store/redis.ts'
import { RedisMessageStore } from '../store/redis-store.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { eventually } from '../test/e2e/cluster.ts'
import { startRedis, type RedisServer } from '../test/redis-server.ts'

const { values } = parseArgs({ options: { rows: { type: 'string', default: '20000' }, batch: { type: 'string', default: '100' }, bytes: { type: 'string', default: '1024' }, json: { type: 'boolean', default: false } } })
const rows = Number(values.rows)
const batch = Number(values.batch)
const body = Buffer.alloc(Number(values.bytes), '<x/>')

const envelope = (id: number): Envelope => ({
  v: 1, soap: 11, enc: 'utf8', action: 'http://tempuri.org/IEcho/Echo', messageId: `urn:uuid:00000000-0000-4000-8000-${String(id).padStart(12, '0')}`, otherHeaders: [], prefixesInScope: [['s', 'http://schemas.xmlsoap.org/soap/envelope/']], body
})

interface Figures { store: string, level: string, rows: number, batch: number, bodyBytes: number, appendsPerSecond: number, settlesPerSecond: number, readsPerSecond: number }

async function measure (store: MessageStore, name: string, level: string): Promise<Figures> {
  const rate = async (work: (from: number) => Promise<unknown>): Promise<number> => {
    const start = process.hrtime.bigint()
    for (let from = 1; from <= rows; from += batch) await work(from)
    return Math.round(rows / (Number(process.hrtime.bigint() - start) / 1e9))
  }
  const range = <T>(from: number, of: (seq: number) => T): T[] => Array.from({ length: batch }, (_, i) => of(from + i))
  const appendsPerSecond = await rate(from => store.append('c', 'c', range(from, (seq): StoredRequest => ({ seq, batchId: -1, envelope: envelope(seq) }))))
  await store.commit('c', 'c', { seq: rows, committed: rows, endOfMessages: true, batchId: -1 })
  const settlesPerSecond = await rate(from => store.settle(range(from, (seq): Settlement => ({ clientId: 'c', seq, response: envelope(seq), isFault: false, requestAction: 'a' }))))
  const readsPerSecond = await rate(from => store.read('c', from - 1, batch, 1e9))
  await store.close(false)
  return { store: name, level, rows, batch, bodyBytes: body.length, appendsPerSecond, settlesPerSecond, readsPerSecond }
}

/** A second server that follows this one over a port of its own, in step when it resolves. */
async function replicaOf (server: RedisServer): Promise<void> {
  const redis = await openRedis(server.url, { log: silent })
  const port = 20_000 + process.pid % 20_000
  await redis.config('SET', 'bind', '127.0.0.1')
  await redis.config('SET', 'port', port)
  await startRedis({ teardown: end => ends.push(end) }, { appendfsync: 'always', extra: { replicaof: `127.0.0.1 ${port}` } })
  await eventually('the replica is in step', async () => /state=online/.test(await redis.info('replication')))
  await closeRedis(redis)
}

const ends: Array<() => unknown> = []
const results: Figures[] = [await measure(new MemoryMessageStore(), 'memory', '')]
try {
  const t = { teardown: (end: () => unknown) => ends.push(end) }
  for (const [level, appendfsync] of [['process', 'everysec'], ['disk', 'always'], ['replicas', 'always']] as const) {
    const server = await startRedis(t, { appendfsync, extra: { 'repl-diskless-sync-delay': '0' } })
    if (level === 'replicas') await replicaOf(server)
    const redis = await openRedis(server.url, { log: silent })
    ends.push(() => closeRedis(redis))
    results.push(await measure(await RedisMessageStore.open({ redis, prefix: 'bench', sessionId: '1', level, create: true, log: silent }), 'redis', level))
  }
} finally {
  for (const end of ends.reverse()) await end()
}
if (values.json) console.log(JSON.stringify(results))
else console.table(results)
