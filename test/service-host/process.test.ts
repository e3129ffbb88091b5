import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { HOST_EXITS } from '../../core/host-exits.ts'
import { readHostSpec } from '../../service-host/host-spec.ts'
import { startHost } from './process.ts'

const NS = 'http://tempuri.org/'
const action = (op: string): string => `${NS}ICalc/${op}`
const element = (op: string, inside = ''): string => `<${op} xmlns="${NS}">${inside}</${op}>`
const REST = 'Add () {}, Echo () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Reset () {}, Now () {}'
const service = (methods: string, head = ''): string => `${head}\nexport default { ${REST}, ${methods} }`

t.test('host: a promise rejected later is a fault, one that nobody waits for is a line in the log, and the process lives on', async t => {
  const methods = 'Add: () => new Promise((_, no) => setTimeout(no, 100, new Error(\'late\'))), Now () { void Promise.reject(new Error(\'nobody waits\')); return {} }, Echo: ({ text }) => ({ EchoResult: text })'
  const host = await (await startHost(t, { code: service(methods) })).ready()
  t.notOk(existsSync(host.specFile), 'its spec is read once and gone')
  t.equal((await host.call(11, action('Add'), element('Add'))).status, 500)
  t.equal((await host.call(11, action('Now'), element('Now'))).status, 200)
  await host.says('nobody waits')
  t.match((await host.call(11, action('Echo'), element('Echo', '<text>alive</text>'))).text, /alive/)
})

t.test('host: SIGTERM during a call: it is answered with the preemption header, a new one gets Service_Preempted, handlers run, exit 0', async t => {
  const code = service(`async Add (args, { onExiting, logger }) {
      logger.warn('in the call')
      onExiting(async () => { logger.warn('cleaning up'); await new Promise(r => setTimeout(r, 30)) })
      await new Promise(r => { go = r }); return { AddResult: 1 } },
    Echo () { setTimeout(go, 200); return {} }`, 'let go = () => {}')
  const host = await (await startHost(t, { code, spec: { maxConcurrentCalls: 2 } })).ready()
  const slow = host.call(12, action('Add'), element('Add'))
  await host.says('in the call')
  t.equal((await host.call(12, action('Echo'), element('Echo'))).status, 200)
  host.child.kill('SIGTERM')
  await host.says('cleaning up')
  const late = await host.call(12, action('Add'), element('Add'))
  t.equal(late.status, 500)
  t.match(late.text, /Service_Preempted/)
  t.match(late.text, /<Code>50331684<\/Code>/)
  t.match(late.text, />1<\/\w+:anyType>/, 'and how many calls are left')
  const reply = await slow
  t.equal(reply.status, 200)
  t.match(reply.text, /<preemption xmlns="http:\/\/www\.microsoft\.com\/hpc">0<\/preemption>/)
  t.equal(await host.exited, 0)
})

t.test('host: SIGTERM with nothing to do ends it at once with 0', async t => {
  const host = await (await startHost(t, { code: service('') })).ready()
  host.child.kill('SIGTERM')
  t.equal(await host.exited, 0)
})

t.test('host: a call that does not end within the grace is told by its signal, and the host ends with 255', async t => {
  const code = service('Add: (args, { signal, logger }) => { logger.warn(`in the call`); signal.onabort = () => process.stderr.write(`cut`); return new Promise(() => {}) }')
  const host = await (await startHost(t, { code, spec: { cancelGraceMs: 50 } })).ready()
  const call = host.call(11, action('Add'), element('Add')).catch(error => error as Error)
  await host.says('in the call')
  host.child.kill('SIGTERM')
  t.equal(await host.exited, HOST_EXITS.callsCut.code)
  t.match(host.stderr, /cut/)
  t.match(host.stderr, /grace is over/)
  await call
})

t.test('host: what keeps it from starting is one readable reason and a status that says which', async t => {
  const starts: Array<[what: string, options: Parameters<typeof startHost>[1], code: number, says: RegExp]> = [
    ['missing operations', { code: 'setInterval(() => {}, 1000); export default { Add () {} }' }, HOST_EXITS.contractUnmet.code, /has no method Echo, Big, Sum, Prims, Ping, Reset, Now, which the contract ICalc asks for/],
    ['an unknown contract', { code: service(''), spec: { contract: 'Contoso.IOther' } }, HOST_EXITS.contractUnknown.code, /no contract IOther, only ICalc/],
    ['no module', { module: '/nowhere/service.mjs' }, HOST_EXITS.moduleMissing.code, /assembly \/nowhere\/service\.mjs is not there\n/],
    ['a module that throws', { code: 'throw Error(`no licence`)' }, HOST_EXITS.moduleBroken.code, /service\.mjs cannot be loaded: Error: no licence/],
    ['a WSDL that is none', { code: service(''), wsdl: { file: 'x.wsdl', documents: { 'x.wsdl': '<html/>' } } }, HOST_EXITS.contractUnknown.code, /x\.wsdl/],
    ['an address that is not ours', { code: service(''), spec: { listenUrl: 'http://192.0.2.1:8080/', controllerUrl: 'http://192.0.2.1:8080/controller' } }, HOST_EXITS.notListening.code, /EADDRNOTAVAIL/],
    ['nothing said', { code: service(''), env: { SOA_HOST_SPEC: '' } }, HOST_EXITS.badSpec.code, /SOA_HOST_SPEC is not set/]
  ]
  await Promise.all(starts.map(async ([what, options, code, says]) => {
    const host = await startHost(t, options)
    t.equal(await host.exited, code, `${what}: exit ${code}`)
    t.match(host.stderr, says, `${what}: says why`)
    t.match(host.stderr, /^service host: /, `${what}: says who`)
  }))
})

t.test('host: an address in use is told by the exit code', async t => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const host = await startHost(t, { code: service(''), spec: { listenUrl: `http://127.0.0.1:${port}/`, controllerUrl: `http://127.0.0.1:${port}/controller` } })
  t.equal(await host.exited, 254)
  t.match(host.stderr, /EADDRINUSE/)
})

t.test('spec: a file that is missing, no JSON or not whole is refused in one line, and deleted', async t => {
  const dir = t.testdir({ bad: '{', short: JSON.stringify({ sessionId: '1' }), url: '' })
  t.throws(() => readHostSpec(join(dir, 'none')), { message: /SOA_HOST_SPEC .*none: ENOENT/ })
  t.throws(() => readHostSpec(join(dir, 'bad')), { message: /bad is no JSON/ })
  t.throws(() => readHostSpec(join(dir, 'short')), { message: /taskId is missing, it must be a string/ })
  const whole = {
    sessionId: '1',
    taskId: '1',
    listenUrl: 'net.tcp://x',
    controllerUrl: 'http://127.0.0.1:1/controller',
    service: 's',
    module: 'm',
    contract: '',
    wsdlFile: 'w',
    documents: {},
    maxConcurrentCalls: 0,
    maxMessageSize: 1,
    maxHeaderBytes: 1,
    maxDepth: 8,
    includeExceptionDetailInFaults: false,
    cancelGraceMs: 0,
    finishesCalls: true,
    serviceHostIdleTimeout: -1,
    serviceHangTimeout: -1
  }
  writeFileSync(join(dir, 'url'), JSON.stringify(whole))
  t.throws(() => readHostSpec(join(dir, 'url')), { message: /listenUrl is "net\.tcp:\/\/x", it must be an http:\/\/ URL/ })
  writeFileSync(join(dir, 'url'), JSON.stringify({ ...whole, listenUrl: 'http://127.0.0.1:1/', maxDepth: -1 }))
  t.throws(() => readHostSpec(join(dir, 'url')), { message: /maxDepth is -1, it must be a number from 0/ })
  t.same(readdirSync(dir), [])
})
