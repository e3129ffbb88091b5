import swagger from '@fastify/swagger'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import type { RequestListener, Server } from 'node:http'
import type { Readable } from 'node:stream'
import { FAULTS } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import type { Problem } from '../contract.ts'
import { toProblem } from '../problem.ts'
import { clientRoutes } from './rest/clients.ts'
import { clusterRoutes, type ClusterRoutesNeeds } from './rest/cluster.ts'
import { deadLetterRoutes } from './rest/dead-letters.ts'
import { traceRoutes } from './rest/trace.ts'
import { invalid } from './rest/invalid.ts'
import { nowhere, type KnownRoute } from './rest/nowhere.ts'
import { operationId } from './rest/operations.ts'
import { passing, type PassNeeds } from './rest/pass.ts'
import { NO_QUERY, SHARED } from './rest/schemas.ts'
import { sessionRoutes, type SessionRoutesNeeds } from './rest/sessions.ts'

export interface RestNeeds extends SessionRoutesNeeds, PassNeeds, ClusterRoutesNeeds {
  /** Routes beside the API: health, metrics. */
  beside: (app: FastifyInstance) => void
  /** Makes the server around fastify's own handler: the front door answers some paths itself. Absent: a plain one. */
  server?: ((handle: RequestListener) => Server) | undefined
  version: string
  log: Logger
}

/** Largest JSON body; requests go as NDJSON, which is passed on and not kept. */
const MAX_BODY_BYTES = 1024 * 1024
/** A client id has 128 characters at most, three bytes each when percent-encoded. */
const MAX_PARAM_LENGTH = 512

/** The head's HTTP side: `/api/v1` as surface.md has it, its OpenAPI document, and every error as `application/problem+json`. */
export async function restServer (needs: RestNeeds): Promise<FastifyInstance> {
  const { log, server, version } = needs
  const options: FastifyServerOptions<Server> = {
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, ignoreTrailingSlash: true },
    // Nothing is bent into shape and no field is dropped in silence: a typo in `minUnits` is an error and not a default.
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allErrors: false, allowUnionTypes: true, verbose: true } },
    ...(server === undefined ? {} : { serverFactory: server })
  }
  // What no route ever sees (a path that cannot be decoded) is refused in the same form.
  const app: FastifyInstance = fastify({ ...options, frameworkErrors: (error, _request, reply) => { void refuse(reply, toProblem(error)) } })
  const plainJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body: string, done) => {
    if (body === '') done(null, undefined) // POST …/flush from clients that always name a type
    else plainJson(request, body, done)
  })
  app.addContentTypeParser('application/x-ndjson', (_request: FastifyRequest, body: Readable, done: (error: null, body: Readable) => void) => done(null, body))
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const problem = error.validation !== undefined ? invalid(error, request) : error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' ? wrongType(request) : toProblem(error)
    if (reply.raw.destroyed) log.debug({ method: request.method, url: request.url }, 'the caller is gone')
    else if (problem.status >= 500) log.error({ method: request.method, url: request.url, err: error }, 'request failed')
    else log.debug({ method: request.method, url: request.url, status: problem.status, detail: problem.detail }, 'request refused')
    return refuse(reply, problem)
  })
  const routes: KnownRoute[] = []
  app.addHook('onRoute', route => {
    for (const method of [route.method].flat()) routes.push({ method, url: route.url })
    // A query where none is read is no call of this one: what it was to change would go unnoticed.
    if (route.url.startsWith('/api/')) route.schema = { querystring: NO_QUERY, ...route.schema }
  })
  app.setNotFoundHandler((request, reply) => {
    const { problem, allow } = nowhere(request.method, request.url, routes)
    return refuse(allow.length === 0 ? reply : reply.header('allow', allow.join(', ')), problem)
  })
  for (const schema of SHARED) app.addSchema(schema)
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'soa-broker', version, description: 'Sessions, their clients and responses, nodes, services. Errors are application/problem+json with HPC Pack\'s names and numbers.' }
    },
    transform: ({ schema, url, route }) => ({ schema: { ...schema, ...operationId(route.method, url) }, url }),
    refResolver: { buildLocalReference: (json, _base, _fragment, at) => typeof json.$id === 'string' ? json.$id : `def-${at}` }
  })
  await app.register(async api => {
    sessionRoutes(api, needs)
    clientRoutes(api, passing(needs))
    deadLetterRoutes(api, passing(needs))
    traceRoutes(api, passing(needs))
    clusterRoutes(api, needs)
    api.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
  }, { prefix: '/api/v1' })
  needs.beside(app)
  await app.ready()
  return app
}

export function refuse (reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 503) void reply.header('retry-after', '1')
  // A string, so that no schema of the route's good answers is applied to it.
  return reply.code(problem.status).type('application/problem+json').serializer(payload => payload as string).send(JSON.stringify(problem))
}

/** A body of a type that the route does not read. */
function wrongType (request: FastifyRequest): Problem {
  const wanted = request.routeOptions.schema?.consumes?.join(' or ') ?? 'application/json'
  const seen = request.headers['content-type'] ?? ''
  return { title: 'Unsupported Media Type', status: 415, detail: `content-type: ${wanted} is read here, not ${seen === '' ? 'a body without a type' : seen.slice(0, 100)}`, code: FAULTS.InvalidArgument.code, name: 'InvalidArgument' }
}
