import t from 'tap'
import { pino } from 'pino'
import { silent } from '../../core/log.ts'
import { systemClock } from '../../core/clock.ts'
import { failureOf, NotYet, patiently } from '../../store/redis-call.ts'
import { sessionKey, sessionKeys, sharedKey } from '../../store/redis-keys.ts'
import { closeRedis, openRedis, parseRedisUrl, redactRedisUrl } from '../../store/redis.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { fault } from './store-promises.ts'

t.test('redis: URLs of every form', async t => {
  const cases = [
    ['/run/redis.sock', { path: '/run/redis.sock' }],
    ['/run/a b%20?.sock', { path: '/run/a b%20?.sock' }],
    ['unix:///run/redis.sock', { path: '/run/redis.sock' }],
    ['unix:///run/a%20b.sock?db=3', { path: '/run/a b.sock', db: 3 }],
    ['unix://u:p@localhost/run/redis.sock', { path: '/run/redis.sock', username: 'u', password: 'p' }],
    ['redis://grid.example', { host: 'grid.example', port: 6379 }],
    ['redis://:p%40ss@127.0.0.1:7000/2', { host: '127.0.0.1', port: 7000, password: 'p@ss', db: 2 }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['rediss://u:p@grid.example:6380', { host: 'grid.example', port: 6380, username: 'u', password: 'p', tls: { servername: 'grid.example' } }]
  ] as const
  for (const [url, options] of cases) t.same(parseRedisUrl(url), options, url)
  t.match(parseRedisUrl('sentinel://u:p%40ss@a.example:26380,[::1],10.0.0.3:7/grid?db=2&sentinelPassword=s%2F'), {
    sentinels: [{ host: 'a.example', port: 26_380 }, { host: '::1', port: 26_379 }, { host: '10.0.0.3', port: 7 }], name: 'grid', role: 'master', db: 2, username: 'u', password: 'p@ss', sentinelPassword: 's/'
  })
  t.match(parseRedisUrl('sentinel://:p@h/m'), { sentinels: [{ host: 'h', port: 26_379 }], name: 'm', password: 'p', username: undefined })
  for (const url of ['sentinel://h:1', 'sentinel:///m', 'sentinel://h:1,/m', 'sentinel://h:99999/m', 'sentinel://h/m?db=x', 'sentinel://h/m?dbs=1']) t.throws(() => parseRedisUrl(url), fault('Broker_InvalidConfiguration', ['redis']), url)
  t.equal(redactRedisUrl('sentinel://u:secret@h:1,g:2/m?sentinelPassword=x&db=1'), 'sentinel://u:***@h:1,g:2/m?sentinelPassword=***&db=1')
  for (const url of ['', 'localhost:6379', 'http://localhost', 'redis://h/x', 'unix://elsewhere/run/redis.sock', 'unix:///a?db=-1']) {
    t.throws(() => parseRedisUrl(url), fault('Broker_InvalidConfiguration', ['redis']), url)
  }
  t.equal(redactRedisUrl('redis://u:secret@h:1/0'), 'redis://u:***@h:1/0')
  t.notMatch((await openRedis('redis://u:secret@127.0.0.1:1', { log: silent, timeoutMs: 100 }).catch((error: Error) => error) as Error).message, /secret/)
})

t.test('redis: keys of one session share one hash tag, and no id can break out of it', async t => {
  const keys = sessionKeys('soa', '42')
  for (const key of [keys.meta, keys.clients, ...Object.values(keys.of('a}b{c') as unknown as Record<string, string>), sessionKey('soa', '42', 'state')]) t.match(key, /^\{soa:s:42\}:/)
  t.equal(sharedKey('soa', 'a', 'b'), '{soa}:a:b')
  t.throws(() => sessionKeys('soa', '4}2'), TypeError)
  t.throws(() => sharedKey('{x', 'a'), TypeError)
  t.throws(() => sharedKey('', 'a'), TypeError)
})

t.test('redis: nobody there, or given up: told at once, and nothing stays open', { ...needsRedis }, async t => {
  await t.rejects(openRedis('/nonexistent/redis.sock', { log: silent, timeoutMs: 100 }), fault('StorageServiceNotAvailble', [/\/nonexistent\/redis\.sock did not become ready within 100 ms.*ENOENT/]))
  const stop = new AbortController()
  const opening = openRedis('/nonexistent/redis.sock', { log: silent, signal: stop.signal })
  stop.abort(new Error('enough'))
  await t.rejects(opening, { message: 'enough' })
  await t.rejects(openRedis('/nonexistent/redis.sock', { log: silent, signal: stop.signal }), { message: 'enough' })
})

t.test('redis: an outage is one warning and one line when it is over', { ...needsRedis }, async t => {
  const lines: Array<{ level: number, msg: string }> = []
  const log = pino({ level: 'info' }, { write: (line: string) => { lines.push(JSON.parse(line) as { level: number, msg: string }) } })
  const server = await startRedis(t)
  const redis = await openRedis(server.url, { log })
  t.same(lines, [])
  let tries = 0
  const threeTries = new Promise<void>(resolve => redis.on('reconnecting', () => { if (++tries === 3) resolve() }))
  await server.kill9()
  await threeTries
  const back = new Promise(resolve => redis.once('ready', resolve))
  await server.restart()
  await back
  t.match(lines, [{ level: 40, msg: 'redis connection closed' }, { level: 30, msg: 'redis connection is back' }])
  t.equal(lines.length, 2)
  await closeRedis(redis)
  await closeRedis(redis)
  t.equal(lines.length, 2, 'closing it ourselves is no outage')
  t.equal(redis.status, 'end')
  await t.rejects(patiently({ redis, log: silent }, () => redis.ping()), fault('StorageServiceNotAvailble'), 'and a call after that does not wait')
})

t.test('redis: a command in flight when the connection breaks is rejected, not left for ever', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  for (const kind of ['commands', 'blocking'] as const) {
    const redis = await openRedis(server.url, { log: silent, kind })
    const waiting = redis.blpop('nothing', 0)
    const gone = t.rejects(waiting)
    await server.kill9()
    await gone
    await t.rejects(redis.ping(), 'nor is one queued meanwhile')
    await server.restart()
    await patiently({ redis, log: silent }, () => redis.ping())
    await closeRedis(redis)
  }
})

t.test('redis: what a reply means', async t => {
  const reply = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' })
  const cases = [
    [reply('OOM command not allowed when used memory > \'maxmemory\'.'), 'full'], [reply('LOADING Redis is loading the dataset in memory'), 'busy'],
    [reply('READONLY You can\'t write against a read only replica.'), 'busy'], [reply('MISCONF Errors writing to the AOF file: No space left on device'), 'busy'],
    [reply('BUSY Redis is busy running a script.'), 'busy'], [reply('NOREPLICAS Not enough good replicas to write.'), 'busy'],
    [reply('FENCED the session belongs to 2:x'), 'said'], [reply('WRONGTYPE Operation against a key'), 'bad'], [reply('ERR something'), 'bad'],
    [new Error('Connection is closed.'), 'lost'], [new Error('Command timed out'), 'lost'], [new NotYet('later'), 'busy'], [new TypeError('our bug'), 'bad'], ['a string', 'lost']
  ] as const
  for (const [error, kind] of cases) t.equal(failureOf(error).kind, kind, String(error))
})

t.test('redis: a passing refusal is waited out, a lasting one becomes a fault in time', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const redis = await openRedis(server.url, { log: silent })
  t.teardown(() => closeRedis(redis))
  // The clock is the test's: waiting moves it, and nothing else does.
  let now = 0
  const clock = { now: () => now, after: (ms: number, call: () => void) => { now += ms; return systemClock.after(0, call) } }
  const needs = { redis, log: silent, timeoutMs: 1000, clock }
  let tries = 0
  t.equal(await patiently(needs, async () => {
    if (++tries < 4) throw Object.assign(new Error('LOADING soon'), { name: 'ReplyError' })
    return 'done'
  }), 'done')
  let lost = 0
  await t.rejects(patiently(needs, async () => { throw Object.assign(new Error('MISCONF Errors writing to the AOF file: No space left on device'), { name: 'ReplyError' }) }, () => { lost++ }), fault('StorageSpaceNotSufficient'))
  t.equal(lost, 0, 'it is known that it did not run')
  await t.rejects(patiently(needs, async () => { throw Object.assign(new Error('BUSY script'), { name: 'ReplyError' }) }), fault('StorageServiceNotAvailble', [/not yet after 1000 ms: BUSY script/]))
  await t.rejects(patiently(needs, async () => { throw Object.assign(new Error('ERR nonsense'), { name: 'ReplyError' }) }), fault('StorageFailure', ['ERR nonsense']))
  await t.rejects(patiently(needs, async () => { throw Object.assign(new Error('NOPERM no'), { name: 'ReplyError' }) }), fault('StorageServiceNotAvailble'))
  const stop = new AbortController()
  await t.rejects(patiently({ ...needs, signal: stop.signal }, async () => { stop.abort(); throw new Error('Connection is closed.') }), fault('StorageClosed'))
})
