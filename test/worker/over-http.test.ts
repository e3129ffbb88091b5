import t from 'tap'
import type { Test } from 'tap'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'undici'
import { asset } from '../../core/assets.ts'
import { silent } from '../../core/log.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import { BROKER_CONTROLLER } from '../../wsdl/contracts.ts'
import { encodeRequest, type Values } from '../../wsdl/shapes.ts'
import { readPulledPage } from '../../wsdl/pulled-page.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { controller } from '../../broker/worker/controller.ts'
import { frontEnd } from '../../broker/worker/front-end.ts'
import { open, reading } from './open-session.ts'

const S11 = 'http://schemas.xmlsoap.org/soap/envelope/'
const S12 = 'http://www.w3.org/2003/05/soap-envelope'
const limits = { maxHeaderBytes: 65_536, maxDepth: 200 }

/** The session's two endpoints on a socket, as a worker has them. */
async function serve (t: Test, options: Parameters<typeof open>[1] = {}) {
  const opened = await open(t, options)
  const dir = mkdtempSync(join(tmpdir(), 'soa-'))
  const endpoints = { '/7/Http': frontEnd(opened.session), '/7/Http/Controller': controller(opened.session) }
  const listener = await listenHttp({ listen: { path: join(dir, 's') }, route: path => endpoints[path as keyof typeof endpoints], log: silent })
  const pool = new Pool('http://grid.example:8080', { socketPath: join(dir, 's'), connections: 4 })
  t.teardown(async () => { await pool.close(); await listener.close(0); rmSync(dir, { recursive: true }) })
  async function post (path: string, body: string | Uint8Array, headers: Record<string, string> = { 'content-type': 'text/xml; charset=utf-8' }) {
    const answer = await pool.request({ method: 'POST', path, headers, body })
    return { status: answer.statusCode, type: String(answer.headers['content-type'] ?? ''), text: await answer.body.text() }
  }
  async function call (name: keyof typeof BROKER_CONTROLLER.operations, values: Values, header = '') {
    const operation = BROKER_CONTROLLER.operations[name]
    const body = encodeRequest(operation, values).toString()
    return await post('/7/Http/Controller', `<s:Envelope xmlns:s="${S11}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`, { 'content-type': 'text/xml', soapaction: `"${operation.action}"` })
  }
  return { ...opened, post, call }
}

const soap = (version: string, header: string, body: string): string => `<s:Envelope xmlns:s="${version}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
const echoing = (seen: Envelope[]) => (sent: Envelope) => {
  seen.push(sent)
  return { outcome: 'answered' as const, reading: reading({ ...sent, action: 'urn:EchoResponse' }) }
}
const COMMIT = { clientid: '', batchId: -1, timeoutThrottlingMs: -1, timeoutEOMMs: 5000, timeoutFlushMs: 5000 }

t.test('over http: the seed envelope is stored and answered at once with an empty body; EndRequests and PullResponses bring its response with its user data', async t => {
  const { post, call } = await serve(t)
  const seed = readFileSync(asset('test/wire/seed-generate-request.xml'))
  const answer = await post('/7/Http', seed, { 'content-type': 'application/soap+xml; charset=utf-8' })
  t.equal(answer.status, 200)
  const { envelope } = readEnvelope(Buffer.from(answer.text), { limits })
  t.equal(envelope.action, 'http://tempuri.org/ISimpleService/GenerateResponse')
  t.equal(Buffer.from(envelope.body).toString().trim(), '')
  t.equal((await call('EndRequests', { ...COMMIT, count: 1 })).status, 200)
  const pulled = await call('PullResponses', { action: '', position: 'Begin', count: 10, clientId: '' })
  const reply = readEnvelope(Buffer.from(pulled.text), { limits }).envelope
  const page = readPulledPage(reply.body, reply.prefixesInScope)
  t.ok(page.endOfMessages)
  t.equal(page.envelopes.length, 1)
  t.match(page.envelopes[0], /<HPCServer2008_Broker_UserDataNS[^>]*>0<\/HPCServer2008_Broker_UserDataNS>/)
  t.match(page.envelopes[0], /RequestActionNS[^>]*>http:\/\/tempuri.org\/ISimpleService\/Generate</)
  t.match(page.envelopes[0], new RegExp(`^<\\w+:Envelope[^>]*${S11}`), 'embedded envelopes are SOAP 1.1')
})

t.test('over http: without user data the answer comes in the same exchange, unknown headers and actions go on to the service', async t => {
  const seen: Envelope[] = []
  const { post } = await serve(t, { answer: echoing(seen) })
  const answer = await post('/7/Http', soap(S12, '<x:Trace xmlns:x="urn:x" s:mustUnderstand="1">42</x:Trace>', '<whatever xmlns="urn:w"><!-- kept --><![CDATA[<a>]]></whatever>'), { 'content-type': 'application/soap+xml; action="urn:Nobody/Knows"' })
  t.equal(answer.status, 200)
  t.match(answer.type, /^application\/soap\+xml/)
  t.match(answer.text, /<whatever xmlns="urn:w"><!-- kept --><!\[CDATA\[<a>\]\]><\/whatever>/)
  t.equal(seen[0]?.action, 'urn:Nobody/Knows')
  t.match(seen[0]?.otherHeaders.map(header => Buffer.from(header).toString()), [/Trace/], 'even one that must be understood: that is for the service to say')
})

t.test('over http: a one-way operation is answered 202, and runs', async t => {
  const seen: Envelope[] = []
  const { post, session, clock } = await serve(t, { answer: sent => { seen.push(sent); return { outcome: 'accepted' } } })
  const answer = await post('/7/Http', soap(S11, '', '<tell/>'), { 'content-type': 'text/xml', soapaction: '"urn:Tell"' })
  t.same([answer.status, answer.text], [202, ''])
  await clock.advance(0)
  t.equal(seen.length, 1)
  t.match(session.counters.view(), { total: 1, processed: 1, processing: 0, faulted: 0 })
})

t.test('over http: an empty answer of a service to an operation that has a reply is tried again, and in the end a fault', async t => {
  let runs = 0
  const { post } = await serve(t, { settings: { messageResendLimit: 1 }, answer: () => { runs++; return { outcome: 'accepted' } } })
  const answer = await post('/7/Http', soap(S11, '', '<n>1</n>'), { 'content-type': 'text/xml', soapaction: '"urn:Echo"' })
  t.match([answer.status, answer.text], [500, /RetryOperationError/])
  t.equal(runs, 2)
})

t.test('over http: an action that is missing everywhere is found by the body element', async t => {
  const seen: Envelope[] = []
  const { post } = await serve(t, { answer: echoing(seen) })
  t.equal((await post('/7/Http', soap(S11, '', '<n>1</n>'))).status, 200)
  t.equal(seen[0]?.action, 'urn:Echo')
})

t.test('over http: a late request gets a fault that names HPC\'s code, with status 500', async t => {
  const { post, call } = await serve(t)
  const request = soap(S11, '<u:HPCServer2008_Broker_UserDataNS xmlns:u="http://www.microsoft.com/hpc">1</u:HPCServer2008_Broker_UserDataNS><u:HPCServer2008_Broker_ClientIdNS xmlns:u="http://www.microsoft.com/hpc"/>', '<n>1</n>')
  t.equal((await post('/7/Http', request)).status, 200)
  t.equal((await call('EndRequests', { ...COMMIT, count: 1 })).status, 200)
  const late = await post('/7/Http', request)
  t.equal(late.status, 500)
  t.match(late.text, /<SessionFault[^>]*>.*<Code>16777241<\/Code>/s)
  const again = await call('EndRequests', { ...COMMIT, count: 0 })
  t.match([again.status, again.text], [500, /16777240|16777241/])
})

t.test('over http: the controller refuses what it does not know, each in its own words', async t => {
  const { post, call } = await serve(t)
  const unknown = await post('/7/Http/Controller', soap(S12, '', '<x xmlns="urn:x"/>'), { 'content-type': 'application/soap+xml; action="urn:Nobody"' })
  t.match([unknown.status, unknown.text], [500, /ActionNotSupported/])
  const header = await call('Ping', {}, '<x:Needed xmlns:x="urn:x" s:mustUnderstand="1"/>')
  t.match([header.status, header.text], [500, /MustUnderstand/])
  t.equal((await call('Ping', {}, '<x:Optional xmlns:x="urn:x"/>')).status, 200)
  const version = await post('/7/Http/Controller', soap('urn:soap-13', '', '<x/>'))
  t.match([version.status, version.text], [500, /VersionMismatch/])
  const azure = await call('GetResponsesAQ', { action: '', clientData: '', resetToBegin: 'Begin', count: 1, clientId: '', sessionHash: 0 })
  t.match([azure.status, azure.text], [500, /<Code>50331682<\/Code>/])
})

t.test('over http: bad fields of the controller\'s calls are named with what was seen', async t => {
  const { call } = await serve(t)
  const rows: Array<[Parameters<typeof call>[0], Values, RegExp]> = [
    ['Flush', { ...COMMIT, count: 0 }, /count: 0 is below 1/],
    ['EndRequests', { ...COMMIT, count: -1 }, /count: -1 is below 0/],
    ['EndRequests', { ...COMMIT, count: undefined }, /count: is missing/],
    ['EndRequests', { ...COMMIT, count: 0 }, /without any request/],
    ['Flush', { ...COMMIT, count: 1, timeoutFlushMs: 0 }, /timeoutFlushMs: 0 is below 1 and not -1/],
    ['PullResponses', { action: '', position: 'Middle', count: 1, clientId: '' }, /position: Begin or Current is expected, not "Middle"/],
    ['PullResponses', { action: '', position: 'Begin', count: 0, clientId: '' }, /count: 0 is below 1/],
    ['GetRequestsCount', { clientId: 'a'.repeat(129) }, /<Code>50331670<\/Code>/],
    ['GetBrokerClientStatus', { clientId: 'semi;colon' }, /<Code>50331670<\/Code>/],
  ]
  for (const [name, values, says] of rows) {
    const answer = await call(name, values)
    t.match([answer.status, answer.text], [500, says], `${name} ${JSON.stringify(values)}`)
  }
})

t.test('over http: bodies of our own contracts may nest 64 deep, whatever the service allows', async t => {
  const { post } = await serve(t, { settings: { maxDepth: 1000 } })
  const answer = await post('/7/Http/Controller', soap(S11, '', '<a>'.repeat(65) + '</a>'.repeat(65)))
  t.match([answer.status, answer.text], [500, /maxDepth is .*, the limit is 64/])
})

t.test('over http: a message over a limit is refused with the setting, the limit and what was seen; a DTD is refused', async t => {
  const { post } = await serve(t, { settings: { maxMessageSize: 2000, maxDepth: 10, maxHeaderBytes: 1024 } })
  const rows: Array<[body: string, says: RegExp]> = [
    [soap(S11, '', `<n>${'x'.repeat(3000)}</n>`), /maxMessageSize is \d+, the limit is 2000/],
    [soap(S11, '', '<a>'.repeat(11) + '</a>'.repeat(11)), /maxDepth is .*, the limit is 10/],
    [soap(S11, `<h xmlns="urn:h">${'x'.repeat(1100)}</h>`, '<n/>'), /maxHeaderBytes is \d+, the limit is 1024/],
    [`<!DOCTYPE x [<!ENTITY a "b">]>${soap(S11, '', '<n>&a;</n>')}`, /document type|DOCTYPE/i],
  ]
  for (const [body, says] of rows) {
    const answer = await post('/7/Http', body)
    t.match([answer.status, answer.text], [500, says])
  }
})
