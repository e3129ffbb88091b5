import { readFileSync } from 'node:fs'
import t from 'tap'
import { DurableSession, RetryOperationError, Session } from '../../client/index.ts'
import { registration, servicesFolder } from '../interop/services.ts'
import { Cluster, eventually } from './cluster.ts'

/*
 * What people who do this job ran into, line by line, and the test that shows that it is otherwise here.
 *
 * | what went wrong | shown by |
 * | --- | --- |
 * | long calls cut | here: calls of four times every idle time |
 * | big arrays throw | here: 70,000 integers and 20,000 bytes; worker/over-http.test.ts: the setting, the limit and the size |
 * | a custom broker loses durability | worker/custom-broker.test.ts, and the custom brokers' own e2e |
 * | the same task Running twice; Canceling, Canceled | worker/dispatcher-pool.test.ts: the seed's sequence |
 * | too many sends | here: 20,000 sends on four instances |
 * | the session dies while work runs | worker/session.test.ts: idle clocks; worker/peer-cases.test.ts: three times the idle time |
 * | docs and code disagree on defaults | house/tables.test.ts; head/rest.test.ts: settings show what runs |
 * | after a broker restart requests are not sent again | e2e/kill-broker.test.ts: the broker worker; worker/model.test.ts |
 * | the host was not up yet | here: a service that needs 15 s to start |
 * | durable is slow | `npm run bench` prints the ratio |
 * | a bad configuration restarts for ever | cli/up.test.ts, cli/up-ends.test.ts; head/head.test.ts: readiness says which check fails |
 * | clients need special generator options | interop/dotnet.test.ts, interop/toolkits.test.ts: plain proxies |
 * | session ids that are no numbers | head/launchers.test.ts; e2e/seed-envelope.long.ts |
 * | diagnosing | worker/trace.test.ts, `soa trace` |
 * | starting takes longer than the work (`minWarm`) | e2e/elastic.long.ts |
 * | a retried task | e2e/kill-broker.test.ts: a service host |
 * | canceling turns what is done into canceled | here: sixty of a hundred are done |
 * | errors on cancel | here: canceled twice, finished, unknown |
 * | a running call could not be canceled | here: a call of 60 s |
 * | fetching is slower than computing | here: 100,000 results |
 * | logs of a crashed worker are missing | e2e/misbehaving.test.ts |
 * | wrong partition name | head/rest.test.ts, head/head.test.ts: what does not fit is refused |
 * | content types, actions, prefixes, one-way, 500 | transport/*, wire/*, worker/over-http.test.ts, wsdl/* |
 * | a fault thrown later crashes the process | e2e/misbehaving.test.ts: rejectLater |
 * | the heap grows | e2e/hundred-thousand.long.ts |
 * | served WSDL has a wrong address, sub-paths, `[::]` | head/addresses.test.ts, transport/base-url.test.ts |
 * | net.tcp, upgrades, idle close, encoders, silent clients | interop/net-tcp.test.ts, transport/tcp*.test.ts, e2e/net-tcp-crowds.long.ts |
 * | mustUnderstand | wire/must-understand.test.ts |
 * | max sessions looks like a time-out | head/head.test.ts: what does not fit is refused before anything starts |
 * | stalled jobs, doubled jobs, paused hosts | placement.test.ts; e2e/frozen.long.ts; worker/re-emission.test.ts: the late one is dropped and counted |
 * | one poison request stops all others | here and worker/dead-letters.test.ts: 1,000 others finish |
 * | Redis evicts, is full, was away, fails over | store/redis-check.test.ts, store/redis-trouble.test.ts, e2e/redis-troubles.long.ts, e2e/fail-over.long.ts |
 * | jobs over the limit vanish | worker/dead-letters.test.ts |
 * | no search | worker/trace.test.ts |
 * Console, UsernameToken and Windows logins are later issues'.
 */

/** What the broker worker may hold while 20,000 requests run through it. */
const MOST_BYTES = 400 * 1024 * 1024
const IDLE_MS = 2000

const schema = `<xs:schema elementFormDefault="qualified" targetNamespace="urn:pain" xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="Do"><xs:complexType><xs:sequence><xs:element name="what" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
  <xs:element name="DoResponse"><xs:complexType><xs:sequence><xs:element name="DoResult" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
  <xs:element name="Take"><xs:complexType><xs:sequence><xs:element name="number" type="xs:int" minOccurs="0" maxOccurs="unbounded"/><xs:element name="bytes" type="xs:base64Binary"/></xs:sequence></xs:complexType></xs:element>
  <xs:element name="TakeResponse"><xs:complexType><xs:sequence><xs:element name="sum" type="xs:long"/><xs:element name="length" type="xs:int"/></xs:sequence></xs:complexType></xs:element>
</xs:schema>`
const message = (name: string): string => `<message name="${name}"><part name="parameters" element="p:${name}"/></message>`
const operation = (name: string): string => `<operation name="${name}"><input message="p:${name}"/><output message="p:${name}Response"/></operation>`
const bound = (name: string): string => `<operation name="${name}"><s:operation soapAction="urn:pain/${name}"/><input><s:body use="literal"/></input><output><s:body use="literal"/></output></operation>`
const wsdl = `<definitions name="Pain" targetNamespace="urn:pain" xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:p="urn:pain" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/">
<types>${schema}</types>${['Do', 'DoResponse', 'Take', 'TakeResponse'].map(message).join('')}
<portType name="IPain">${operation('Do')}${operation('Take')}</portType>
<binding name="b" type="p:IPain"><s:binding transport="http://schemas.xmlsoap.org/soap/http"/>${bound('Do')}${bound('Take')}</binding>
<service name="Pain"><port name="b" binding="p:b"><s:address location="http://localhost/"/></port></service></definitions>`

const module = `import { setTimeout as wait } from 'node:timers/promises'
if (process.env.START_MS) await wait(Number(process.env.START_MS))
export default {
  async Do ({ what }) {
    if (what === 'poison') process.exit(3)
    if (what.startsWith('wait ')) await wait(Number(what.slice(5)))
    return { DoResult: what }
  },
  Take: ({ number = [], bytes }) => ({ sum: number.reduce((sum, n) => sum + n, 0), length: bytes.length }),
}`
const files = (name: string, service: string): Record<string, string> => ({ 'pain.mjs': module, [`${name}.wsdl`]: wsdl, [`${name}.config`]: registration(service) })

t.setTimeout(900_000)

t.test('what people ran into', async t => {
  const services = servicesFolder(t, {
    Pain: files('Pain', '<service assembly="pain.mjs" contract="IPain" maxConcurrentCalls="1"/>'),
    Late: files('Late', '<service assembly="pain.mjs" contract="IPain"><environmentVariables><add name="START_MS" value="15000"/></environmentVariables></service>'),
  })
  const cluster = await Cluster.start(t, { cores: 4, services, flags: ['--receive-idle-timeout-ms', String(IDLE_MS)] })
  const head = { head: cluster.head }
  const pain = { service: 'Pain', ...head }

  await t.test('calls of four times every idle time are answered, in the same exchange and stored', async t => {
    await using session = await Session.create({ ...pain, settings: { clientIdleTimeout: IDLE_MS, sessionIdleTimeout: IDLE_MS } })
    const client = session.client('long')
    const call = session.client('direct').call('Do', { what: `wait ${4 * IDLE_MS}` })
    await client.send('Do', { what: `wait ${4 * IDLE_MS}` })
    await client.endRequests()
    t.same(await call, { DoResult: `wait ${4 * IDLE_MS}` })
    for await (const { result } of client.responses()) t.same(result(), { DoResult: `wait ${4 * IDLE_MS}` })
  })

  await t.test('70,000 integers and 20,000 bytes pass with default settings; with maxMessageSize 1000 the fault names it', async t => {
    const number = Array.from({ length: 70_000 }, (_, i) => i)
    const value = { number, bytes: Buffer.alloc(20_000, 7) }
    await using session = await DurableSession.create(pain)
    const client = session.client('big')
    await client.send('Take', value)
    await client.endRequests()
    for await (const { result } of client.responses()) t.match(result(), { length: 20_000 })
    await using small = await DurableSession.create({ ...pain, settings: { maxMessageSize: 1000 } })
    await t.rejects(small.client('big').send('Take', { number: number.slice(0, 500), bytes: Buffer.alloc(10) }), /Take: .* larger than the session's maxMessageSize/, 'net.tcp cannot say more')
    const http = await fetch(small.endpoint, { method: 'POST', headers: { 'content-type': 'text/xml; charset=utf-8', soapaction: '"urn:pain/Take"' }, body: `<${'x'.repeat(2000)}/>` })
    t.match(await http.text(), /maxMessageSize.*1000.*2003|maxMessageSize/, 'HTTP names the setting')
    await session.close()
    await small.close()
  })

  await t.test('20,000 sends on four instances: none fails, the sender waits when nobody reads, and memory stays where it was', async t => {
    const SENDS = 20_000
    await using session = await Session.create({ ...pain, maxUnits: 4 })
    const client = session.client('flood')
    let sent = 0
    const sending = Promise.all(Array.from({ length: SENDS }, (_, i) => client.send('Do', { what: `${i}` }, { userData: `${i}` }).then(() => { sent++ })))
    const { counters } = await eventually('the sender waits', async () => {
      const info = await cluster.session(session.id)
      return info.counters.total > 4096 && info.counters.total === info.counters.processed && info
    })
    t.ok(counters.total < 4096 + 1024, `of ${SENDS} sends ${counters.total} are taken while nobody reads`)
    const seen = new Set<string>()
    const reading = (async () => { for await (const { userData } of client.responses()) seen.add(String(userData)) })()
    await sending
    await client.endRequests()
    await reading
    t.equal(seen.size, SENDS)
    const status = readFileSync(`/proc/${await cluster.pid('worker', session.id)}/status`, 'utf8')
    const peak = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024
    t.ok(peak < MOST_BYTES, `the broker worker held ${Math.round(peak / 2 ** 20)} MiB at most`)
    t.equal(sent, SENDS)
  })

  await t.test('a service that needs 15 s to start: the first request is answered, and nobody hears of it', async t => {
    await using session = await Session.create({ service: 'Late', ...head })
    t.same(await session.client('first').call('Do', { what: 'early' }), { DoResult: 'early' })
  })

  await t.test('canceled when sixty of a hundred are done: the sixty stay, and can be read; again, when finished, and unknown: a clear answer each', async t => {
    const session = await DurableSession.create({ ...pain, maxUnits: 1, settings: { serviceRequestPrefetchCount: 0 } })
    const client = session.client('sixty')
    for (let i = 0; i < 60; i++) await client.send('Do', { what: `${i}` }, { userData: `${i}` })
    for (let i = 60; i < 100; i++) await client.send('Do', { what: 'wait 60000' }, { userData: `${i}` })
    await client.endRequests()
    await eventually('sixty are done', async () => (await cluster.session(session.id)).counters.processed === 60)
    t.match(await session.cancel(), { state: 'Canceled', counters: { processed: 60 } })
    t.match(await session.cancel(), { state: 'Canceled', counters: { processed: 60 } }, 'twice')
    await eventually('the instance of the call of 60 s is gone', async () => !(await cluster.session(session.id)).tasks.some(({ state }) => state === 'Running' || state === 'Canceling'))
    const seen = new Set<string>()
    await t.rejects(async () => { for await (const { userData } of client.responses()) seen.add(String(userData)) }, /cancel/i, 'and after the last of them it says why no more come')
    t.equal(seen.size, 60)
    await session.close()
    await t.rejects(async () => await session.cancel(), /closed/, 'closed')
    const unknown = await fetch(`${cluster.head}/api/v1/sessions/1/cancel`, { method: 'POST' })
    t.equal(unknown.status, 404, 'unknown')
  })

  await t.test('a poison request among a thousand: the others are answered, and it has its fault', async t => {
    const session = await DurableSession.create({ ...pain, maxUnits: 2, settings: { messageResendLimit: 1 } })
    const client = session.client('poison')
    await Promise.all(Array.from({ length: 1000 }, (_, i) => client.send('Do', { what: i === 500 ? 'poison' : `${i}` }, { userData: `${i}` })))
    await client.endRequests()
    const failed: string[] = []
    let right = 0
    for await (const { userData, fault, result } of client.responses({ timeoutMs: 120_000 })) {
      if (fault !== undefined) { failed.push(String(userData)); t.ok(fault instanceof RetryOperationError, 'given up') } else if ((result() as { DoResult: string }).DoResult === userData) right++
    }
    t.same(failed, ['500'])
    t.equal(right, 999)
    await session.close()
  })

  await t.test('100,000 results are fetched about as fast as they were computed', async t => {
    const RESULTS = 100_000
    const session = await DurableSession.create({ ...pain, maxUnits: 2 })
    const client = session.client('many')
    const began = process.hrtime.bigint()
    for (let from = 0; from < RESULTS; from += 10_000) await Promise.all(Array.from({ length: 10_000 }, (_, i) => client.send('Do', { what: `${from + i}` }, { userData: `${from + i}` })))
    await client.endRequests()
    await eventually('all are computed', async () => (await cluster.session(session.id)).counters.processed === RESULTS, 300_000)
    const computed = process.hrtime.bigint()
    const seen = new Set<unknown>()
    for await (const { userData } of client.responses()) seen.add(userData)
    const seconds = (from: bigint, to: bigint): string => (Number(to - from) / 1e9).toFixed(1)
    t.comment(`sent and computed in ${seconds(began, computed)} s, fetched in ${seconds(computed, process.hrtime.bigint())} s`)
    t.equal(seen.size, RESULTS)
    await session.close()
  })
})
