import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { rmSync } from 'node:fs'
import { hostname } from 'node:os'
import type { WorkerSpec } from '../../broker/head/worker-process.ts'
import type { SessionView } from '../../broker/contract.ts'
import { silent } from '../../core/log.ts'
import { SessionCounters } from '../../broker/worker/counters.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisSessionStore, RedisWorkerDirectory } from '../../store/redis-sessions.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import { readIntroductions } from '../../transport/introduction.ts'

/**
 * A worker that keeps broker/contract.ts and computes nothing: a process of its own, so that the head's tests can kill it. A session of service
 * `Deadly` kills the worker that takes it; each POST to a session's endpoint is counted and answered in plain text. SOA_FAKE_WORKER=dumb: ends at once.
 */
const spec = JSON.parse(process.env.SOA_WORKER_SPEC ?? '{}') as WorkerSpec
if (process.env.SOA_FAKE_WORKER === 'dumb') process.exit(9)
const { workerId } = spec
const sessions = new Map<string, { record: SessionRecord, unique: string, total: number, isCanceled: boolean }>()
const redis = await openRedis(spec.redisUrl, { log: silent })
const directory = new RedisWorkerDirectory({ redis, prefix: spec.prefix, log: silent })
const store = new RedisSessionStore({ redis, prefix: spec.prefix, log: silent })

const view = (sessionId: string): SessionView | undefined => {
  const session = sessions.get(sessionId)
  return session && {
    sessionId,
    state: session.isCanceled ? 'Canceled' : 'Running',
    brokerPid: process.pid,
    brokerUniqueId: session.unique,
    counters: { ...new SessionCounters().view(), total: session.total, processed: session.total },
    clients: [],
    tasks: [],
    bytes: 0
  }
}

const soap = createServer((req, res) => {
  const sessionId = /^\/(\d+)\//.exec(req.url ?? '')?.[1] ?? ''
  const session = sessions.get(sessionId)
  if (session === undefined) { void pass(req, res); return }
  session.total++
  let bytes = 0
  req.on('data', (part: Buffer) => { bytes += part.length })
  req.on('end', () => { res.setHeader('content-type', 'text/plain'); res.end(`${req.method} ${req.url} at ${workerId}: ${bytes} bytes`) })
})
async function pass (req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { forward } = await import('../../transport/http/forward.ts')
  await forward(req, res, { socketPath: spec.headSocket, baseUrl: 'http://worker.example' })
}

const control = createServer((req, res) => {
  void answer(req).then(({ status, body, type = 'application/json' }) => {
    res.statusCode = status
    res.setHeader('content-type', status >= 400 ? 'application/problem+json' : type)
    res.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
  })
})
interface Answer { status: number, body?: unknown, type?: string }

async function answer (req: IncomingMessage): Promise<Answer> {
  const url = new URL(req.url ?? '/', 'http://worker')
  const parts: Buffer[] = []
  for await (const part of req as AsyncIterable<Buffer>) parts.push(part)
  const text = Buffer.concat(parts).toString()
  const [, kind, id = '', what] = url.pathname.split('/')
  if (kind === 'claim') { claimed(); return { status: 200, body: { workerId, pid: process.pid, sessions: [...sessions.keys()], rssBytes: 1 } } }
  if (kind === 'stop') { void stop(); return { status: 202, body: {} } }
  if (req.method === 'POST' && id === '') return take(JSON.parse(text) as SessionRecord)
  const session = sessions.get(id)
  if (session === undefined) return { status: 404, body: { title: 'Not Found', status: 404, detail: `${id} is not here`, name: 'InvalidSessionId' } }
  if (req.method === 'DELETE' && what === undefined) { sessions.delete(id); return { status: 204 } }
  if (what === 'suspend') { sessions.delete(id); return { status: 204 } }
  if (what === 'cancel') { session.isCanceled = true; return { status: 200, body: view(id) } }
  if (what === undefined) return { status: 200, body: view(id) }
  if (what === 'events') return { status: 200, type: 'text/event-stream', body: 'event: state\ndata: {}\n\n' }
  if (url.pathname.endsWith('/requests')) return { status: 200, body: { accepted: text.split('\n').filter(line => line !== '').length } }
  if (url.pathname.endsWith('/flush')) return { status: 200, body: { count: 3 } }
  if (url.pathname.endsWith('/end')) return { status: 409, body: { title: 'Conflict', status: 409, detail: 'EndRequests without any request sent', name: 'Broker_EOMReject_NoRequest' } }
  if (url.pathname.endsWith('/responses')) return { status: 200, type: 'application/x-ndjson', body: `{"asked":${JSON.stringify(url.pathname + url.search)}}\n` }
  return req.method === 'DELETE' ? { status: 204 } : { status: 200, body: [] }
}

function take (record: SessionRecord): Answer {
  if (record.service === 'Deadly') process.kill(process.pid, 'SIGKILL')
  if (sessions.has(record.sessionId)) return { status: 409, body: { title: 'Conflict', status: 409, detail: 'here already', name: 'Broker_SessionIdAlreadyExists' } }
  sessions.set(record.sessionId, { record, unique: randomUUID(), total: 0, isCanceled: record.state === 'Canceled' })
  return { status: 201, body: view(record.sessionId) }
}

let unclaimed: NodeJS.Timeout
function claimed (): void {
  clearTimeout(unclaimed)
  unclaimed = setTimeout(() => { void stop() }, spec.settings.workerClaimTimeoutMs)
}

async function stop (): Promise<void> {
  for (const { record: { sessionId, durable } } of sessions.values()) {
    await store.update(sessionId, { state: durable ? 'Suspended' : 'Finished', worker: undefined, why: 'its broker was stopped' }, { worker: workerId })
  }
  clearInterval(beat)
  await directory.remove(workerId)
  await closeRedis(redis)
  for (const path of [spec.socket, spec.netTcp, spec.control]) rmSync(path, { force: true })
  process.exit(0)
}

readIntroductions(soap, 10_000)
for (const [server, path] of [[soap, spec.socket], [control, spec.control]] as const) await new Promise<void>(resolve => server.listen(path, resolve))
const record = { workerId, pid: process.pid, socket: spec.socket, control: spec.control, machine: spec.settings.machine === '' ? hostname() : spec.settings.machine, startedAt: new Date().toISOString() }
await directory.beat(record, 15_000)
const beat = setInterval(() => { void directory.beat(record, 15_000).catch(() => {}) }, 3000)
claimed()
process.on('SIGTERM', () => { void stop() })
