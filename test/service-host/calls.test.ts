import t from 'tap'
import { loadService } from '../../service-host/service-loader.ts'
import type { Caller, Reply } from './caller.ts'
import { moduleFile, serve } from './serve.ts'
import { load } from '../wsdl/cases.ts'

const NS = 'http://tempuri.org/'
const action = (op: string): string => `${NS}ICalc/${op}`
const element = (op: string, inside = ''): string => `<${op} xmlns="${NS}">${inside}</${op}>`

/** Methods of the contract `calc` that a test does not care about. */
const REST = 'Add () {}, Echo () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Reset () {}, Now () {}'
const service = (methods: string, head = ''): string => `${head}\nexport default { ${REST}, ${methods} }`

t.test('host: answers in the version of the request, with the contract\'s reply action and RelatesTo', async t => {
  const host = await serve(t, service('Add: ({ a, b }) => ({ AddResult: a + b })'))
  const r12 = await host.call(12, action('Add'), element('Add', '<a>1</a><b>2</b>'))
  t.equal(r12.status, 200)
  t.match(r12.contentType, /^application\/soap\+xml/)
  t.match(r12.text, /<(\w+):Action[^>]*>http:\/\/tempuri\.org\/ICalc\/AddResponse<\/\1:Action>/)
  t.match(r12.text, /RelatesTo>urn:uuid:11111111-2222-3333-4444-555555555555</)
  t.match(r12.text, /AddResult>3</)
  const r11 = await host.call(11, action('Add'), element('Add', '<a>1</a><b>2</b>'))
  t.equal(r11.status, 200)
  t.match(r11.contentType, /^text\/xml/)
  t.match(r11.text, /AddResult>3</)
  t.same(host.lines, [], 'nothing to say')
})

t.test('host: SOAP 1.1 without an action is told by its body element', async t => {
  const host = await serve(t, service('Echo: ({ text }) => ({ EchoResult: text })'))
  t.match((await host.call(11, '', element('Echo', '<text>x</text>'))).text, /EchoResult>x</)
})

t.test('host: a class is made once, and its methods see this', async t => {
  const code = `export default class { #n = 40; Add () { return { AddResult: ++this.#n } } ${REST.replace('Add () {},', '').replaceAll('},', '}')} }`
  const host = await serve(t, code)
  await host.call(11, action('Add'), element('Add'))
  t.match((await host.call(11, action('Add'), element('Add'))).text, /AddResult>42</)
})

t.test('host: a module in node-soap\'s shape answers by callback, promise or value', async t => {
  const code = `export default { CalcService: { BasicHttpBinding_ICalc: {
    Add: (args, done) => { setImmediate(() => done({ AddResult: args.a })) }, Echo: async args => ({ EchoResult: args.text }), Big: args => ({ BigResult: args.v }),
    Sum () { throw { Fault: { Code: { Value: 'soap:Sender' }, Reason: { Text: 'no sums' } } } }, Prims () {}, Ping () {}, Reset () {}, Now () {} } } }`
  const host = await serve(t, code)
  t.match((await host.call(11, action('Add'), element('Add', '<a>7</a>'))).text, /AddResult>7</)
  t.match((await host.call(11, action('Echo'), element('Echo', '<text>p</text>'))).text, /EchoResult>p</)
  t.match((await host.call(11, action('Big'), element('Big', '<v>9007199254740993</v>'))).text, /BigResult>9007199254740993</)
  const fault = await host.call(12, action('Sum'), element('Sum'))
  t.equal(fault.status, 500)
  t.match(fault.text, /Value>\w+:Sender<.*no sums/s)
})

t.test('host: a node-soap module gets the headers, and its errors by callback are faults: an Error, or Fault in the words of either version, detail and all', async t => {
  const code = `export default { CalcService: { BasicHttpBinding_ICalc: {
    Add: (args, done) => { setImmediate(() => done(new Error('secret'))) },
    Echo: (args, done) => done({ Fault: { faultcode: 'soap:Client', faultstring: 'bad \\u001b text', detail: { row: 7, why: ['a<b', null] } } }),
    Big: (args, done) => done({ Fault: { Code: { Value: 'soap:Receiver' }, Reason: { Text: { _: 'later' } }, Detail: { 'no name': 1 } } }),
    Sum: async () => { throw { Fault: { Code: { Value: 'soap:Sender' }, Reason: { Text: 'no sums' } } } },
    Now: (args, done, headers) => done(null, { NowResult: new Date(headers.Clock.at[1]) }), Prims () {}, Ping () {}, Reset () {} } } }`
  const host = await serve(t, code)
  const fault = async (op: string): Promise<string> => {
    const { status, text } = await host.call(12, action(op), element(op))
    t.equal(status, 500, op)
    return text
  }
  const plain = await fault('Add')
  t.match(plain, /InternalServiceFault/)
  t.notMatch(plain, /secret/, 'an Error is no fault of the contract')
  t.match(await fault('Echo'), /Value>\w+:Sender<.*bad \ufffd text.*Detail><row xmlns="">7<\/row><why xmlns="">a&lt;b<\/why><why xmlns=""><\/why></s)
  t.match(await fault('Big'), /has "no name", which is no name of an element/)
  t.match(await fault('Sum'), /Value>\w+:Sender<.*no sums/s)
  const headers = '<c:Clock xmlns:c="urn:c"><c:at>x</c:at><c:at>2026-01-02T03:04:05Z</c:at></c:Clock>'
  t.match((await host.call(12, action('Now'), element('Now'), headers)).text, /NowResult>2026-01-02T03:04:05/)
})

t.test('host: a message of megabytes is cut before it goes into a fault, and the fault says so', async t => {
  const code = service(`Add () { throw Error('x'.repeat(3e6)) }, Echo () { throw new SoapFault({ reason: 'y'.repeat(3e6) }) }, Big () { throw new RetryOperationError('z'.repeat(3e6)) },
    Sum () { throw { Fault: { faultcode: 'Server', faultstring: 'w'.repeat(3e6) } } }`, 'import { SoapFault, RetryOperationError } from SERVICE')
  const host = await serve(t, code, { details: true })
  for (const [op, most] of [['Add', 400_000], ['Echo', 70_000], ['Big', 140_000], ['Sum', 70_000]] as const) {
    const { status, text } = await host.call(12, action(op), element(op))
    t.equal(status, 500)
    t.match(text, /\[cut: 3000000 characters, the limit is 65536\]/, op)
    t.ok(text.length < most, `${op}: ${text.length} characters`)
  }
})

t.test('host: a reply larger than the broker takes is a fault that names the limit, not a reply that is lost', async t => {
  const host = await serve(t, service('Echo: ({ text }) => ({ EchoResult: text.repeat(3000) })'), { maxMessageSize: 20_000 })
  const { status, text } = await host.call(12, action('Echo'), element('Echo', '<text>0123456789</text>'))
  t.equal(status, 500)
  t.match(text, /:Receiver<.*the reply of Echo has \d+ bytes, the limit is 20000 \(maxMessageSize\)/s)
  t.equal((await host.call(12, action('Echo'), element('Echo', '<text>x</text>'))).status, 200)
})

t.test('host: a one-way operation is answered 202 without a body, and its failure is only logged', async t => {
  const host = await serve(t, service('Ping () { throw Error(`lost`) }'))
  const reply = await host.call(11, action('Ping'), element('Ping', '<id>1</id>'))
  t.equal(reply.status, 202)
  t.equal(reply.text, '')
  t.equal(host.lines[0]?.[0], 'one-way call failed')
  t.match(host.lines[0]?.[1], { err: { message: 'lost' }, operation: 'Ping' })
})

t.test('host: a thrown error tells the client nothing, and the log everything', async t => {
  const host = await serve(t, service('Add () { throw Error(`secret table`) }'))
  for (const soap of [11, 12] as const) {
    const { status, text } = await host.call(soap, action('Add'), element('Add'))
    t.equal(status, 500)
    t.match(text, /InternalServiceFault/)
    t.notMatch(text, /secret table/)
  }
  t.match(host.lines[0]?.[1], { err: { message: 'secret table' } })
})

t.test('host: with includeExceptionDetailInFaults the client sees type, message and stack', async t => {
  const host = await serve(t, service('Add () { throw TypeError(`bad \\u0001 <row>`) }'), { details: true })
  const { text } = await host.call(12, action('Add'), element('Add'))
  t.match(text, /<ExceptionDetail xmlns="http:\/\/schemas\.datacontract\.org\/2004\/07\/System\.ServiceModel"/)
  t.match(text, /<Message>bad \ufffd &lt;row&gt;<\/Message><StackTrace>TypeError/)
  t.match(text, /<Type>TypeError<\/Type>/)
})

t.test('host: SoapFault and RetryOperationError reach the client as what they are', async t => {
  const code = service(`Add () { throw new SoapFault({ code: 'Sender', subcode: '{urn:x}Row', reason: 'row 7', detail: '<d xmlns="urn:d">7</d>' }) },
    Echo () { throw new RetryOperationError('busy here') }, Big () { throw new SoapFault({ reason: 'r', detail: '<open>' }) }`, 'import { SoapFault, RetryOperationError } from SERVICE')
  const host = await serve(t, code)
  const fault = await host.call(12, action('Add'), element('Add'))
  t.match(fault.text, /:Sender<.*:Row<.*row 7.*<d xmlns="urn:d">7<\/d>/s)
  const retry = await host.call(12, action('Echo'), element('Echo'))
  t.match(retry.text, /Action[^>]*>http:\/\/hpc\.microsoft\.com\/session\/RetryOperationError</)
  t.match(retry.text, /<lastFailedServiceId>1\.3<\/lastFailedServiceId><reason>busy here<\/reason>/)
  t.match((await host.call(12, action('Big'), element('Big'))).text, /\$xml is no self-contained XML/, 'a detail that would break the envelope is said, not sent')
})

t.test('host: a fault that the WSDL declares carries its action and typed detail', async t => {
  const code = `import { SoapFault } from SERVICE
    export default { Place () { throw { fault: 'OrderFaultFault', message: 'no stock', detail: { Code: 7, Reasons: { string: ['a', null] } } } },
      Cancel () { throw new SoapFault({ fault: 'OrderFaultFault', reason: 'too late', detail: { Code: 'x' } }) }, Find () { throw new SoapFault({ fault: 'OrderFaultFault', reason: 'r' }) }, Keys () {} }`
  const host = await serve(t, code, { wsdl: 'orders', form: 'split' })
  const { status, text } = await host.call(12, `${NS}IOrders/Place`, element('Place'))
  t.equal(status, 500)
  t.match(text, /Action[^>]*>http:\/\/tempuri\.org\/IOrders\/PlaceOrderFaultFault</)
  t.match(text, /:Code>7<\/\w+:Code>/)
  t.match(text, /no stock/)
  t.match((await host.call(12, `${NS}IOrders/Cancel`, element('Cancel'))).text, /\/OrderFault\/Code is wrong/, 'a detail that does not fit is said')
  t.match((await host.call(12, `${NS}IOrders/Find`, element('Find'))).text, /declares no fault OrderFaultFault/)
})

t.test('host: a reply that does not fit the contract becomes a fault that names the path', async t => {
  const host = await serve(t, service('Add: () => ({ AddResult: `seven` }), Big: () => ({ BigResult: 1n, More: 1 })'))
  t.match((await host.call(12, action('Add'), element('Add'))).text, /:Receiver<.*\/AddResponse\/AddResult is wrong: &quot;seven&quot; is not a valid int|\/AddResponse\/AddResult is wrong: "seven" is not a valid int/s)
  t.match((await host.call(12, action('Big'), element('Big'))).text, /\/BigResponse has More, which the contract does not know/)
  t.equal(host.lines[0]?.[0], 'reply does not match the contract')
})

const refused: Array<[what: string, status: number, says: RegExp, send: (host: Caller) => Promise<Reply>]> = [
  ['an unknown action', 500, /ActionNotSupported/, host => host.call(12, `${NS}ICalc/Divide`, element('Divide'))],
  ['an unknown body element without an action', 500, /body element \{http:\/\/tempuri\.org\/\}Divide/, host => host.call(11, '', element('Divide'))],
  ['another operation\'s element', 500, /Add takes \{http:\/\/tempuri\.org\/\}Add, not \{http:\/\/tempuri\.org\/\}Echo/, host => host.call(11, action('Add'), element('Echo'))],
  ['a wrong namespace', 500, /not \{urn:evil\}Add/, host => host.call(11, action('Add'), '<Add xmlns="urn:evil"/>')],
  ['a value of the wrong type', 500, /:(?:Client|Sender)<.*at \/Add\/a: (?:"|&quot;)x(?:"|&quot;) is not a valid int/s, host => host.call(11, action('Add'), element('Add', '<a>x</a>'))],
  ['a header that must be understood', 500, /MustUnderstand/, host => host.call(12, action('Add'), element('Add'), '<h:Lock s:mustUnderstand="1" xmlns:h="urn:h"/>')],
  ['an envelope that is not SOAP', 500, /VersionMismatch/, host => host.post('<Envelope xmlns="urn:soap13"><Body/></Envelope>', { 'content-type': 'text/xml' })],
  ['a document type', 400, /document type|DOCTYPE/i, host => host.post('<!DOCTYPE x [<!ENTITY e "1">]><x/>', { 'content-type': 'text/xml' })],
  ['nesting beyond maxDepth', 500, /maxDepth/, host => host.call(11, action('Add'), element('Add', '<a>'.repeat(5000) + '</a>'.repeat(5000)))],
  ['a message beyond maxMessageSize', 500, /maxMessageSize/, host => host.call(11, action('Echo'), element('Echo', `<text>${'x'.repeat(1_100_000)}</text>`))],
  ['plain text', 415, /./, host => host.post('hello', { 'content-type': 'text/plain' })],
]
t.test('host: what it refuses', async t => {
  const host = await serve(t, service('Add: () => ({ AddResult: 1 })'))
  for (const [what, status, says, send] of refused) {
    const reply = await send(host)
    t.equal(reply.status, status, `${what}: ${status}`)
    t.match(reply.text, says, `${what}: says why`)
  }
  t.match((await host.call(12, action('Add'), element('Add'))).text, /AddResult>1</, 'and goes on')
})

t.test('host: headers of WS-Addressing and HPC Pack may have mustUnderstand', async t => {
  const host = await serve(t, service('Add: (args, { userData }) => ({ AddResult: Number(userData) })'))
  const headers = '<a:To s:mustUnderstand="1" xmlns:a="http://www.w3.org/2005/08/addressing">net.tcp://other/</a:To><HPCServer2008_Broker_UserDataNS s:mustUnderstand="1" xmlns="http://www.microsoft.com/hpc">5</HPCServer2008_Broker_UserDataNS>'
  t.match((await host.call(12, action('Add'), element('Add'), headers)).text, /AddResult>5</)
})

t.test('host: no more calls at a time than it may, the others in order of arrival', async t => {
  const code = service('async Add ({ a }) { most = Math.max(most, ++now); order.push(a); await new Promise(r => setTimeout(r, 10)); now--; return {} }, Echo: () => ({ EchoResult: JSON.stringify({ most, order }) })', 'let now = 0, most = 0; const order = []')
  const host = await serve(t, code, { calls: 2 })
  await Promise.all(Array.from({ length: 9 }, (_, i) => host.call(11, action('Add'), element('Add', `<a>${i}</a>`))))
  const told = JSON.parse(/EchoResult>([^<]*)</.exec((await host.call(11, action('Echo'), element('Echo'))).text)?.[1]?.replaceAll('&quot;', '"') ?? '') as { most: number, order: number[] }
  t.equal(told.most, 2)
  t.equal(new Set(told.order).size, 9)
})

t.test('host: ?wsdl is one document with its own address', async t => {
  const host = await serve(t, service(''), { form: 'split' })
  const text = await (await fetch(`${host.url}?wsdl`)).text()
  t.match(text, `location="${host.url}"`)
  t.match(text, /<xs:element name="Add">/)
  t.notMatch(text, /schemaLocation/)
})

t.test('host: when its queue is full too, a call is sent back for another try', async t => {
  const code = service('Add: (args, { signal }) => new Promise(resolve => { resolvers.push(resolve) }), Echo: () => { for (const r of resolvers) r({}); return {} }', 'const resolvers = []')
  const host = await serve(t, code, { calls: 1, waiting: 1 })
  const started = [host.call(12, action('Add'), element('Add')), host.call(12, action('Add'), element('Add')), host.call(12, action('Add'), element('Add'))]
  const first = await Promise.race(started)
  t.equal(first.status, 500)
  t.match(first.text, /RetryOperationError/)
  t.match(first.text, /1 calls are in progress and 1 wait/)
  void host.host.exit()
  t.match((await Promise.race(started.map(async p => (await p).text).map(async p => (await p).includes('Service_Preempted') ? 'preempted' : new Promise(() => {})))), 'preempted', 'what waits is sent back when the host ends')
})

t.test('host: a caller that leaves while it waits costs no call, and one that leaves in its call is told to the service', async t => {
  const code = service('Add: ({ a }, { signal }) => { started.push(a); return new Promise(resolve => signal.addEventListener(`abort`, () => { started.push(`gone`); resolve({}) })) }, Echo: () => ({ EchoResult: JSON.stringify(started) })', 'const started = []')
  const host = await serve(t, code, { calls: 1 })
  const body = (a: number): string => `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${element('Add', `<a>${a}</a>`)}</s:Body></s:Envelope>`
  const post = (a: number, signal: AbortSignal): Promise<unknown> => fetch(host.url, { method: 'POST', body: body(a), headers: { 'content-type': 'text/xml' }, signal }).catch(() => 'left')
  const until = async (is: () => boolean): Promise<void> => { while (!is()) await new Promise(resolve => setImmediate(resolve)) }
  const [first, second] = [new AbortController(), new AbortController()]
  const one = post(1, first.signal)
  await until(() => host.host.callsInProgress === 1)
  const two = post(2, second.signal)
  await until(() => host.host.callsWaiting === 1)
  second.abort()
  await until(() => host.host.callsWaiting === 0)
  first.abort()
  t.same(await Promise.all([one, two]), ['left', 'left'])
  t.match((await host.call(11, action('Echo'), element('Echo'))).text, />\[1,(?:"|&quot;)gone(?:"|&quot;)\]</)
})

const { operations, services } = load('calc', 'flat')
const unloadable: Array<[what: string, code: string | undefined, says: RegExp]> = [
  ['no such module', undefined, /: assembly \/nowhere\/service\.mjs is not there$/],
  ['a package that is not there', 'import "no-such-package-here"', /service\S*\.mjs cannot be loaded: Error: Cannot find package 'no-such-package-here' imported from \S+$/],
  ['a module that throws', 'throw Error(`no licence`)', /cannot be loaded: Error: no licence\n {4}at file:/],
  ['a class whose constructor throws', 'export default class { constructor () { throw Error(`no table`) } }', /cannot be loaded: Error: no table/],
  ['a syntax error', 'export default {', /SyntaxError/],
  ['missing operations', 'export default { Add () {}, Echo: 7 }', /has no method Echo, Big, Sum, Prims, Ping, Reset, Now, which the contract ICalc asks for/],
  ['no class, no object', 'export default 7', /exports neither a class nor an object, but number/],
  ['a node-soap module for another port', 'export default { CalcService: { Other: { Add () {} } } }', /has no method Add/]
]
t.test('loader: what cannot be served is said before the host listens', async t => {
  for (const [what, code, says] of unloadable) {
    await t.rejects(loadService(code === undefined ? '/nowhere/service.mjs' : moduleFile(t, code), { services }, operations), { fault: 'Service_InitializeFailed', message: says }, what)
  }
})

t.test('loader: an operation may be called like a method that every object has', async t => {
  const named = operations.slice(0, 1).map(op => ({ ...op, name: 'toString' }))
  await t.rejects(loadService(moduleFile(t, 'export default {}'), { services }, named), { message: /has no method toString/ })
  const methods = await loadService(moduleFile(t, 'export default { toString: () => 5 }'), { services }, named)
  t.equal(methods.get('toString')?.({}, {} as never), 5)
})

t.test('loader: a module anywhere may import what is made for services, without installing it', async t => {
  const named = operations.slice(0, 1).map(op => ({ ...op, name: 'Add' }))
  const file = moduleFile(t, "import { RetryOperationError, SoapFault } from 'soa-broker/service'\nexport default { Add: () => [RetryOperationError.name, SoapFault.name] }")
  const methods = await loadService(file, { services }, named)
  t.same(methods.get('Add')?.({}, {} as never), ['RetryOperationError', 'SoapFault'])
})
