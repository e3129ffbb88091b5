import t from 'tap'
import { join } from 'node:path'
import { needsRedis } from '../redis-server.ts'
import { call, ground, headProcess, until, workersOf, type Answer } from './head-rig.ts'

const post = async (head: { http: string }, id: string): Promise<string> => await (await fetch(`${head.http}/${id}/Http`, { method: 'POST', body: 'x' })).text()
const open = async (head: { http: string }, more: object = {}): Promise<Answer['body']> => (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc', ...more })).body
const idOf = async (head: { http: string }): Promise<string> => ((await call(head, 'GET', 'heads')).body.items as Array<{ id: string, http: string }>).find(({ http }) => http === head.http)?.id ?? ''

t.test('two heads on one machine: one is killed, and its workers and their sessions go on with the other', needsRedis, async t => {
  const place = await ground(t)
  const first = await headProcess(t, place.options())
  const second = await place.head({}, { runDir: join(place.dir, 'run2') })
  const made = await open(first)
  const own = await open(second)
  t.not(made.brokerPid, own.brokerPid, 'each head fills its own workers')
  t.match((await call(second, 'GET', 'heads')).body.items, { length: 2 })
  await first.kill9()
  t.match((await call(second, 'GET', `sessions/${made.sessionId}`)).body, { state: 'Running', brokerPid: made.brokerPid, brokerUniqueId: made.brokerUniqueId })
  t.match(await post(second, made.sessionId as string), /1 bytes/, 'even an interactive one')
  for (const pid of workersOf(join(place.dir, 'run/'))) process.kill(pid, 'SIGKILL') // nobody would end them
})

t.test('two heads: one that listens on every address is listed by the one that other heads use, for clients that ask where else to go', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head({ insecure: true, peer: '127.0.0.2:0' }, { http: { host: '0.0.0.0', port: 0 } })
  t.match((await call(head, 'GET', 'heads')).body.items, [{ http: head.http.replace('127.0.0.1', '127.0.0.2') }])
})

t.test('two machines: a session is reached, shown, canceled and closed through either head', needsRedis, async t => {
  const place = await ground(t)
  const alpha = await place.head({ machine: 'alpha' }, { runDir: join(place.dir, 'a') })
  const beta = await place.head({ machine: 'beta' }, { runDir: join(place.dir, 'b') })
  const made = await open(alpha, { durable: true })
  const id = made.sessionId as string
  t.match(await post(beta, id), new RegExp(`POST /${id}/Http at alpha/[0-9a-f]+: 1 bytes`), 'over the relay')
  t.match(await (await fetch(`${beta.http}/${id}/Http`, { method: 'POST', body: 'x'.repeat(3_000_000) })).text(), /3000000 bytes/)
  t.match((await call(beta, 'GET', `sessions/${id}`)).body, { state: 'Running', brokerPid: made.brokerPid, counters: { total: 2 } })
  t.match((await call(beta, 'GET', 'sessions')).body.items, [{ sessionId: id, brokerPid: made.brokerPid }])
  t.match(await call(beta, 'POST', `sessions/${id}/cancel`), { status: 200, body: { state: 'Canceled' } })
  t.match((await call(alpha, 'GET', `sessions/${id}`)).body, { state: 'Canceled' })
  t.equal((await call(beta, 'DELETE', `sessions/${id}`)).status, 204)
  t.equal((await call(alpha, 'GET', `sessions/${id}`)).status, 404)
})

t.test('two machines: a session that is called while no head of its machine lives is raised here when its worker has let go of it', needsRedis, async t => {
  const place = await ground(t)
  const alpha = await headProcess(t, place.options({ machine: 'alpha', workerClaimTimeoutMs: 1000 }, { runDir: join(place.dir, 'a') }))
  const beta = await place.head({ machine: 'beta' }, { runDir: join(place.dir, 'b') })
  const made = await open(alpha, { durable: true })
  await alpha.kill9()
  t.match(await post(beta, made.sessionId as string), /at beta\/[0-9a-f]+: 1 bytes/)
})

t.test('draining a head: no new sessions, those that run go on, and by force they leave for the other head', needsRedis, async t => {
  const place = await ground(t)
  const alpha = await place.head({ machine: 'alpha' }, { runDir: join(place.dir, 'a') })
  const durable = await open(alpha, { durable: true })
  const interactive = await open(alpha)
  const id = await idOf(alpha)
  t.match(await call(alpha, 'POST', `heads/${id}/drain`), { status: 200, body: { id, state: 'Draining', secret: undefined } })
  t.match(await call(alpha, 'POST', 'sessions', { service: 'CcpEchoSvc' }), { status: 503, body: { name: 'Broker_BrokerIsOffline' } })
  t.match(await post(alpha, interactive.sessionId as string), /1 bytes/, 'what runs goes on')
  t.match(await call(alpha, 'GET', '/readyz'), { status: 503, body: { checks: { draining: { why: /takes no new sessions/ } } } }, 'for whoever spreads new sessions over heads')
  t.match(await call(alpha, 'POST', `heads/${id}/resume`), { status: 200, body: { state: 'Online' } })
  const another = await open(alpha)
  t.match(another, { state: 'Running' })
  t.equal((await call(alpha, 'DELETE', `sessions/${another.sessionId}`)).status, 204)

  const beta = await place.head({ machine: 'beta' }, { runDir: join(place.dir, 'b') })
  t.match(await call(beta, 'POST', `heads/${id}/drain`, { force: true }), { status: 200 }, 'asked of the other head')
  const moved = await until(() => call(beta, 'GET', `sessions/${durable.sessionId}`), ({ body }) => body.state === 'Running' && body.brokerPid !== durable.brokerPid)
  t.not(moved.body.brokerUniqueId, durable.brokerUniqueId)
  t.match(await post(alpha, durable.sessionId as string), /at beta\//, 'and it is reached through the drained head too')
  t.match((await until(() => call(beta, 'GET', `sessions/${interactive.sessionId}`), ({ body }) => body.state !== 'Running')).body, { state: 'Finished', why: 'its head was drained by force' })
  await until(async () => ((await call(beta, 'GET', 'heads')).body.items as Array<{ id: string, state: string }>).find(head => head.id === id)?.state, state => state === 'Drained')
  t.match(await call(beta, 'POST', 'heads/nobody-1/drain'), { status: 404, body: { detail: 'no living head nobody-1 is known here' } })
  t.match(await call(beta, 'POST', `heads/${id}/drain`, { forse: true }), { status: 400, body: { detail: /forse is not known here/ } })
})
