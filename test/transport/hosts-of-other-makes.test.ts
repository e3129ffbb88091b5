import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRequire } from 'node:module'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { silent } from '../../core/log.ts'
import { httpCaller } from '../../transport/http/connector.ts'
import { soapServer } from '../../transport/http/listener.ts'
import type { CallResult } from '../../transport/channel.ts'
import { OLD_WSA, SOAP11, SOAP12, WSA, type Envelope } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'

const never = new AbortController().signal
const LIMIT = 100_000
const message: Envelope = { v: 1, soap: 12, enc: 'utf8', action: 'urn:m', messageId: 'urn:uuid:1', otherHeaders: [], prefixesInScope: [], body: Buffer.from('<m xmlns="urn:m"/>') }
const soap11 = (body = '<m xmlns="urn:m"/>', header = ''): string => `<s:Envelope xmlns:s="${SOAP11}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function host (t: Test, answer: Answer): Promise<{ call: (soap?: 11 | 12) => Promise<CallResult>, types: string[] }> {
  const types: string[] = []
  const server = createServer((request, response) => {
    types.push(String(request.headers['content-type']).split(';', 1)[0] as string)
    request.resume().on('end', () => answer(request, response))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const caller = httpCaller(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { connections: 2, maxMessageSize: LIMIT, addressing: 'wsa' })
  t.teardown(async () => { await caller.close(); server.closeAllConnections(); server.close() })
  return { call: (soap = 12) => caller.call({ ...message, soap }, { timeoutMs: 10_000, signal: never }), types }
}

const send = (response: ServerResponse, status: number, type: string, body: string | Uint8Array, headers: Record<string, string> = {}): void => { response.writeHead(status, { 'content-type': type, ...headers }).end(body) }
const body = (result: CallResult): string => result.outcome === 'answered' ? Buffer.from(result.reading.envelope.body).toString() : result.outcome

t.test('a host that answers SOAP 1.2 with 415 is spoken to in SOAP 1.1, and is not asked twice', async t => {
  const { call, types } = await host(t, (request, response) => {
    if (request.headers['content-type']?.startsWith('text/xml') === true) send(response, 200, 'text/xml;charset=UTF-8', soap11())
    else send(response, 415, 'text/plain', 'Unsupported Content-Type: application/soap+xml Supported ones are: [text/xml]')
  })
  for (const soap of [12, 12, 11] as const) t.match(await call(soap), { outcome: 'answered', reading: { envelope: { soap: 11 } } })
  t.same(types, ['application/soap+xml', 'text/xml', 'text/xml', 'text/xml'])
})

t.test('so is one that says VersionMismatch, either way round', async t => {
  const mismatch11 = soap11('<s:Fault><faultcode>s:VersionMismatch</faultcode><faultstring>no</faultstring></s:Fault>')
  const old = await host(t, (request, response) => {
    if (request.headers['content-type']?.startsWith('text/xml') === true) send(response, 200, 'text/xml', soap11())
    else send(response, 500, 'text/xml', mismatch11)
  })
  t.match(await old.call(12), { outcome: 'answered', reading: { isFault: false, envelope: { soap: 11 } } })
  const young = await host(t, (request, response) => {
    if (request.headers['content-type']?.startsWith('text/xml') === true) send(response, 500, 'text/xml', mismatch11)
    else send(response, 200, 'application/soap+xml', `<s:Envelope xmlns:s="${SOAP12}"><s:Body/></s:Envelope>`)
  })
  t.match(await young.call(11), { outcome: 'answered', reading: { isFault: false, envelope: { soap: 12 } } })
})

t.test('one that refuses both is a bad reply, with what it said first', async t => {
  const { call, types } = await host(t, (request, response) => { send(response, 415, 'text/plain', `not ${String(request.headers['content-type'])}`) })
  t.match(await call(), { outcome: 'badReply', status: 415, error: /not application\/soap\+xml/ })
  t.match(await call(11), { outcome: 'badReply', status: 415, error: /not text\/xml/ })
  t.equal(types.length, 4, 'it may be another one behind the same address next time')
})

t.test('a fault that is not about the version is an answer, and nothing is sent twice', async t => {
  const { call, types } = await host(t, (_, response) => { send(response, 500, 'text/xml; charset=utf-8', soap11('<s:Fault><faultcode>s:Server</faultcode><faultstring>VersionMismatch of the price list</faultstring></s:Fault>')) })
  t.match(await call(), { outcome: 'answered', reading: { isFault: true } })
  t.equal(types.length, 1)
})

t.test('what a host packs without being asked is unpacked, and its unpacked size counts', async t => {
  let reply: { coding: string, bytes: Buffer } = { coding: '', bytes: Buffer.alloc(0) }
  const { call } = await host(t, (_, response) => { send(response, 200, 'text/xml', reply.bytes, { 'content-encoding': reply.coding }) })
  const plain = Buffer.from(soap11('<m>ü</m>'))
  for (const [coding, pack] of [['gzip', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync], ['identity', Buffer.from]] as const) {
    reply = { coding, bytes: pack(plain) }
    t.equal(body(await call(11)), '<m>ü</m>', coding)
  }
  reply = { coding: 'gzip', bytes: gzipSync(soap11(`<m>${'x'.repeat(2 * LIMIT)}</m>`)) }
  t.match(await call(11), { outcome: 'badReply', error: /maxMessageSize is \d+, the limit is 100000/ })
  reply = { coding: 'gzip', bytes: gzipSync(plain).subarray(0, 30) }
  t.match(await call(11), { outcome: 'badReply', error: /content coding does not hold what it says/ })
  reply = { coding: 'gzip', bytes: plain }
  t.match(await call(11), { outcome: 'badReply', error: /content coding does not hold what it says/ })
  reply = { coding: 'zstd', bytes: plain }
  t.match(await call(11), { outcome: 'badReply', error: /content coding zstd is not known/ })
})

t.test('replies as Java stacks write them: addressing of any age, in any place, without a length, marked mustUnderstand; faults with prefixes and details', async t => {
  const [old] = OLD_WSA
  const replies: Array<[name: string, status: number, text: string, expected: object]> = [
    ['JAX-WS', 200, `<?xml version='1.0' encoding='UTF-8'?><S:Envelope xmlns:S="${SOAP11}"><S:Header><To xmlns="${WSA}">${WSA}/anonymous</To><Action xmlns="${WSA}" S:mustUnderstand="1">urn:r</Action><MessageID xmlns="${WSA}">uuid:9</MessageID><RelatesTo xmlns="${WSA}">urn:uuid:1</RelatesTo></S:Header><S:Body><ns2:r xmlns:ns2="urn:m">1</ns2:r></S:Body></S:Envelope>`,
      { isFault: false, envelope: { action: 'urn:r', relatesTo: 'urn:uuid:1', otherHeaders: [] } }],
    ['Axis2, addressing of 2004', 200, `<?xml version='1.0' encoding='utf-8'?><soapenv:Envelope xmlns:soapenv="${SOAP11}" xmlns:wsa="${old}"><soapenv:Header><wsa:RelatesTo wsa:RelationshipType="wsa:Reply">urn:uuid:1</wsa:RelatesTo><wsa:Action soapenv:mustUnderstand="1">urn:r</wsa:Action></soapenv:Header><soapenv:Body><r xmlns="urn:m"/></soapenv:Body></soapenv:Envelope>`,
      { isFault: false, envelope: { action: 'urn:r', relatesTo: 'urn:uuid:1', otherHeaders: [] } }],
    ['an Action of no standard', 200, soap11('<r xmlns="urn:m"/>', '<Action>urn:r</Action><t:Trace xmlns:t="urn:t" s:mustUnderstand="1">7</t:Trace>'),
      { isFault: false, mustUnderstand: ['{urn:t}Trace'], envelope: { action: 'urn:r' } }],
    ['Axis 1 fault', 500, `<soapenv:Envelope xmlns:soapenv="${SOAP11}" xmlns:xsd="http://www.w3.org/2001/XMLSchema"><soapenv:Body><soapenv:Fault><faultcode>soapenv:Server.userException</faultcode><faultstring>java.lang.IllegalArgumentException: no</faultstring><detail><ns1:hostname xmlns:ns1="http://xml.apache.org/axis/">n7</ns1:hostname></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`,
      { isFault: true }],
    ['JAX-WS fault', 500, `<S:Envelope xmlns:S="${SOAP11}"><S:Body><S:Fault xmlns:ns4="${SOAP12}"><faultcode>S:Server</faultcode><faultstring>no</faultstring><detail><ns2:PriceFault xmlns:ns2="urn:m"><code>7</code></ns2:PriceFault></detail></S:Fault></S:Body></S:Envelope>`,
      { isFault: true }],
  ]
  let reply: (typeof replies)[number]
  const { call } = await host(t, (_, response) => {
    response.writeHead(reply[1], { 'content-type': 'text/xml;charset=UTF-8' })
    for (const piece of reply[2].match(/[^]{1,50}/g) ?? []) response.write(piece) // in chunks, and no length
    response.end()
  })
  for (reply of replies) {
    const result = await call(11)
    t.match(result, { outcome: 'answered', reading: reply[3] }, reply[0])
    if (result.outcome !== 'answered') continue
    t.notMatch(result.reading.envelope.otherHeaders.map(String).join(''), /mustUnderstand="1"/, `${reply[0]}: nothing that a client would have to understand`)
    if (result.reading.isFault) t.match(readFault(result.reading.envelope), { code: 'Receiver', reason: /no/, detail: {} }, reply[0])
  }
})

t.test('a call may take longer than the 5 minutes after which HTTP clients and servers give up by default', async t => {
  const { tick } = createRequire(import.meta.url)('undici/lib/util/timers.js') as { tick: (ms: number) => void }
  const waiting: ServerResponse[] = []
  let asked = (): void => {}
  const { call } = await host(t, (_, response) => { waiting.push(response); asked() })
  const bothAsked = new Promise<void>(resolve => { asked = () => { if (waiting.length === 2) resolve() } })
  const slow = createServer((_, response) => { waiting.push(response); asked() }).listen(0, '127.0.0.1')
  await once(slow, 'listening')
  const plain = new Pool(`http://127.0.0.1:${(slow.address() as AddressInfo).port}`)
  t.teardown(async () => { await plain.destroy(); slow.closeAllConnections(); slow.close() })
  const ours = call(11)
  const theirs = plain.request({ path: '/', method: 'GET' }).catch(error => error as Error)
  await bothAsked
  for (const ms of [1000, 3_600_000, 1000]) tick(ms) // undici's own clock: its timers begin at one look, and end at another, an hour later
  t.match(await theirs, { code: 'UND_ERR_HEADERS_TIMEOUT' }, 'undici as it comes has given up')
  for (const response of waiting) send(response, 200, 'text/xml', soap11())
  t.match(await ours, { outcome: 'answered' })
  const server = soapServer({ route: () => undefined, log: silent })
  t.match(server, { requestTimeout: 0, timeout: 0, headersTimeout: 60_000 }, 'and our servers have no clock on a request, only on its headers')
  t.equal(server.keepAliveTimeout, 125_000, 'idle connections live longer than the 120 s that clients of .NET keep theirs')
})
