/**
 * Messages a second through store/pack.ts, one core, for some sizes of body.
 *
 *     node <build>/bench/pack.bench.js [--json]
 */
import { parseArgs } from 'node:util'
import { packRequest, unpackRequest } from '../store/pack.ts'
import type { StoredRequest } from '../store/message-store.ts'

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const RUN_MS = 500

function rate (work: () => unknown): number {
  const start = performance.now()
  let done = 0
  for (let spent = 0; spent < RUN_MS; spent = performance.now() - start) {
    for (let i = 0; i < 200; i++) work()
    done += 200
  }
  return Math.round(done / ((performance.now() - start) / 1000))
}

const results = [100, 1024, 16_384, 655_360].map(bodyBytes => {
  const request: StoredRequest = {
    seq: 1,
    batchId: 0,
    envelope: { v: 1, soap: 11, enc: 'utf8', action: 'http://tempuri.org/IEcho/Echo', messageId: 'urn:uuid:00000000-0000-4000-8000-000000000001', userData: Buffer.from('<u xmlns="urn:u">0</u>'), otherHeaders: [], prefixesInScope: [['s', 'http://schemas.xmlsoap.org/soap/envelope/']], body: Buffer.alloc(bodyBytes, 'x') }
  }
  const row = packRequest(request)
  rate(() => packRequest(request)) // warm
  return { bodyBytes, packsPerSecond: rate(() => packRequest(request)), unpacksPerSecond: rate(() => unpackRequest(row)) }
})
if (values.json) console.log(JSON.stringify(results))
else console.table(results)
