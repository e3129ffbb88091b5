import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { loadServiceFile } from '../../config/load-services.ts'
import { parseRegistration } from '../../config/service-registration.ts'
import { loadWsdl, operationsOf } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { Caller } from './caller.ts'
import { freePort, startHost } from './process.ts'

/** The registration file as the node manager sees it, and the value side of its contract. */
async function sample (name: string) {
  const file = asset(`examples/services/${name}/${name}.config`)
  const warnings: string[] = []
  const loaded = await loadServiceFile(file, { warn: warning => warnings.push(warning) })
  const registration = parseRegistration(loaded.config, file)
  const wsdl = loadWsdl(loaded.documents, loaded.wsdlFile as string)
  const operations = operationsOf(wsdl, registration.service.contract)
  const call = async (to: Caller, soap: 11 | 12, operation: string, args: unknown): Promise<unknown> => {
    const op = operations.find(o => o.name === operation)
    if (!op?.inputElement) throw new Error(`no operation ${operation}`)
    const { text, status } = await to.call(soap, op.action, writeElement(wsdl.schema, op.inputElement, args))
    const [, body = ''] = /<(?:\w+:)?Body[^>]*>([\s\S]*)<\/(?:\w+:)?Body>/.exec(text) ?? []
    return status === 200 ? readBody(wsdl.schema, body, [['s', soap === 11 ? 'http://schemas.xmlsoap.org/soap/envelope/' : 'http://www.w3.org/2003/05/soap-envelope']])?.value : text
  }
  return { file, warnings, loaded, registration, operations, call }
}

type Sample = Awaited<ReturnType<typeof sample>>
const start = async (t: Parameters<typeof startHost>[0], { loaded, registration: { service } }: Sample, env: Record<string, string> = {}) => await (await startHost(t, {
  env,
  module: service.assembly,
  wsdl: { file: loaded.wsdlFile as string, documents: { ...loaded.documents } },
  spec: { contract: service.contract, includeExceptionDetailInFaults: service.includeExceptionDetailInFaults, maxConcurrentCalls: service.maxConcurrentCalls }
})).ready()

for (const name of ['CcpEchoSvc', 'SimpleService', 'OptionPricer', 'PrimeFactors']) {
  t.test(`sample ${name}: its registration and WSDL are read without a warning`, async t => {
    const { warnings, operations } = await sample(name)
    t.same(warnings, [])
    t.ok(operations.length > 0)
    t.ok(operations.every(o => o.soap.length === 2), 'SOAP 1.1 and 1.2')
  })
}

t.test('sample PrimeFactors: an exception that nobody meant is a fault with its type and message, and its traceback goes to stderr', async t => {
  const script = `import prime_factors as service
def broken(number):
    raise KeyError('x' * 5000)
service.factors = broken
status, _, text = service.answer(b'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><Factor xmlns="urn:soa-broker:prime-factors"><number>12</number></Factor></s:Body></s:Envelope>')
print(status, text)`
  const { status, stdout, stderr } = spawnSync('python3', ['-c', script], { encoding: 'utf8', cwd: asset('examples/services/PrimeFactors'), env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } })
  t.equal(status, 0, stderr.slice(-500))
  t.match(stdout, /^500 .*<faultcode>s:Server<\/faultcode><faultstring>KeyError: 'xxx/)
  t.ok(stdout.length < 2500, `${stdout.length} characters`)
  t.match(stderr, /^Traceback \(most recent call last\):\n[^]*in broken\n[^]*KeyError: 'x{5000}'/)
})

t.test('sample CcpEchoSvc: echoes with the machine\'s name, has load and no common data', async t => {
  const service = await sample('CcpEchoSvc')
  // The largest that there is: the contract's TaskId is an int, and a task's own id is more than that.
  const host = await start(t, service, { CCP_TASKSYSTEMID: '2147483647' })
  t.same(await service.call(host, 12, 'Echo', { input: 'hi' }), { EchoResult: `${hostname()}:hi` })
  t.match(await service.call(host, 11, 'EchoData', { dataClientId: 'x' }), /common data/)
  const load = await service.call(host, 12, 'GenerateLoad', { runMilliSeconds: 5, dummyData: Buffer.alloc(9), fileData: null }) as { GenerateLoadResult: { StartTime: Date, EndTime: Date, TaskId: number } }
  t.ok(load.GenerateLoadResult.EndTime.getTime() - load.GenerateLoadResult.StartTime.getTime() >= 5)
  t.equal(load.GenerateLoadResult.TaskId, 2_147_483_647)
})

t.test('sample SimpleService: takes the envelope of the seed and answers a number below max', async t => {
  const host = await start(t, await sample('SimpleService'))
  const { status, text } = await host.post(readFileSync(asset('test/wire/seed-generate-request.xml'), 'utf8'), { 'content-type': 'application/soap+xml; charset=utf-8' })
  t.equal(status, 200)
  const n = Number(/GenerateResult>(\d+)</.exec(text)?.[1])
  t.ok(n >= 0 && n < 10000, `${n}`)
})

t.test('sample OptionPricer: the price is right within five standard errors, the same for a seed, and a bad option is a typed fault', async t => {
  const service = await sample('OptionPricer')
  const host = await start(t, service)
  type Quote = { PriceResult: { price: number, standardError: number, taskId: string, instance: string } }
  const option = { spot: 100, strike: 105, rate: 0.02, volatility: 0.25, years: 1, isCall: true, seed: 42 }
  const { PriceResult: call } = await service.call(host, 12, 'Price', option) as Quote
  // Black–Scholes, by tables: call 8.700, put 11.621
  t.ok(Math.abs(call.price - 8.7) < 5 * call.standardError + 0.001, `${call.price} ± ${call.standardError}`)
  const { PriceResult: put } = await service.call(host, 11, 'Price', { ...option, isCall: false }) as Quote
  t.ok(Math.abs(put.price - 11.621) < 5 * put.standardError + 0.001, `${put.price} ± ${put.standardError}`)
  t.same((await service.call(host, 11, 'Price', option) as Quote).PriceResult, call)
  t.equal(call.taskId, '1.3')
  t.equal(call.instance, `1.3:${host.child.pid}`)
  const fault = await service.call(host, 12, 'Price', { ...option, volatility: -1 })
  t.match(fault, /:Sender<.*InvalidOption.*:field>volatility<.*:value>-1</s)
})

t.test('book of options: 2,000 rows, made by the script beside it', async t => {
  const csv = readFileSync(asset('examples/options/options.csv'), 'utf8').trim().split('\n')
  t.equal(csv.shift(), 'spot,strike,rate,volatility,years,type,seed')
  t.equal(csv.length, 2000)
  for (const row of csv) if (!/^[\d.]+,[\d.]+,[\d.]+,[\d.]+,[\d.]+,(call|put),\d+$/.test(row)) t.fail(row)
})

t.test('sample PrimeFactors: a Python program that answers in both versions, refuses what is bad, and ends by SIGTERM', async t => {
  const service = await sample('PrimeFactors')
  t.equal(service.registration.host.hostType, 'Customize')
  const url = `http://127.0.0.1:${await freePort()}/9/2/_defaultEndpoint`
  const child = spawn(service.registration.host.exeFileName, [], { env: { PATH: process.env.PATH, SOA_LISTEN_URL: url }, stdio: ['ignore', 'ignore', 'inherit'] })
  const exited = once(child, 'exit')
  t.teardown(async () => { child.kill('SIGKILL'); await exited })
  const host = new Caller(url)
  while (await fetch(url).then(() => false, () => child.exitCode === null)) await new Promise(resolve => setImmediate(resolve))

  t.same(await service.call(host, 11, 'Factor', { number: 9007199254740993n }), { FactorResult: { long: [3n, 107n, 28059810762433n] } })
  t.same(await service.call(host, 12, 'Factor', { number: 1 }), { FactorResult: {} })
  const twelve = await host.call(12, service.operations[0]?.action as string, '<Factor xmlns="urn:soa-broker:prime-factors"><number>12</number></Factor>')
  t.match(twelve.text, /RelatesTo[^>]*>urn:uuid:11111111-2222-3333-4444-555555555555</)
  t.match(twelve.contentType, /soap\+xml/)
  t.match(await service.call(host, 11, 'Factor', { number: -5 }), /faultcode>s:Client<.*number must be from 1/s)
  t.match(await service.call(host, 12, 'Factor', {}), /s:Sender<.*number is missing/s)
  t.match((await host.call(12, 'x', '<Other/>')).text, /there is no operation that takes Other/)
  t.match((await host.call(12, 'x', '<Factor/>', '<h:L s:mustUnderstand="1" xmlns:h="urn:h"/>')).text, /s:MustUnderstand</)
  const dtd = await host.post('<!DOCTYPE x [<!ENTITY e "1">]><x>&e;</x>', { 'content-type': 'text/xml' })
  t.equal(dtd.status, 400)
  t.match(dtd.text, /document type is not accepted/)
  t.equal((await host.post('<a>'.repeat(9) + 'x', { 'content-type': 'text/xml' })).status, 500)
  t.match((await host.post(`<a>${'x'.repeat(70000)}</a>`, { 'content-type': 'text/xml' })).text, /up to 65536 bytes/)

  // A prime near 2^52 takes long enough for the signal to come in between; were it answered before, the test would hold too.
  const slow = service.call(host, 12, 'Factor', { number: 4503599627370449n })
  await service.call(host, 12, 'Factor', { number: 2 })
  child.kill('SIGTERM')
  t.same(await slow, { FactorResult: { long: [4503599627370449n] } }, 'what is in progress is answered')
  t.same(await exited, [0, null])
})
