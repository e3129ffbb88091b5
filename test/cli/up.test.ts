import t from 'tap'
import { join } from 'node:path'
import { folder, gone, isAlive, ready, redisSays, started, upOptions, type Watched } from './helpers.ts'

/** The broker's log says that this child is back, and with which number. */
const back = async (up: Watched, child: string, from: number): Promise<number> =>
  (JSON.parse(await up.line(line => line.includes('child is back') && line.includes(`"child":"${child}"`), from)) as { pid: number }).pid

t.test('up: redis, head and node come up in this order, and the first line on stdout says where', async t => {
  const data = folder(t)
  const dir = t.testdir({ services: { 'Exe.config': '<configuration><microsoft.Hpc.Session.ServiceRegistration><service/><host hostType="Customize" exeFileName="x"/></microsoft.Hpc.Session.ServiceRegistration></configuration>' } })
  const up = started(t, upOptions(join(data, 'data'), { services: [join(dir, 'services')], set: { sessionIdleTimeout: '1234' } }))
  const said = await ready(up)
  await up.line(line => line.startsWith('node: redis'))
  t.match(said, { ready: true, netTcp: null, http: /^http:\/\/127\.0\.0\.1:\d+$/, dataDir: join(data, 'data') })
  const order = ['head: redis', 'PUT /api/v1/services/Exe', 'node: redis'].map(text => up.lines.findIndex(line => line.includes(text)))
  t.ok(order.every((at, i) => at >= 0 && (i === 0 || at > (order[i - 1] ?? 0))), `head, registration, node: ${order.join()}`)
  t.ok(up.lines.includes(`head: redis ${said.redis} idle 1234`), 'settings reach the children')
  for (const [name, value] of [['appendonly', 'yes'], ['appendfsync', 'always'], ['maxmemory-policy', 'noeviction'], ['port', '0']]) {
    t.match(await redisSays(said.redis, `CONFIG GET ${name}`), `\r\n${value}\r\n`, `redis ${name} ${value}`)
  }

  up.process.kill('SIGTERM')
  t.equal(await up.ended, 0, 'SIGTERM is a good end')
  t.ok(up.lines.indexOf('node: SIGTERM') < up.lines.indexOf('head: SIGTERM'), 'the node first, so that its end is heard')
  for (const pid of Object.values(said.pids)) t.notOk(isAlive(pid), `${pid} is gone`)
})

t.test('up: kill -9 of a child: it is started again and said so; the head takes its port again and Redis has its data', async t => {
  const up = started(t, upOptions(join(folder(t), 'data')))
  const { pids, http, redis } = await ready(up)
  t.match(await redisSays(redis, 'SET promise kept'), 'OK')
  for (const child of ['head', 'node', 'redis-server'] as const) {
    const from = up.lines.length
    const pid = pids[child === 'redis-server' ? 'redis' : child]
    process.kill(pid, 'SIGKILL')
    const told = await up.line(line => line.includes('starting it again'), from)
    t.match(JSON.parse(told), { child, pid, end: 'signal SIGKILL', restartInMs: 200, level: 40 })
    t.not(await back(up, child, from), pid)
  }
  t.equal((await fetch(http)).status, 200, 'the new head is where the old one was')
  t.match(await redisSays(redis, 'GET promise'), 'kept')
})

t.test('up: kill -9 of itself leaves no process, and another one on its data carries on', async t => {
  const dataDir = join(folder(t), 'data')
  const first = started(t, upOptions(dataDir))
  const { pids, redis } = await ready(first)
  t.match(await redisSays(redis, 'SET promise kept'), 'OK')
  first.process.kill('SIGKILL')
  await first.ended
  const second = started(t, upOptions(dataDir))
  t.match(await redisSays((await ready(second)).redis, 'GET promise'), 'kept')
  for (const pid of Object.values(pids)) await gone(pid)
  t.pass('its children ended with it')
})
