import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { SoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import { listenHttp, type SoapOverHttp } from '../../transport/http/listener.ts'
import type { SoapEndpoint, SoapRequest } from '../../transport/channel.ts'
import { SOAP11, SOAP12, WSA, type Reading } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { serviceFault } from '../../wire/soap/fault.ts'
import { readEnvelope } from '../../wire/soap/read.ts'

const limits = { maxMessageSize: 100_000, maxHeaderBytes: 65_536, maxDepth: 128 }
const soap11 = (body = '<m xmlns="urn:m"/>'): string => `<s:Envelope xmlns:s="${SOAP11}"><s:Body>${body}</s:Body></s:Envelope>`
const soap12 = (header = '', body = '<m xmlns="urn:m"/>'): string => `<s:Envelope xmlns:s="${SOAP12}" xmlns:a="${WSA}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
const ADDRESSED = '<a:Action s:mustUnderstand="1">urn:m</a:Action><a:MessageID>urn:uuid:1</a:MessageID>'

interface Listening { url: string, port: number, seen: SoapRequest[], close: (graceMs?: number) => Promise<void> }

/** A listener with an endpoint at /svc that answers what the test says; by default the request's own body. */
async function listening (t: Test, endpoint: Partial<SoapEndpoint> = {}, options: Partial<SoapOverHttp> = {}): Promise<Listening> {
  const seen: SoapRequest[] = []
  const svc: SoapEndpoint = { limits, handle: async request => ({ envelope: { ...request.reading.envelope, otherHeaders: [], userData: undefined } }), ...endpoint }
  const watched: SoapEndpoint = { ...svc, handle: async request => { seen.push(request); return await svc.handle(request) } }
  const listener = await listenHttp({ listen: { host: '127.0.0.1', port: 0 }, route: path => path === '/svc' ? watched : undefined, log: silent, ...options })
  t.teardown(() => listener.close())
  return { url: `${listener.address}/svc`, port: Number(new URL(listener.address).port), seen, close: listener.close }
}

interface Answer { status: number, type: string, text: string, reading: () => Reading }

async function post (url: string, body: string | Uint8Array, headers: Record<string, string>): Promise<Answer> {
  const response = await request(url, { method: 'POST', body, headers })
  const bytes = Buffer.from(await response.body.arrayBuffer())
  return { status: response.statusCode, type: String(response.headers['content-type']), text: bytes.toString(), reading: () => readEnvelope(bytes, { limits }) }
}

/** All that comes back on a connection of its own, until the other side closes it. */
async function raw (port: number, ...pieces: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', chunk => { answer += String(chunk) })
  socket.on('error', error => { answer += `[${(error as NodeJS.ErrnoException).code}]` })
  await once(socket, 'connect')
  for (const piece of pieces) socket.write(piece)
  await new Promise(resolve => socket.once('close', resolve))
  return answer
}

t.test('SOAP 1.1 and 1.2 are answered in kind, whatever form the content type has', async t => {
  const { url, seen } = await listening(t)
  const cases: Array<[type: string, headers: Record<string, string>, body: string, soap: number, action: string]> = [
    ['text/xml; charset=utf-8', { soapaction: '"urn:a"' }, soap11(), 11, 'urn:a'],
    ['TEXT/XML;Charset="UTF-8"', { soapaction: 'urn:a' }, soap11(), 11, 'urn:a'],
    ['text/xml', { soapaction: '""' }, soap11(), 11, ''],
    ['application/soap+xml; charset=utf-8; action="urn:b"', {}, soap12(), 12, 'urn:b'],
    ['application/soap+xml;action=urn:b', {}, soap12(), 12, 'urn:b'],
    ['Application/SOAP+XML', {}, soap12(), 12, ''],
    ['application/soap+xml; action="urn:http"', {}, soap12(ADDRESSED), 12, 'urn:m'],
  ]
  for (const [type, headers, body, soap, action] of cases) {
    const answer = await post(url, body, { 'content-type': type, ...headers })
    t.match(answer, { status: 200, type: soap === 11 ? /^text\/xml/ : /^application\/soap\+xml/ }, type)
    t.match(answer.reading(), { envelope: { soap }, bodyElement: '{urn:m}m' })
    t.equal(seen.at(-1)?.reading.envelope.action, action, type)
  }
})

t.test('a reply carries addressing when the request did, and relates to it', async t => {
  const { url } = await listening(t)
  t.match((await post(url, soap12(ADDRESSED), { 'content-type': 'application/soap+xml' })).reading(), { addressed: true, envelope: { action: 'urn:m', relatesTo: 'urn:uuid:1' } })
  t.match((await post(url, soap11(), { 'content-type': 'text/xml' })).reading(), { addressed: false })
})

t.test('a reply in the other version is converted', async t => {
  const { url } = await listening(t, { handle: async () => ({ envelope: serviceFault({ soap: 12, blame: 'sender', reason: 'no' }) }) })
  const answer = await post(url, soap11(), { 'content-type': 'text/xml' })
  t.match(answer, { status: 500, type: /^text\/xml/ }, 'a fault is 500 without being told')
  t.match(readFault(answer.reading().envelope), { code: 'Sender', reason: 'no' })
})

t.test('what a handler throws is a fault, 500 in both versions', async t => {
  const { url } = await listening(t, { handle: async request => { throw request.reading.envelope.action === 'urn:bug' ? new TypeError('secret') : new SoaError('actionNotSupported', { action: 'urn:m' }) } })
  const fault = await post(url, soap12(ADDRESSED), { 'content-type': 'application/soap+xml' })
  t.match(fault, { status: 500, type: /^application\/soap\+xml/ })
  t.match(fault.reading(), { isFault: true, envelope: { action: `${WSA}/fault`, relatesTo: 'urn:uuid:1' } })
  t.match(await post(url, soap11(), { 'content-type': 'text/xml' }), { status: 500, type: /^text\/xml/ })
  const bug = await post(url, soap11(), { 'content-type': 'text/xml', soapaction: 'urn:bug' })
  t.equal(bug.status, 500)
  t.notMatch(bug.text, 'secret')
})

t.test('one-way is 202 without a body', async t => {
  const { url } = await listening(t, { handle: async () => ({ oneWay: true }) })
  t.match(await post(url, soap11(), { 'content-type': 'text/xml' }), { status: 202, text: '' })
})

t.test('what is no SOAP: 415 for the media type, 400 for the bytes, each with a sentence', async t => {
  const { url, seen } = await listening(t)
  t.match(await post(url, '{}', { 'content-type': 'application/json' }), { status: 415, text: /application\/json is not served here; send text\/xml/ })
  t.match(await post(url, 'x', {}), { status: 415, text: /\(none\)/ })
  t.match(await post(url, soap11(), { 'content-type': 'text/xml', 'content-encoding': 'compress' }), { status: 415, text: /compress is not served here; send one of gzip, deflate, br/ })
  for (const body of ['', 'hello', '<html></html>', '{"a":1}', '<a>']) t.match(await post(url, body, { 'content-type': 'text/xml' }), { status: 400, text: /^no SOAP envelope: / }, JSON.stringify(body))
  t.equal(seen.length, 0)
})

t.test('what was meant as SOAP and is broken gets a fault', async t => {
  const { url } = await listening(t)
  for (const [why, body, code] of [
    ['cut', soap11().slice(0, -5), 'Sender'], ['DTD', '<!DOCTYPE a [<!ENTITY b "c">]>' + soap11('<m>&b;</m>'), 'Sender'], ['other version', soap12(), 'Sender'],
    ['too deep', soap11('<d>'.repeat(200) + '</d>'.repeat(200)), 'Sender'], ['unknown version', '<s:Envelope xmlns:s="urn:soap3"><s:Body/></s:Envelope>', 'VersionMismatch']
  ] as const) {
    const answer = await post(url, body, { 'content-type': 'text/xml' })
    t.equal(answer.status, 500, why)
    t.match(readFault(answer.reading().envelope), { code }, why)
  }
})

t.test('maxMessageSize: an announced length is refused unread, an unannounced one as it passes the limit; the fault names setting, limit and value', async t => {
  const { url, port, seen } = await listening(t)
  const body = soap11(`<m>${'x'.repeat(150_000)}</m>`)
  const answer = await post(url, body, { 'content-type': 'text/xml' })
  t.equal(answer.status, 500)
  t.match(readFault(answer.reading().envelope), { code: 'Sender', reason: `maxMessageSize is ${body.length}, the limit is 100000` })
  const unread = await raw(port, 'POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: application/soap+xml\r\nContent-Length: 999999999999\r\n\r\n')
  t.match(unread, /^HTTP\/1.1 500 .*connection: close.*maxMessageSize is 999999999999, the limit is 100000/is)
  const waits = await raw(port, 'POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 200000\r\nExpect: 100-continue\r\n\r\n')
  t.match(waits, /^HTTP\/1.1 500 /, 'and who asks first is not told to go on')
  const chunk = `2710\r\n${'y'.repeat(10_000)}\r\n`
  const chunked = await raw(port, 'POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n', chunk.repeat(12))
  t.match(chunked, /^HTTP\/1.1 500 .*maxMessageSize is more than 100000, the limit is 100000/is)
  t.match(await post(url, gzipSync(body), { 'content-type': 'text/xml', 'content-encoding': 'gzip' }), { status: 500, text: /maxMessageSize/ }, 'the unpacked size counts')
  t.equal(seen.length, 0)
})

t.test('packed, chunked and announced bodies are read', async t => {
  const { url, port } = await listening(t)
  for (const [coding, pack] of [['gzip', gzipSync], ['deflate', deflateSync], ['GZIP', gzipSync], ['identity', Buffer.from]] as const) {
    t.match(await post(url, pack(Buffer.from(soap11())), { 'content-type': 'text/xml', 'content-encoding': coding }), { status: 200 }, coding)
  }
  t.match(await post(url, gzipSync(Buffer.from(soap11())).subarray(0, 40), { 'content-type': 'text/xml', 'content-encoding': 'gzip' }), { status: 500, text: /content coding/ }, 'cut short')
  const text = soap11()
  const chunks = [...text].map(c => `1\r\n${c}\r\n`).join('') + '0\r\n\r\n'
  t.match(await raw(port, 'POST /svc HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n', chunks), /^HTTP\/1.1 200 /)
  const socket = connect(port, '127.0.0.1')
  socket.write(`POST /svc HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/xml\r\nContent-Length: ${text.length}\r\nExpect: 100-continue\r\n\r\n`)
  const [interim] = await once(socket, 'data') as [Buffer]
  t.match(String(interim), /^HTTP\/1.1 100 Continue/)
  socket.write(text)
  t.match(String((await once(socket, 'data') as [Buffer])[0]), /^HTTP\/1.1 200 /)
  socket.destroy()
})

t.test('other charsets are read', async t => {
  const { url, seen } = await listening(t)
  t.match(await post(url, Buffer.from(soap11('<m>ü</m>'), 'latin1'), { 'content-type': 'text/xml; charset=iso-8859-1' }), { status: 200 })
  t.equal(Buffer.from(seen[0]?.reading.envelope.body ?? []).toString(), '<m>ü</m>')
  t.match(await post(url, Buffer.from(soap11('<m>ü</m>'), 'latin1'), { 'content-type': 'text/xml; charset=utf-8' }), { status: 500, text: /not UTF-8/ })
})

t.test('GET shows what the endpoint shows, with the address that the caller used; other methods and paths are told so', async t => {
  const { url, port } = await listening(t, { get: async ({ query, baseUrl }) => query === 'wsdl' ? { status: 200, contentType: 'text/xml', body: `<w a="${baseUrl}"/>` } : undefined })
  const get = async (url: string, method: 'GET' | 'PUT' | 'HEAD' = 'GET'): Promise<[number, string, unknown]> => {
    const { statusCode, body, headers } = await request(url, { method })
    return [statusCode, await body.text(), headers.allow]
  }
  t.same(await get(`${url}?wsdl`), [200, `<w a="http://127.0.0.1:${port}"/>`, undefined])
  t.same(await get(`${url}?wsdl`, 'HEAD'), [200, '', undefined])
  t.match(await get(`${url}?other`), [404])
  t.match(await get(url, 'PUT'), [405, /POST/, 'GET, HEAD, POST'])
  t.match(await get(url.replace('svc', 'nowhere')), [404])
  t.match(await raw(port, 'GET /svc?wsdl HTTP/1.1\r\nHost: grid.example:81\r\nConnection: close\r\n\r\n'), /<w a="http:\/\/grid.example:81"\/>/)
  t.match(await raw(port, 'GET /svc?wsdl HTTP/1.1\r\nHost: <script>\r\nConnection: close\r\n\r\n'), /<w a="http:\/\/127.0.0.1:\d+"\/>/)
  t.match(await raw(port, 'GET http://grid.example/svc?wsdl HTTP/1.1\r\nHost: <script>\r\nConnection: close\r\n\r\n'), /<w a="http:\/\/grid.example"\/>/)
  const plain = await listening(t)
  t.match(await get(plain.url), [405, /POST/, 'POST'])
  t.match(await raw(plain.port, 'GET /svc HTTP/1.1\r\nHost: x\r\n\r\nGET /svc HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'), /405[^]*405/, 'the connection lives on after it')
})

t.test('paths that are not ours go to the fallback as they are', async t => {
  const { url } = await listening(t, {}, { fallback: (request, response) => { response.writeHead(418).end(`${request.method} ${request.url}`) } })
  const { statusCode, body } = await request(url.replace('svc', 'other?x=1'))
  t.same([statusCode, await body.text()], [418, 'GET /other?x=1'])
})

t.test('the handler hears when its caller has gone', async t => {
  let called = (_: SoapRequest): void => {}
  const arrived = new Promise<SoapRequest>(resolve => { called = resolve })
  const { port } = await listening(t, { handle: request => { called(request); return new Promise(() => {}) } })
  const socket = connect(port, '127.0.0.1')
  socket.write(`POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: ${soap11().length}\r\n\r\n${soap11()}`)
  const { signal } = await arrived
  t.equal(signal.aborted, false)
  socket.destroy()
  await new Promise(resolve => signal.addEventListener('abort', resolve))
  t.pass('aborted')
})

t.test('bodies on their way in are bounded in all: who does not fit waits, and none is starved or lost', async t => {
  const { url, port, seen } = await listening(t, {}, { maxReceivingBytes: 1000 })
  const big = soap11(`<m>${'x'.repeat(600)}</m>`)
  const half = connect(port, '127.0.0.1')
  half.write(`POST /svc HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/xml\r\nContent-Length: ${big.length}\r\n\r\n${big.slice(0, 100)}`)
  await post(url.replace('svc', 'nowhere'), '', {}) // the listener has come round since: the half request holds its place
  const gone = connect(port, '127.0.0.1')
  gone.write(`POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: ${big.length}\r\n\r\n${big}`)
  const others = Array.from({ length: 20 }, () => post(url, big, { 'content-type': 'text/xml' }))
  await post(url.replace('svc', 'nowhere'), '', {})
  t.equal(seen.length, 0, 'all wait for the one that was first')
  gone.destroy()
  half.write(big.slice(100))
  t.ok((await Promise.all(others)).every(({ status }) => status === 200))
  half.destroy()
  t.match(await post(url, soap11(`<m>${'x'.repeat(5000)}</m>`), { 'content-type': 'text/xml' }), { status: 200 }, 'a message larger than all there is goes alone')
})

t.test('senders that announce nothing and drip hold what they have sent, and keep nobody else out', async t => {
  const { url, port } = await listening(t, { limits: { ...limits, maxMessageSize: 4_194_304 } }, { maxReceivingBytes: 8_388_608 })
  const drips = Array.from({ length: 64 }, () => connect(port, '127.0.0.1'))
  for (const [i, socket] of drips.entries()) {
    socket.on('error', () => {})
    socket.write(`POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n${i % 2 === 0 ? 'Transfer-Encoding: chunked\r\n\r\n1\r\n<\r\n' : 'Content-Length: 4000000\r\n\r\n<'}`)
  }
  await post(url.replace('svc', 'nowhere'), '', {}) // all 64 have been let in since
  const big = soap11(`<m>${'x'.repeat(3_000_000)}</m>`)
  const answers = await Promise.all(Array.from({ length: 4 }, () => post(url, big, { 'content-type': 'text/xml' })))
  t.same(answers.map(({ status }) => status), [200, 200, 200, 200], 'three megabytes each, while 64 × 4 MiB are announced and 8 MiB are the limit')
  for (const socket of drips) socket.destroy()
})

t.test('a body that stops coming is given up', async t => {
  const { port } = await listening(t, {}, { receiveIdleTimeoutMs: 50 })
  t.match(await raw(port, 'POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<s:'), /^$|ECONNRESET/)
})

t.test('a body that drips, a byte now and then, is given up too, and what comes at a fair pace is not', async t => {
  const { port, url } = await listening(t, {}, { paceGraceMs: 0 })
  const socket = connect(port, '127.0.0.1')
  socket.write('POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n')
  const drip = setInterval(() => { socket.write('1\r\n<\r\n') }, 50)
  socket.on('error', () => { /* cut while it wrote: that is what is waited for */ })
  await new Promise<void>(resolve => { socket.once('close', () => resolve()) })
  clearInterval(drip)
  t.match(await post(url, soap11(`<m>${'x'.repeat(50_000)}</m>`), { 'content-type': 'text/xml' }), { status: 200 })
})

t.test('closing lets the request in hand finish and takes no other', async t => {
  let finish = (): void => {}
  let called = (): void => {}
  const arrived = new Promise<void>(resolve => { called = resolve })
  const done = new Promise<void>(resolve => { finish = resolve })
  const { url, port, close } = await listening(t, { handle: async request => { called(); await done; return { envelope: request.reading.envelope } } })
  const answer = post(url, soap11(), { 'content-type': 'text/xml' })
  await arrived
  const closing = close(60_000)
  const late = connect(port, '127.0.0.1')
  await new Promise(resolve => late.once('error', resolve))
  finish()
  t.equal((await answer).status, 200)
  await closing
})

t.test('closing is not upset by a sender that breaks off meanwhile', async t => {
  const { url, port, close } = await listening(t)
  const half = connect(port, '127.0.0.1')
  half.on('error', () => {})
  half.write('POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<s:')
  await post(url.replace('svc', 'nowhere'), '', {})
  const closing = close(60_000)
  half.end() // in the middle of its body: an error of the connection to the server
  half.resume()
  await closing
})

t.test('closing cuts what does not finish in time', async t => {
  let called = (): void => {}
  const arrived = new Promise<void>(resolve => { called = resolve })
  const { url, close } = await listening(t, { handle: () => { called(); return new Promise(() => {}) } })
  const answer = post(url, soap11(), { 'content-type': 'text/xml' }).catch(error => error as Error)
  await arrived
  await close(10)
  t.ok(await answer instanceof Error)
})

t.test('requests cut at every byte never reach the handler and never stop the listener', async t => {
  const { url, port, seen } = await listening(t)
  const whole = `POST /svc HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: ${soap11().length}\r\n\r\n${soap11()}`
  await Promise.all(Array.from({ length: whole.length }, async (_, cut) => {
    const socket: Socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.end(whole.slice(0, cut))
    socket.resume()
    await new Promise(resolve => socket.once('close', resolve))
  }))
  t.equal(seen.length, 0)
  t.match(await post(url, soap11(), { 'content-type': 'text/xml' }), { status: 200 })
})
