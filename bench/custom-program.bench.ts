/** What a hook costs when a custom broker is a program: `onRequest` with a body of 400 bytes, one call at a time and 8. `node dist/bench/custom-program.bench.js`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../core/clock.ts'
import { silent } from '../core/log.ts'
import { parseRegistration } from '../config/service-registration.ts'
import { readSettings } from '../config/read-settings.ts'
import type { CustomRequest, CustomSession } from '../broker/custom-broker.ts'
import { openCustomBroker } from '../broker/worker/custom-opening.ts'

const CALLS = 3000
const request: CustomRequest = {
  clientId: 'c',
  messageId: 'urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55',
  action: 'http://tempuri.org/IPricer/Price',
  userData: 'key:1',
  lane: 0,
  body: '<Strike>101.25</Strike>'.repeat(17),
}

const node = (concurrency: number): string => `import { createServer } from 'node:http'
createServer(async (req, res) => {
  let text = ''; for await (const part of req) text += part
  const body = req.method === 'GET' ? '{"name":"node","hooks":["onRequest"],"concurrency":${concurrency}}' : (JSON.parse(text), '{"result":"pass"}')
  res.writeHead(200, { 'content-length': body.length }).end(body)
}).listen(new URL(process.env.SOA_LISTEN_URL).port, '127.0.0.1')`
const python = (concurrency: number): string => `import json, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_GET(self): self.answer(b'{"name":"python","hooks":["onRequest"],"concurrency":${concurrency}}')
    def do_POST(self):
        json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(b'{"result":"pass"}')
    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
ThreadingHTTPServer(("127.0.0.1", int(os.environ["SOA_LISTEN_URL"].rsplit(":", 1)[1].strip("/"))), Handler).serve_forever()`

const folder = mkdtempSync(join(tmpdir(), 'soa-bench-'))
try {
  for (const [name, executive, script] of [['node.mjs', process.execPath, node], ['python.py', 'python3', python]] as const) {
    for (const concurrency of [1, 8]) {
      writeFileSync(join(folder, name), script(concurrency))
      const service = '<microsoft.Hpc.Session.ServiceRegistration><service assembly="x.mjs"/></microsoft.Hpc.Session.ServiceRegistration>'
      const broker = `<microsoft.Hpc.Broker><customBroker executive="${executive}" arguments="${name}"/></microsoft.Hpc.Broker>`
      const registration = parseRegistration(`<configuration>${service}${broker}</configuration>`, join(folder, 'X.config'), {})
      const settings = readSettings({}, {}, 'session')
      const custom = await openCustomBroker(registration, { session: { sessionId: '1', durable: false }, settings, lastWordsFile: '', env: process.env, clock: systemClock, log: silent })
      const session = { signal: new AbortController().signal, state: { set () {}, delete: () => false } } as unknown as CustomSession
      await custom?.broker.onSessionStart?.(session)
      const line = async (calls: number): Promise<void> => { for (let n = 0; n < calls; n++) await custom?.broker.onRequest?.(request, session) }
      const ask = async (calls: number): Promise<void> => { await Promise.all(Array.from({ length: 8 }, () => line(calls / 8))) }
      await ask(800)
      const [from, cpu] = [performance.now(), process.cpuUsage()]
      await ask(CALLS)
      const [ms, { user, system }] = [performance.now() - from, process.cpuUsage(cpu)]
      const each = (total: number): number => Number((total / CALLS).toFixed(3))
      console.log(JSON.stringify({ program: name, concurrency, hooksPerSecond: Math.round(CALLS / ms * 1000), msEach: each(ms), ourProcessorMsEach: each((user + system) / 1000) }))
      await custom?.close()
    }
  }
} finally {
  rmSync(folder, { recursive: true })
}
