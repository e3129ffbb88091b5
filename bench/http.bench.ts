/** SOAP over HTTP against HTTP alone: one process, 8 calls in flight, messages of about 800 bytes. `node dist/bench/http.bench.js`; figures per second of processor time. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { silent } from '../core/log.ts'
import { httpCaller } from '../transport/http/connector.ts'
import { listenHttp } from '../transport/http/listener.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { writeEnvelope } from '../wire/soap/write.ts'

const IN_FLIGHT = 8
const limits = { maxMessageSize: 4_194_304, maxHeaderBytes: 65_536, maxDepth: 128 }
const message: Envelope = {
  v: 1,
  soap: 12,
  enc: 'utf8',
  action: 'http://tempuri.org/IPricer/Price',
  messageId: 'urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55',
  clientId: 'client-1',
  otherHeaders: [],
  prefixesInScope: [],
  body: Buffer.from(`<Price xmlns="http://tempuri.org/">${'<Strike>101.25</Strike>'.repeat(16)}</Price>`)
}

async function measure (name: string, call: () => Promise<unknown>): Promise<void> {
  const run = async (seconds: number): Promise<number> => {
    const start = process.cpuUsage()
    let calls = 0
    const spent = (): number => { const { user, system } = process.cpuUsage(start); return (user + system) / 1e6 }
    await Promise.all(Array.from({ length: IN_FLIGHT }, async () => { while (spent() < seconds) for (let i = 0; i < 50; i++, calls++) await call() }))
    return calls / spent()
  }
  await run(1)
  console.log(JSON.stringify({ case: name, callsPerSecond: Math.round(await run(3)) }))
}

const bytes = writeEnvelope(message, { addressing: 'wsa' })
const plain = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk as Buffer)).on('end', () => response.end(Buffer.concat(chunks)))
}).listen(0, '127.0.0.1')
await once(plain, 'listening')
const pool = new Pool(`http://127.0.0.1:${(plain.address() as AddressInfo).port}`, { connections: IN_FLIGHT, pipelining: 1 })
await measure('HTTP alone', async () => { await (await pool.request({ method: 'POST', path: '/', body: bytes })).body.arrayBuffer() })
await pool.close()
plain.close()

const listener = await listenHttp({ listen: { host: '127.0.0.1', port: 0 }, route: () => ({ limits, handle: async ({ reading }) => ({ envelope: reading.envelope, isFault: false }) }), log: silent })
const caller = httpCaller(`${listener.address}/svc`, { connections: IN_FLIGHT, maxMessageSize: limits.maxMessageSize })
const { signal } = new AbortController()
await measure('SOAP over HTTP', async () => {
  const { outcome } = await caller.call(message, { timeoutMs: 60_000, signal })
  if (outcome !== 'answered') throw new Error(outcome)
})
await caller.close()
await listener.close()
