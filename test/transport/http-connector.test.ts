import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import { httpCaller, type HttpCallerOptions } from '../../transport/http/connector.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import type { SoapCaller } from '../../transport/channel.ts'
import { SOAP11, SOAP12, type Envelope } from '../../wire/soap/envelope.ts'
import { serviceFault } from '../../wire/soap/fault.ts'

const never = new AbortController().signal
const message: Envelope = { v: 1, soap: 12, enc: 'utf8', action: 'urn:m', messageId: 'urn:uuid:1', otherHeaders: [], prefixesInScope: [], body: Buffer.from('<m xmlns="urn:m"/>') }
const soap11 = `<s:Envelope xmlns:s="${SOAP11}"><s:Body><m xmlns="urn:m"/></s:Body></s:Envelope>`

function caller (t: Test, url: string, options: Partial<HttpCallerOptions> = {}): SoapCaller {
  const caller = httpCaller(url, { connections: 2, maxMessageSize: 100_000, ...options })
  t.teardown(() => caller.close())
  return caller
}

/** A plain HTTP server that answers as the test says. */
async function server (t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/svc?x=1`
}

t.test('a call to our own listener comes back as an answer, also over a Unix socket, in both versions', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'soa-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const listen of [{ host: '127.0.0.1', port: 0 }, { path: join(dir, 's') }]) {
    const seen: Envelope[] = []
    const limits = { maxMessageSize: 100_000, maxHeaderBytes: 65_536, maxDepth: 128 }
    const listener = await listenHttp({ listen, route: () => ({ limits, handle: async ({ reading }) => { seen.push(reading.envelope); return { envelope: { ...reading.envelope, action: 'urn:r' } } } }), log: silent })
    const soap = caller(t, 'path' in listen ? 'http://worker/svc' : `${listener.address}/svc`, 'path' in listen ? { socketPath: listen.path } : {})
    const answer = await soap.call(message, { timeoutMs: 10_000, signal: never })
    t.match(answer, { outcome: 'answered', reading: { envelope: { soap: 12, action: 'urn:r', relatesTo: 'urn:uuid:1' } } })
    t.match(await soap.call(message, { timeoutMs: 10_000, signal: never, soap: 11 }), { outcome: 'answered', reading: { envelope: { soap: 11 }, addressed: false } })
    t.match(seen[1], { soap: 11, action: 'urn:m', messageId: 'urn:uuid:1' }, 'without addressing the id travels in the header of HPC Pack')
    await listener.close()
  }
})

t.test('a fault is an answer whatever its status', async t => {
  for (const status of [200, 400, 500]) {
    const url = await server(t, (_, response) => { response.writeHead(status, { 'content-type': 'text/xml' }).end(`<s:Envelope xmlns:s="${SOAP11}"><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>x</faultstring></s:Fault></s:Body></s:Envelope>`) })
    t.match(await caller(t, url).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'answered', reading: { isFault: true } }, String(status))
  }
  t.ok(serviceFault({ soap: 11, blame: 'sender', reason: 'x' }))
})

t.test('one-way: 202, 204 and an empty 200 are accepted', async t => {
  for (const status of [200, 202, 204]) {
    const url = await server(t, (_, response) => { response.writeHead(status).end() })
    t.match(await caller(t, url).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'accepted' }, String(status))
  }
})

t.test('what is no SOAP is a bad reply that shows status and beginning', async t => {
  const bad = async (status: number, type: string, body: string, options: Partial<HttpCallerOptions> = {}): Promise<string> => {
    const url = await server(t, (_, response) => { response.writeHead(status, { 'content-type': type }).end(body) })
    const result = await caller(t, url, options).call(message, { timeoutMs: 10_000, signal: never })
    return result.outcome === 'badReply' ? result.error.message : result.outcome
  }
  t.equal(await bad(404, 'text/html; charset=utf-8', '<h1>Not\nhere</h1>' + 'x'.repeat(1000)), `status 404, text/html: <h1>Not here</h1>${'x'.repeat(183)}`)
  t.equal(await bad(500, 'text/plain', ''), 'status 500, text/plain: empty')
  t.match(await bad(500, 'text/xml', soap11), /^status 500, text\/xml: /, 'an error without a fault')
  t.match(await bad(200, 'text/xml', '<a>'), /^no SOAP envelope: /)
  t.match(await bad(200, 'text/xml', `<s:Envelope xmlns:s="${SOAP12}"><s:Body/></s:Envelope>`), /media type/)
  t.match(await bad(200, 'text/xml', soap11.replace('<m ', `<m a="${'x'.repeat(2000)}" `), { maxMessageSize: 1000 }), /maxMessageSize is 2\d\d\d, the limit is 1000/)
})

t.test('a reply without a length is refused as it passes the limit, and the rest is not read', async t => {
  const url = await server(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/xml' })
    const more = (): void => { while (!response.destroyed && response.write('x'.repeat(10_000))); response.once('drain', more) }
    more()
  })
  const result = await caller(t, url).call(message, { timeoutMs: 10_000, signal: never })
  t.ok(result.outcome === 'badReply' && isSoaError(result.error, 'overLimit'))
})

t.test('unreachable: nobody listens, no such socket', async t => {
  const url = await new Promise<string>(resolve => {
    const probe = createTcpServer().listen(0, '127.0.0.1', () => { const { port } = probe.address() as AddressInfo; probe.close(() => resolve(`http://127.0.0.1:${port}/`)) })
  })
  t.match(await caller(t, url).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'unreachable', error: { code: 'ECONNREFUSED' } })
  t.match(await caller(t, url.replace('127.0.0.1', 'localhost')).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'unreachable' }, 'each address of the name')
  t.match(await caller(t, url, { socketPath: '/nowhere/at/all' }).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'unreachable', error: { code: 'ENOENT' } })
})

t.test('broken: the connection ends after it was made, with or without an answer begun', async t => {
  const answers: Array<(socket: Socket) => void> = [
    socket => socket.resetAndDestroy(),
    socket => socket.end(),
    socket => socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 500\r\n\r\n<s:Env'),
  ]
  for (const answer of answers) {
    const tcp = createTcpServer(socket => { socket.on('error', () => {}); socket.once('data', () => answer(socket)) }).listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    t.match(await caller(t, `http://127.0.0.1:${(tcp.address() as AddressInfo).port}/`).call(message, { timeoutMs: 10_000, signal: never }), { outcome: 'broken' })
    tcp.close()
  }
})

t.test('time and abort end a call, before and during the answer, and the connection is not used again', async t => {
  const url = await server(t, (request, response) => { if (request.url === '/begun') response.writeHead(200, { 'content-type': 'text/xml' }).write('<s:') })
  for (const path of ['/silent', '/begun']) {
    const soap = caller(t, new URL(path, url).href)
    t.match(await soap.call(message, { timeoutMs: 30, signal: never }), { outcome: 'timedOut' }, path)
    const abort = new AbortController()
    const call = soap.call(message, { timeoutMs: 10_000, signal: abort.signal })
    abort.abort()
    t.match(await call, { outcome: 'aborted' }, path)
    t.match(await soap.call(message, { timeoutMs: 10_000, signal: abort.signal }), { outcome: 'aborted' }, 'aborted before')
  }
})

t.test('as many calls at once as there are connections, and the headers that HTTP needs', async t => {
  let now = 0
  let most = 0
  const seen: unknown[] = []
  const url = await server(t, (request, response) => {
    most = Math.max(most, ++now)
    seen.push(request.headers.soapaction, request.headers['content-type'], request.url)
    request.resume().on('end', () => setImmediate(() => { now--; response.writeHead(200, { 'content-type': 'text/xml' }).end(soap11) }))
  })
  const soap = caller(t, url)
  const results = await Promise.all(Array.from({ length: 20 }, () => soap.call({ ...message, soap: 11, action: 'urn:ü"' }, { timeoutMs: 10_000, signal: never })))
  t.ok(results.every(({ outcome }) => outcome === 'answered'))
  t.ok(most <= 2)
  t.same(seen.slice(0, 3), ['"urn:%C3%BC%22"', 'text/xml; charset=utf-8', '/svc?x=1'])
})
