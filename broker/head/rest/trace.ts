import type { FastifyInstance } from 'fastify'
import type { OfSession, Pass } from './pass.ts'
import { answers, json, limitOf1000 } from './schemas.ts'

type Schema = Record<string, unknown>

const STATES = ['received', 'waiting', 'running', 'answered', 'faulted']
const text = (description: string, more: Schema = {}): Schema => ({ type: 'string', description, ...more })
const ms = (description: string): Schema => ({ type: 'integer', description })
const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({ type: 'object', properties, ...more })
const list = (items: Schema, description: string): Schema => ({ type: 'array', items, description })

const query = object({
  message: text('message id, with urn:uuid: or without, or the beginning of one only: that message, step by step'),
  client: text('of this client only; empty: the client without an id'),
  userData: text('search: messages with this text in their user data'),
  exact: text('true: whose user data is this text', { enum: ['true', 'false'] }),
  state: text('search: messages in this state', { enum: STATES }),
  limit: limitOf1000('1 … 1000: of a search, default 100; of each list of the session, default 10'),
  cursor: text('`next` of the answer before')
}, { additionalProperties: false })

const line = {
  messageId: text(''),
  clientId: text(''),
  seq: ms('its place among its client\'s requests; 0: a call in the same exchange'),
  action: text('of the request'),
  userData: text('as text, cut when it is long; absent: it is not kept any more'),
  state: text('received: not flushed yet · waiting: for a service instance · running: at one, or its response is on its way to the store', { enum: STATES }),
  receivedAt: text('', { format: 'date-time' }),
  waitMs: ms('from queued to the first run'),
  runMs: ms('of the run that answered'),
  totalMs: ms('from received to answered'),
  tries: ms('runs'),
  taskId: text('of the latest run'),
  node: text('of the latest run'),
  outcome: text('of the latest run that came to nothing'),
  isDelivered: { type: 'boolean', description: 'a reader got the response; absent: not known' }
}
const step = object({
  step: text('', { enum: ['received', 'queued', 'dispatched', 'replied', 'failed', 'answered', 'delivered'] }),
  at: { type: ['string', 'null'], description: 'ISO 8601; null: when was not kept' },
  sinceMs: ms('since the latest step before it whose time is known'),
  try: ms('the request\'s first run is 1'),
  taskId: text(''),
  node: text(''),
  address: text('of the service host'),
  outcome: text('failed: what the run came to'),
  why: text('failed: in words'),
  then: text('failed: what became of the request', { enum: ['put back', 'given up'] }),
  times: ms('delivered: how often')
}, { required: ['step', 'at'] })
const spread = object({ p50: ms('median'), p95: ms(''), max: ms('') })

const answer = object({
  sessionId: text(''),
  message: object({ ...line, from: text('memory: this broker has seen it run · store: all that is known is what the store has', { enum: ['memory', 'store'] }), steps: list(step, 'in order of time') }),
  items: list(object(line), 'of a search: client by client, what waits before what is answered, newest first'),
  looked: ms('of a search: messages that were looked at'),
  next: text('of a search: cursor for more; absent at the end'),
  summary: object({
    traced: ms('messages whose way this broker knows'),
    most: ms('at most so many (traceMessages)'),
    forgotten: ms('those that made room for later ones'),
    since: text('since when this broker has the session', { format: 'date-time' }),
    waiting: ms('messages'),
    running: ms('messages'),
    answered: ms('messages'),
    faulted: ms('messages'),
    waitMs: spread,
    runMs: spread,
    storeMs: spread,
    totalMs: spread
  }),
  latest: list(object(line), 'that ran last'),
  slowest: list(object(line), 'from queued to answered, or to now'),
  failed: list(object(line), 'with a run that came to nothing, or answered by a fault')
})

/** What became of the messages of a session (broker/worker/tracing.ts): one message with `message`, a search with `client`, `userData` or `state`, else the session. */
export function traceRoutes (app: FastifyInstance, pass: Pass): void {
  app.get<OfSession & { Querystring: Record<string, string> }>(
    '/sessions/:id/trace', { schema: { tags: ['trace'], summary: 'What became of messages: one step by step, those that fit a search, or a summary with the latest, slowest and failed ones', querystring: query, response: answers({ 200: json('what is known', answer) }) } },
    (request, reply) => pass(request, reply, `trace?${new URLSearchParams(request.query)}`))
}
