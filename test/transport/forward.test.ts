import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { forward, forwardAgent } from '../../transport/http/forward.ts'

/** A server behind a Unix socket, and one in front of it that forwards all. */
async function pair (t: Test, far: RequestListener): Promise<{ url: string, socketPath: string, over: Promise<void>[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'soa-'))
  const socketPath = join(dir, 's')
  const agent = forwardAgent()
  const over: Promise<void>[] = []
  const behind = createServer(far).listen(socketPath)
  const front = createServer((request, response) => { over.push(forward(request, response, { socketPath, agent, baseUrl: 'https://grid.example:8443/soa' })) }).listen(0, '127.0.0.1')
  await Promise.all([once(behind, 'listening'), once(front, 'listening')])
  t.teardown(() => {
    agent.destroy()
    for (const server of [front, behind]) { server.closeAllConnections(); server.close() }
    rmSync(dir, { recursive: true })
  })
  return { url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`, socketPath, over }
}

t.test('method, path, headers, body and status go through as they are; headers of one hop do not', async t => {
  let seen: IncomingMessage | undefined
  const { url } = await pair(t, (request, response) => {
    seen = request
    response.writeHead(207, 'Odd', [['x-one', '1'], ['x-one', '2'], ['set-cookie', 'a'], ['set-cookie', 'b']].flat())
    request.pipe(response)
  })
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
    const answer = await request(`${url}/a/b?c=d%20e`, { method, headers: { 'x-two': ['3', '4'], te: 'trailers', host: 'grid.example', forwarded: 'host=evil.example', 'x-forwarded-port': '1', 'x-forwarded-host': 'evil.example' }, ...method === 'GET' ? {} : { body: method } })
    t.match([answer.statusCode, answer.headers['x-one'], answer.headers['set-cookie'], await answer.body.text()], [207, ['1', '2'], ['a', 'b'], method === 'GET' ? '' : method])
    t.match(seen, { method, url: '/a/b?c=d%20e', headers: { host: 'grid.example', 'x-two': '3, 4', te: undefined, forwarded: undefined, 'x-forwarded-port': undefined, 'x-forwarded-host': 'grid.example:8443', 'x-forwarded-proto': 'https', 'x-forwarded-prefix': '/soa' } }, 'the caller\'s address is ours to say')
  }
})

t.test('a body without a length stays one, and a large one comes through whole', async t => {
  let encoding: string | undefined
  const { url } = await pair(t, (request, response) => { encoding = request.headers['transfer-encoding']; request.pipe(response) })
  const pieces = Array.from({ length: 300 }, (_, i) => Buffer.alloc(10_000, i % 251))
  const answer = await request(url, { method: 'DELETE', body: Readable.from(pieces) })
  t.ok(Buffer.from(await answer.body.arrayBuffer()).equals(Buffer.concat(pieces)))
  t.equal(encoding, 'chunked')
})

t.test('each event of a stream is passed on when it comes', async t => {
  let respond = (_: ServerResponse): void => {}
  const responding = new Promise<ServerResponse>(resolve => { respond = resolve })
  const { url } = await pair(t, (_, response) => { response.writeHead(200, { 'content-type': 'text/event-stream' }); response.flushHeaders(); respond(response) })
  const answer = await request(url)
  const far = await responding
  const events = answer.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    far.write(event)
    t.equal(String((await events.next()).value), event)
  }
  far.end()
  t.equal((await events.next()).done, true)
})

t.test('a client that leaves ends the far side, and a far side that breaks off ends the client', async t => {
  let respond = (_: ServerResponse): void => {}
  let responding = new Promise<ServerResponse>(resolve => { respond = resolve })
  const { url, over } = await pair(t, (_, response) => { response.write('begun'); respond(response) })
  const abort = new AbortController()
  const left = await request(url, { signal: abort.signal })
  const far = await responding
  abort.abort()
  await once(far, 'close')
  await Promise.all(over)
  await t.rejects(left.body.text())
  responding = new Promise(resolve => { respond = resolve })
  const broken = await request(url)
  ;(await responding).destroy()
  await t.rejects(broken.body.text(), 'an answer that breaks off does not look complete')
})

t.test('a slow reader slows the far side', async t => {
  let written = 0
  let waits = (): void => {}
  const waiting = new Promise<void>(resolve => { waits = resolve })
  const chunk = Buffer.alloc(100_000)
  const { url } = await pair(t, (request, response) => {
    if (request.url === '/ping') { response.end('pong'); return }
    const more = (): void => {
      while (written < 400) {
        written++
        if (response.write(chunk)) continue
        waits()
        response.once('drain', more)
        return
      }
      response.end()
    }
    more()
  })
  const answer = await request(url)
  await waiting
  for (let i = 0; i < 20; i++) await (await request(`${url}/ping`)).body.text()
  t.ok(written < 400, `${written} of 400 pieces are out while nobody reads`)
  t.equal((await answer.body.arrayBuffer()).byteLength, 40_000_000)
})

t.test('nobody behind the socket: 502 that says so, also for a request with a body', async t => {
  const front = createServer((request, response) => { void forward(request, response, { socketPath: '/nowhere/at/all', baseUrl: 'http://grid.example' }) }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.teardown(() => { front.closeAllConnections(); front.close() })
  for (const method of ['GET', 'POST'] as const) {
    const answer = await request(`http://127.0.0.1:${(front.address() as AddressInfo).port}`, { method, ...method === 'POST' ? { body: 'x'.repeat(1_000_000) } : {} })
    t.match([answer.statusCode, answer.headers['content-type'], await answer.body.json()], [502, 'application/problem+json', { title: 'Bad Gateway', status: 502, detail: /ENOENT/ }])
  }
})

t.test('connections to the far side are used again', async t => {
  const ports = new Set<unknown>()
  const { url } = await pair(t, (request, response) => { ports.add(request.socket); response.end('x') })
  for (let i = 0; i < 5; i++) await (await request(url)).body.text()
  t.equal(ports.size, 1)
})
