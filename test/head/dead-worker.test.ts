import t from 'tap'
import { needsRedis } from '../redis-server.ts'
import { call, ground } from './head-rig.ts'

t.test('head: who asks for a session in the moment in which its worker dies is answered, not told of a broken connection', needsRedis, async t => {
  const head = await (await ground(t)).head()
  const durable = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc', durable: true })).body
  const interactive = (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc' })).body
  await Promise.all(Array.from({ length: 4 }, () => call(head, 'GET', `sessions/${durable.sessionId}`))) // connections that are kept open, and break
  process.kill(durable.brokerPid as number, 'SIGKILL')
  const [seen, other] = await Promise.all([durable, interactive].map(({ sessionId }) => call(head, 'GET', `sessions/${sessionId}`)))
  t.match(seen, { status: 200, body: { state: 'Running' } })
  t.not(seen?.body.brokerUniqueId, durable.brokerUniqueId, 'by another broker already')
  t.match(other, { status: 200, body: { state: 'Failed' } })
})
