import t from 'tap'
import { systemClock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { RedisDemandBoard } from '../../store/redis-placement.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { needsRedis } from '../redis-server.ts'
import { call, ground, until, workersOf } from './head-rig.ts'

t.test('head: a session is created, listed, shown, canceled and closed, and again', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head()
  const made = await call(head, 'POST', 'sessions', { service: 'ccpechosvc', durable: true, minUnits: 2, settings: { maxDepth: 40 } })
  t.equal(made.status, 201)
  const { sessionId } = made.body as { sessionId: string }
  t.match(made.body, { service: 'CcpEchoSvc', durable: true, state: 'Running', minUnits: 2, endpoints: { http: `${head.http}/${sessionId}/Http`, netTcp: null }, counters: { total: 0 } })
  t.equal(made.headers.get('location'), `${head.http}/api/v1/sessions/${sessionId}`)
  t.ok(workersOf((await call(head, 'GET', `sessions/${sessionId}`)).body.brokerPid ? '' : 'x').includes(made.body.brokerPid as number), 'its broker is a worker of this head')

  const redis = await openRedis(place.redis.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  const needs = { redis, prefix: 'soa', log: silent, clock: systemClock }
  t.notOk('waitsFor' in (await call(head, 'GET', `sessions/${sessionId}`)).body, 'its broker wants nothing yet')
  await new RedisDemandBoard(needs).put({ sessionId, service: 'CcpEchoSvc', target: 2, min: 2, priority: 2000, createdAt: '', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1 })
  t.match((await call(head, 'GET', `sessions/${sessionId}`)).body.waitsFor, { units: 2, has: 0, nodes: 0, why: '2 instances: the grid has no node (soa node starts one)' })

  const other = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body.sessionId as string
  t.match((await call(head, 'GET', 'sessions')).body.items.map((item: { sessionId: string }) => item.sessionId), [sessionId, other])
  const page = (await call(head, 'GET', 'sessions?limit=1')).body
  t.match((await call(head, 'GET', `sessions?limit=1&cursor=${page.next}`)).body.items, [{ sessionId: other, durable: false }])

  for (let n = 0; n < 2; n++) t.match(await call(head, 'POST', `sessions/${sessionId}/cancel`), { status: 200, body: { state: 'Canceled' } })
  t.match((await call(head, 'GET', `sessions/${sessionId}`)).body, { state: 'Canceled', counters: { total: 0 } }, 'still served: stored responses are read through it')
  t.match((await call(head, 'GET', 'sessions?state=Canceled')).body.items, [{ sessionId }])
  for (let n = 0; n < 2; n++) {
    const { status, headers } = await call(head, 'DELETE', `sessions/${sessionId}`)
    t.strictSame([status, headers.get('soa-was-here')], [204, String(n === 0)], 'again: nothing happens, and it says so')
  }
  t.match(await call(head, 'GET', `sessions/${sessionId}`), { status: 404, body: { name: 'InvalidSessionId', code: 0x03000001 } })
  t.match(await call(head, 'POST', `sessions/${sessionId}/cancel`), { status: 404, body: { name: 'InvalidSessionId' } })
  t.match(await call(head, 'POST', 'sessions/77/cancel'), { status: 404 })
  const never = await call(head, 'DELETE', 'sessions/77')
  t.strictSame([never.status, never.headers.get('soa-was-here')], [204, 'false'])
})

t.test('head: what does not fit is refused before anything starts', needsRedis, async t => {
  const head = await (await ground(t)).head({ maxSessions: 1 })
  const rows: Array<[object, object]> = [
    [{ service: 'Nobody' }, { status: 404, body: { name: 'Service_NotFound', code: 50331678 } }],
    [{ service: 'CcpEchoSvc', version: '9.9' }, { status: 404, body: { name: 'ServiceVersion_NotFound' } }],
    [{ service: '../etc' }, { status: 400, body: { name: 'InvalidArgument', setting: 'service' } }],
    [{ service: 'CcpEchoSvc', minUnits: 0 }, { status: 400, body: { setting: 'minUnits', detail: /1 to 1000000, not 0/ } }],
    [{ service: 'CcpEchoSvc', maxUnits: 0 }, { status: 400, body: { setting: 'maxUnits' } }],
    [{ service: 'CcpEchoSvc', minUnits: 3, maxUnits: 2 }, { status: 400, body: { setting: 'minUnits', detail: /3 is more than maxUnits, 2/ } }],
    [{ service: 'CcpEchoSvc', priority: 4001 }, { status: 400, body: { setting: 'priority', detail: /0 to 4000, not 4001/ } }],
    [{ service: 'CcpEchoSvc', settings: { maxDept: 1 } }, { status: 400, body: { name: 'Broker_InvalidConfiguration', setting: 'maxDept', detail: 'maxDept: no setting has this name; did you mean maxDepth?' } }],
    [{ service: 'CcpEchoSvc', settings: { maxDepth: 7 } }, { status: 400, body: { name: 'Broker_InvalidConfiguration', setting: 'maxDepth', detail: /8 to 1000/ } }],
    [{ service: 'CcpEchoSvc', settings: { workerPoolSize: 7 } }, { status: 400, body: { setting: 'workerPoolSize' } }]
  ]
  for (const [body, answer] of rows) t.match(await call(head, 'POST', 'sessions', body), answer, JSON.stringify(body))
  t.match((await call(head, 'GET', 'sessions')).body, { items: [] })
  const { sessionId } = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  t.match(await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' }), { status: 503, body: { name: 'Broker_TooManyBrokerRunning', setting: 'maxSessions', limit: '1' } })
  await call(head, 'DELETE', `sessions/${sessionId}`)
  t.equal((await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).status, 201, 'its place is free again at once')
})

t.test('head: a suspended session is raised once for all who call meanwhile', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head({ workerPoolSize: 0 })
  const { sessionId, brokerPid } = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  const worker = workersOf(place.dir)
  t.strictSame(worker, [brokerPid])
  process.kill(brokerPid as number, 'SIGTERM') // suspends its sessions and ends
  await until(async () => workersOf(place.dir), workers => !workers.includes(brokerPid as number))
  const answers = await Promise.all(Array.from({ length: 10 }, async () => (await call(head, 'GET', `sessions/${sessionId}`)).body))
  t.equal(new Set(answers.map(answer => answer.brokerUniqueId)).size, 1)
  t.match(answers[0], { state: 'Running' })
  t.equal(workersOf(place.dir).length, 1)
})

t.test('head: addresses of other machines, a second head and a Redis that forgets are refused', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head()
  await t.rejects(place.head(), { fault: 'refused', message: /another head runs in runDir/ })
  await t.rejects(place.head({}, { http: { host: '0.0.0.0', port: 0 } }), { fault: 'refused', message: /--insecure/ })
  await t.rejects(place.head({}, { runDir: `${place.dir}/${'x'.repeat(100)}` }), { fault: 'Broker_InvalidConfiguration', message: /runDir.*107 bytes/ })
  await t.rejects(place.head({}, { services: [`${place.dir}/none.config`] }))
  t.equal((await call(head, 'GET', '/healthz')).status, 200, 'the first one is unharmed')
})

t.test('head: readiness says which check fails, metrics count', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head()
  const ready = await until(() => call(head, 'GET', '/readyz'), ({ status }) => status === 200)
  t.match(ready.body, { ready: true, checks: { redis: { ok: true }, placement: { ok: true }, workers: { ok: true } } })
  await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })
  const { text } = (await call(head, 'GET', '/metrics')).body as { text: string }
  t.match(text, /^soa_sessions\{state="Running"\} 1$/m)
  t.match(text, /^soa_worker_sessions 1$/m)
  t.match(text, /^process_cpu_seconds_total/m)

  const redis = await openRedis(place.redis.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  await redis.config('SET', 'maxmemory', '1')
  t.match(await call(head, 'GET', '/readyz'), { status: 503, body: { failing: ['redis'], checks: { redis: { why: /takes no writes: OOM/ } } } }, 'a full Redis is no ready one')
  await redis.config('SET', 'maxmemory', '0')
  await until(() => call(head, 'GET', '/readyz'), ({ status }) => status === 200)

  const broken = await place.head({}, { runDir: `${place.dir}/other`, env: { ...process.env, SOA_FAKE_WORKER: 'dumb' } })
  const red = await until(() => call(broken, 'GET', '/readyz'), ({ body }) => (body.failing as string[]).includes('workers'))
  t.match(red, { status: 503, body: { ready: false, checks: { workers: { ok: false, why: /exit code 9/ } } } })
  t.match(await call(broken, 'POST', 'sessions', { service: 'CcpEchoSvc' }), { status: 503, body: { name: 'Broker_FailedToStartBrokerServiceProcess', detail: /exit code 9/ } })
})
