import { readFileSync } from 'node:fs'
import t from 'tap'
import { DurableSession } from '../../client/index.ts'
import { asset } from '../../core/assets.ts'
import { Cluster, eventually } from '../e2e/cluster.ts'
import { isAlive, type Proc } from '../e2e/processes.ts'
import { registration, servicesFolder } from '../interop/services.ts'

t.setTimeout(180_000)

const KEYS = 6
/** Says which process answered, in its own time: that there is a middle to kill something in. */
const MODULE = 'export default { Echo: async ({ input }) => { await new Promise(resolve => setTimeout(resolve, 5)); return { EchoResult: process.pid + ":" + input } }, EchoData () {}, GenerateLoad () {} }'
const SERVICE = {
  'echo.mjs': MODULE,
  'Echo.wsdl': readFileSync(asset('examples/services/CcpEchoSvc/CcpEchoSvc.wsdl'), 'utf8'),
  'affinity.py': readFileSync(asset('examples/brokers/affinity.py'), 'utf8'),
  // As in examples/brokers/EchoAffinityProgram.config.
  'EchoAffinity.config': registration('<service assembly="echo.mjs" wsdl="Echo.wsdl" contract="IEchoSvc" maxConcurrentCalls="1"/>', '', '<loadBalancing serviceRequestPrefetchCount="0"/><customBroker executive="python3" arguments="affinity.py"/>'),
}

t.test('a custom broker in Python: affinity holds through kill -9 of the program and of the worker, and each request is answered once', async t => {
  const cluster = await Cluster.start(t, { services: servicesFolder(t, { Affinity: SERVICE }), cores: 3 })
  await using session = await DurableSession.create({ service: 'EchoAffinity', head: cluster.head, minUnits: 3, maxUnits: 3 })
  await eventually('three instances run', async () => (await cluster.session(session.id)).tasks.filter(({ state }) => state === 'Running').length === 3)
  const program = async (): Promise<Proc> => await eventually('the program runs', () => cluster.look().find(({ environment, commandLine }) => environment.includes(`CCP_JOBID=${session.id}\0`) && /^\S*python\S* affinity\.py$/.test(commandLine)))
  const client = session.client('c')
  const send = async (from: number, to: number): Promise<void> => { await Promise.all(Array.from({ length: to - from }, (_, i) => client.send('Echo', { input: String(from + i) }, { userData: `key${(from + i) % KEYS}:${from + i}` }))) }
  const processed = async (count: number): Promise<number> => await eventually(`${count} are processed`, async () => { const { processed } = (await cluster.session(session.id)).counters ?? { processed: 0 }; return processed >= count && processed })

  await send(0, 1000)
  await client.flush()
  t.ok(await processed(50) < 1000, 'struck in the middle')
  const first = await program()
  process.kill(first.pid, 'SIGKILL')
  const second = await eventually('another one runs', async () => { const one = await program(); return one.pid !== first.pid && one })
  t.ok(await processed(150) < 1000, 'struck in the middle again')
  await cluster.kill('worker', session.id)
  await eventually('its program has died with it', () => !isAlive(second))
  await send(1000, 1200)
  await client.endRequests()

  const times = new Map<string, number>()
  const homes = new Map<string, Set<string>>()
  for await (const response of client.responses({ timeoutMs: 120_000 })) {
    const [pid = '', input = ''] = (response.result() as { EchoResult: string }).EchoResult.split(':')
    const key = (response.userData ?? '').split(':')[0] as string
    times.set(input, (times.get(input) ?? 0) + 1)
    homes.set(key, (homes.get(key) ?? new Set()).add(pid))
  }
  t.equal(times.size, 1200, 'all are answered')
  t.same([...times].filter(([, n]) => n !== 1), [], 'each once')
  t.same([...homes.values()].map(pids => pids.size), Array(KEYS).fill(1), 'each key has one home')
  t.equal(new Set([...homes.values()].flatMap(pids => [...pids])).size, 3, 'and all instances have some')
  const third = await program()
  await session.close()
  await eventually('it ends with its session', () => !isAlive(third))
})
