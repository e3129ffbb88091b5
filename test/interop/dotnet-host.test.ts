import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { loadServiceFile } from '../../config/load-services.ts'
import { parseRegistration } from '../../config/service-registration.ts'
import { loadWsdl, operationsOf } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { Caller, SOAP, type Reply } from '../service-host/caller.ts'
import { cases, judge, vectors } from '../wsdl/cases.ts'
import { CLIENT, HOST, dotnet, scenario, skip } from './dotnet.ts'
import { registration, startDotnetHost } from './dotnet-host-process.ts'

t.setTimeout(240_000)

const DESK = asset('examples/services/TradeDesk/TradeDesk.config')
const NS = 'urn:soa-broker:trade-desk'
const action = (op: string): string => `${NS}/ITradeDesk/${op}`
const element = (op: string, inside = ''): string => `<${op} xmlns="${NS}">${inside}</${op}>`

t.test('.NET host sample: its registration and WSDL are read without a warning, and the WSDL is what the host prints', { skip }, async t => {
  const warnings: string[] = []
  const loaded = await loadServiceFile(DESK, { warn: warning => warnings.push(warning) })
  t.same(warnings, [])
  const { service, host } = parseRegistration(loaded.config, DESK)
  t.match(host, { hostType: 'Customize', exeFileName: 'dotnet' })
  const operations = operationsOf(loadWsdl(loaded.documents, loaded.wsdlFile as string), service.contract)
  t.same(operations.map(op => op.name), ['Echo', 'GenerateLoad', 'Book', 'Exposure', 'Flaky', 'Split', 'Note', 'Fail'])
  t.ok(operations.every(op => op.soap.length === 2), 'SOAP 1.1 and 1.2')
  const { out, code } = await dotnet(HOST, DESK, '--wsdl')
  t.equal(code, 0)
  t.equal(out, readFileSync(asset('examples/services/TradeDesk/TradeDesk.wsdl'), 'utf8'))
})

t.test('.NET host: values both ways by the schema of its own WSDL, in both versions of SOAP', { skip }, async t => {
  const host = await (await startDotnetHost(t, DESK)).ready()
  const served = await (await fetch(`${host.url}?wsdl`)).text()
  t.equal(served.replaceAll(host.url, 'http://localhost:8080/TradeDesk'), readFileSync(asset('examples/services/TradeDesk/TradeDesk.wsdl'), 'utf8'), '?wsdl has the caller\'s address')
  const wsdl = loadWsdl(new Map([['desk.wsdl', served]]), 'desk.wsdl')
  const call = async (soap: 11 | 12, operation: string, args: unknown): Promise<unknown> => {
    const op = operationsOf(wsdl, 'ITradeDesk').find(o => o.name === operation)
    const { text } = await host.call(soap, action(operation), writeElement(wsdl.schema, op?.inputElement as string, args))
    const [, body = ''] = /<s:Body[^>]*>([\s\S]*)<\/s:Body>/.exec(text) ?? []
    return readBody(wsdl.schema, body, [['s', SOAP[soap]]])?.value
  }
  const trade = {
    $type: '{urn:soa-broker:trade-desk:types}OptionTrade',
    Id: '0f0c1f0e-51a4-4b6f-9a0e-2f8a57d9b1aa',
    Side: 'Sell short',
    Counterparty: { Country: null, Name: 'A & B' },
    Legs: { Leg: [{ Price: '19.90', Quantity: 9007199254740993n, Symbol: 'A' }, { Price: '0', Quantity: -1n, Symbol: null }] },
    Traded: new Date('2026-11-30T09:30:00.123Z'),
    Settles: null,
    Discount: 0.1,
    Signature: Buffer.from([0, 255]),
    Valid: 'PT1H30M',
    Strike: '79228162514264337593543950335'
  }
  for (const soap of [11, 12] as const) {
    t.same(await call(soap, 'Echo', { input: 'hi' }), { EchoResult: `${hostname()}:hi` }, `SOAP ${soap}: Echo`)
    const booked = await call(soap, 'Book', { trade }) as { BookResult: Record<string, unknown> }
    t.same(booked.BookResult.Trade, trade, `SOAP ${soap}: a trade member by member`)
    t.equal(booked.BookResult.Total, '179243265169345760.70', `SOAP ${soap}: a decimal that no double holds`)
    t.same(await call(soap, 'Exposure', { trades: { Trade: [trade] } }).then(answer => Object.keys(answer as object)), ['ExposureResult'])
    t.same(await call(soap, 'Split', { amount: '10', parts: 3, rounding: 2 }), { SplitResult: '3.33', rounding: 3, rest: '0.01' }, `SOAP ${soap}: result, ref and out in WCF's order`)
  }
})

t.test('.NET host: its replies to the vectors\' requests are valid by the vectors\' schemas', { skip }, async t => {
  for (const [wsdl, contract] of [['calc', 'ICalc'], ['shapes', 'IShapes'], ['three', 'IThree']] as const) {
    const host = await (await startDotnetHost(t, registration(t, { assembly: CLIENT, contract }))).ready()
    const { check, close } = judge(wsdl)
    const operations = operationsOf(loadWsdl(new Map([['flat.wsdl', readFileSync(join(vectors, 'wsdl', wsdl, 'flat.wsdl'), 'utf8')]]), 'flat.wsdl'), contract)
    for (const { name, operation, messages } of cases().filter(one => one.wsdl === wsdl && !one.isReply)) {
      const op = operations.find(one => one.name === operation)
      for (const { file, body } of messages) {
        const reply = await host.call(file.endsWith('12.xml') ? 12 : 11, op?.action as string, body)
        if (op?.oneWay) { t.equal(reply.status, 202, name); continue }
        t.equal(reply.status, 200, `${file}: ${reply.text.slice(0, 300)}`)
        const [, inside = ''] = /<s:Body[^>]*?>([\s\S]*)<\/s:Body>/.exec(reply.text) ?? []
        t.equal(check(inside), undefined, `${file}: valid`)
      }
    }
    close()
    host.child.kill('SIGTERM')
    t.equal(await host.exited, 0)
  }
})

t.test('.NET host: .NET\'s own clients, every binding, the shapes of data contracts and of XmlSerializer', { skip }, async t => {
  for (const contract of ['Calc', 'Orders', 'Shapes', 'Three']) {
    await t.test(contract, async t => {
      const host = await (await startDotnetHost(t, registration(t, { assembly: CLIENT, contract: `I${contract}`, type: `Interop.${contract}Service` }))).ready()
      for (const { check, ok, why } of await scenario(contract.toLowerCase(), `${host.url}?wsdl`)) t.ok(ok, why === undefined ? check : `${check}: ${why}`)
    })
  }
})

t.test('.NET host: a service assembly compiled for .NET Framework, as HPC Pack has it, is served as it is', { skip }, async t => {
  const host = await (await startDotnetHost(t, registration(t, { assembly: asset('test/interop/dotnet/hpc-service/bin/HpcService.dll'), contract: 'Contoso.Risk.IRiskService', type: 'Contoso.Risk.RiskService' }))).ready()
  const call = async (inside: string): Promise<string> => (await host.call(11, 'http://tempuri.org/IRiskService/Evaluate', `<Evaluate xmlns="http://tempuri.org/">${inside}</Evaluate>`)).text
  const ARRAYS = 'http://schemas.microsoft.com/2003/10/Serialization/Arrays'
  t.match(await call(`<book>b</book><scenarios xmlns:b="${ARRAYS}"><b:int>1</b:int><b:int>2</b:int></scenarios>`), new RegExp(
    '<EvaluateResponse xmlns="http://tempuri\\.org/"><EvaluateResult xmlns:(\\w+)="http://schemas\\.datacontract\\.org/2004/07/Contoso\\.Risk"[^>]*><\\1:At>2026-11-30T08:00:00Z</\\1:At><\\1:Book>b</\\1:Book><\\1:ByScenario[^>]*>' +
    '<(\\w+):KeyValueOfstringdecimal><\\2:Key>s1</\\2:Key><\\2:Value>1\\.50</\\2:Value></\\2:KeyValueOfstringdecimal>'))
  t.match(await call('<book>b</book>'), /<RiskFault xmlns="http:\/\/schemas\.datacontract\.org\/2004\/07\/Contoso\.Risk"[^>]*><Why>no scenarios</)
})

const refused: Array<[what: string, status: number, says: RegExp, send: (host: Caller) => Promise<Reply>]> = [
  ['an unknown action', 500, /ActionNotSupported.*no operation has the action/s, host => host.call(12, action('Divide'), element('Divide'))],
  ['an unknown element without an action', 500, /ActionNotSupported/, host => host.call(11, '', element('Divide'))],
  ['another operation\'s element', 500, /DeserializationFailed.*expected: \{urn:soa-broker:trade-desk\}Echo/s, host => host.call(11, action('Echo'), element('Split'))],
  ['an empty body', 500, /the body is empty, expected: Echo/, host => host.call(12, action('Echo'), '')],
  ['a value of the wrong type', 500, /:Sender<.*\/Flaky\/tries: .*'x'/s, host => host.call(12, action('Flaky'), element('Flaky', '<tries>x</tries>'))],
  ['a header that must be understood', 500, /MustUnderstand.*\{urn:h\}Lock/s, host => host.call(12, action('Echo'), element('Echo'), '<h:Lock s:mustUnderstand="1" xmlns:h="urn:h"/>')],
  ['nesting beyond 128', 500, /depth|nest/i, host => host.call(11, action('Echo'), element('Echo', '<a>'.repeat(500) + '</a>'.repeat(500)))],
  ['a document type', 400, /no SOAP 1\.1 envelope/, host => host.post('<!DOCTYPE x [<!ENTITY e "1">]><x>&e;</x>', { 'content-type': 'text/xml' })],
  ['what is no envelope', 400, /no SOAP 1\.2 envelope/, host => host.post('<a/>', { 'content-type': 'application/soap+xml' })],
  ['plain text', 415, /content type text\/plain.*text\/xml/, host => host.post('hello', { 'content-type': 'text/plain' })],
  ['a message beyond maxMessageSize', 413, /has 2097\d\d\d bytes, the limit is 2097152 \(maxMessageSize\)/, host => host.call(11, action('Echo'), element('Echo', 'x'.repeat(2_097_152)))],
]
t.test('.NET host: what it refuses, and what it takes for granted', { skip }, async t => {
  const host = await (await startDotnetHost(t, DESK)).ready()
  for (const [what, status, says, send] of refused) {
    const reply = await send(host)
    t.equal(reply.status, status, `${what}: ${status}`)
    t.match(reply.text, says, `${what}: says why`)
  }
  t.match((await host.call(11, '', element('Echo', '<input>a</input>'))).text, /:a</, 'SOAP 1.1 without an action is told by its body')
  t.match((await host.call(12, action('Echo'), element('Echo', '<later>1</later><input>a</input><input>b</input>'))).text, /:a</, 'what is unknown or comes again is passed over, as WCF does')
  t.match((await host.call(12, action('Echo'), element('Echo', '<input>a</input>'), '<x:To s:mustUnderstand="1" xmlns:x="http://www.w3.org/2005/08/addressing">net.tcp://other/</x:To>')).text, /:a</)
  t.equal((await fetch(host.url.replace('_default', 'other'))).status, 404)
  t.equal((await fetch(host.url, { method: 'PUT', body: '' })).status, 405)
})

t.test('.NET host: faults', { skip }, async t => {
  const host = await (await startDotnetHost(t, DESK)).ready()
  for (const soap of [11, 12] as const) {
    const typed = await host.call(soap, action('Book'), element('Book', '<trade/>'))
    t.equal(typed.status, 500)
    t.match(typed.text, /<TradeRejected xmlns="urn:soa-broker:trade-desk:types"[^>]*><Code>1<\/Code><Rules[^>]*><\w+:string>a trade has a leg</)
    const retry = await host.call(soap, action('Flaky'), element('Flaky', `<request>${soap}</request><tries>2</tries>`))
    t.match(retry.text, /<RetryOperationError xmlns="http:\/\/hpc\.microsoft\.com\/session\/"[^>]*><lastFailedServiceId>7\.1<\/lastFailedServiceId><reason>try 1 of 2<\/reason><retryCount>0</)
    const silent = await host.call(soap, action('Fail'), element('Fail', '<why>secret</why>'))
    t.match(silent.text, /InternalServiceFault/)
    t.notMatch(silent.text, /secret/)
  }
  t.match((await host.call(12, action('Book'), element('Book', '<trade/>'))).text, /Action[^>]*>urn:soa-broker:trade-desk\/ITradeDesk\/BookTradeRejectedFault</)
  t.match((await host.call(12, action('Flaky'), element('Flaky', '<request>r</request><tries>2</tries>'))).text, /Action[^>]*>http:\/\/hpc\.microsoft\.com\/session\/RetryOperationError</)
  t.match(host.stderr, /Fail threw: System\.InvalidOperationException: secret/, 'the log has it')
  const telling = await (await startDotnetHost(t, registration(t, { assembly: asset('examples/services/TradeDesk/bin/TradeDesk.dll'), includeExceptionDetailInFaults: 'True' }))).ready()
  t.match((await telling.call(12, action('Fail'), element('Fail', '<why>secret</why>'))).text, /<ExceptionDetail xmlns="http:\/\/schemas\.datacontract\.org\/2004\/07\/System\.ServiceModel".*<Message>secret</s)
})

t.test('.NET host: no more calls at a time than it may, one at a time in each object of the class; a result that cannot be written is a fault', { skip }, async t => {
  const host = await (await startDotnetHost(t, registration(t, { assembly: CLIENT, contract: 'Interop.IGauge', maxConcurrentCalls: '3' }))).ready()
  const call = async (op: string, inside = ''): Promise<string> => (await host.call(11, `urn:interop/IGauge/${op}`, `<${op} xmlns="urn:interop">${inside}</${op}>`)).text
  await Promise.all(Array.from({ length: 9 }, () => call('Wait', '<ms>30</ms>')))
  const [made = 0, most, shared] = [...(await call('Read')).matchAll(/int>(\d+)</g)].map(match => Number(match[1]))
  t.equal(most, 3)
  t.equal(shared, 0)
  t.ok(made <= 3, `${made} objects`)
  const unwritable = await call('Unwritable')
  t.match(unwritable, /InternalServiceFault/, 'a result that cannot be written is a fault')
  t.match(host.stderr, /the result of urn:interop\/IGauge\/Unwritable cannot be written: .*UriBuilder/)
})

t.test('.NET host: SIGTERM lets the call in progress finish, sends others away, tells the service, and ends with 0', { skip }, async t => {
  const host = await (await startDotnetHost(t, DESK)).ready()
  const slow = host.call(12, action('GenerateLoad'), element('GenerateLoad', '<runMilliSeconds>1500</runMilliSeconds>'))
  await host.call(12, action('Echo'), element('Echo'))
  host.child.kill('SIGTERM')
  while (!host.stderr.includes('the desk closes')) await new Promise(resolve => setTimeout(resolve, 5))
  const late = await host.call(12, action('Echo'), element('Echo'))
  t.equal(late.status, 500)
  t.match(late.text, /<SessionFault xmlns="http:\/\/hpc\.microsoft\.com\/session\/"[^>]*><Code>50331684<\/Code>/)
  const { status, text } = await slow
  t.equal(status, 200)
  t.match(text, /<preemption xmlns="http:\/\/www\.microsoft\.com\/hpc">0</)
  t.match(text, /<\w+:TaskId>7\.1</)
  t.equal(await host.exited, 0)
})

t.test('.NET host: Exit at its controller is answered, tells the service, and ends it with 0; what else is said there is refused', { skip }, async t => {
  const host = await (await startDotnetHost(t, DESK)).ready()
  const controller = new Caller(`${host.url}/controller`)
  const exit = '<Exit xmlns="http://hpc.microsoft.com/hpcservicehost/"/>'
  t.match(await controller.call(12, 'http://hpc.microsoft.com/hpcservicehost/stay', exit), { status: 500, text: /ActionNotSupported/ })
  t.match(await controller.call(12, 'http://hpc.microsoft.com/hpcservicehost/exit', exit), { status: 202, text: '' })
  t.equal(await host.exited, 0)
  t.match(host.stderr, /the desk closes/)
})

t.test('.NET host: a grace period that is over cuts calls; a call that hangs ends the host with 253, and so does no call with 0', { skip }, async t => {
  const load = element('GenerateLoad', '<runMilliSeconds>600000</runMilliSeconds>')
  const cut = await (await startDotnetHost(t, DESK, { CCP_CANCEL_TASK_GRACEPERIOD: '0' })).ready()
  const canceled = cut.call(12, action('GenerateLoad'), load).catch(() => undefined)
  while (!(await cut.call(12, action('Echo'), element('Echo'))).text.includes('EchoResult')) { /* it runs */ }
  cut.child.kill('SIGTERM')
  t.equal(await cut.exited, 0)
  await canceled
  const hung = await (await startDotnetHost(t, DESK, { CCP_SERVICE_HANG_TIMEOUT: '200' })).ready()
  await hung.call(12, action('GenerateLoad'), load).catch(() => undefined)
  t.equal(await hung.exited, 253)
  t.match(hung.stderr, /no progress for 00:00:00\.2/)
  const idle = await (await startDotnetHost(t, DESK, { CCP_SERVICEHOST_TIMEOUT: '100' })).ready()
  await idle.call(12, action('Echo'), element('Echo'))
  t.equal(await idle.exited, 0)
})

const unstartable: Array<[what: string, code: number, says: RegExp, service: Record<string, string>]> = [
  ['no assembly', 12, /service\/@assembly is missing/, {}],
  ['an assembly that is not there', 1, /assembly .*nowhere\.dll is not there/, { assembly: 'nowhere.dll' }],
  ['an assembly that is none', 2, /Test\.config cannot be loaded/, { assembly: 'Test.config' }],
  ['a number that is none', 13, /@maxConcurrentCalls is "many", expected: a whole number from 0/, { assembly: CLIENT, maxConcurrentCalls: 'many' }],
  ['a contract that is not there', 3, /has no \[ServiceContract\] INope; it has .*Interop\.IGauge/, { assembly: CLIENT, contract: 'INope' }],
  ['a type that is not there', 4, /has no type Nope; what implements Interop\.IGauge is Interop\.GaugeService/, { assembly: CLIENT, contract: 'Interop.IGauge', type: 'Nope' }],
  ['a type that does not implement it', 6, /Interop\.CalcService implements|implements Interop\.IGauge/, { assembly: CLIENT, contract: 'Interop.IGauge', type: 'Interop.CalcService' }],
  ['a contract that nothing implements', 6, /nothing in .* implements Interop\.Refused\.INobody/, { assembly: CLIENT, contract: 'INobody' }],
  ['a duplex contract', 3, /IDuplex cannot be served: its callback contract IBack/, { assembly: CLIENT, contract: 'Interop.Refused.IDuplex' }],
  ['style rpc', 3, /IRpc\.Go cannot be served: style rpc/, { assembly: CLIENT, contract: 'IRpc' }],
  ['an untyped message', 3, /IRaw\.Go cannot be served: an unwrapped or untyped message/, { assembly: CLIENT, contract: 'IRaw' }],
  ['a message contract', 3, /IMessages\.Go cannot be served: message contract Letter/, { assembly: CLIENT, contract: 'IMessages' }],
  ['a stream', 3, /IStreams\.Go cannot be served: stream is a Stream/, { assembly: CLIENT, contract: 'IStreams' }],
  ['a Begin/End pair', 3, /Go cannot be served: a Begin\/End pair/, { assembly: CLIENT, contract: 'IPair' }],
  ['a type that no serializer knows', 3, /Unknowable/, { assembly: CLIENT, contract: 'IUnknowable' }],
  ['a constructor that throws', 20, /no licence/, { assembly: CLIENT, contract: 'IThrows' }],
]
t.test('.NET host: what it cannot serve ends it at once, with the reason on stderr', { skip }, async t => {
  for (const [what, code, says, service] of unstartable) {
    const host = await startDotnetHost(t, registration(t, service))
    t.equal(await Promise.race([host.exited, host.ready().then(() => 'it serves', () => host.exited)]), code, `${what}: exit code ${code}`)
    t.match(host.stderr, says, `${what}: says why`)
  }
  const args: Array<[number, RegExp, string[]]> = [[11, /gone\.config is not there/, ['gone.config']], [14, /unknown option --wsld/, [DESK, '--wsld']], [14, /more than one file/, [DESK, DESK]], [15, /CCP_SERVICE_CONFIG_FILENAME is not set/, []]]
  for (const [code, says, rest] of args) t.match(await dotnet(HOST, ...rest), { code, err: says })
})
