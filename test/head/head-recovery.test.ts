import t from 'tap'
import { needsRedis } from '../redis-server.ts'
import { call, ground, headProcess, until, workersOf } from './head-rig.ts'

t.test('head: when a worker dies, durable sessions are raised at another and interactive ones have failed', needsRedis, async t => {
  const head = await (await ground(t)).head()
  const durable = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  const interactive = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  t.equal(durable.brokerPid, interactive.brokerPid, 'stock sessions share a worker')
  process.kill(durable.brokerPid as number, 'SIGKILL')

  const after = await until(() => call(head, 'GET', `sessions/${durable.sessionId}`), ({ body }) => body.brokerPid !== durable.brokerPid && body.state === 'Running')
  t.not(after.body.brokerUniqueId, durable.brokerUniqueId, 'a new incarnation')
  const failed = await until(() => call(head, 'GET', `sessions/${interactive.sessionId}`), ({ body }) => body.state === 'Failed')
  t.match(failed.body, { why: /worker|signal SIGKILL/, brokerPid: null, counters: null })
  t.match(await call(head, 'POST', `sessions/${interactive.sessionId}/cancel`), { status: 200, body: { state: 'Failed' } }, 'canceling what is over changes nothing')
  t.match(await call(head, 'GET', `sessions/${interactive.sessionId}/clients`), { status: 409, body: { name: 'Broker_SessionFailure' } })
  t.equal((await call(head, 'DELETE', `sessions/${interactive.sessionId}`)).status, 204)
})

t.test('head: a worker that dies of a session fails its create in words, leaves nothing, and the pool fills again', needsRedis, async t => {
  const head = await (await ground(t)).head()
  t.match(await call(head, 'POST', 'sessions', { service: 'Deadly', durable: true }), { status: 503, body: { name: 'Broker_FailedToStartBrokerServiceProcess', detail: /3 workers did not take the session/ } })
  t.match((await call(head, 'GET', 'sessions')).body, { items: [] })
  t.equal((await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).status, 201)
})

t.test('head: killed and started again, it finds its workers and their sessions', needsRedis, async t => {
  const place = await ground(t)
  const first = await headProcess(t, place.options())
  const made = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  await first.kill9()
  const second = await place.head()
  const found = await call(second, 'GET', `sessions/${made.sessionId}`)
  t.match(found.body, { state: 'Running', brokerPid: made.brokerPid, brokerUniqueId: made.brokerUniqueId }, 'even an interactive session lives on')
  t.match(await (await fetch(`${second.http}/${made.sessionId}/Http`, { method: 'POST', body: 'x' })).text(), /1 bytes/)
})

t.test('head: a worker that no head claims ends by itself, and the next head knows what became of its sessions', needsRedis, async t => {
  const place = await ground(t)
  const first = await headProcess(t, place.options({ workerClaimTimeoutMs: 1000 }))
  const durable = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  const interactive = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  await first.kill9()
  await until(async () => workersOf(place.dir), workers => workers.length === 0)
  const second = await place.head()
  t.match((await call(second, 'GET', `sessions/${durable.sessionId}`)).body, { state: 'Running' }, 'raised by the look')
  t.match((await call(second, 'GET', `sessions/${interactive.sessionId}`)).body, { state: 'Finished' })
})

t.test('head: killed with its workers, its durable sessions are raised by the next one, and its interactive ones have failed', needsRedis, async t => {
  const place = await ground(t)
  const first = await headProcess(t, place.options())
  const durable = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  const interactive = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  await first.kill9()
  for (const pid of workersOf(place.dir)) process.kill(pid, 'SIGKILL')
  const second = await place.head()
  // The list raises nothing: this is the head's own doing.
  const items = await until(async () => (await call(second, 'GET', 'sessions')).body.items as Array<{ state: string }>, ([first]) => first?.state === 'Running')
  t.match(items, [{ sessionId: durable.sessionId, state: 'Running', brokerPid: Number }, { sessionId: interactive.sessionId, state: 'Failed', why: /worker is gone/ }])
})

t.test('head: stopped in order, its workers end, and the next head raises the durable sessions that were at work', needsRedis, async t => {
  const place = await ground(t)
  const first = await place.head()
  const durable = (await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  await call(first, 'POST', 'sessions', { service: 'CcpEchoSvc' })
  await first.close()
  t.strictSame(workersOf(place.dir), [], 'no worker is left')
  const second = await place.head()
  const items = await until(async () => (await call(second, 'GET', 'sessions')).body.items as Array<{ state: string }>, ([first]) => first?.state === 'Running')
  t.match(items, [{ sessionId: durable.sessionId, state: 'Running' }, { state: 'Finished' }])
})
