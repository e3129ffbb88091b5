import t from 'tap'
import { join } from 'node:path'
import { asset } from '../../core/assets.ts'
import { fakeHead, run } from './helpers.ts'

const example = (name: string): string => asset(`examples/services/${name}/${name}.config`)
const config = (service: string, rest = ''): string => `<configuration><microsoft.Hpc.Session.ServiceRegistration>${service}</microsoft.Hpc.Session.ServiceRegistration>${rest}</configuration>`
const wsdl = (binding = '', operation = '<w:operation name="Op"><w:input message="t:m"/><w:output message="t:m"/></w:operation>'): string => `<w:definitions name="W" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <w:types><xs:schema targetNamespace="urn:t"><xs:element name="a" type="xs:int"/></xs:schema></w:types><w:message name="m"><w:part name="p" element="t:a"/></w:message><w:portType name="P">${operation}</w:portType>${binding}</w:definitions>`
const encoded = '<w:binding name="B" type="t:P"><s:binding style="rpc" transport="http://schemas.xmlsoap.org/soap/http"/><w:operation name="Op"><w:input><s:body use="encoded"/></w:input></w:operation></w:binding>'

t.test('cli: service check says that a service can be added, what it has, and what has no effect', async t => {
  const { code, out, err } = await run(['service', 'check', example('CcpEchoSvc'), '--json'], { PATH: process.env.PATH ?? '' })
  t.strictSame([code, err], [0, ''])
  const said = JSON.parse(out) as { operations: unknown[] }
  t.match(said, { name: 'CcpEchoSvc', version: null, ok: true, problems: [], warnings: [], hostType: 'Standard', contract: 'IEchoSvc', module: 'loaded', wsdlFile: /CcpEchoSvc\.wsdl$/ })
  t.match(said.operations[0], { name: 'Echo', oneWay: false, faults: [] })
  const both = await run(['service', 'check', example('OptionPricer'), example('PrimeFactors')], { PATH: process.env.PATH ?? '' })
  t.match(both, { code: 0, err: '', out: /OptionPricer can be added \(its module loads, IOptionPricer with 1 operation\)\n.*PrimeFactors can be added \(an executable, IPrimeFactors with/ })
})

t.test('cli: a service of style rpc/literal can be added, and has types', async t => {
  const file = asset('test/interop/services/Depot.config')
  t.match(await run(['service', 'check', file], { PATH: process.env.PATH ?? '' }), { code: 0, err: '', out: 'Depot can be added (its module loads, IDepot with 7 operations)\n' })
  t.match(await run(['service', 'types', file]), { code: 0, err: '', out: /export interface IDepot \{\n {2}add: \{\n {4}args: \{\n {6}a: number\n {6}b: number/ })
})

t.test('cli: service check names what is wrong with a file (exit 1), and what is not supported here (exit 5)', async t => {
  const dir = t.testdir({
    'Good.config': config('<service assembly="good.mjs" architecture="X64"/>', '<surprise/>'),
    'Good.wsdl': wsdl(),
    'good.mjs': 'console.log("hello"); setInterval(() => {}, 1000)\nexport default { Op () {} }',
    'Value.config': config('<service assembly="good.mjs" maxConcurrentCalls="four"/>'),
    'NoWsdl.config': config('<service assembly="other.mjs"/>'),
    'Encoded.config': config('<service assembly="good.mjs" wsdl="encoded.wsdl"/>'),
    'encoded.wsdl': wsdl(encoded),
    'Contract.config': config('<service assembly="good.mjs" wsdl="Good.wsdl" contract="IOther"/>'),
    'Net.config': config('<service assembly="bin/Contoso.dll" wsdl="Good.wsdl"/>'),
    'Gone.config': config('<service assembly="gone.mjs" wsdl="Good.wsdl"/>'),
    'Method.config': config('<service assembly="method.mjs" wsdl="Good.wsdl"/>'),
    'method.mjs': 'export default { Other () {} }',
    'Exits.config': config('<service assembly="exits.mjs" wsdl="Good.wsdl"/>'),
    'exits.mjs': 'process.exit(3)',
    'Hangs.config': config('<service assembly="hangs.mjs" wsdl="Good.wsdl" serviceInitializationTimeout="200"/>'),
    'hangs.mjs': 'setInterval(() => {}, 1000); await new Promise(() => {})',
    'Broker.config': config('<service assembly="good.mjs" wsdl="Good.wsdl"/>', '<microsoft.Hpc.Broker><customBroker class="broker.mjs"/></microsoft.Hpc.Broker>'),
    'broker.mjs': 'export default class Nothing { onRequests () {} }',
    'Exe.config': config('<service wsdl="encoded.wsdl"/><host hostType="Customize" exeFileName="./not-here"/>'),
    'Data.config': config('<service/><host hostType="Customize" exeFileName="./good.mjs"/>'),
    'Script.config': config('<service/><host hostType="Customize" exeFileName="node" arguments="lib/gone.py --fast"/>'),
    'Elsewhere.config': config('<service wsdl="encoded.wsdl"/><host hostType="Customize" exeFileName="dotnetter" arguments="lib/gone.dll"/>'),
    'Program.config': config('<service assembly="good.mjs" wsdl="Good.wsdl"/>', '<microsoft.Hpc.Broker><customBroker executive="./affinity.sh"/></microsoft.Hpc.Broker>'),
    'Python.config': config('<service assembly="good.mjs" wsdl="Good.wsdl"/>', '<microsoft.Hpc.Broker><customBroker executive="python3" arguments="affinity.py"/></microsoft.Hpc.Broker>'),
    'Module.config': config('<service/><host hostType="Customize" exeFileName="node" arguments="-r something good.mjs"/>')
  })
  const cases: Array<[file: string, code: number, kind: 'file' | 'refused' | 'module', why: RegExp]> = [
    ['Value', 1, 'file', /service\/@maxConcurrentCalls: a whole number, 0 or more, not "four"/],
    ['NoWsdl', 1, 'file', /no WSDL: looked for/],
    ['Missing', 1, 'file', /^it does not exist$/],
    ['Encoded', 5, 'refused', /operation Op of binding \{urn:t\}B has use="encoded", which is not supported/],
    ['Contract', 5, 'refused', /it has no contract IOther, only P/],
    ['Net', 5, 'refused', /Contoso\.dll is a \.NET program/],
    ['Gone', 1, 'module', /^assembly \/\S*\/gone\.mjs is not there$/],
    ['Method', 1, 'module', /module .*method\.mjs has no method Op, which the contract P asks for/],
    ['Exits', 1, 'module', /module .*exits\.mjs ended its process while it was loaded \(exit code 3\)/],
    ['Broker', 1, 'module', /broker\.mjs: it has none of the hooks onSessionStart, onRequest/],
    ['Exe', 1, 'file', /^host\/@exeFileName: \/.*\/not-here does not exist$/],
    ['Data', 1, 'file', /^host\/@exeFileName: \/.*\/good\.mjs is no executable \(chmod \+x\)$/],
    ['Script', 1, 'file', /^host\/@exeFileName: node is to run \/.*\/lib\/gone\.py, which does not exist$/],
    ['Program', 1, 'file', /^customBroker\/@executive: \/.*\/affinity\.sh does not exist$/],
    ['Python', 1, 'file', /^customBroker\/@executive: python3 is to run \/.*\/affinity\.py, which does not exist$/],
    ['Hangs', 1, 'module', /module .*hangs\.mjs was not loaded within 200 ms \(serviceInitializationTimeout\)/]
  ]
  const env = { PATH: process.env.PATH ?? '' }
  for (const [file, code, kind, why] of cases) {
    const said = await run(['service', 'check', join(dir, `${file}.config`), '--json'], env)
    t.equal(said.code, code, `${file}: exit code`)
    t.match(JSON.parse(said.out), { ok: false, name: file, problems: [{ kind, why }] }, file)
  }
  t.match(await run(['service', 'check', join(dir, 'Gone.config'), '--no-module'], env), { code: 1, out: /Gone cannot be served\n {2}wrong: assembly \S+gone\.mjs is not there\n$/ }, 'without loading anything, and without a stack')
  t.match(await run(['service', 'check', join(dir, 'Good.wsdl')], env), { code: 1, err: '', out: new RegExp(`^${join(dir, 'Good.wsdl')} is no registration file\\n {2}wrong: a registration file is wanted, NAME.config or NAME_VERSION.config; did you mean Good.config\\?\\n$`) })
  const good = await run(['service', 'check', join(dir, 'Good.config')], env)
  t.match(good, { code: 0, err: 'hello\n', out: /Good can be added.*\n {2}warning: configuration\/surprise: unknown, ignored\n {2}warning: .*service\/@architecture: has no effect here: a host is this machine/s })
  t.match(await run(['service', 'check', join(dir, 'Method.config'), '--no-module'], env), { code: 0, out: /its module was not loaded/ })
  t.match(await run(['service', 'check', join(dir, 'Elsewhere.config')], env), { code: 0, out: /warning: WSDL .*encoded.*; the executable may know better.*\n {2}warning: host\/@exeFileName: dotnetter is not on the PATH of this machine; nodes need it/s })
  t.match(await run(['service', 'check', join(dir, 'Module.config')], env), { code: 0 }, 'what only the interpreter understands is left to it')
  const mixed = await run(['service', 'check', join(dir, 'Good.config'), join(dir, 'Encoded.config'), join(dir, 'Gone.config'), '--json'], env)
  t.match([mixed.code, JSON.parse(mixed.out)], [1, { items: [{ ok: true }, { ok: false }, { ok: false }] }], 'the worse code of several')
})

t.test('cli: service add warns of what check calls wrong on this machine, and registers it all the same', async t => {
  const dir = t.testdir({
    'Gone.config': config('<service assembly="gone.mjs" wsdl="Good.wsdl"/>'),
    'Good.wsdl': wsdl(),
    'Data.config': config('<service/><host hostType="Customize" exeFileName="./stats.py"/>'),
    'stats.py': '',
    'Script.config': config('<service/><host hostType="Customize" exeFileName="node" arguments="gone.py"/>', '<microsoft.Hpc.Broker><customBroker executive="./affinity.sh"/></microsoft.Hpc.Broker>')
  })
  const asked: string[] = []
  const { url, close } = await fakeHead(({ method, url }) => { asked.push(`${method} ${url}`); return { status: 200, json: {} } })
  t.teardown(close)
  const env = { PATH: process.env.PATH ?? '', SOA_HEAD: url }
  for (const [name, warnings] of [
    ['Gone', [`assembly ${join(dir, 'gone.mjs')} is not there on this machine; nodes need it`]],
    ['Data', [`host/@exeFileName: ${join(dir, 'stats.py')} is no executable (chmod +x) on this machine; nodes need it`]],
    ['Script', [`customBroker/@executive: ${join(dir, 'affinity.sh')} does not exist on this machine; heads need it`, `host/@exeFileName: node is to run ${join(dir, 'gone.py')}, which does not exist on this machine; nodes need it`]]
  ] as const) {
    const file = join(dir, `${name}.config`)
    const { code, out, err } = await run(['service', 'add', file, '--json'], env)
    t.strictSame([code, (JSON.parse(out) as { warnings: string[] }).warnings, err], [0, warnings, warnings.map(warning => `${file}: warning: ${warning}\n`).join('')], name)
  }
  t.equal(asked.length, 3)
  t.match(await run(['service', 'add', example('CcpEchoSvc')], env), { code: 0, err: '' }, 'nothing to say of what is there')
  t.match(await run(['service', 'add', join(dir, 'nothere.config')], env), { code: 4, out: '', err: `soa: ${join(dir, 'nothere.config')} does not exist\n` })
  t.match(await run(['service', 'add', join(dir, 'Good.wsdl')], env), { code: 1, err: /the name of a registration file ends in \.config/ })
  t.equal(asked.length, 4)
})

t.test('cli: service add refuses what could never be served, before anything is sent', async t => {
  const dir = t.testdir({ 'Encoded.config': config('<service assembly="good.mjs"/>'), 'Encoded.wsdl': wsdl(encoded) })
  t.match(await run(['service', 'add', join(dir, 'Encoded.config')], { SOA_HEAD: 'http://127.0.0.1:9' }), { code: 5, out: '', err: /ConfigFile_Invalid: .*which is not supported/ })
})

t.test('cli: service types is one document with --json', async t => {
  const { out } = await run(['service', 'types', example('SimpleService'), '--json'])
  t.match(JSON.parse(out), { file: example('SimpleService'), wsdlFile: /SimpleService\.wsdl$/, typescript: /export interface ISimpleService/ })
})
