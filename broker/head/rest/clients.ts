import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteGenericInterface } from 'fastify'
import { SoaError } from '../../../core/errors.ts'
import type { SessionRaising } from '../session-raising.ts'
import { isUnreachable, type Passed } from '../worker-link.ts'
import type { Worker } from '../worker-pool.ts'
import { answers, json, ref, requestLine, responsesQuery } from './schemas.ts'
import { sessionIdOf } from './sessions.ts'

export interface ClientRoutesNeeds { raising: Pick<SessionRaising, 'locate' | 'mend'> }

type OfSession = { Params: { id: string } }
type OfClient = { Params: { id: string, client: string } }
type Incoming = FastifyRequest<RouteGenericInterface & OfSession>

/** A problem of a worker fits in here by far; anything longer is cut. */
const MAX_PROBLEM_BYTES = 65_536

/** What a session's broker knows itself: passed on to the control socket of the worker that serves it, and its answer back as it comes. */
export function clientRoutes (app: FastifyInstance, { raising }: ClientRoutesNeeds): void {
  const ndjson = (description: string): Record<string, unknown> => ({ description, content: { 'application/x-ndjson': { schema: { type: 'string' } } } })
  const counted = json('how many', { type: 'object', properties: { count: { type: 'integer' } } })
  const tags = ['clients']

  for (const [what, item] of [['clients', 'Client'], ['tasks', 'Task']] as const) {
    app.get<OfSession>(`/sessions/:id/${what}`, { schema: { tags: ['sessions'], summary: `The session's ${what}`, response: answers({ 200: json(what, { type: 'array', items: ref(item) }) }) } },
      (request, reply) => pass(request, reply, what))
  }
  app.get<OfSession>('/sessions/:id/events', { schema: { tags: ['sessions'], summary: 'Server-sent events: task, client, counters, state', response: answers({ 200: { description: 'as they come', content: { 'text/event-stream': { schema: { type: 'string' } } } } }) } },
    (request, reply) => pass(request, reply, 'events'))

  app.post<OfClient>('/sessions/:id/clients/:client/requests', {
    schema: {
      tags,
      summary: 'Send requests, one JSON object a line: {action, body, userData?, messageId?}',
      consumes: ['application/x-ndjson'],
      body: { content: { 'application/x-ndjson': { schema: requestLine } } },
      response: answers({ 200: json('how many were taken', { type: 'object', properties: { accepted: { type: 'integer' } } }) })
    },
    // Described, not checked: the body is a stream that is passed on, and the worker checks each line.
    validatorCompiler: () => () => true
  }, (request, reply) => pass(request, reply, `${clientPath(request)}/requests`, request.body as Readable | undefined))
  app.post<OfClient>('/sessions/:id/clients/:client/flush', { schema: { tags, summary: 'Answered when all requests so far are safe', response: answers({ 200: counted }) } },
    (request, reply) => pass(request, reply, `${clientPath(request)}/flush`))
  app.post<OfClient>('/sessions/:id/clients/:client/end', { schema: { tags, summary: 'Flush, and no more requests will come', response: answers({ 200: counted }) } },
    (request, reply) => pass(request, reply, `${clientPath(request)}/end`))
  app.get<OfClient & { Querystring: { from?: string, limit?: string } }>(
    '/sessions/:id/clients/:client/responses', { schema: { tags, summary: 'Responses, one JSON object a line, as they come', querystring: responsesQuery, response: answers({ 200: ndjson('responses') }) } },
    (request, reply) => {
      const query = new URLSearchParams(request.query as Record<string, string>).toString()
      return pass(request, reply, `${clientPath(request)}/responses${query === '' ? '' : `?${query}`}`)
    })
  app.delete<OfClient>('/sessions/:id/clients/:client', { schema: { tags, summary: 'Purge: the client\'s requests and responses are removed', response: answers({ 204: { description: 'gone' } }) } },
    (request, reply) => pass(request, reply, clientPath(request)))

  async function pass (request: Incoming, reply: FastifyReply, path: string, body?: Readable): Promise<FastifyReply> {
    const sessionId = sessionIdOf(request)
    const gone = new AbortController()
    reply.raw.once('close', () => gone.abort())
    let last: Worker | undefined
    for (let tried = 0; ; tried++) {
      const worker = last === undefined ? await raising.locate(sessionId) : await raising.mend(sessionId, last)
      // What a stream has given can be given once only; anything else may be asked of the session's next worker.
      const mayTryAgain = tried < 2 && body === undefined
      let answer: Passed
      try {
        answer = await worker.link.pass(request.method as 'GET', `/sessions/${sessionId}/${path}`, { body, signal: gone.signal, headers: body === undefined ? {} : { 'content-type': 'application/x-ndjson' } })
      } catch (error) {
        if (!isUnreachable(error)) throw error
        if (!mayTryAgain) throw new SoaError('Broker_BrokerUnavailable', { sessionId }, { cause: error })
        last = worker
        continue
      }
      if (answer.status < 400) return send(reply, answer)
      const text = await textOf(answer.body)
      if (answer.status === 404 && mayTryAgain && nameIn(text) === 'InvalidSessionId') { last = worker; continue }
      return reply.code(answer.status).type(answer.headers['content-type'] ?? 'application/problem+json').send(text)
    }
  }
}

// Both were decoded on the way in; a client id may hold a blank or a brace.
const clientPath = ({ params }: FastifyRequest<OfClient>): string => `clients/${encodeURIComponent(params.client)}`

function send (reply: FastifyReply, { status, headers, body }: Passed): FastifyReply {
  void reply.code(status).header('cache-control', 'no-store').serializer(payload => payload as string)
  if (headers['content-type'] !== undefined) void reply.header('content-type', headers['content-type'])
  return reply.send(status === 204 ? (body.resume(), undefined) : body)
}

async function textOf (body: Readable): Promise<string> {
  let text = ''
  for await (const part of body.setEncoding('utf8')) if ((text += part as string).length > MAX_PROBLEM_BYTES) break
  return text.slice(0, MAX_PROBLEM_BYTES)
}

function nameIn (text: string): unknown {
  try { return (JSON.parse(text) as { name?: unknown }).name } catch { return undefined }
}
