import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { silent } from '../../core/log.ts'
import type { HostCommand, HostExit } from '../../node-manager/host-process.ts'
import { NodeUnfit, Preparations, type NodeCommands } from '../../node-manager/preparations.ts'
import { socketsHere } from '../../node-manager/resources.ts'
import { ManualClock, settle } from '../clock.ts'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

const WELL: HostExit = { code: 0, signal: null, stderr: '' }
const commands: NodeCommands = { prepare: 'fetch', release: 'sweep', timeoutMs: 5000, env: {}, cwd: '/' }
const never = new AbortController().signal

/** Commands that end when the test says so; `said` is what was run and what became of it. */
function bench () {
  const clock = new ManualClock()
  const said: string[] = []
  const running: Array<{ end: (exit: HostExit) => void }> = []
  const run = ({ args }: HostCommand) => {
    said.push(String(args[1]))
    let end: (exit: HostExit) => void = () => {}
    const ended = new Promise<HostExit>(resolve => { end = resolve })
    running.push({ end })
    return { ended, terminate: () => { said.push('TERM') }, kill: () => { said.push('KILL'); end({ code: null, signal: 'SIGKILL', stderr: '' }) } }
  }
  const preparations = new Preparations({ run, clock, log: silent, changed: () => said.push('changed') })
  const end = async (exit = WELL): Promise<void> => { running.shift()?.end(exit); await settle() }
  return { preparations, clock, said, end }
}

t.test('preparations: the first task of a session waits for the one command, with all that come beside it; later ones do not wait', async t => {
  const { preparations, said, end } = bench()
  const ready: number[] = []
  for (const n of [1, 2]) void preparations.prepare('7', commands, never).then(() => ready.push(n))
  await settle()
  t.same([said, ready], [['fetch'], []])
  await end()
  t.same(ready, [1, 2])
  await preparations.prepare('7', commands, never)
  t.same(said, ['fetch'])
  t.same(preparations.sessions, ['7'])
})

t.test('preparations: the release runs when the session is over or the node drains, and no task of it is here', async t => {
  for (const isDraining of [false, true]) {
    const { preparations, said, end } = bench()
    const prepared = preparations.prepare('7', commands, never)
    await end()
    await prepared
    preparations.settle([], false, new Set())
    preparations.settle(['7'], isDraining, new Set(['7']))
    t.same(said, ['fetch'], 'not while a task runs')
    preparations.settle(isDraining ? [] : ['7'], isDraining, new Set())
    preparations.settle(['7'], isDraining, new Set())
    t.same(said, ['fetch', 'sweep'], 'once')
    const again = preparations.prepare('7', commands, never)
    await settle()
    t.same(said, ['fetch', 'sweep'], 'a task that comes meanwhile waits')
    await end()
    t.same(said, ['fetch', 'sweep', 'changed', 'fetch'], 'and the node is prepared anew')
    await end()
    await again
  }
})

t.test('preparations: a command that fails says how, and is tried again by the next task; a release that fails is told and waits for nobody', async t => {
  const { preparations, said, end } = bench()
  const failed = preparations.prepare('7', commands, never)
  const exit = { code: 3, signal: null, stderr: 'no space\n' }
  const refused = t.rejects(failed, { name: 'NodeUnfit', message: 'prepareNodeCommandLine ended with exit code 3', exit })
  await end(exit)
  await refused
  t.same(preparations.sessions, [])
  const second = preparations.prepare('7', commands, never)
  await end()
  await second
  preparations.settle(['7'], false, new Set())
  await end({ code: null, signal: 'SIGSEGV', stderr: '' })
  t.match(preparations.news, { releaseFailure: { sessionId: '7', why: 'releaseNodeCommandLine ended by SIGSEGV' } })
  t.same(said, ['fetch', 'fetch', 'sweep', 'changed'])
})

t.test('preparations: one that takes too long is ended, at last by SIGKILL', async t => {
  const { preparations, said, clock } = bench()
  const late = t.rejects(preparations.prepare('7', commands, never), { message: 'prepareNodeCommandLine did not end within 5000 ms (nodeCommandTimeoutMs)' })
  await clock.advance(5000)
  t.same(said, ['fetch', 'TERM'])
  await clock.advance(2000)
  await late
  t.same(said, ['fetch', 'TERM', 'KILL'])
})

t.test('preparations: it goes on while one task waits for it, and ends when the last is not wanted any more', async t => {
  const { preparations, said } = bench()
  const [a, b] = [new AbortController(), new AbortController()]
  const both = [preparations.prepare('7', commands, a.signal), preparations.prepare('7', commands, b.signal)].map(one => t.rejects(one, { message: 'canceled' }))
  a.abort(new Error('canceled'))
  await settle()
  t.same(said, ['fetch'])
  b.abort(new Error('canceled'))
  await Promise.all(both)
  t.same(said, ['fetch', 'TERM'])
  t.same(preparations.sessions, [])
})

t.test('preparations: a node that leaves releases what it prepared, for a moment at most', async t => {
  const { preparations, said, clock, end } = bench()
  const prepared = preparations.prepare('7', { ...commands, timeoutMs: 1e6 }, never)
  await end()
  await prepared
  const closing = preparations.close()
  await clock.advance(12_000)
  await closing
  t.same(said, ['fetch', 'sweep', 'TERM', 'KILL', 'changed'])
})

t.test('preparations: nothing to do, nothing done; only a release to do, and the task need not wait', async t => {
  const { preparations, said } = bench()
  await preparations.prepare('7', { ...commands, prepare: '', release: '' }, never)
  t.same(preparations.sessions, [])
  await preparations.prepare('8', { ...commands, prepare: '' }, never)
  t.same([said, preparations.sessions], [[], ['8']])
  t.ok(new NodeUnfit('why', WELL).exit)
})

t.test('resources: sockets as the kernel counts them, 1 where it does not say', async t => {
  const cpu = (id: string): { topology: { physical_package_id: string } } => ({ topology: { physical_package_id: `${id}\n` } })
  t.equal(socketsHere(t.testdir({ cpu0: cpu('0'), cpu1: cpu('0'), cpu2: cpu('1'), cpufreq: {} })), 2)
  t.equal(socketsHere('/nowhere'), 1)
})

let sessions = process.pid * 100 + 60
const newSession = (): string => String(++sessions)

t.test('node commands on a node', needsRedis, async t => {
  const grid = await openGrid(t)
  const log = join(grid.dir, 'commands')
  const said = async (): Promise<string[]> => (await readFile(log, 'utf8').catch(() => '')).split('\n').filter(line => line !== '')
  await grid.script('Listen', LISTENER, `prepareNodeCommandLine="echo prepare $CCP_JOBID $FROM_SERVICE $CCP_TASKINSTANCEID &gt;&gt; ${log}" releaseNodeCommandLine="echo release $CCP_JOBID &gt;&gt; ${log}"`)
  await grid.script('Unfit', LISTENER, `prepareNodeCommandLine="echo no licence on this node &gt;&amp;2; exit 3" releaseNodeCommandLine="echo never &gt;&gt; ${log}"`)
  await grid.script('Messy', LISTENER, 'releaseNodeCommandLine="echo cannot sweep &gt;&amp;2; exit 4"')
  const first = await grid.node('n1', 4)

  t.test('node commands: a node manager that was killed has released nothing, and the next one prepares again', async t => {
    const id = newSession()
    await grid.demand(id, 'Listen', { target: 1 })
    const before = await grid.until(id, ({ state }) => state === 'Running')
    first.child.kill('SIGKILL')
    await first.exited
    await grid.node('n1', 4)
    await grid.until(id, task => task.state === 'Running' && task.id !== before.id)
    t.same(await said(), [`prepare ${id} yes`, `prepare ${id} yes`])
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await said()).length > 2)
    await writeFile(log, '')
  })

  t.test('node commands: once before the first task and once after the last of a session that is over, in its hosts\' environment', async t => {
    const id = newSession()
    await grid.demand(id, 'Listen', { target: 2 })
    await grid.until(id, ({ state }) => state === 'Running')
    await eventually(async () => (await grid.tasks(id)).filter(({ state }) => state === 'Running').length === 2)
    t.same(await said(), [`prepare ${id} yes`])
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await said()).length > 1)
    t.same(await said(), [`prepare ${id} yes`, `release ${id}`])
    t.same(await processesOf(id), [])
  })

  t.test('node commands: where the node cannot be prepared no host is started, and the task says why', async t => {
    const id = newSession()
    await grid.demand(id, 'Unfit', { target: 1 })
    t.match(await grid.until(id, ({ state }) => state === 'Failed'), { node: 'n1', exit: { code: 3, why: 'prepareNodeCommandLine ended with exit code 3', stderr: 'no licence on this node\n', isNodeUnfit: true } })
    await grid.board.remove(id, { forget: true })
  })

  t.test('node commands: a release that fails is shown with its node', async t => {
    const id = newSession()
    await grid.demand(id, 'Messy', { target: 1 })
    await grid.until(id, ({ state }) => state === 'Running')
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await grid.store.nodes()).some(({ releaseFailure }) => releaseFailure?.sessionId === id))
    t.match(await grid.store.nodes(), [{ releaseFailure: { why: 'releaseNodeCommandLine ended with exit code 4', stderr: 'cannot sweep\n' } }])
  })

  t.test('node commands: a drained node ends empty and is released although the session goes on; a node that leaves is released too', async t => {
    await writeFile(log, '')
    const id = newSession()
    await grid.demand(id, 'Listen', { target: 1 })
    const task = await grid.until(id, ({ state }) => state === 'Running')
    await grid.store.setDraining('n1', true)
    t.match(await grid.until(id, ({ state }) => state === 'Finishing'), { id: task.id })
    await grid.demand(id, 'Listen', { target: 1, leaving: [task.id] }) // as its broker does, once nothing is in hand
    await grid.until(id, ({ id, state }) => id === task.id && state === 'Canceled')
    await eventually(async () => (await said()).length > 1)
    t.match(await grid.store.nodes(), [{ state: 'Drained', tasks: 0 }])
    const leaving = await grid.node('n2', 1)
    await grid.until(id, ({ node, state }) => node === 'n2' && state === 'Running')
    leaving.child.kill('SIGTERM')
    t.equal(await leaving.exited, 0)
    t.same(await said(), [`prepare ${id} yes`, `release ${id}`, `prepare ${id} yes`, `release ${id}`])
    await grid.board.remove(id, { forget: true })
  })
})
