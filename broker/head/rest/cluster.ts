import { isAbsolute } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { nameOfFile } from '../../../config/service-registration.ts'
import { environmentName, settingNames, settingOf, type AllSettings } from '../../../config/settings.ts'
import { SoaError } from '../../../core/errors.ts'
import { didYouMean, nearNames } from '../../../core/near-names.ts'
import type { RedisPlacement } from '../../../store/redis-placement.ts'
import type { RegisteredService, ServiceRegistry } from '../../../store/service-registry.ts'
import { checkService } from '../../check-service.ts'
import { Refusal } from '../../problem.ts'
import type { HeadView, Membership } from '../membership.ts'
import { answers, drainBody, json, page, ref, serviceBody } from './schemas.ts'

/** What the placement store knows of nodes (store/redis-placement.ts). */
export type Nodes = Pick<RedisPlacement, 'nodes' | 'setDraining'>

export interface ClusterRoutesNeeds {
  heads: Pick<Membership, 'list' | 'ask'>
  nodes: Nodes
  services: ServiceRegistry
  settings: AllSettings
  now: () => number
}

/** A WSDL with its schemas (config/load-services.ts has the same bound). */
const MAX_SERVICE_BYTES = 20 * 1024 * 1024
/** Of nodes and heads, in a refusal. */
const NAMED = 5

export function clusterRoutes (app: FastifyInstance, { heads, nodes, services, settings, now }: ClusterRoutesNeeds): void {
  app.get('/nodes', { schema: { tags: ['nodes'], summary: 'All nodes', response: answers({ 200: json('nodes', page(ref('Node'))) }) } },
    async () => ({ items: await nodes.nodes() }))

  for (const [what, summary] of [['drain', 'Give the node no new tasks'], ['resume', 'Give it tasks again']] as const) {
    app.post<{ Params: { id: string } }>(`/nodes/:id/${what}`, { schema: { tags: ['nodes'], summary, response: answers({ 200: json('the node', ref('Node')) }) } },
      async request => {
        const { id } = request.params
        await nodes.setDraining(id, what === 'drain')
        const all = await nodes.nodes()
        return all.find(node => node.id === id) ?? unknown('node', id, all.map(node => node.id))
      })
  }

  app.get('/heads', { schema: { tags: ['heads'], summary: 'All heads that live', response: answers({ 200: json('heads', page(ref('Head'))) }) } },
    async () => ({ items: await heads.list() }))

  app.post<{ Params: { id: string }, Body: { force?: boolean } | undefined }>('/heads/:id/drain', {
    schema: { tags: ['heads'], summary: 'No new sessions there; those that run go on until they end, or, by force, leave for other heads', body: drainBody, response: answers({ 200: json('the head', ref('Head')) }) }
  }, async request => await known(request.params.id, await heads.ask(request.params.id, request.body?.force === true ? 'force' : 'drain')))
  app.post<{ Params: { id: string } }>('/heads/:id/resume', { schema: { tags: ['heads'], summary: 'New sessions there again', response: answers({ 200: json('the head', ref('Head')) }) } },
    async request => await known(request.params.id, await heads.ask(request.params.id, undefined)))
  const known = async (id: string, head: HeadView | undefined): Promise<HeadView> => head ?? unknown('living head', id, (await heads.list()).map(head => head.id))

  app.get('/services', { schema: { tags: ['services'], summary: 'Registered services', response: answers({ 200: json('services', page(ref('Service'))) }) } },
    // Without the documents: a dozen services would be megabytes.
    async () => ({ items: (await services.list()).map(({ name, version, file, wsdlFile, addedAt }) => ({ name, version, file, wsdlFile, addedAt })) }))

  app.get<{ Params: { name: string }, Querystring: { version?: string } }>('/services/:name', {
    schema: {
      tags: ['services'],
      summary: 'One service with its registration file and WSDL',
      querystring: { type: 'object', properties: { version: { type: 'string' } }, additionalProperties: false },
      response: answers({ 200: json('the service', ref('Service')) })
    }
  }, async request => services.get(request.params.name, request.query.version))

  app.put<{ Params: { name: string }, Body: { config: string, file: string, name?: string, version?: string, wsdlFile?: string, documents?: Record<string, string> } }>('/services/:name', {
    bodyLimit: MAX_SERVICE_BYTES,
    schema: { tags: ['services'], summary: 'Register a service, or replace it', body: serviceBody, response: answers({ 200: json('the service', ref('Service')) }) }
  }, async request => {
    const { config, file, wsdlFile, documents = {}, version: saidVersion, name: saidName } = request.body
    if (!isAbsolute(file)) throw new SoaError('InvalidArgument', { argument: 'file', why: `an absolute path, as nodes see it, not ${file.slice(0, 200)}` })
    const { name, version } = nameOfFile(file)
    for (const said of [request.params.name, saidName ?? name]) {
      // The name lies in the file's name on HPC Pack too; two that differ would be two services for two readers.
      if (said.toLowerCase() !== name.toLowerCase()) throw new SoaError('InvalidArgument', { argument: 'name', why: `${said.slice(0, 100)} is not the name that the file ${file} has: ${name}` })
    }
    if (saidVersion !== undefined && saidVersion !== version) throw new SoaError('InvalidArgument', { argument: 'version', why: `${saidVersion} is not the version that the file ${file} has: ${version ?? 'none'}` })
    if (wsdlFile !== undefined && documents[wsdlFile] === undefined) throw new SoaError('InvalidArgument', { argument: 'documents', why: `${wsdlFile}, the wsdlFile, is not among them` })
    const service: RegisteredService = { name, version, config, file, wsdlFile, documents, addedAt: new Date(now()).toISOString() }
    const { registration, contractWarnings } = checkService(service)
    const warnings = [...registration.warnings, ...contractWarnings]
    await services.put(service)
    const { config: _config, documents: _documents, ...shown } = service
    return { ...shown, warnings }
  })

  app.get('/settings', { schema: { tags: ['settings'], summary: 'Every setting and what this head runs with', response: answers({ 200: json('settings', page(ref('Setting'))) }) } },
    async () => ({
      items: settingNames().map(name => {
        const { scope, unit, default: fallback, min, max, oneOf, says } = settingOf(name)
        return { name, scope, unit, value: shownValue(name, settings[name]), default: fallback, min, max, oneOf, environment: environmentName(name), says }
      })
    }))
}

/** Names that are near are asked for; without one, the few that there are are named. */
function unknown (what: string, id: string, all: readonly string[]): never {
  const near = didYouMean(nearNames(id, all))
  const there = near !== '' ? near : all.length === 0 ? '; there is none' : `; there ${all.length === 1 ? 'is' : 'are'} ${all.slice(0, NAMED).join(', ')}${all.length > NAMED ? ` and ${all.length - NAMED} more` : ''}`
  throw new Refusal({ title: 'Not Found', status: 404, detail: `no ${what} ${id.slice(0, 100)} is known here${there}` })
}

/** A Redis URL may hold a password, and this answer goes to anybody who can call the head. */
const shownValue = (name: string, value: string | number | boolean): string | number | boolean => name === 'redis' ? String(value).replace(/\/\/[^@/]*@/, '//…@') : value
