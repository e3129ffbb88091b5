import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { silent as log } from '../../core/log.ts'
import { WarmHosts, type WarmHost } from '../../node-manager/warm-hosts.ts'
import { ManualClock, settle } from '../clock.ts'
import { documents } from '../wsdl/cases.ts'
import { Caller } from '../service-host/caller.ts'
import { moduleFile } from '../service-host/serve.ts'
import { needsRedis } from '../redis-server.ts'
import { eventually, openGrid, type Node } from './grid.ts'

/** Hosts at the pool's door: they are warm and die when the test says so. */
function pool (size: number, env: Record<string, string> = {}) {
  const clock = new ManualClock()
  const spawned: Array<WarmHost & { warm (): void, die (): void }> = []
  const warm = new WarmHosts({
    size,
    env,
    clock,
    log,
    spawn () {
      let warm = (): void => {}
      let die = (): void => {}
      const ended = new Promise<{ code: number, signal: null, stderr: string }>(resolve => { die = () => resolve({ code: 1, signal: null, stderr: '' }) })
      const host = { pid: spawned.length + 1, warmed: new Promise<void>(resolve => { warm = resolve }), ended, kill: () => die(), warm, die }
      host.warm = warm
      host.die = die
      spawned.push(host)
      return host
    }
  })
  const pids = (): Array<number | undefined> => warm.hosts.map(({ pid }) => pid)
  return { warm, clock, spawned, pids }
}

t.test('warm hosts: they are started one after the other, and one that is taken is replaced when no host is being started', async t => {
  const { warm, clock, spawned, pids } = pool(2)
  warm.start()
  await clock.advance(0)
  t.same(pids(), [1], 'the second waits until the first has loaded all')
  spawned[0]?.warm()
  await clock.advance(0)
  t.same(pids(), [1, 2])
  const release = warm.hold()
  t.equal(warm.take({})?.pid, 1)
  spawned[1]?.warm()
  await clock.advance(60_000)
  t.same(pids(), [2], 'what is waited for has the processor')
  release()
  release()
  await clock.advance(299)
  t.same(pids(), [2])
  await clock.advance(1)
  t.same(pids(), [2, 3])
  await warm.close()
})

t.test('warm hosts: one that dies unused is replaced after a pause that grows, and no longer when one has come up', async t => {
  const { warm, clock, spawned } = pool(1)
  warm.start()
  await clock.advance(0)
  const pauses: number[] = []
  for (let n = 1; n <= 10; n++) {
    spawned.at(-1)?.die()
    await settle()
    let pause = 0
    for (; spawned.length === n; pause += 100) await clock.advance(100)
    pauses.push(pause)
  }
  t.same(pauses, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  spawned.at(-1)?.warm()
  await settle()
  spawned.at(-1)?.die()
  await settle()
  await clock.advance(200)
  t.equal(spawned.length, 12)
  await warm.close()
})

t.test('warm hosts: an environment that only a start can give gets none', async t => {
  const { warm, clock } = pool(1, { PATH: '/bin', TZ: 'UTC' })
  warm.start()
  await clock.advance(0)
  for (const env of [{ TZ: 'Asia/Tokyo' }, {}, { TZ: 'UTC', NODE_OPTIONS: '--max-old-space-size=64' }, { TZ: 'UTC', LD_PRELOAD: '/x.so' }]) t.equal(warm.take(env), undefined, JSON.stringify(env))
  t.ok(warm.take({ TZ: 'UTC', PATH: '/usr/bin', CCP_JOBID: '7' }))
  await warm.close()
})

t.test('warm hosts: a pool of none starts none, and a closed one neither', async t => {
  const none = pool(0)
  none.warm.start()
  none.warm.hold()()
  await none.clock.advance(10_000)
  t.equal(none.spawned.length, 0)
  t.equal(none.warm.take({}), undefined)
  const closed = pool(1)
  closed.warm.start()
  await closed.clock.advance(0)
  await closed.warm.close()
  await closed.clock.advance(60_000)
  t.equal(closed.spawned.length, 1)
})

/** Warm hosts of a node manager: by their command line. */
async function warmOf (node: Node): Promise<number[]> {
  const children = await readFile(`/proc/${node.pid}/task/${node.pid}/children`, 'latin1').catch(() => '')
  const found: number[] = []
  for (const pid of children.trim().split(' ')) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')
    // Not yet those of setpriv and the shell, which become the host.
    if (line.startsWith(process.execPath) && line.includes('--warm')) found.push(Number(pid))
  }
  return found
}

const isThere = async (pid: number): Promise<boolean> => await readFile(`/proc/${pid}/stat`, 'latin1').then(stat => !/\) [ZX] /.test(stat), () => false)

t.test('warm hosts of a node', needsRedis, async t => {
  const grid = await openGrid(t)
  const REST = 'Add () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Reset () {}, Now () {}'
  const code = `import { fstatSync, readFileSync, readdirSync } from 'node:fs'
    const stdin = readFileSync(0, 'utf8')
    const fds = readdirSync('/proc/self/fd').filter(fd => { try { return fstatSync(Number(fd)).isSocket() } catch { return false } }).length
    export default { ${REST}, Echo: () => ({ EchoResult: JSON.stringify({ pid: process.pid, env: process.env, cwd: process.cwd(), argv: process.argv.slice(2), stdin, fds, group: readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ')[2] }) }) }`
  const module = moduleFile(t, code)
  const config = `<configuration><microsoft.Hpc.Session.ServiceRegistration><service assembly="${module}"><environmentVariables><add name="FROM_SERVICE" value="yes"/></environmentVariables></service></microsoft.Hpc.Session.ServiceRegistration></configuration>`
  await grid.services.put({ name: 'Look', config, file: join(grid.dir, 'Look.config'), wsdlFile: 'flat.wsdl', documents: Object.fromEntries(documents('calc')), addedAt: new Date().toISOString() })
  let sessions = process.pid * 100 + 70

  /** Starts a task, and what it sees of its process. */
  const look = async (): Promise<{ seen: Record<string, unknown> & { env: Record<string, string>, pid: number }, session: string }> => {
    const session = String(++sessions)
    await grid.demand(session, 'Look', { environment: { FROM_SESSION: 'yes' } })
    const task = await grid.until(session, ({ state }) => state === 'Running' || state === 'Failed')
    t.equal(task.state, 'Running', task.exit?.stderr ?? '')
    const { text } = await new Caller((task.address ?? '').replace(/^net\.tcp:/, 'http:')).call(11, 'http://tempuri.org/ICalc/Echo', '<Echo xmlns="http://tempuri.org/"/>')
    const seen = JSON.parse(/EchoResult>([^<]*)</.exec(text)?.[1]?.replaceAll('&quot;', '"') ?? '{}') as { env: Record<string, string>, pid: number, group: string }
    t.equal(seen.pid, task.pid)
    t.equal(Number(seen.group), seen.pid, 'leader of its own process group')
    await grid.board.remove(session, { forget: true })
    return { seen, session }
  }

  t.test('a task gets one that is there, which then is as a cold host in all that its service sees, and is replaced', async t => {
    const cold = await grid.node('cold', 2, { SOA_WARM_HOSTS: '0' })
    const first = await look()
    t.same(await warmOf(cold), [], '0 turns it off')
    cold.child.kill('SIGTERM')
    await cold.exited
    const node = await grid.node('warm', 2, { SOA_WARM_HOSTS: '1' })
    await eventually(async () => (await warmOf(node)).length === 1)
    const [pid] = await warmOf(node)
    const second = await look()
    t.equal(second.seen.pid, pid)
    const own = ({ seen: { pid: _, group: __, env, ...rest } }: typeof first): object =>
      ({ ...rest, env: Object.fromEntries(Object.entries(env).filter(([name]) => !/^(CCP_(JOBID|TASK)|SOA_|_$|PWD$|OLDPWD$|SHLVL$)/.test(name))) })
    t.same(own(second), own(first))
    t.match(second.seen, { stdin: '', argv: [], env: { FROM_SERVICE: 'yes', FROM_SESSION: 'yes', CCP_JOBID: second.session } })
    t.equal(second.seen.env['SOA_HOST_SPEC'], undefined)

    await eventually(async () => { const now = await warmOf(node); return now.length === 1 && now[0] !== pid })
    const left = await warmOf(node)
    node.child.kill('SIGTERM')
    t.equal(await node.exited, 0)
    t.same(await Promise.all(left.map(isThere)), [false], 'another one was made, which ends with its node manager')
  })

  t.test('one that is killed is replaced; kill -9 of the node manager leaves none', async t => {
    const node = await grid.node('killed', 1, { SOA_WARM_HOSTS: '2' })
    await eventually(async () => (await warmOf(node)).length === 2)
    const [victim = 0] = await warmOf(node)
    process.kill(victim, 'SIGKILL')
    await eventually(async () => { const now = await warmOf(node); return now.length === 2 && !now.includes(victim) })
    const left = await warmOf(node)
    node.child.kill('SIGKILL')
    await eventually(async () => !(await Promise.all(left.map(isThere))).includes(true))
    t.pass('none is there')
  })
})
