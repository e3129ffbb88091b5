import type { FastifyInstance } from 'fastify'
import type { OfSession, Pass } from './pass.ts'
import { answers, json, letterPage, lettersQuery, ref } from './schemas.ts'

type OfLetter = { Params: { id: string, letter: string } }

/** Requests that were given up: looked at, run again, removed. Their session's broker has them (broker/worker/dead-letters.ts). */
export function deadLetterRoutes (app: FastifyInstance, pass: Pass): void {
  const tags = ['dead letters']
  const path = (letter: string): string => `dead-letters/${encodeURIComponent(letter)}`

  app.get<OfSession & { Querystring: Record<string, string> }>('/sessions/:id/dead-letters', { schema: { tags, summary: 'Requests that were given up, in the order in which it happened', querystring: lettersQuery, response: answers({ 200: json('a page', letterPage) }) } },
    (request, reply) => pass(request, reply, `dead-letters?${new URLSearchParams(request.query)}`))
  app.get<OfLetter>('/sessions/:id/dead-letters/:letter', { schema: { tags, summary: 'One of them, with its request', response: answers({ 200: json('the dead letter', ref('WholeDeadLetter')) }) } },
    (request, reply) => pass(request, reply, path(request.params.letter)))
  app.post<OfLetter>('/sessions/:id/dead-letters/:letter/replay', {
    schema: { tags, summary: 'Run it again: its response takes the place of its fault. Again while it runs: nothing happens', response: answers({ 202: json('it runs again', ref('DeadLetter')) }) }
  }, (request, reply) => pass(request, reply, `${path(request.params.letter)}/replay`))
  app.delete<OfLetter>('/sessions/:id/dead-letters/:letter', { schema: { tags, summary: 'Remove it; its fault stays. Again: nothing happens', response: answers({ 204: { description: 'gone' } }) } },
    (request, reply) => pass(request, reply, path(request.params.letter)))
}
