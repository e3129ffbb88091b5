import t from 'tap'
import { request as httpRequest } from 'node:http'
import { Client } from 'undici'
import { needsRedis } from '../redis-server.ts'
import { RedisSessionStore } from '../../store/redis-sessions.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { silent } from '../../core/log.ts'
import { sessionIn } from '../../broker/head/front-door.ts'
import { isLoopback } from '../../config/addresses.ts'
import { call, ground } from './head-rig.ts'

const envelope = (soap: string): string => `<s:Envelope xmlns:s="${soap}"><s:Body><Echo xmlns="http://hpc.microsoft.com/EchoSvc"/></s:Body></s:Envelope>`

t.test('front door: a session is what its path says, and nothing else is', async t => {
  for (const [path, id] of [['/1730412/Http', '1730412'], ['/1/http/Controller', '1'], ['/1/Http?wsdl', '1'], ['/2147483647/Http/', '2147483647']] as const) t.equal(sessionIn(path), id, path)
  for (const path of ['/', '/api/v1/sessions', '/0/Http', '/2147483648/Http', '/12a/Http', '/1/Https', '/1', '/1/NetTcp', 'x/1/Http', '/99999999999/Http']) t.equal(sessionIn(path), undefined, path)
})

t.test('front door: which addresses only this machine reaches', async t => {
  for (const host of ['127.0.0.1', '127.8.9.1', 'localhost', '::1', '[::1]', '::ffff:127.0.0.1']) t.ok(isLoopback(host), host)
  for (const host of ['', '0.0.0.0', '::', '10.0.0.1', 'grid.example', '127.example.com', '1270.0.0.1']) t.notOk(isLoopback(host), host)
})

t.test('front door', needsRedis, async t => {
  const place = await ground(t)
  const head = await place.head({ sessionsPerWorker: 1 })
  const create = async (durable = false): Promise<{ sessionId: string, brokerPid: number }> => (await call(head, 'POST', 'sessions', { service: 'CcpEchoSvc', durable })).body as { sessionId: string, brokerPid: number }
  const [a, b] = [await create(), await create()]
  t.not(a.brokerPid, b.brokerPid, 'one worker each')

  await t.test('front door: bytes reach the worker that serves the session, whatever their number', async t => {
    for (const bytes of [0, 1, 70_000, 5_000_000]) {
      const answer = await fetch(`${head.http}/${a.sessionId}/Http`, { method: 'POST', body: Buffer.alloc(bytes, 'x') })
      t.match(await answer.text(), new RegExp(`^POST /${a.sessionId}/Http at \\S+: ${bytes} bytes$`))
    }
    t.match(await (await fetch(`${head.http}/${a.sessionId}/Http?wsdl`)).text(), new RegExp(`GET /${a.sessionId}/Http\\?wsdl`))
  })

  for (const [first, order] of [['REST', ['rest', a, b, a, 'rest', b]], ['a session', [a, b, 'rest', a, b, 'rest']]] as const) {
    await t.test(`front door: one kept-alive connection that begins with ${first} is served wherever it goes next`, async t => {
      const client = new Client(head.http, { pipelining: 1 })
      t.teardown(() => client.close())
      let connects = 0
      client.on('connect', () => { connects++ })
      for (const where of order) {
        const path = where === 'rest' ? '/api/v1/sessions?limit=1' : `/${where.sessionId}/Http`
        const { statusCode, body } = await client.request({ path, method: where === 'rest' ? 'GET' : 'POST', ...(where === 'rest' ? {} : { body: 'twelve bytes' }) })
        t.equal(statusCode, 200)
        t.match(await body.text(), where === 'rest' ? '"items"' : `POST /${where.sessionId}/Http`)
      }
      t.equal(connects, 1)
    })
  }

  await t.test('front door: who sends SOAP to an unknown session gets a SOAP fault, anybody else a problem', async t => {
    for (const [type, soap] of [['text/xml', 'http://schemas.xmlsoap.org/soap/envelope/'], ['application/soap+xml', 'http://www.w3.org/2003/05/soap-envelope']] as const) {
      const answer = await fetch(`${head.http}/77/Http`, { method: 'POST', headers: { 'content-type': type }, body: envelope(soap) })
      t.equal(answer.status, 500)
      t.match(answer.headers.get('content-type'), type)
      const text = await answer.text()
      t.match(text, soap)
      t.match(text, 'InvalidSessionId')
      t.match(text, '<Code>50331649</Code>')
    }
    const answer = await fetch(`${head.http}/77/Http?wsdl`)
    t.equal(answer.status, 404)
    t.match(await answer.json(), { status: 404, name: 'InvalidSessionId' })
    t.equal((await fetch(`${head.http}/77/Nothing`)).status, 404)
  })

  await t.test('front door: a session that its worker does not have is mended, not sent in circles', async t => {
    const redis = await openRedis(place.redis.url, { log: silent })
    t.teardown(() => closeRedis(redis))
    const store = new RedisSessionStore({ redis, prefix: 'soa', log: silent })
    const worker = (await store.get(b.sessionId))?.worker
    const { sessionId } = await create(true)
    await store.update(sessionId, { worker }) // as if the record were behind
    t.match(await (await fetch(`${head.http}/${sessionId}/Http`, { method: 'POST', body: 'x' })).text(), /1 bytes/, 'a durable one is raised')
    await store.update(a.sessionId, { worker })
    const lost = await fetch(`${head.http}/${a.sessionId}/Http`, { method: 'POST', headers: { 'content-type': 'text/xml' }, body: envelope('http://schemas.xmlsoap.org/soap/envelope/') })
    t.equal(lost.status, 500)
    t.match(await lost.text(), 'Broker_SessionFailure', 'an interactive one has failed, and says so')
  })

  await t.test('front door: clients of a session are its worker\'s affair', async t => {
    const path = `sessions/${b.sessionId}/clients/a%20b%7Bc%7D`
    const sent = await fetch(`${head.http}/api/v1/${path}/requests`, { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: '{"action":"a","body":"<x/>"}\n{"action":"a","body":"<y/>"}\n' })
    t.strictSame(await sent.json(), { accepted: 2 })
    t.match(await call(head, 'POST', `${path}/flush`), { status: 200, body: { count: 3 } })
    t.match(await call(head, 'POST', `${path}/end`), { status: 409, body: { name: 'Broker_EOMReject_NoRequest' } }, 'a refusal comes through as it is')
    const responses = await fetch(`${head.http}/api/v1/${path}/responses?from=begin&limit=5`)
    t.equal(responses.headers.get('content-type'), 'application/x-ndjson')
    t.strictSame(await responses.json(), { asked: `/${path}/responses?from=begin&limit=5` })
    t.match(await call(head, 'GET', `${path}/responses?from=middle`), { status: 400, body: { setting: 'from' } })
    t.equal((await call(head, 'DELETE', path)).status, 204)
    const events = await fetch(`${head.http}/api/v1/sessions/${b.sessionId}/events`)
    t.equal(events.headers.get('content-type'), 'text/event-stream')
    t.match(await events.text(), 'event: state')
    t.match(await call(head, 'GET', `sessions/${b.sessionId}/tasks`), { status: 200, body: [] })
    t.match(await call(head, 'GET', 'sessions/77/clients'), { status: 404, body: { name: 'InvalidSessionId' } })
  })

  await t.test('front door: what is no HTTP is answered and closed', async t => {
    const { port } = new URL(head.http)
    const status = await new Promise<number | undefined>((resolve, reject) => {
      httpRequest({ port, method: 'POST', path: '/api/v1/sessions', headers: { 'content-length': 'many' } }, answer => { answer.resume(); resolve(answer.statusCode) }).on('error', reject).end()
    })
    t.equal(status, 400)
  })
})
