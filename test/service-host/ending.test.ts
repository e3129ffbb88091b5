/** How a host ends, and what ends it. */
import t from 'tap'
import { HOST_EXITS } from '../../core/host-exits.ts'
import { Caller } from './caller.ts'
import { startHost, type HostProcess } from './process.ts'

const NS = 'http://tempuri.org/'
const action = (op: string): string => `${NS}ICalc/${op}`
const element = (op: string, inside = ''): string => `<${op} xmlns="${NS}">${inside}</${op}>`
const REST = 'Add () {}, Echo () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Reset () {}, Now () {}'
const service = (methods: string, head = ''): string => `${head}\nexport default { ${REST}, ${methods} }`
const EXIT = { action: 'http://hpc.microsoft.com/hpcservicehost/exit', body: '<Exit xmlns="http://hpc.microsoft.com/hpcservicehost/"/>' }
const controllerOf = (host: HostProcess): Caller => new Caller(`${host.url}/controller`)

t.test('host: Exit at its controller is answered 202, handlers of calls and of the module get the grace, exit 0', async t => {
  const code = service('Add: (args, { onExiting }) => { onExiting(() => { process.stderr.write(`call handler\\n`) }); return { AddResult: 1 } }', `import { onExiting } from SERVICE
    onExiting(async () => { await new Promise(r => setTimeout(r, 20)); process.stderr.write('module handler\\n') })
    onExiting(() => { throw Error('broken handler') })`)
  const host = await (await startHost(t, { code })).ready()
  await host.call(12, action('Add'), element('Add'))
  const reply = await controllerOf(host).call(12, EXIT.action, EXIT.body)
  t.equal(reply.status, 202)
  t.equal(reply.text, '')
  t.equal(await host.exited, HOST_EXITS.asAsked.code)
  for (const said of ['call handler', 'module handler', 'broken handler']) t.match(host.stderr, said)
})

t.test('host: its controller serves Exit alone, and the service no Exit', async t => {
  const host = await (await startHost(t, { code: service('Add: () => ({ AddResult: 1 })') })).ready()
  t.match((await controllerOf(host).call(12, action('Add'), element('Add'))).text, /ActionNotSupported/)
  t.match((await host.call(12, EXIT.action, EXIT.body)).text, /ActionNotSupported/)
  t.match((await host.call(12, action('Add'), element('Add'))).text, /AddResult>1</)
  t.equal((await controllerOf(host).call(11, EXIT.action, EXIT.body)).status, 202, 'SOAP 1.1 too')
  t.equal(await host.exited, 0)
})

t.test('host: with a controller of another port both are served', async t => {
  const { freePort } = await import('./process.ts')
  const controllerUrl = `http://127.0.0.1:${await freePort()}/7/1/_defaultEndpoint/controller`
  const host = await (await startHost(t, { code: service('Add: () => ({ AddResult: 1 })'), spec: { controllerUrl } })).ready()
  t.match((await host.call(12, action('Add'), element('Add'))).text, /AddResult>1</)
  t.equal((await controllerOf(host).call(12, EXIT.action, EXIT.body)).status, 404)
  t.equal((await new Caller(controllerUrl).call(12, EXIT.action, EXIT.body)).status, 202)
  t.equal(await host.exited, 0)
})

t.test('host: no call for serviceHostIdleTimeout after the first: exit 0', async t => {
  const host = await (await startHost(t, { code: service('Add: () => ({ AddResult: 1 })'), spec: { serviceHostIdleTimeout: 50 } })).ready()
  t.equal((await host.call(12, action('Add'), element('Add'))).status, 200)
  t.equal(await host.exited, HOST_EXITS.asAsked.code)
  t.match(host.stderr, /no call for so long: the host ends/)
})

t.test('host: a call that makes no progress for serviceHangTimeout: exit 253, and stderr says which', async t => {
  const host = await (await startHost(t, { code: service('Add: () => new Promise(() => {})'), spec: { serviceHangTimeout: 50 } })).ready()
  const call = host.call(12, action('Add'), element('Add')).catch(() => 'cut')
  t.equal(await host.exited, HOST_EXITS.hung.code)
  t.match(host.stderr, /service host: Add urn:uuid:\S+ made no progress for 50 ms \(serviceHangTimeout\)/)
  t.equal(await call, 'cut')
})

t.test('host: a service that keeps the processor is found too, and killed', async t => {
  const host = await (await startHost(t, { code: service('Add: () => { for (;;); }'), spec: { serviceHangTimeout: 50 } })).ready()
  const call = host.call(12, action('Add'), element('Add')).catch(() => 'cut')
  t.equal(await host.exited, 'SIGKILL')
  t.match(host.stderr, /keeps the processor: 1 calls in hand have made no progress for 50 ms \(serviceHangTimeout\)/)
  t.equal(await call, 'cut')
})

t.test('host: without message-level preemption SIGTERM cuts calls at once, handlers still get the grace: exit 255', async t => {
  const code = service('Add: (args, { signal, logger, onExiting }) => { onExiting(() => new Promise(r => setTimeout(r, 20))); signal.onabort = () => process.stderr.write(`cut\\n`); logger.warn(`in the call`); return new Promise(() => {}) }')
  const host = await (await startHost(t, { code, spec: { finishesCalls: false } })).ready()
  const call = host.call(12, action('Add'), element('Add')).catch(() => 'cut')
  await host.says('in the call')
  host.child.kill('SIGTERM')
  t.equal(await host.exited, HOST_EXITS.callsCut.code)
  t.match(host.stderr, /^cut$/m)
  t.notMatch(host.stderr, /grace is over/)
  t.equal(await call, 'cut')
})

t.test('host: an exception that nobody catches ends it with 1 and its stack on stderr', async t => {
  const host = await (await startHost(t, { code: service('Add: () => { setTimeout(() => { throw Error(`late and loud`) }); return new Promise(() => {}) }') })).ready()
  const call = host.call(12, action('Add'), element('Add')).catch(() => 'cut')
  t.equal(await host.exited, HOST_EXITS.uncaught.code)
  t.match(host.stderr, /Error: late and loud\n\s+at /)
  await call
})
