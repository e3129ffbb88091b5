import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { silent as log } from '../../core/log.ts'
import { startTime } from '../../node-manager/guardian.ts'
import { homeOfPids, isGoneHere, takePlace } from '../../node-manager/place.ts'
import { NameHeld, type NodeRecord, type RedisNodeLink } from '../../store/redis-placement-node.ts'
import { ManualClock } from '../clock.ts'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

const LEASE_MS = 5000
/** No dead node takes longer than this to be replaced, and nobody waits longer for one that lives. */
const LONGEST_MS = 5750
const record = (instance: string, more: Partial<NodeRecord> = {}): NodeRecord =>
  ({ id: 'n1', machine: 'grid7', pid: 4711, cores: 2, labels: {}, groups: [], instance, startedAt: '2026-01-02T03:04:05.000Z', ...more })

interface Outcome { readonly took: number, readonly epoch?: string, readonly error?: Error }
/** A newcomer beside a holder of the name that beats at these milliseconds, and did so last so long before. */
async function newcomer (beats: readonly number[], { silentFor = 0, from = record('first') } = {}): Promise<Outcome> {
  const clock = new ManualClock()
  const began = clock.now()
  const link: Pick<RedisNodeLink, 'register'> = {
    async register (_record, dead) {
      const at = clock.now() - began
      const last = beats.filter(beat => beat <= at).at(-1) ?? -silentFor
      if (dead?.beat === String(last)) return '7'
      throw new NameHeld({ record: from, epoch: '3', beat: String(last), ageMs: at - last })
    }
  }
  const outcome: Promise<Outcome> = takePlace({ record: record('second'), link, clock, log, leaseMs: LEASE_MS })
    .then(epoch => ({ took: clock.now() - began, epoch }), (error: Error) => ({ took: clock.now() - began, error }))
  await clock.advance(20_000)
  return await outcome
}
const everySecond = Array.from({ length: 30 }, (_, i) => 300 + i * 1000)

t.test('place: whoever goes on beating keeps the name, and the newcomer says who it is and how to choose another', async t => {
  const { took, error } = await newcomer(everySecond)
  t.ok(took <= LONGEST_MS, `after ${took} ms`)
  t.match(error, {
    fault: 'refused',
    message: /^another node manager has the name n1: process 4711 on grid7, since 2026-01-02T03:04:05\.000Z, heard of 0\.\d s ago\. Each node needs a name of its own: choose another with --node-id or SOA_NODE_ID, or end that process$/
  })
})

for (const [what, beats, silentFor, most] of [
  ['a moment ago', [], 0, LONGEST_MS],
  ['right after its last beat was written, which arrives now', [100], 900, LONGEST_MS],
  ['a minute ago, with no head to declare it dead', [], 60_000, 3000],
  ['before Redis was away, and a head gives every node a fresh lease meanwhile', [3000], 20_000, 3000],
  ['a moment ago, and a head gives every node a fresh lease meanwhile', [4000], 500, 4000 + LONGEST_MS]
] as const) {
  t.test(`place: one that died ${what} is replaced`, async t => {
    const { took, epoch, error } = await newcomer(beats, { silentFor })
    t.equal(epoch, '7', error?.message ?? '')
    t.ok(took <= most, `after ${took} ms`)
  })
}

t.test('place: one that was silent because Redis was away comes back, and keeps the name', async t => {
  t.match(await newcomer(everySecond.map(at => at + 1700), { silentFor: 20_000 }), { error: { fault: 'refused' } })
})

t.test('place: one that ran here and whose process is no more is replaced at once, whoever has its number now', async t => {
  const child = spawn('/bin/true')
  const pid = child.pid as number
  const started = startTime(pid)
  await once(child, 'exit')
  const home = homeOfPids()
  t.match(await newcomer([], { from: record('first', { pid, home, startTime: started }) }), { took: 0, epoch: '7' })
  t.match(await newcomer([], { from: record('first', { pid: process.pid, home, startTime: '1' }) }), { took: 0, epoch: '7' })
  t.equal(isGoneHere(record('first', { pid: process.pid, home, startTime: startTime(process.pid) })), false, 'it lives')
  t.equal(isGoneHere(record('first', { pid, home: 'another boot', startTime: started })), false, 'elsewhere its number says nothing')
  t.equal(isGoneHere(record('first', { pid })), false, 'an older manager does not say where it ran')
})

t.test('node manager', needsRedis, async t => {
  const grid = await openGrid(t)
  await grid.script('Listen', LISTENER)

  t.test('place: of two managers with one name the second is refused, and nothing happens to the first; killed, it is replaced at once', async t => {
    const first = await grid.node('twin')
    const id = String(process.pid * 100 + 60)
    await grid.demand(id, 'Listen')
    const task = await grid.until(id, ({ state }) => state === 'Running')
    await t.rejects(grid.node('twin', 1), { message: /another process has the name of this node[^]*soa node: another node manager has the name twin: process \d+ on .*, since .*Z, heard of \d\.\d s ago\. .*--node-id or SOA_NODE_ID/ })
    t.same((await grid.tasks(id)).map(({ id, state }) => ({ id, state })), [{ id: task.id, state: 'Running' }])
    t.match(await grid.store.nodes(), [{ id: 'twin', pid: first.pid, cores: 2, state: 'Online', startedAt: /Z$/ }])
    t.equal(first.child.exitCode, null)
    first.child.kill('SIGKILL')
    await first.exited
    const before = Date.now()
    const second = await grid.node('twin', 1)
    t.comment(`in its place after ${Date.now() - before} ms`)
    t.notMatch(second.errors(), /"waitMs".*"waitMs"/)
    t.match(await grid.until(id, ({ id, state }) => state === 'Running' && id !== task.id), { node: 'twin' })
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await processesOf(id)).length === 0)
  })
})
