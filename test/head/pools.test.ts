import t from 'tap'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { needsRedis } from '../redis-server.ts'
import { call, ground, type Answer } from './head-rig.ts'

const REGISTRATION = `<configuration>
  <microsoft.Hpc.Session.ServiceRegistration>
    <service maxSessionPoolSize="2"/>
    <host hostType="Customize" exeFileName="/bin/true"/>
  </microsoft.Hpc.Session.ServiceRegistration>
</configuration>`

t.test('pool: sessions are used again in turns when there are as many as may be, over every head, interactive and durable ones apart', needsRedis, async t => {
  const place = await ground(t)
  await writeFile(join(place.dir, 'services', 'Pooled.config'), REGISTRATION)
  const alpha = await place.head({ machine: 'alpha' }, { runDir: join(place.dir, 'a') })
  const beta = await place.head({ machine: 'beta' }, { runDir: join(place.dir, 'b') })
  const ask = async (head: { http: string }, more: object = {}): Promise<Answer> => call(head, 'POST', 'sessions', { service: 'Pooled', pool: true, ...more })
  // All at once: no more than two start.
  const first = await Promise.all([ask(alpha), ask(beta), ask(alpha), ask(beta), ask(alpha), ask(beta)])
  t.equal(first.filter(({ status }) => status === 201).length, 2)
  t.equal(first.filter(({ status }) => status === 200).length, 4)
  for (const { body } of first) t.match(body, { state: 'Running', pooled: true, shared: true })
  const ids = [...new Set(first.map(({ body }) => body.sessionId as string))]
  t.equal(ids.length, 2)
  const turns = [(await ask(alpha)).body.sessionId, (await ask(beta)).body.sessionId, (await ask(alpha)).body.sessionId]
  t.not(turns[0], turns[1])
  t.equal(turns[0], turns[2], 'members take turns')

  const durable = await ask(beta, { durable: true })
  t.match(durable, { status: 201, body: { durable: true } })
  t.notOk(ids.includes(durable.body.sessionId as string))
  t.match((await call(alpha, 'POST', 'sessions', { service: 'Pooled' })).status, 201, 'who does not ask for the pool gets a session of its own')

  await call(alpha, 'DELETE', `sessions/${ids[0]}`)
  t.match(await ask(beta), { status: 201 }, 'a member that was closed makes room')
  await call(alpha, 'POST', `sessions/${ids[1]}/cancel`)
  const after = await Promise.all([ask(alpha), ask(alpha), ask(alpha)])
  t.notOk(after.some(({ body }) => body.sessionId === ids[1]), 'a canceled one is nobody\'s any more')
  t.equal(after.filter(({ status }) => status === 201).length, 1)
})

t.test('sessionsPerWorker and maxSessions hold, and one session more is refused at once', needsRedis, async t => {
  const head = await (await ground(t)).head({ sessionsPerWorker: 2, maxSessions: 3 })
  const made = await Promise.all(Array.from({ length: 3 }, () => call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })))
  const perWorker = new Map<number, number>()
  for (const { body } of made) perWorker.set(body.brokerPid as number, (perWorker.get(body.brokerPid as number) ?? 0) + 1)
  t.same([...perWorker.values()].sort(), [1, 2])
  t.match(await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' }), { status: 503, body: { name: 'Broker_TooManyBrokerRunning', detail: /3 sessions are open, which is the limit/ } })
  await call(head, 'DELETE', `sessions/${made[0]?.body.sessionId}`)
  t.equal((await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).status, 201)
})
