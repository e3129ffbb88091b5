import t from 'tap'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { folder, isAlive, isReady, ready, redisSays, started, upOptions } from './helpers.ts'

t.test('up: a second one on the same data is refused with the number of the first', async t => {
  const dataDir = join(folder(t), 'data')
  const first = started(t, upOptions(dataDir))
  await ready(first)
  const second = started(t, upOptions(dataDir))
  t.equal(await second.ended, 5)
  t.match(second.lines.join('\n'), `another "soa up" (pid ${first.process.pid}) runs on ${dataDir}`)
  t.notOk(second.lines.some(isReady))
})

t.test('up: a child that cannot start ends it all with the child\'s exit code', async t => {
  const up = started(t, upOptions(join(folder(t), 'data')), { PRETEND_NODE: 'exit 5' })
  t.equal(await up.ended, 5)
  t.ok(up.lines.includes('node: cannot'))
  t.match(up.lines.at(-1), 'soa: node did not start (exit code 5)')
  t.ok(up.lines.includes('head: SIGTERM'), 'the head was ended')
})

t.test('up: a child that does not hear is killed when the user asks again', async t => {
  const up = started(t, upOptions(join(folder(t), 'data')), { PRETEND_HEAD: 'deaf' })
  const { pids } = await ready(up)
  up.process.kill('SIGINT')
  await up.line(line => line === 'head: SIGTERM')
  up.process.kill('SIGINT')
  t.equal(await up.ended, 0)
  for (const pid of Object.values(pids)) t.notOk(isAlive(pid))
})

t.test('up: interrupted while it starts, it ends and leaves nothing', async t => {
  const up = started(t, upOptions(join(folder(t), 'data')), { PRETEND_NODE: 'mute' })
  await up.line(line => line.startsWith('node: redis'))
  up.process.kill('SIGTERM')
  t.equal(await up.ended, 0)
  t.notOk(up.lines.some(isReady))
})

t.test('up: a data folder too deep for a Unix socket has its sockets in a short one, and says so', async t => {
  const deep = join(folder(t), 'x'.repeat(100), 'data')
  mkdirSync(deep, { recursive: true })
  const up = started(t, upOptions(deep))
  const { redis } = await ready(up)
  t.ok(redis.length < 108, redis)
  t.match(up.lines.join('\n'), /sockets are in \/.*: below .* their paths would be longer than the 107 bytes of a Unix socket/)
  t.match(await redisSays(redis, 'PING'), 'PONG')
  up.process.kill('SIGTERM')
  t.equal(await up.ended, 0)
  t.notOk(existsSync(dirname(redis)), 'and takes the short one away again')
})

t.test('up: a mistake in a registration file ends it before anything is started', async t => {
  const data = folder(t)
  const dir = t.testdir({ services: { 'A.config': '<nonsense/>' } })
  const up = started(t, upOptions(join(data, 'data'), { services: [join(dir, 'services')] }))
  t.equal(await up.ended, 1)
  t.match(up.lines, [/^soa: ConfigFile_Invalid: service registration .*A\.config: its root element is not <configuration>$/])
})

t.test('up: what it must not do is refused', async t => {
  const open = started(t, upOptions(join(folder(t), 'data'), { http: '0.0.0.0:0' }))
  t.equal(await open.ended, 5)
  t.match(open.lines, [/refused to listen on 0\.0\.0\.0: .*--insecure/])
  const bare = started(t, upOptions(join(folder(t), 'data'), { durability: 'replicas' }))
  t.equal(await bare.ended, 5)
  t.match(bare.lines, [/needs a Redis with replicas/])
})
