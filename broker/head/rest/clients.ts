import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { OfSession, Pass } from './pass.ts'
import { answers, json, ref, requestLine, responsesQuery } from './schemas.ts'

type OfClient = { Params: { id: string, client: string } }

/** What a session's broker knows itself: passed on to the control socket of the worker that serves it, and its answer back as it comes. */
export function clientRoutes (app: FastifyInstance, pass: Pass): void {
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
}

// Both were decoded on the way in; a client id may hold a blank or a brace.
const clientPath = ({ params }: FastifyRequest<OfClient>): string => `clients/${encodeURIComponent(params.client)}`
