import { readFileSync } from 'node:fs'
import t from 'tap'
import type { FastifyInstance } from 'fastify'
import { restServer, type RestNeeds } from '../../broker/head/rest.ts'
import { Refusal } from '../../broker/problem.ts'
import type { SessionSeen } from '../../broker/head/session-launcher.ts'
import type { SessionRequest } from '../../broker/head/session-request.ts'
import { readSettings } from '../../config/read-settings.ts'
import { asset } from '../../core/assets.ts'
import { SoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import type { RegisteredService } from '../../store/service-registry.ts'
import type { SessionQuery, SessionRecord } from '../../store/session-store.ts'
import { SessionCounters } from '../../broker/worker/counters.ts'

const COUNTERS = { ...new SessionCounters().view(), total: 20, processed: 12, processing: 8, outstanding: 8, callDurationMs: 1.5 }
const record: SessionRecord = {
  sessionId: '1730412',
  service: 'CcpEchoSvc',
  durable: true,
  priority: 2000,
  settings: { maxDepth: 40 },
  environment: {},
  state: 'Running',
  createdAt: '2026-11-30T12:00:00.000Z',
  worker: 'm/1'
}
const seen: SessionSeen = {
  record,
  view: {
    sessionId: '1730412',
    state: 'Running',
    brokerPid: 4711,
    brokerUniqueId: 'u-1',
    counters: COUNTERS,
    clients: [{ clientId: '', state: 'EndRequests', status: 'Processing', total: 20, flushed: 20, processed: 12, faulted: 0, endRequests: true }],
    tasks: [{ id: '3-1', node: 'n1', pid: 4720, state: 'Running', capacity: 1, at: '2026-01-02T03:04:05.000Z' }],
    bytes: 1048576
  }
}
const shown = {
  sessionId: '1730412',
  service: 'CcpEchoSvc',
  durable: true,
  state: 'Running',
  brokerPid: 4711,
  endpoints: { http: 'http://grid.example:8080/1730412/Http', netTcp: null },
  counters: COUNTERS,
  clients: [{ clientId: '', status: 'Processing', endRequests: true }],
  tasks: [{ id: '3-1', node: 'n1', pid: 4720, state: 'Running', capacity: 1 }],
  bytes: 1048576
}
const service = `<configuration>
  <microsoft.Hpc.Session.ServiceRegistration><service assembly="/srv/echo.mjs"/></microsoft.Hpc.Session.ServiceRegistration>
</configuration>`

async function server (t: { teardown: (end: () => unknown) => unknown }, doubles: Partial<RestNeeds['launcher']> = {}, more: Partial<RestNeeds> = {}): Promise<FastifyInstance> {
  const never = (): never => { throw new Error('not asked for in this test') }
  const app = await restServer({
    launcher: { create: never, show: never, list: never, cancel: never, close: never, ...doubles },
    netTcpUrl: () => undefined,
    raising: { locate: never, mend: never },
    heads: { list: async () => [], ask: async () => undefined },
    nodes: { nodes: async () => [], setDraining: async () => false },
    services: { put: async () => {}, get: never, list: async () => [] },
    settings: { ...readSettings({}, {}), redis: 'redis://me:secret@redis.example' },
    baseUrl: () => 'http://grid.example:8080',
    now: () => 0,
    beside: () => {},
    version: '0.1.0',
    log: silent,
    ...more
  })
  t.teardown(() => app.close())
  return app
}

t.test('rest: a created session is answered 201 with its place and the session object', async t => {
  let asked: SessionRequest | undefined
  const app = await server(t, { create: async request => { asked = request; return seen } })
  const answer = await app.inject({ method: 'POST', url: '/api/v1/sessions', payload: { service: 'CcpEchoSvc', durable: true, minUnits: 2, settings: { maxDepth: '40' } } })
  t.equal(answer.statusCode, 201)
  t.equal(answer.headers.location, 'http://grid.example:8080/api/v1/sessions/1730412')
  t.match(answer.json(), shown)
  t.equal(typeof answer.json().sessionId, 'string', 'ids are strings')
  t.strictSame(asked, { service: 'CcpEchoSvc', durable: true, minUnits: 2, settings: { maxDepth: '40' } }, 'nothing is bent on the way')
})

t.test('rest: what nobody serves has null where only its broker would know', async t => {
  const app = await server(t, { show: async () => ({ record: { ...record, state: 'Failed', why: 'its broker worker is gone' }, view: undefined }) })
  t.match((await app.inject('/api/v1/sessions/1730412')).json(), { state: 'Failed', why: 'its broker worker is gone', brokerPid: null, counters: null, bytes: null, clients: [], tasks: [] })
})

t.test('rest: a session that the grid cannot serve says what it waits for, any other nothing', async t => {
  const waitsFor = { units: 8, has: 0, nodes: 1, room: 6, free: 4, cores: 6, busyCores: 2, freeingCores: 0, unusable: [{ node: 'n2', why: 'is drained' }], why: '8 instances: the node that may be used (n2 is drained) has room for 6' }
  const app = await server(t, { show: async () => ({ ...seen, waitsFor }) })
  t.strictSame((await app.inject('/api/v1/sessions/1730412')).json().waitsFor, waitsFor)
  const served = await server(t, { show: async () => seen })
  t.notOk('waitsFor' in (await served.inject('/api/v1/sessions/1730412')).json())
})

t.test('rest: bad bodies are refused by the name of the field', async t => {
  const app = await server(t)
  const rows: Array<[payload: string | object, RegExp, string | undefined]> = [
    [{ service: 'X', minUnit: 1 }, /^body: minUnit is not known here; did you mean minUnits\?; known are service, version, durable, pool, shared, minUnits/, 'minUnit'],
    [{ durable: true }, /^body: service is missing$/, 'service'],
    [{ service: 7 }, /^body: service must be a text, not 7$/, 'service'],
    [{ service: 'X', durable: 'yes' }, /^body: durable must be true or false, not "yes"$/, 'durable'],
    [{ service: 'X', minUnits: '2' }, /^body: minUnits must be a whole number, not "2"$/, 'minUnits'],
    [{ service: 'X', minUnits: 1.5 }, /^body: minUnits must be a whole number, not 1.5$/, 'minUnits'],
    [{ service: 'X', settings: { maxDepth: {} } }, /^body: settings.maxDepth must be a number or a text, not {}$/, 'settings.maxDepth'],
    [{ service: 'X', unitType: 'rack' }, /^body: unitType must be core, socket or node, not "rack"$/, 'unitType'],
    [{ service: 'X', exclude: ['a', 5] }, /^body: exclude.1 must be a text, not 5$/, 'exclude.1'],
    [{ service: 'X', labels: { gpu: true } }, /^body: labels.gpu must be a text, not true$/, 'labels.gpu'],
    [{ service: ['x'.repeat(500)] }, /^body: service must be a text, not \["x{98}… \[cut: 504 characters, the limit is 100\]$/, 'service'],
    [[], /^body must be an object, not \[\]$/, undefined],
    ['{"service":', /JSON/, undefined],
    ['{"service":"X","__proto__":{"durable":true}}', /JSON/, undefined],
    ['', /^body must be an object, not nothing$/, undefined]
  ]
  for (const [payload, detail, setting] of rows) {
    const answer = await app.inject({ method: 'POST', url: '/api/v1/sessions', headers: { 'content-type': 'application/json' }, payload })
    t.equal(answer.statusCode, 400, JSON.stringify(payload))
    t.equal(answer.headers['content-type'], 'application/problem+json')
    const problem = answer.json()
    t.match(problem, { title: 'Bad Request', status: 400, name: 'InvalidArgument', code: 0x03000000, detail })
    t.equal(problem.setting, setting)
  }
})

t.test('rest: a query that does not fit is refused by the name of the field, what is allowed, and what was seen, on every route', async t => {
  const app = await server(t)
  const whole = 'a whole number from 1 to 1000'
  const rows: Array<[method: 'GET' | 'POST' | 'DELETE', url: string, problem: object]> = [
    ['GET', 'sessions?limit=1e3', { detail: `query: limit must be ${whole}, not "1e3"`, setting: 'limit', limit: whole, value: '"1e3"' }],
    ['GET', 'sessions?limit=0', { detail: `query: limit must be ${whole}, not "0"` }],
    ['GET', 'sessions?limit=1001', { detail: `query: limit must be ${whole}, not "1001"` }],
    ['GET', 'sessions?limit=', { detail: `query: limit must be ${whole}, not ""` }],
    ['GET', 'sessions?limit=1&limit=2', { detail: 'query: limit must be given once, not ["1","2"]' }],
    ['GET', 'sessions?state=running', { detail: 'query: state must be Starting, Running, Suspended, Finished, Failed or Canceled, not "running"', setting: 'state' }],
    ['GET', 'sessions?pagesize=5', { detail: 'query: pagesize is not known here; known are state, service, cursor, limit', setting: 'pagesize' }],
    ['GET', 'sessions?stat=Running', { detail: /stat is not known here; did you mean state\?; known are/ }],
    ['GET', 'sessions/5/trace?limit=2000', { detail: `query: limit must be ${whole}, not "2000"` }],
    ['GET', 'sessions/5/trace?exact=yes', { detail: 'query: exact must be true or false, not "yes"' }],
    ['GET', 'sessions/5/dead-letters?cursor=x', { detail: 'query: cursor must be `next` of the page before, not "x"' }],
    ['GET', 'sessions/5/clients/c/responses?from=end', { detail: 'query: from must be begin or current, not "end"' }],
    ['GET', 'sessions/5/clients/c/responses?limit=-1', { detail: 'query: limit must be a whole number from 0 to 999999999, not "-1"' }],
    ['GET', 'services/X?ver=1', { detail: 'query: ver is not known here; did you mean version?; known are version' }],
    ['POST', 'heads/h/drain?force=maybe', { detail: 'query: force is not known here; it goes into the body: {"force": …}', setting: 'force' }],
    ['DELETE', 'sessions/5?force=true', { detail: 'query: force is not known here; this call takes nothing in its query' }]
  ]
  for (const [method, url, problem] of rows) {
    const answer = await app.inject({ method, url: `/api/v1/${url}` })
    t.equal(answer.statusCode, 400, url)
    t.match(answer.json(), { title: 'Bad Request', status: 400, name: 'InvalidArgument', ...problem }, url)
  }
  t.match((await app.inject({ method: 'POST', url: '/api/v1/heads/h/drain', payload: { force: 'maybe' } })).json(), { detail: 'body: force must be true or false, not "maybe"', setting: 'force', limit: 'true or false', value: '"maybe"' })
})

t.test('rest: a body over the limit and a media type that nobody reads are told apart', async t => {
  const app = await server(t)
  const big = await app.inject({ method: 'POST', url: '/api/v1/sessions', headers: { 'content-type': 'application/json' }, payload: JSON.stringify({ service: 'x'.repeat(1_100_000) }) })
  t.match(big.json(), { status: 413, name: 'InvalidArgument' })
  const form = await app.inject({ method: 'POST', url: '/api/v1/sessions', headers: { 'content-type': 'application/x-www-form-urlencoded' }, payload: 'service=X' })
  t.match(form.json(), { status: 415, title: 'Unsupported Media Type', detail: 'content-type: application/json is read here, not application/x-www-form-urlencoded' })
  const csv = await app.inject({ method: 'POST', url: '/api/v1/sessions/1/clients/c/requests', headers: { 'content-type': 'text/csv' }, payload: 'a,b' })
  t.match(csv.json(), { status: 415, detail: /application\/x-ndjson is read here, not text\/csv/ })
})

t.test('rest: refusals carry HPC Pack\'s name and number, and the status that fits', async t => {
  const rows: Array<[Error, object]> = [
    [new SoaError('Service_NotFound', { serviceName: 'X' }), { status: 404, name: 'Service_NotFound', code: 50331678, detail: 'no service X is registered' }],
    [new SoaError('Broker_TooManyBrokerRunning', { limit: 1000 }), { status: 503, name: 'Broker_TooManyBrokerRunning', setting: 'maxSessions', limit: '1000' }],
    [new SoaError('Broker_InvalidConfiguration', { setting: 'maxDepth', why: '8 to 1000' }), { status: 400, setting: 'maxDepth' }],
    [new SoaError('StorageSpaceNotSufficient', { setting: 'maxSessionBytes', value: 9, limit: 8 }), { status: 507, setting: 'maxSessionBytes', value: '9', limit: '8' }],
    [new Refusal({ title: 'Conflict', status: 409, detail: 'as the worker said', name: 'Broker_FlushRejected' }), { status: 409, detail: 'as the worker said', name: 'Broker_FlushRejected' }],
    [new TypeError('undefined is not a function'), { status: 500, name: 'UnknownError', detail: 'an error in soa-broker; its log says more' }]
  ]
  for (const [error, problem] of rows) {
    const app = await server(t, { create: async () => { throw error } })
    const answer = await app.inject({ method: 'POST', url: '/api/v1/sessions', payload: { service: 'X' } })
    t.match(answer.json(), problem)
    t.equal(answer.headers['content-type'], 'application/problem+json')
    t.equal(answer.headers['retry-after'], answer.statusCode === 503 ? '1' : undefined)
  }
})

t.test('rest: ids that are no session ids are not found, and are never asked for', async t => {
  const app = await server(t)
  for (const id of ['abc', '0', '-1', '1e3', '2147483648', '99999999999', '%31%2f', '1.0']) {
    t.match((await app.inject(`/api/v1/sessions/${id}`)).json(), { status: 404, name: 'InvalidSessionId', code: 0x03000001 }, id)
  }
})

t.test('rest: a page of sessions hands its query on and its cursor back', async t => {
  let asked: SessionQuery | undefined
  const app = await server(t, { list: async query => { asked = query; return { items: [seen], next: '17' } } })
  const answer = await app.inject('/api/v1/sessions?state=Running&service=CcpEchoSvc&cursor=3&limit=1')
  t.match(answer.json(), { items: [shown], next: '17' })
  t.strictSame(asked, { state: 'Running', service: 'CcpEchoSvc', cursor: '3', limit: 1 })
  for (const query of ['state=Walking', 'limit=0', 'limit=1001', 'limit=ten', 'page=2']) t.match((await app.inject(`/api/v1/sessions?${query}`)).json(), { status: 400, name: 'InvalidArgument' }, query)
})

t.test('rest: closing is answered 204 without a body, however often, and tells whether there was anything to close', async t => {
  const closed: string[] = []
  const app = await server(t, { close: async id => closed.push(id) === 1 })
  for (let n = 0; n < 2; n++) {
    const answer = await app.inject({ method: 'DELETE', url: '/api/v1/sessions/1730412' })
    t.strictSame([answer.statusCode, answer.body, answer.headers['soa-was-here']], [204, '', String(n === 0)])
  }
  t.strictSame(closed, ['1730412', '1730412'])
})

t.test('rest: a service is registered under the name of its file', async t => {
  const wsdl = readFileSync(asset('examples/services/CcpEchoSvc/CcpEchoSvc.wsdl'), 'utf8')
  const put: RegisteredService[] = []
  const app = await server(t, {}, { services: { put: async service => { put.push(service) }, get: async () => put[0]!, list: async () => put } })
  const send = (name: string, more: object = {}): Promise<{ json: () => object }> => app.inject({
    method: 'PUT', url: `/api/v1/services/${name}`, payload: { config: service, file: '/srv/Echo_1.2.config', documents: { '/srv/Echo.wsdl': wsdl }, wsdlFile: '/srv/Echo.wsdl', ...more }
  })
  t.match((await send('echo')).json(), { name: 'Echo', version: '1.2', file: '/srv/Echo_1.2.config', addedAt: '1970-01-01T00:00:00.000Z' })
  t.match(put, [{ name: 'Echo', version: '1.2', config: service, documents: { '/srv/Echo.wsdl': wsdl } }])
  t.match((await app.inject('/api/v1/services/Echo')).json(), { config: service })
  t.match((await app.inject('/api/v1/services')).json(), { items: [{ name: 'Echo', version: '1.2' }] })
  t.match((await send('Other')).json(), { status: 400, setting: 'name' })
  t.match((await send('Echo', { version: '2.0' })).json(), { status: 400, setting: 'version' })
  t.match((await send('Echo', { file: 'Echo.config' })).json(), { status: 400, setting: 'file' })
  t.match((await send('Echo', { config: '<configuration>' })).json(), { status: 400, name: 'ConfigFile_Invalid' })
  t.match((await send('Echo', { wsdlFile: '/other.wsdl' })).json(), { status: 400, setting: 'documents' })
  t.match((await send('Echo', { documents: { '/srv/Echo.wsdl': wsdl.replaceAll('style="document"', 'style="rpc"').replaceAll('use="literal"', 'use="encoded"') } })).json(), { status: 400, name: 'ConfigFile_Invalid', detail: /use="encoded", which is not supported/ })
  t.equal(put.length, 1, 'nothing refused was kept')
})

t.test('rest: nodes are listed and drained, and an unknown one is not found', async t => {
  const node = { id: 'n1', machine: 'm', pid: 7, state: 'Draining' as const, cores: 4, busy: 1, tasks: 1, heartbeatAgeMs: 12, groups: [], labels: { zone: 'a' } }
  const app = await server(t, {}, { nodes: { nodes: async () => [node], setDraining: async id => id === 'n1' } })
  t.strictSame((await app.inject('/api/v1/nodes')).json(), { items: [node] })
  t.strictSame((await app.inject({ method: 'POST', url: '/api/v1/nodes/n1/drain' })).json(), node)
  t.match((await app.inject({ method: 'POST', url: '/api/v1/nodes/n2/resume' })).json(), { status: 404, detail: 'no node n2 is known here; did you mean n1?' })
  t.match((await app.inject({ method: 'POST', url: '/api/v1/nodes/machine-room/drain' })).json(), { status: 404, detail: 'no node machine-room is known here; there is n1' })
  t.match((await app.inject({ method: 'POST', url: '/api/v1/heads/h1/drain' })).json(), { status: 404, detail: 'no living head h1 is known here; there is none' })
})

t.test('rest: settings show what runs, and no password', async t => {
  const app = await server(t)
  const { items } = (await app.inject('/api/v1/settings')).json() as { items: Array<{ name: string, value: unknown }> }
  t.match(items.find(({ name }) => name === 'maxDepth'), { value: 128, default: 128, unit: 'levels', scope: 'session', environment: 'SOA_MAX_DEPTH' })
  t.equal(items.find(({ name }) => name === 'redis')?.value, 'redis://…@redis.example')
})

t.test('rest: the OpenAPI document is printed from the routes that run', async t => {
  const app = await server(t)
  const document = (await app.inject('/api/v1/openapi.json')).json() as { openapi: string, paths: Record<string, Record<string, unknown>>, components: { schemas: object } }
  interface Operation { operationId?: string, requestBody?: { content: Record<string, { schema: { properties: object } }> } }
  t.match(document.openapi, /^3\./)
  t.strictSame(Object.entries(document.paths).flatMap(([path, methods]) => Object.keys(methods).map(method => `${method} ${path}`)).sort(), [
    'delete /api/v1/sessions/{id}', 'delete /api/v1/sessions/{id}/clients/{client}', 'delete /api/v1/sessions/{id}/dead-letters/{letter}', 'get /api/v1/heads', 'get /api/v1/nodes', 'get /api/v1/services', 'get /api/v1/services/{name}', 'get /api/v1/sessions',
    'get /api/v1/sessions/{id}', 'get /api/v1/sessions/{id}/clients', 'get /api/v1/sessions/{id}/clients/{client}/responses', 'get /api/v1/sessions/{id}/dead-letters', 'get /api/v1/sessions/{id}/dead-letters/{letter}', 'get /api/v1/sessions/{id}/events', 'get /api/v1/sessions/{id}/tasks', 'get /api/v1/sessions/{id}/trace',
    'get /api/v1/settings', 'post /api/v1/heads/{id}/drain', 'post /api/v1/heads/{id}/resume', 'post /api/v1/nodes/{id}/drain', 'post /api/v1/nodes/{id}/resume', 'post /api/v1/sessions', 'post /api/v1/sessions/{id}/cancel',
    'post /api/v1/sessions/{id}/clients/{client}/end', 'post /api/v1/sessions/{id}/clients/{client}/flush', 'post /api/v1/sessions/{id}/clients/{client}/requests', 'post /api/v1/sessions/{id}/dead-letters/{letter}/replay', 'put /api/v1/services/{name}'
  ])
  const operations = Object.values(document.paths).flatMap(methods => Object.values(methods) as Operation[])
  const names = operations.map(({ operationId }) => operationId)
  t.ok(names.every(name => /^[a-z]+[A-Za-z]*$/.test(name ?? '')) && new Set(names).size === names.length, `each operation has a name of its own: ${names.join()}`)
  const send = operations.find(({ operationId }) => operationId === 'sendRequests')
  t.strictSame(Object.keys(send?.requestBody?.content['application/x-ndjson']?.schema.properties ?? {}), ['action', 'body', 'userData', 'messageId'])
  t.match(document.paths['/api/v1/sessions/{id}']?.delete, { responses: { 204: { headers: { 'soa-was-here': { schema: { type: 'boolean' } } } } } })
  t.ok('Session' in document.components.schemas && 'Problem' in document.components.schemas)
})

t.test('rest: a method that a path does not take is 405, with those that it takes', async t => {
  const app = await server(t, {}, { beside: app => { app.get('/metrics', async () => '') } })
  const rows: Array<[method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, allow: string, detail: string]> = [
    ['PUT', '/api/v1/sessions', 'GET, HEAD, POST', '/api/v1/sessions takes GET and POST, not PUT'],
    ['PATCH', '/api/v1/sessions/1/?x=1', 'DELETE, GET, HEAD', '/api/v1/sessions/1/?x=1 takes DELETE and GET, not PATCH'],
    ['GET', '/api/v1/nodes/n1/drain', 'POST', '/api/v1/nodes/n1/drain takes POST, not GET'],
    ['POST', '/metrics', 'GET, HEAD', '/metrics takes GET, not POST'],
    ['DELETE', '/17/Http', 'POST', '/17/Http takes POST, not DELETE']
  ]
  for (const [method, url, allow, detail] of rows) {
    const answer = await app.inject({ method, url })
    t.strictSame([answer.statusCode, answer.headers['content-type'], answer.headers.allow, answer.json()], [405, 'application/problem+json', allow, { title: 'Method Not Allowed', status: 405, detail }], `${method} ${url}`)
  }
})

t.test('rest: what is nowhere is a problem too', async t => {
  const app = await server(t)
  t.match((await app.inject('/api/v2/nothing')).json(), { status: 404, title: 'Not Found', detail: /GET \/api\/v2\/nothing/ })
  const bent = await app.inject('/api/v1/sessions/%zz')
  t.match([bent.headers['content-type'], bent.json()], [/application\/problem\+json/, { status: 400 }])
  const rows: Array<[method: 'GET' | 'POST', url: string, hint: string]> = [
    ['GET', '/api/v1/session', '; near it is GET/POST /api/v1/sessions'],
    ['GET', '/sessions', '; near it is GET/POST /api/v1/sessions'],
    ['GET', '/api/v2/node?x=1', '; near it is GET /api/v1/nodes'],
    ['POST', '/api/v1/sessions/17/close', '; near it is DELETE/GET /api/v1/sessions/17'],
    ['GET', '/api/v1/nodes/nix', '; near it are GET /api/v1/nodes, POST /api/v1/nodes/nix/drain, POST /api/v1/nodes/nix/resume'],
    ['POST', '/api/v1/sessions/17/cancle', '; near it is POST /api/v1/sessions/17/cancel'],
    ['GET', '/metric', '; near it is GET /metrics'],
    ['POST', '/17/Htpp', '; near it is POST /17/Http'],
    ['POST', '/SesionLauncher', '; near it is POST /SessionLauncher'],
    ['GET', '/favicon.ico', '']
  ]
  const beside = await server(t, {}, { beside: app => { app.get('/metrics', async () => '') } })
  for (const [method, url, hint] of rows) {
    t.equal((await beside.inject({ method, url })).json().detail, `nothing is at ${method} ${url}${hint}; /api/v1/openapi.json has what is`)
  }
})
