import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DurableSession, RetryOperationError } from '../../client/index.ts'
import { Cluster, eventually } from './cluster.ts'

type Answer = Awaited<ReturnType<typeof run>>[number]

/** One session on one instance: sends these, ends, and reads all answers, by user data. */
async function run (session: DurableSession, ways: readonly string[]): Promise<Array<{ way: string, value: unknown, fault: Error | undefined }>> {
  const client = session.client('c')
  for (const way of ways) await client.send('Do', { what: way }, { userData: way })
  await client.endRequests()
  const found = []
  for await (const { userData, fault, result } of client.responses()) found.push({ way: String(userData), value: fault === undefined ? result() : undefined, fault })
  return found
}

async function cli (head: string, ...args: string[]): Promise<string> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../cli/entry.js', import.meta.url)), ...args], { env: { PATH: process.env.PATH, SOA_HEAD: head }, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
  const [code] = await once(child, 'close') as [number]
  if (code !== 0) throw new Error(`soa ${args.join(' ')}: ${code}`)
  return out
}

t.setTimeout(300_000)

t.test('services that misbehave harm nobody else, and it is told how they died', async t => {
  const cluster = await Cluster.start(t, { cores: 6, services: 'test/e2e/services' })
  const open = (service = 'Misbehave'): Promise<DurableSession> => DurableSession.create({ service, head: cluster.head, maxUnits: 1 })
  const tasks = async (id: string): Promise<Array<{ id: string, state: string, pid?: number, exit?: { code: number | null, signal: string | null, why: string, stderr: string } }>> =>
    await (await fetch(`${cluster.head}/api/v1/sessions/${id}/tasks`)).json() as never
  const pidOf = async (id: string): Promise<number | undefined> => (await tasks(id)).find(({ state }) => state === 'Running')?.pid

  const neighbour = await open()
  const before = await run(await open(), ['echo'])
  t.match(before, [{ value: { DoResult: 'well' } }])
  const watched = neighbour.client('watch')
  t.same(await watched.call('Do', { what: 'echo' }), { DoResult: 'well' })
  const neighbourPid = await pidOf(neighbour.id)

  const sessions = { segv: await open(), exit139: await open(), loop: await open(), living: await open(), unstartable: await open('Unstartable') }
  const answered = Promise.all([
    run(sessions.segv, ['segv', 'echo']),
    run(sessions.exit139, ['exit139', 'echo']),
    run(sessions.loop, ['loop', 'echo']),
    run(sessions.living, ['throw', 'rejectLater', 'rejectUnwatched', 'flood', 'megabytes', 'echo']),
    run(sessions.unstartable, ['echo']).then(() => 'answered', (error: unknown) => error)
  ])
  const over = new AbortController()
  void answered.finally(() => over.abort())
  let calls = 0
  for (; !over.signal.aborted && calls < 200; calls++) t.same(await watched.call('Do', { what: 'echo' }), { DoResult: 'well' }, 'the neighbour is served')
  const [segv, exit139, loop, living, unstartable] = await answered
  t.ok(calls > 0)
  t.equal(await pidOf(neighbour.id), neighbourPid, 'by the same process all the time')

  const of = (answers: Answer[], way: string): Answer => answers.find(answer => answer.way === way) as Answer
  const died: Array<[way: string, answers: Answer[], says: RegExp]> = [
    ['segv', segv, /service host: ended by SIGSEGV; its last lines on stderr:\nabout to touch what is not mine/],
    ['exit139', exit139, /service host: exit code 139 \(128 \+ SIGSEGV\); its last lines on stderr:\nabout to exit 139/],
    ['loop', loop, /service host: ended by SIGKILL; its last lines on stderr:\nabout to loop\nservice host: .*1500 ms \(serviceHangTimeout\)/s]
  ]
  for (const [way, answers, says] of died) {
    const { fault } = of(answers, way)
    t.ok(fault instanceof RetryOperationError, `${way}: it was tried again, in vain`)
    t.match(fault?.message, says, `${way}: the fault says how its host ended`)
    t.same(of(answers, 'echo').value, { DoResult: 'well' }, `${way}: another request of the same session is answered`)
  }
  t.match(of(living, 'throw').fault?.message, /internal error/)
  t.match(of(living, 'rejectLater').fault?.message, /internal error/)
  t.match(of(living, 'megabytes').fault?.message, /x{1000}… \[cut: 3000000 characters, the limit is 65536\]$/)
  for (const way of ['rejectUnwatched', 'flood', 'echo']) t.same(of(living, way).value, { DoResult: 'well' }, way)
  t.same((await tasks(sessions.living.id)).filter(({ exit }) => exit !== undefined), [], 'none of these has ended its host')

  t.match(unstartable, { name: /./, message: /exit code 102 .*module \S+unstartable\.mjs cannot be loaded: Error: no licence for this machine/s }, 'a service that cannot start is told to its reader')
  t.match((await tasks(sessions.unstartable.id)).find(({ exit }) => exit !== undefined), { state: 'Failed', exit: { code: 102, stderr: /unstartable\.mjs cannot be loaded: Error: no licence/ } }, 'and in REST')
  t.match(await cli(cluster.head, 'session', 'show', sessions.unstartable.id), /last failed host: exit code 102 \(the module cannot be loaded.*unstartable\.mjs cannot be loaded: Error: no licence/s, 'and on the command line')
  t.match(await tasks(sessions.segv.id), [{}, { state: 'Failed', exit: { signal: 'SIGSEGV', stderr: 'about to touch what is not mine\n' } }])
  t.match(await cli(cluster.head, 'session', 'show', sessions.segv.id), /host of task \S+ on \S+ ended, \S+: ended by SIGSEGV(?: \(× \d+\))?\n {2}about to touch what is not mine/)

  const idle = await DurableSession.create({ service: 'Misbehave', head: cluster.head, maxUnits: 1, settings: { unitIdleTimeoutMs: 300 } })
  await run(idle, ['echo'])
  const [{ id } = { id: '' }] = await tasks(idle.id)
  await eventually('an idle instance has left', async () => (await tasks(idle.id)).length === 0)
  await eventually('it was told to by its broker', () => cluster.log.split('\n').some(line => line.includes(`"taskId":"${id}"`) && line.includes('"isTaken":true') && line.includes('idle service instance told to exit')))
  await eventually('and its OnExiting ran', () => cluster.log.includes(`task ${id} puts its things away`))
  await Promise.all([neighbour, idle, ...Object.values(sessions)].map(session => session.close()))
})
