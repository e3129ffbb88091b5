import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { DurableSession, Session, type BrokerClient, type SessionOptions } from '../../client/index.ts'
import { Cluster, eventually } from './cluster.ts'

t.setTimeout(300_000)

const ENTRY = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))

interface NodeFacts { id: string, state: string, busy: number, tasks: number }

t.test('elastic sessions on a grid of four slots', async t => {
  const cluster = await Cluster.start(t, { services: 'test/e2e/elastic', flags: ['--node-id', 'n1', '--groups', 'day,night', '--labels', 'zone=a'] })
  const dir = mkdtempSync(join(tmpdir(), 'soa-elastic-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  let logs = 0
  const newLog = (): string => join(dir, `${++logs}`)
  const lines = (log: string): string[] => existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(line => line !== '') : []
  const times = (log: string, word: string): number[] => [...counted(lines(log).filter(line => line.startsWith(word)))].map(([, n]) => n)
  const nodes = async (): Promise<NodeFacts[]> => ((await (await fetch(`${cluster.head}/api/v1/nodes`)).json()) as { items: NodeFacts[] }).items
  const node = async (id: string): Promise<NodeFacts | undefined> => (await nodes()).find(node => node.id === id)
  const running = async (session: Session): Promise<string[]> => (await cluster.session(session.id)).tasks.filter(({ state }) => state === 'Running').map(({ id }) => id).sort()
  const options = (more: Partial<SessionOptions> = {}): SessionOptions => ({ service: 'Patient', head: cluster.head, ...more })
  const send = async (client: BrokerClient, count: number, ms: number, log: string): Promise<void> => {
    await Promise.all(Array.from({ length: count }, (_, id) => client.send('Do', { what: JSON.stringify({ id, ms, log }) }, { userData: String(id) })))
    await client.endRequests()
  }
  const results = async (client: BrokerClient): Promise<string[]> => {
    const found: string[] = []
    for await (const response of client.responses()) found.push((response.result() as { DoResult: string }).DoResult)
    return found
  }
  const all = (count: number): string[] => Array.from({ length: count }, (_, id) => String(id)).sort()

  await t.test('a higher session takes instances of a lower one: calls in hand finish, those that wait go back uncounted, each runs once, and the lower one gets its instances back', async t => {
    const [lowLog, highLog] = [newLog(), newLog()]
    // A single counted try would be one too many.
    await using low = await DurableSession.create(options({ priority: 1000, settings: { messageResendLimit: 0 } }))
    const slow = low.client('slow')
    await send(slow, 80, 300, lowLog)
    const collected = results(slow)
    await eventually('the lower one has all slots', async () => (await running(low)).length === 4)
    const before = await running(low)
    const high = await Session.create(options({ priority: 3000, minUnits: 3, settings: { growByPreemption: false } }))
    const fast = high.client('fast')
    await send(fast, 20, 100, highLog)
    t.same((await results(fast)).sort(), all(20))
    const during = await running(low)
    t.equal(during.length, 1, 'the lower one has what the other did not need')
    t.ok(before.includes(during[0] as string), 'an instance that it had')
    await high.close()
    await eventually('the lower one has all slots again', async () => (await running(low)).length === 4)
    t.same((await collected).sort(), all(80), 'and all its responses, once each')
    for (const [log, count] of [[lowLog, 80], [highLog, 20]] as const) {
      t.same(times(log, 'begin'), Array.from({ length: count }, () => 1), 'every call began once')
      t.same(times(log, 'end'), Array.from({ length: count }, () => 1), 'and ended once')
    }
    await low.close()
  })

  await t.test('a higher session grows by preemption, down to the lower one\'s minimum, unless that may not be preempted', async t => {
    for (const canPreempt of [true, false]) {
      const low = await Session.create(options({ priority: 1000, minUnits: 1, maxUnits: 3, canPreempt }))
      const slow = low.client()
      const log = newLog()
      await send(slow, 40, 200, log)
      await eventually('three instances work', async () => (await running(low)).length === 3)
      const high = await Session.create(options({ priority: 3000 }))
      const fast = high.client()
      await send(fast, 30, 200, newLog())
      await eventually('the higher one has what it can get', async () => (await running(high)).length === (canPreempt ? 3 : 1))
      t.equal((await running(low)).length, canPreempt ? 1 : 3)
      const [slowly, quickly] = await Promise.all([results(slow), results(fast)])
      t.same([slowly.sort(), quickly.sort()], [all(40), all(30)])
      t.same(times(log, 'begin'), Array.from({ length: 40 }, () => 1))
      await Promise.all([low.close(), high.close()])
    }
  })

  await t.test('without message-level preemption calls are given up at once and run again, and past the grace too; every response comes once', async t => {
    for (const [service, settings] of [['Abrupt', {}], ['Patient', { taskCancelGracePeriod: 300 }]] as const) {
      const log = newLog()
      const low = await DurableSession.create(options({ service, priority: 1000, settings: { serviceRequestPrefetchCount: 0, ...settings } }))
      const slow = low.client()
      await send(slow, 4, 4000, log)
      await eventually('four calls have begun', () => lines(log).length === 4)
      const high = await Session.create(options({ priority: 3000, minUnits: 4 }))
      const fast = high.client()
      await send(fast, 4, 10, newLog())
      t.equal((await results(fast)).length, 4)
      t.same(times(log, 'end'), [], `${service}: none of the lower one's calls has ended by then`)
      await high.close()
      t.same((await results(slow)).sort(), all(4))
      t.same(times(log, 'end'), [1, 1, 1, 1])
      await low.close()
    }
  })

  await t.test('a canceled session\'s call of ten minutes holds its slot no longer than the grace', async t => {
    const log = newLog()
    const session = await Session.create(options({ settings: { taskCancelGracePeriod: 1000 }, maxUnits: 1 }))
    await send(session.client(), 1, 600_000, log)
    await eventually('the call has begun', () => lines(log).length === 1)
    await session.cancel()
    await eventually('its slot is free', async () => (await node('n1'))?.busy === 0, 30_000)
    t.same(times(log, 'end'), [])
    await session.close()
  })

  await t.test('instances that are kept warm serve the first request after a pause: no host is started for it', async t => {
    const session = await Session.create(options({ settings: { minWarm: 2, unitIdleTimeoutMs: 100 } }))
    await eventually('all but two have left', async () => {
      const { tasks } = await cluster.session(session.id)
      return tasks.filter(({ state }) => state !== 'Finished' && state !== 'Canceled').length === 2 && (await running(session)).length === 2
    })
    const before = await running(session)
    const client = session.client()
    await send(client, 1, 10, newLog())
    t.same(await results(client), ['0'])
    const { tasks } = await cluster.session(session.id)
    t.same(tasks.filter(({ state }) => state === 'Running' || state === 'Dispatching').map(({ id }) => id).sort(), before)
    await session.close()
  })

  await t.test('while one call goes on, the instances that have nothing to do leave', async t => {
    const session = await Session.create(options({ settings: { allocationAdjustInterval: 3000, unitIdleTimeoutMs: 600_000 } }))
    await eventually('all slots are taken', async () => (await running(session)).length === 4)
    const client = session.client()
    const log = newLog()
    await send(client, 1, 12_000, log)
    await eventually('only the busy one is left', async () => (await running(session)).length === 1)
    t.same(times(log, 'end'), [], 'while it works')
    t.same(await results(client), ['0'])
    t.same(times(log, 'begin'), [1])
    await session.close()
  })

  await t.test('units of several cores and of whole nodes: what the host is told, and as many calls at a time', async t => {
    for (const [asked, cores] of [[{ coresPerUnit: 3 }, '3'], [{ unitType: 'node' }, '4'], [{}, '1']] as const) {
      const session = await Session.create(options({ ...asked, maxUnits: 1 }))
      const client = session.client('env')
      await client.send('Do', { what: JSON.stringify({ env: true }) })
      await client.endRequests()
      const [told = '{}'] = await results(client)
      const log = newLog()
      const many = session.client('many')
      await send(many, 12, 50, log)
      await results(many)
      t.same(JSON.parse(told), { cores, ids: ['0', '1', '2', '3'].slice(0, Number(cores)).join(' ') })
      let [now, most] = [0, 0]
      for (const line of lines(log)) { now += line.startsWith('begin') ? 1 : -1; most = Math.max(most, now) }
      t.equal(most, Number(cores), 'calls at a time')
      await session.close()
    }
  })

  await t.test('what no node has is refused at once, with what there is', async t => {
    const refusals: Array<[Partial<SessionOptions>, RegExp]> = [
      [{ group: 'nigth' }, /no node is in the group "nigth"; known groups: day, night/],
      [{ labels: { zone: 'b' } }, /known values of "zone": a/],
      [{ exclude: ['n1'] }, /every node that fits is excluded: n1/],
      [{ coresPerUnit: 5 }, /the largest has 4/],
    ]
    for (const [asked, says] of refusals) await t.rejects(Session.create(options(asked)), { message: says, fault: 'InvalidArgument' })
    const create = spawn(process.execPath, [ENTRY, 'session', 'create', 'Patient', '--head', cluster.head, '--group', 'day,night', '--label', 'zone=a', '--exclude', 'n9', '--cores-per-unit', '2', '--no-preempt', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    create.stdout.setEncoding('utf8').on('data', (part: string) => { said += part })
    const [code] = await once(create, 'close')
    t.equal(code, 0)
    const made = JSON.parse(said) as { sessionId: string }
    t.match(made, { group: 'day,night', labels: { zone: 'a' }, exclude: ['n9'], coresPerUnit: 2, canPreempt: false })
    await (await Session.attach(made.sessionId, { head: cluster.head })).close()
  })

  const second = spawn(process.execPath, [ENTRY, 'node', '--redis', cluster.redisSocket, '--node-id', 'n2', '--cores', '2', '--run-dir', join(dir, 'n2'), '--log-level', 'error'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(second, 'exit')
  await once(createInterface({ input: second.stdout }), 'line')

  await t.test('a node where prepareNodeCommandLine fails is kept out, and why is shown; the other one does the work, and is released in the end', async t => {
    const [taken, done] = [join(dir, 'taken'), join(dir, 'done')]
    // Whoever comes first fails.
    const prepare = `mkdir '${taken}' 2>/dev/null &amp;&amp; { echo no licence left &gt;&amp;2; exit 3; }; true`
    const file = join(dir, 'Prepared.config')
    const here = asset('test/e2e/elastic')
    writeFileSync(file, `<configuration><microsoft.Hpc.Session.ServiceRegistration>
      <service assembly="${here}/patient.mjs" wsdl="${here}/Patient.wsdl" contract="IPatient" prepareNodeCommandLine="${prepare}" releaseNodeCommandLine="echo $CCP_SERVICENAME &gt;&gt; '${done}'"/>
      </microsoft.Hpc.Session.ServiceRegistration></configuration>`)
    const add = spawn(process.execPath, [ENTRY, 'service', 'add', file, '--head', cluster.head], { stdio: ['ignore', 'ignore', 'inherit'] })
    t.equal((await once(add, 'exit'))[0], 0)
    const session = await Session.create(options({ service: 'Prepared' }))
    const client = session.client()
    await send(client, 30, 100, newLog())
    t.same((await results(client)).sort(), all(30))
    const { lastFailure, tasks } = await cluster.session(session.id)
    t.match(lastFailure, { why: 'prepareNodeCommandLine ended with exit code 3', stderr: 'no licence left\n' })
    const used = new Set(tasks.filter(({ state }) => state === 'Running').map(({ node }) => node))
    t.same([...used], ['n1', 'n2'].filter(id => id !== lastFailure?.node))
    await session.close()
    await eventually('the node that was prepared is released', () => lines(done).length > 0)
    t.same(lines(done), ['Prepared'])
  })

  await t.test('a node that is drained ends empty while its calls finish, and nothing is lost; resumed, it is used again', async t => {
    const log = newLog()
    await using session = await DurableSession.create(options({ settings: { messageResendLimit: 0, taskCancelGracePeriod: 100 } }))
    const client = session.client()
    await send(client, 60, 1000, log) // longer than the grace: nobody cuts them
    const collected = results(client)
    await eventually('all six slots work', async () => (await running(session)).length === 6)
    const drained = await fetch(`${cluster.head}/api/v1/nodes/n2/drain`, { method: 'POST' })
    t.equal(drained.status, 200)
    await eventually('the drained node is empty', async () => (await node('n2'))?.tasks === 0)
    t.match(await node('n2'), { state: 'Drained', busy: 0 })
    t.ok(times(log, 'begin').length < 60, 'while there is work')
    await fetch(`${cluster.head}/api/v1/nodes/n2/resume`, { method: 'POST' })
    await eventually('it is used again', async () => (await node('n2'))?.tasks === 2)
    t.same((await collected).sort(), all(60))
    t.same(times(log, 'begin'), Array.from({ length: 60 }, () => 1), 'every call began once')
    t.same(times(log, 'end'), Array.from({ length: 60 }, () => 1), 'and ended once')
    await session.close()
  })

  second.kill('SIGTERM')
  t.equal((await ended)[0], 0)
})

function counted (words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
