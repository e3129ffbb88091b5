import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { SessionRecord } from '../../store/session-store.ts'
import type { WorkerStatus } from '../contract.ts'
import { toProblem } from '../problem.ts'
import type { BrokerSession } from './session.ts'
import { acceptRequests, streamEvents, streamResponses } from './messages.ts'

/** What the control socket can ask of a worker (broker/contract.ts). */
export interface WorkerDesk {
  status (): WorkerStatus
  claim (head: string, socket: string | undefined): void
  session (sessionId: string): BrokerSession | undefined
  open (record: SessionRecord): Promise<BrokerSession>
  close (sessionId: string, ending: 'destroyed' | 'suspended'): Promise<void>
  stop (): void
}

/** Orders are small; requests of clients come in over `…/requests` as a stream with a bound of their own. */
const MAX_ORDER_BYTES = 1024 * 1024

type Route = [method: string, path: RegExp, run: (call: { req: IncomingMessage, res: ServerResponse, params: string[], query: URLSearchParams, signal: AbortSignal }) => Promise<unknown>]

/** The worker's control socket: JSON over HTTP, for heads only. */
export function controlServer (desk: WorkerDesk, log: Logger): Server {
  const need = (sessionId = ''): BrokerSession => {
    const session = desk.session(sessionId)
    if (session === undefined) throw new SoaError('InvalidSessionId', { sessionId })
    return session
  }

  const ROUTES: readonly Route[] = [
    ['POST', /^\/claim$/, async ({ req }) => { const { head = '', socket } = await order(req); desk.claim(String(head), typeof socket === 'string' ? socket : undefined); return desk.status() }],
    ['GET', /^\/figures$/, async () => desk.status().figures],
    ['POST', /^\/stop$/, async ({ res }) => { res.statusCode = 202; const status = desk.status(); desk.stop(); return status }],
    ['POST', /^\/sessions$/, async ({ req, res }) => {
      const record = await order(req) as unknown as SessionRecord
      const session = await desk.open(record)
      res.statusCode = 201
      return session.view()
    }],
    ['GET', /^\/sessions\/(\d+)$/, async ({ params }) => need(params[0]).view()],
    ['POST', /^\/sessions\/(\d+)\/cancel$/, async ({ params }) => { const session = need(params[0]); await session.cancel(); return session.view() }],
    ['DELETE', /^\/sessions\/(\d+)$/, async ({ params }) => { need(params[0]); await desk.close(params[0] as string, 'destroyed') }],
    ['POST', /^\/sessions\/(\d+)\/suspend$/, async ({ params }) => { need(params[0]); await desk.close(params[0] as string, 'suspended') }],
    ['GET', /^\/sessions\/(\d+)\/clients$/, async ({ params }) => (await need(params[0]).view()).clients],
    ['GET', /^\/sessions\/(\d+)\/tasks$/, async ({ params }) => need(params[0]).taskInfos],
    ['GET', /^\/sessions\/(\d+)\/trace$/, async ({ params, query, signal }) => need(params[0]).tracing.answer(query, signal)],
    ['GET', /^\/sessions\/(\d+)\/events$/, async ({ params, res, signal }) => streamEvents(need(params[0]), res, signal)],
    ['POST', /^\/sessions\/(\d+)\/clients\/([^/]*)\/requests$/, async ({ params, req, signal }) => acceptRequests(need(params[0]), decodeURIComponent(params[1] as string), req, signal)],
    ['POST', /^\/sessions\/(\d+)\/clients\/([^/]*)\/(flush|end)$/, async ({ params, query, signal }) => {
      const client = need(params[0]).client(decodeURIComponent(params[1] as string))
      const count = Number(query.get('count') ?? client.queue.uncommitted)
      const options = { batchId: -1, timeoutMs: 60_000, signal }
      if (params[2] === 'end') await client.endRequests(count, options)
      else if (count > 0) await client.flush(count, options)
      need(params[0]).workCame()
      return { count: client.queue.committed }
    }],
    ['GET', /^\/sessions\/(\d+)\/clients\/([^/]*)\/responses$/, async ({ params, query, res, signal }) =>
      streamResponses(need(params[0]), decodeURIComponent(params[1] as string), query, res, signal)],
    ['GET', /^\/sessions\/(\d+)\/dead-letters$/, async ({ params, query }) => need(params[0]).letters.page(query)],
    ['GET', /^\/sessions\/(\d+)\/dead-letters\/([^/]+)$/, async ({ params }) => need(params[0]).letters.show(params[1] as string)],
    ['POST', /^\/sessions\/(\d+)\/dead-letters\/([^/]+)\/replay$/, async ({ params, res }) => { const letter = await need(params[0]).letters.replay(params[1] as string); res.statusCode = 202; return letter }],
    ['DELETE', /^\/sessions\/(\d+)\/dead-letters\/([^/]+)$/, async ({ params }) => need(params[0]).letters.remove(params[1] as string)],
    ['DELETE', /^\/sessions\/(\d+)\/clients\/([^/]*)$/, async ({ params }) => need(params[0]).purge(decodeURIComponent(params[1] as string))],
  ]

  return createServer((req, res) => {
    const url = new URL(req.url ?? '/', 'http://worker')
    const gone = new AbortController()
    res.once('close', () => gone.abort(new Error('the caller is gone')))
    const found = ROUTES.find(([method, path]) => method === req.method && path.test(url.pathname))
    if (found === undefined) { fail(res, new SoaError('InvalidArgument', { argument: 'path', why: `${req.method ?? ''} ${url.pathname} is nothing here` })); return }
    const [, path, run] = found
    run({ req, res, params: (path.exec(url.pathname) as RegExpExecArray).slice(1), query: url.searchParams, signal: gone.signal }).then(answer => {
      if (res.headersSent) return
      if (answer === undefined) { res.statusCode = 204; res.end(); return }
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify(answer))
    }).catch(error => {
      if (gone.signal.aborted) return
      if (!(error instanceof SoaError)) log.error({ err: error as Error, path: url.pathname }, 'control request failed')
      if (res.headersSent) res.destroy()
      else fail(res, error)
    })
  })
}

async function order (req: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > MAX_ORDER_BYTES) throw new SoaError('overLimit', { setting: 'order', limit: MAX_ORDER_BYTES, value: `more than ${MAX_ORDER_BYTES} bytes` })
    chunks.push(chunk)
  }
  return chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>
}

function fail (res: ServerResponse, error: unknown): void {
  const problem = toProblem(error)
  res.statusCode = problem.status
  res.setHeader('content-type', 'application/problem+json')
  res.end(JSON.stringify(problem))
}
