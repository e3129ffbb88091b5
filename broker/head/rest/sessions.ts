import type { FastifyInstance, FastifyRequest } from 'fastify'
import { SoaError } from '../../../core/errors.ts'
import type { SessionState } from '../../../store/session-store.ts'
import type { SessionRequest } from '../session-request.ts'
import type { SessionLauncher, SessionSeen } from '../session-launcher.ts'
import { answers, json, page, ref, sessionQuery, sessionRequest } from './schemas.ts'

export interface SessionRoutesNeeds {
  launcher: Pick<SessionLauncher, 'create' | 'show' | 'list' | 'cancel' | 'close'>
  /** Scheme, host and prefix that this caller is told to use. */
  baseUrl: (request: FastifyRequest) => string
  /** The same over net.tcp, by that; undefined where it is not served. */
  netTcpUrl: (baseUrl: string) => string | undefined
}

/** Tells the first close from any later one, and from one of an id that nobody has: all are 204. */
const WAS_HERE = 'soa-was-here'

type WithId = { Params: { id: string } }

/** A session id in a path: a number from 1 to 2^31-1. Anything else is the id of no session, which is the same answer as for one that is gone. */
export function sessionIdOf (request: FastifyRequest<WithId>): string {
  const { id } = request.params
  if (/^[1-9]\d{0,9}$/.test(id) && Number(id) < 2 ** 31) return id
  throw new SoaError('InvalidSessionId', { sessionId: id.slice(0, 100) })
}

/** The session object of surface.md. What only its broker knows is null while nobody serves it. */
export function sessionObject ({ record, view, waitsFor }: SessionSeen, baseUrl: string, netTcpUrl?: string): object {
  const { sessionId, service, version, durable, state, why, createdAt, priority, minUnits, maxUnits, settings } = record
  const { groups, labels, exclude, coresPerUnit, unitType, canPreempt } = record
  return {
    sessionId, service, version, durable, state, why, createdAt, priority, minUnits, maxUnits, settings, // eslint-disable-line @stylistic/object-property-newline
    pooled: record.poolSize === undefined ? undefined : true,
    shared: record.isShared,
    group: groups?.join(','),
    labels, exclude, coresPerUnit, unitType, canPreempt, // eslint-disable-line @stylistic/object-property-newline
    brokerPid: view?.brokerPid ?? null,
    brokerUniqueId: view?.brokerUniqueId,
    endpoints: { http: `${baseUrl}/${sessionId}/Http`, netTcp: netTcpUrl === undefined ? null : `${netTcpUrl}/${sessionId}/NetTcp` },
    counters: view?.counters ?? null,
    clients: view?.clients ?? [],
    tasks: view?.tasks ?? [],
    bytes: view?.bytes ?? null,
    lastFailure: view?.lastFailure,
    waitsFor
  }
}

export function sessionRoutes (app: FastifyInstance, { launcher, baseUrl, netTcpUrl }: SessionRoutesNeeds): void {
  const shown = (seen: SessionSeen, base: string): object => sessionObject(seen, base, netTcpUrl(base))

  app.post<{ Body: SessionRequest }>('/sessions', { schema: { tags: ['sessions'], summary: 'Create a session; answered once its broker takes requests', body: sessionRequest, response: answers({ 200: json('one of the pool', ref('Session')), 201: json('created', ref('Session')) }) } },
    async (request, reply) => {
      const seen = await launcher.create(request.body)
      const base = baseUrl(request)
      return reply.code(seen.isReused === true ? 200 : 201).header('location', `${base}/api/v1/sessions/${seen.record.sessionId}`).send(shown(seen, base))
    })

  app.get<{ Querystring: { state?: SessionState, service?: string, cursor?: string, limit?: string } }>(
    '/sessions', { schema: { tags: ['sessions'], summary: 'Sessions, oldest first', querystring: sessionQuery, response: answers({ 200: json('a page', page(ref('Session'))) }) } },
    async request => {
      const { limit = '100', ...query } = request.query
      const { items, next } = await launcher.list({ ...query, limit: Number(limit) })
      return { items: items.map(seen => shown(seen, baseUrl(request))), next }
    })

  app.get<WithId>('/sessions/:id', { schema: { tags: ['sessions'], summary: 'One session; a suspended durable one is raised', response: answers({ 200: json('the session', ref('Session')) }) } },
    async request => shown(await launcher.show(sessionIdOf(request)), baseUrl(request)))

  app.post<WithId>('/sessions/:id/cancel', { schema: { tags: ['sessions'], summary: 'Stop the work; stored responses stay readable. Again: nothing happens', response: answers({ 200: json('the session', ref('Session')) }) } },
    async request => shown(await launcher.cancel(sessionIdOf(request)), baseUrl(request)))

  app.delete<WithId>('/sessions/:id', { schema: { tags: ['sessions'], summary: 'Destroy the session with all its requests and responses. Again: nothing happens', response: answers({ 204: { description: 'gone', headers: { [WAS_HERE]: { type: 'boolean', description: 'false: it was not here, closed before or never there' } } } }) } },
    async (request, reply) => {
      const wasHere = await launcher.close(sessionIdOf(request))
      return reply.code(204).header(WAS_HERE, String(wasHere)).send()
    })
}
