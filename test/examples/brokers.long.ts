import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DurableSession, Session, type BrokerClient } from '../../client/index.ts'
import { findServiceFiles, loadServiceFile } from '../../config/load-services.ts'
import { asset } from '../../core/assets.ts'
import { Cluster, eventually } from '../e2e/cluster.ts'
import { registration, servicesFolder } from '../interop/services.ts'

t.setTimeout(180_000)

const BROKERS = asset('examples/brokers')
/** Says which process answered, and the how manieth answer of it that was. */
const MODULE = 'let answers = 0\nexport default { Echo: ({ input }) => ({ EchoResult: [process.pid, ++answers, input].join(":") }), EchoData () {}, GenerateLoad () {} }'
const ONE_AT_A_TIME = '<loadBalancing serviceRequestPrefetchCount="0"/>'
const service = (broker: string): Record<string, string> => ({
  'echo.mjs': MODULE,
  'Echo.wsdl': readFileSync(asset('examples/services/CcpEchoSvc/CcpEchoSvc.wsdl'), 'utf8'),
  [`Echo${broker}.config`]: registration('<service assembly="echo.mjs" wsdl="Echo.wsdl" contract="IEchoSvc" maxConcurrentCalls="1"/>', '', `${ONE_AT_A_TIME}<customBroker class="${join(BROKERS, `${broker.toLowerCase()}.mjs`)}"/>`)
})

const answersOf = async (client: BrokerClient): Promise<Array<{ userData: string, pid: string, answer: string, input: string }>> => {
  const found = []
  for await (const response of client.responses()) {
    const [pid = '', answer = '', ...input] = (response.result() as { EchoResult: string }).EchoResult.split(':')
    found.push({ userData: response.userData ?? '', pid, answer, input: input.join(':') })
  }
  return found
}

t.test('sample brokers: their registration files load without a warning, and their classes are there', async t => {
  for (const file of await findServiceFiles(BROKERS)) {
    const warnings: string[] = []
    await loadServiceFile(file, { env: {}, warn: warning => warnings.push(warning) })
    t.same(warnings, [], file)
  }
})

t.test('sample brokers: the one in docs/custom-brokers.md is the sample', async t => {
  const [, shown] = /```js\n\/\/ affinity\.mjs\n([\s\S]*?)```/.exec(readFileSync(asset('docs/custom-brokers.md'), 'utf8')) ?? []
  t.equal(shown, readFileSync(join(BROKERS, 'affinity.mjs'), 'utf8').replace(/^\/\/.*\n/, ''))
})

t.test('sample brokers: each does what it says, in a durable session, also after kill -9 of the broker worker', async t => {
  const cluster = await Cluster.start(t, { services: servicesFolder(t, Object.fromEntries(['Affinity', 'Lanes', 'Repeats', 'Scatter'].map(name => [name, service(name)]))), cores: 3 })
  const open = async (name: string, units: number): Promise<DurableSession> => await DurableSession.create({ service: `Echo${name}`, head: cluster.head, minUnits: units, maxUnits: units })

  await t.test('affinity: a key stays with its instance', async t => {
    await using session = await open('Affinity', 3)
    await eventually('three instances run', async () => (await cluster.session(session.id)).tasks.filter(({ state }) => state === 'Running').length === 3)
    const client = session.client('c')
    const send = async (from: number, to: number): Promise<void> => { for (let n = from; n < to; n++) await client.send('Echo', { input: String(n) }, { userData: `key${n % 6}:${n}` }) }
    await send(0, 60)
    await client.flush()
    await cluster.kill('worker', session.id)
    await send(60, 120)
    await client.endRequests()
    const answers = await answersOf(client)
    t.same(answers.map(({ input }) => Number(input)).sort((a, b) => a - b), Array.from({ length: 120 }, (_, n) => n), 'each once')
    const homes = new Map<string, Set<string>>()
    for (const { userData, pid } of answers) {
      const key = userData.split(':')[0] as string
      homes.set(key, (homes.get(key) ?? new Set()).add(pid))
    }
    t.same([...homes.values()].map(pids => pids.size), [1, 1, 1, 1, 1, 1])
    t.ok(new Set([...homes.values()].flatMap(pids => [...pids])).size > 1, 'and not all with one')
    await session.close()
  })

  await t.test('lanes: what is urgent overtakes what waits', async t => {
    await using session = await open('Lanes', 1)
    const client = session.client('c')
    for (let n = 0; n < 40; n++) await client.send('Echo', { input: String(n) }, { userData: n < 35 ? 'batch' : 'urgent' })
    await client.endRequests()
    const order = (await answersOf(client)).map(({ userData }) => userData)
    t.equal(order.length, 40)
    t.ok(order.lastIndexOf('urgent') < 8, `urgent ones at ${order.flatMap((lane, at) => lane === 'urgent' ? [at] : []).join(', ')} of 40`)
    await session.close()
  })

  await t.test('repeats: the same question gets the same answer without an instance, and the next broker knows it too', async t => {
    await using session = await open('Repeats', 1)
    const ask = async (id: string): Promise<string[]> => {
      const client = session.client(id)
      for (const input of ['a', 'b', 'a']) await client.send('Echo', { input }, { userData: input })
      await client.endRequests()
      return (await answersOf(client)).map(({ pid, answer, input }) => `${pid} ${answer} ${input}`).sort()
    }
    const first = await ask('one')
    const again = await ask('two')
    t.same(new Set(again).size, 2, 'a is one answer, b another')
    t.ok(again.every(answer => first.includes(answer)), `${again.join(', ')} are among ${first.join(', ')}`)
    await cluster.kill('worker', session.id)
    t.same(await ask('three'), again)
    await session.close()
  })

  await t.test('scatter: one response of all parts, stored or in the same exchange', async t => {
    await using session = await open('Scatter', 3)
    const client = session.client('c')
    await client.send('Echo', { input: 'x,y,z' }, { userData: 'u' })
    await client.send('Echo', { input: 'alone' }, { userData: 'v' })
    await client.endRequests()
    const results: string[] = []
    for await (const response of client.responses()) results.push((response.result() as { EchoResult: string }).EchoResult.replace(/\d+:\d+:/g, ''))
    t.same(results.sort(), ['alone', 'x y z'])
    const { EchoResult } = await session.client('d').call('Echo', { input: 'p,q' }) as { EchoResult: string }
    t.equal(EchoResult.replace(/\d+:\d+:/g, ''), 'p q')
    t.match((await cluster.session(session.id)).counters, { total: 3, processed: 3 })
    await session.close()
  })
})

t.test('a hook that loops for ever: its session fails and says which hook, and nobody else notices', async t => {
  const spinning = service('Affinity')
  const services = servicesFolder(t, {
    Spin: {
      'echo.mjs': spinning['echo.mjs'] as string,
      'Echo.wsdl': spinning['Echo.wsdl'] as string,
      'spin.mjs': 'export default class Spinner { onRequest ({ userData }) { if (userData === \'spin\') for (;;); } }',
      'Spin.config': registration('<service assembly="echo.mjs" wsdl="Echo.wsdl" contract="IEchoSvc"/>', '', '<monitor hookTimeoutMs="1000"/><customBroker class="spin.mjs"/>'),
      'Plain.config': registration('<service assembly="echo.mjs" wsdl="Echo.wsdl" contract="IEchoSvc"/>')
    }
  })
  const cluster = await Cluster.start(t, { services, cores: 2 })
  await using other = await Session.create({ service: 'Plain', head: cluster.head })
  const otherPid = (await cluster.session(other.id)).brokerPid
  await using session = await DurableSession.create({ service: 'Spin', head: cluster.head })
  t.not((await cluster.session(session.id)).brokerPid, otherPid, 'it has a worker of its own')
  const client = session.client('c')
  await client.send('Echo', { input: 'fine' }, { userData: 'fine' })
  await client.flush()
  await eventually('it is answered', async () => (await cluster.session(session.id)).counters?.processed === 1)
  await t.rejects(client.send('Echo', { input: 'x' }, { userData: 'spin' }).then(() => client.endRequests()), /custom broker Spinner: onRequest did not return within 1000 ms \(hookTimeoutMs\)/)
  const seen = await cluster.session(session.id)
  t.equal(seen.state, 'Failed')
  const kept: string[] = []
  await t.rejects((async () => { for await (const response of client.responses({ from: 'begin' })) kept.push(response.userData ?? '') })(), /custom broker Spinner/)
  t.same(kept, ['fine'], 'what was stored before is read, then why there is no more')
  t.match(await other.client('o').call('Echo', { input: 'still here' }), { EchoResult: /still here$/ })
  t.equal((await cluster.session(other.id)).brokerPid, otherPid)
  await session.close()
})
