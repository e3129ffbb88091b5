import t from 'tap'
import { spawnSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { endWithin } from '../../cli/run-head.ts'
import { version } from '../../cli/version.ts'
import { SessionCounters } from '../../broker/worker/counters.ts'
import { asset } from '../../core/assets.ts'
import { ManualClock } from '../clock.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { fakeHead, run, type Asked } from './helpers.ts'

const session = {
  sessionId: '1730412',
  service: 'OptionPricer',
  durable: true,
  state: 'Running',
  brokerPid: 4711,
  endpoints: { http: 'http://127.0.0.1:8080/1730412/Http', netTcp: null },
  counters: { ...new SessionCounters().view(), total: 2000, processed: 1200, processing: 8, faulted: 3, queued: 792, outstanding: 800, deadLettered: 2 },
  clients: [{ clientId: '', state: 'EndRequests', total: 2000, processed: 1200, faulted: 3 }],
  tasks: [{ id: '3', node: 'n1', pid: 4720, state: 'Running', capacity: 1 }],
  bytes: 1048576
}

/** A head that answers everything with this, and what it was asked. */
async function head (t: { teardown: (end: () => Promise<void>) => unknown }, status: number, json?: unknown, text?: string): Promise<{ env: Record<string, string>, asked: Asked[] }> {
  const asked: Asked[] = []
  const { url, close } = await fakeHead(request => { asked.push(request); return { status, json, ...(text === undefined ? {} : { text }) } })
  t.teardown(close)
  return { env: { SOA_HEAD: url }, asked }
}

t.test('cli: --help is there for every command, with an example', async t => {
  const commands = ['', 'up', 'head', 'node', 'node list', 'node drain', 'node resume', 'heads', 'heads list', 'heads drain', 'heads resume', 'service', 'service add', 'service check', 'service list', 'service types', 'session', 'session create', 'session list', 'session show', 'session cancel', 'session close', 'dead-letter', 'dead-letter list', 'dead-letter show', 'dead-letter replay', 'dead-letter remove', 'settings', 'faults', 'wire decode', 'doctor']
  for (const command of commands) {
    const { code, out, err } = await run([...command.split(' ').filter(word => word !== ''), '--help'])
    t.strictSame([code, err], [0, ''], command)
    t.match(out, 'Usage: soa', command)
    t.notMatch(out, /default: [{[]/, `${command}: no empty default`)
    t.ok(out.split('\n').every(line => line.length <= 120), `${command} fits 120 columns`)
    if (!['service', 'session', 'dead-letter'].includes(command)) t.match(out, /Examples?:\n/, `${command} has an example`)
  }
  t.strictSame(await run(['--version']), { code: 0, out: `${version()}\n`, err: '' })
})

t.test('cli: what cannot be understood is usage, exit code 2', async t => {
  for (const argv of [['nonsense'], ['session', 'nonsense'], ['session', 'show'], ['session', 'list', '--nonsense'], ['session', 'create', 'X', '--min-units', 'two'], ['session', 'create', 'X', '--set', 'novalue']]) {
    const { code, out, err } = await run(argv)
    t.equal(code, 2, argv.join(' '))
    t.equal(out, '')
    t.match(err, /error: /)
  }
})

t.test('cli: session create sends what was asked and prints the session object', async t => {
  const { env, asked } = await head(t, 201, session)
  const argv = ['session', 'create', 'OptionPricer', '--durable', '--min-units', '2', '--max-units', '8', '--priority', '3000', '--set', 'sessionIdleTimeout=60000', '--set', 'maxDepth=64', '--service-version', '1.0']
  const { code, out, err } = await run([...argv, '--json'], env)
  t.strictSame([code, err], [0, ''])
  t.strictSame(JSON.parse(out), session, 'one JSON document')
  t.match(asked, [{ method: 'POST', url: '/api/v1/sessions' }])
  t.strictSame(JSON.parse(asked[0]?.body ?? ''), { service: 'OptionPricer', version: '1.0', durable: true, minUnits: 2, maxUnits: 8, priority: 3000, settings: { sessionIdleTimeout: 60000, maxDepth: 64 } })
  const { out: forPeople } = await run(argv, env)
  for (const part of ['1730412', 'durable', 'http://127.0.0.1:8080/1730412/Http', '2000, 1200 done (3 faults), 8 in work', '4720']) t.match(forPeople, part)
})

t.test('cli: session list follows the pages', async t => {
  const { url, close } = await fakeHead(({ url }) => ({ status: 200, json: url.includes('cursor=c1') ? { items: [{ ...session, sessionId: '2' }] } : { items: [session], next: 'c1' } }))
  t.teardown(close)
  const env = { SOA_HEAD: url }
  t.strictSame(JSON.parse((await run(['session', 'list', '--json'], env)).out), { items: [session, { ...session, sessionId: '2' }] })
  t.strictSame(JSON.parse((await run(['session', 'list', '--limit', '1', '--json'], env)).out), { items: [session], next: 'c1' })
  t.match((await run(['session', 'list'], env)).out, /SESSION +SERVICE .*\n1730412 +OptionPricer +durable +Running +2000 +1200 +3\n2 /)
})

t.test('cli: ids are part of a path and never more than that', async t => {
  const { env, asked } = await head(t, 204)
  t.strictSame(await run(['session', 'close', '../nodes/n1?x'], env), { code: 0, out: 'session ../nodes/n1?x is closed\n', err: '' })
  await run(['session', 'cancel', '5', '--json'], (await head(t, 200, session)).env)
  await run(['node', 'drain', 'a b'], env)
  t.match(asked.map(({ method, url }) => `${method} ${url}`), ['DELETE /api/v1/sessions/..%2Fnodes%2Fn1%3Fx', 'POST /api/v1/nodes/a%20b/drain'])
})

t.test('cli: a refusal of the head is one line and an exit code', async t => {
  const cases: Array<[status: number, problem: object, code: number, line: string]> = [
    [404, { title: 'Not Found', status: 404, detail: 'no service X is registered', code: 50331678, name: 'Service_NotFound' }, 4, 'soa: Service_NotFound: no service X is registered\n'],
    [409, { title: 'Conflict', status: 409, detail: 'session 5 is finished', name: 'Session_ValidateJobFailed_AlreadyFinished' }, 5, 'soa: Session_ValidateJobFailed_AlreadyFinished: session 5 is finished\n'],
    [400, { title: 'Bad Request', status: 400, detail: 'body: minUnit is not known here', name: 'InvalidArgument' }, 2, 'soa: InvalidArgument: body: minUnit is not known here\n'],
    [404, { title: 'Not Found', status: 404, detail: 'no node n9 is known here', name: 'InvalidArgument' }, 4, 'soa: InvalidArgument: no node n9 is known here\n'],
    [503, { title: 'Service Unavailable', status: 503, detail: 'the store cannot be reached', name: 'StorageServiceNotAvailble' }, 1, 'soa: StorageServiceNotAvailble: the store cannot be reached\n'],
    [404, { title: 'Not Found', status: 404, detail: 'no node nix is known here' }, 4, 'soa: no node nix is known here\n'],
    [404, { title: 'Not Found', status: 404 }, 4, 'soa: HTTP 404: Not Found\n']
  ]
  for (const [status, problem, code, line] of cases) {
    const { env } = await head(t, status, problem)
    t.strictSame(await run(['session', 'show', '5', '--json'], env), { code, out: '', err: line })
  }
  const { env } = await head(t, 502, undefined, '<html>\n  Bad Gateway')
  t.strictSame(await run(['session', 'show', '5'], env), { code: 1, out: '', err: 'soa: HTTP 502: <html> Bad Gateway\n' })
  const { env: other } = await head(t, 200, undefined, 'hello')
  t.match(await run(['session', 'show', '5'], other), { code: 1, out: '', err: /answered GET \/api\/v1\/sessions\/5 with no JSON/ })
})

t.test('cli: of several sessions each has its result; one that is refused keeps none from its turn, and makes the exit code', async t => {
  const asked: string[] = []
  const gone = { title: 'Not Found', status: 404, detail: 'no session 2 is known', name: 'InvalidSessionId' }
  const { url, close } = await fakeHead(({ method, url }) => {
    asked.push(`${method} ${url}`)
    const id = /sessions\/(\d+)/.exec(url)?.[1] ?? ''
    return id === '2' ? { status: 404, json: gone } : id === '5' ? { status: 503, json: { ...gone, status: 503, name: 'Broker_BrokerUnavailable', detail: 'not now' } } : method === 'DELETE' ? { status: 204 } : { status: 200, json: { ...session, sessionId: id, state: 'Canceled' } }
  })
  const env = { SOA_HEAD: url }
  t.strictSame(await run(['session', 'close', '1', '3', '1'], env), { code: 0, out: 'session 1 is closed\nsession 3 is closed\n', err: '' }, 'said twice, done once')
  t.strictSame(await run(['session', 'close', '1', '2', '3'], env), { code: 4, out: 'session 1 is closed\nsession 3 is closed\n', err: 'soa: 2: InvalidSessionId: no session 2 is known\n' })
  t.strictSame(asked, ['DELETE /api/v1/sessions/1', 'DELETE /api/v1/sessions/3', 'DELETE /api/v1/sessions/1', 'DELETE /api/v1/sessions/2', 'DELETE /api/v1/sessions/3'])
  t.match(await run(['session', 'close', '2', '5'], env), { code: 1, out: '' }, 'refused for different reasons')
  t.strictSame(await run(['session', 'cancel', '1', '2'], env), { code: 4, out: 'session 1 is Canceled\n', err: 'soa: 2: InvalidSessionId: no session 2 is known\n' })
  const { code, out } = await run(['session', 'cancel', '2', '3', '--json'], env)
  t.match([code, JSON.parse(out)], [4, { items: [{ sessionId: '2', error: 'InvalidSessionId: no session 2 is known' }, { sessionId: '3', state: 'Canceled' }] }])
  t.strictSame(JSON.parse((await run(['session', 'close', '3', '--json'], env)).out), { sessionId: '3', closed: true, wasHere: true }, 'one alone as ever')
  await close()
  t.match(await run(['session', 'close', '1', '2', '3'], env), { code: 1, out: '', err: /^soa: 1: no head at .*\nsoa: not tried: 2 3\n$/ }, 'without a head nothing more is tried')
})

t.test('cli: session close tells a session that it closed from one that was not here; neither is a failure', async t => {
  const { url, close } = await fakeHead(({ url }) => ({ status: 204, headers: { 'soa-was-here': String(url.endsWith('/1')) } }))
  t.teardown(close)
  const env = { SOA_HEAD: url }
  t.strictSame(await run(['session', 'close', '12'], env), { code: 0, out: 'session 12 is not here (closed before, or never was)\n', err: '' })
  t.strictSame(await run(['session', 'close', '1', '12'], env), { code: 0, out: 'session 1 is closed\nsession 12 is not here (closed before, or never was)\n', err: '' })
  t.strictSame(JSON.parse((await run(['session', 'close', '1', '12', '--json'], env)).out), { items: [{ sessionId: '1', closed: true, wasHere: true }, { sessionId: '12', closed: true, wasHere: false }] })
})

t.test('cli: session show says in a line what the session waits for', async t => {
  const why = '8 instances: the node that may be used (n2 is drained) has room for 6'
  const { env } = await head(t, 200, { ...session, waitsFor: { why } })
  t.match((await run(['session', 'show', '5'], env)).out, new RegExp(`^waits for +${why.replace(/[()]/g, '\\$&')}$`, 'm'))
  t.notMatch((await run(['session', 'show', '5'], (await head(t, 200, session)).env)).out, 'waits for')
})

t.test('cli: session show counts neither what was purged as waiting nor dead letters that are gone as there', async t => {
  const counters = { ...session.counters, total: 4, processed: 1, processing: 1, faulted: 0, queued: 2, outstanding: 2, purgedTotal: 1, deadLettered: 3 }
  const { out } = await run(['session', 'show', '5'], (await head(t, 200, { ...session, counters })).env)
  t.match(out, /^requests +4, 1 done \(0 faults\), 1 in work, 1 waiting$/m)
  t.match(out, /^dead letters +3 so far; soa dead-letter list 1730412 shows those that are left$/m)
})

t.test('cli: without a head one line says what to start', async t => {
  const { url, close } = await fakeHead(() => ({ status: 200 }))
  await close() // its port is free again, and nobody listens there
  const { code, out, err } = await run(['session', 'list'], { SOA_HEAD: url })
  t.strictSame([code, out], [1, ''])
  t.equal(err, `soa: no head at ${url}: nobody listens there. Start one with "soa up" (all on this machine) or "soa head", or say where it is with SOA_HEAD or --head\n`)
  t.match(await run(['session', 'list', '--head', 'nonsense']), { code: 2, err: /a URL such as/ })
})

t.test('cli: service add reads all files before the first is sent', async t => {
  const dir = t.testdir({
    'A_1.0.config': '<configuration><microsoft.Hpc.Session.ServiceRegistration><service assembly="a.mjs" odd="1"/></microsoft.Hpc.Session.ServiceRegistration></configuration>',
    'A.wsdl': readFileSync(asset('examples/services/SimpleService/SimpleService.wsdl'), 'utf8'),
    'B.config': '<nonsense/>'
  })
  const { env, asked } = await head(t, 200, {})
  const both = await run(['service', 'add', join(dir, 'A_1.0.config'), join(dir, 'B.config')], env)
  t.match(both, { code: 1, out: '', err: /B\.config: its root element is not <configuration>/ })
  t.strictSame(asked, [])
  const { code, out, err } = await run(['service', 'add', join(dir, 'A_1.0.config')], env)
  t.strictSame([code, out], [0, `A 1.0 is registered (${join(dir, 'A_1.0.config')})\n`])
  t.match(err, /A_1\.0\.config: .*service\/@odd: unknown, ignored/)
  t.match(asked, [{ method: 'PUT', url: '/api/v1/services/A' }])
  t.match(JSON.parse(asked[0]?.body ?? ''), { name: 'A', version: '1.0', file: join(dir, 'A_1.0.config'), wsdlFile: join(dir, 'A.wsdl'), documents: { [join(dir, 'A.wsdl')]: /definitions/ } })
})

t.test('cli: node list has id, pid, cores, busy, tasks and the age of the heartbeat', async t => {
  const { env } = await head(t, 200, { items: [{ id: 'n1', pid: 12, state: 'Online', cores: 4, busy: 3, tasks: 2, heartbeatAgeMs: 1234 }] })
  t.match((await run(['node', 'list'], env)).out, /NODE .*\nn1 +Online +12 +4 +3 +2 +1\.2 s ago/)
})

t.test('cli: a head and a node without a Redis say what they need; an open address is refused', async t => {
  t.match(await run(['head']), { code: 2, out: '', err: /a head needs a Redis.*--redis/ })
  t.match(await run(['node']), { code: 2, out: '', err: /a node needs the Redis.*--redis/ })
  t.match(await run(['head', '--redis', '/nowhere', '--http', '0.0.0.0:80']), { code: 5, out: '', err: /refused to listen on 0\.0\.0\.0: nobody is asked who they are.*--insecure/ })
  for (const bad of ['nonsense', '127.0.0.1:99999', '::1:80', ':80']) t.match(await run(['head', '--redis', '/nowhere', '--http', bad]), { code: 2, err: /HOST:PORT is expected/ }, bad)
  t.match(await run(['head', '--max-sessions', 'many']), { code: 2, err: 'Broker_InvalidConfiguration: --max-sessions: a whole number of sessions, 1 to 100000, not "many"' })
  t.match(await run(['head'], { SOA_HTPP: 'x' }), { err: /SOA_HTPP is set and means nothing here; did you mean SOA_HTTP\?/ })
})

t.test('cli: settings come from a file too', async t => {
  const dir = t.testdir({ 'good.json': '{"http": "0.0.0.0:1", "redis": "/x"}', 'bad.json': '{', 'list.json': '[]', 'typo.json': '{"htpp": 1}' })
  t.match(await run(['head', '--config', join(dir, 'good.json')]), { code: 5, err: /0\.0\.0\.0/ })
  t.match(await run(['head', '--http', '1.2.3.4:1'], { SOA_CONFIG: join(dir, 'good.json') }), { code: 5, err: /1\.2\.3\.4/ }, 'a flag wins')
  t.match(await run(['head', '--config', join(dir, 'bad.json')]), { code: 2, err: /settings file .*bad\.json: / })
  t.match(await run(['head', '--config', join(dir, 'list.json')]), { code: 2, err: /an object .* is expected/ })
  t.match(await run(['head', '--config', join(dir, 'typo.json')]), { code: 2, err: /htpp: no setting has this name; did you mean http\?/ })
  t.match(await run(['head', '--config', join(dir, 'gone.json')]), { code: 2, err: /gone\.json/ })
})

t.test('cli: settings of a running head', async t => {
  const { env } = await head(t, 200, { items: [{ name: 'maxSessions', value: 7, default: 1000 }] })
  t.match((await run(['settings', '--head'], env)).out, /SETTING +RUNS WITH +DEFAULT\nmaxSessions +7 +1000\n/)
})

t.test('cli: the table of settings fits a wide terminal, and shows what is set here only if something is', async t => {
  const { out } = await run(['settings'])
  t.match(out, /^SETTING +DEFAULT +SCOPE +ENVIRONMENT +SAYS\n/)
  t.match(out, /\nclientIdleTimeout +300000 ms +session +SOA_CLIENT_IDLE_TIMEOUT +a client/)
  t.ok(out.split('\n').every(line => line.length <= 160))
  t.match((await run(['settings'], { SOA_MAX_SESSIONS: '7' })).out, /^SETTING +DEFAULT +HERE [^]*\nmaxSessions +1000 sessions +7 +process /)
})

t.test('cli: an address that is taken is said before anything is started', async t => {
  const { url, close } = await fakeHead(() => ({ status: 200 }))
  t.teardown(close)
  const http = new URL(url).host
  const dir = t.testdir()
  const taken = { code: 1, out: '', err: `soa: cannot listen on ${http}: another process listens there; end it, or choose another address with --http or SOA_HTTP (port 0 picks a free one)\n` }
  const env = { PATH: process.env.PATH ?? '' }
  t.strictSame(await run(['head', '--redis', '/nowhere', '--http', http, '--run-dir', dir], env), taken)
  t.strictSame(await run(['up', '--http', http, '--data-dir', join(dir, 'data')], env), taken)
  t.strictSame(readdirSync(join(dir, 'data')), ['up.lock'], 'nothing but its lock')
  t.match(await run(['doctor', '--http', http, '--head', 'http://127.0.0.1:9'], env), { out: new RegExp(`failed  address ${http}: listen EADDRINUSE`) })
})

t.test('cli: doctor asks of Redis what a head asks, at the durability that is set', needsRedis, async t => {
  const redis = await startRedis(t, { appendfsync: 'everysec' })
  const durable = async (...more: string[]): Promise<object | undefined> => {
    const { out } = await run(['doctor', '--json', '--redis', redis.url, '--http', '127.0.0.1:0', ...more], { PATH: process.env.PATH ?? '' })
    return (JSON.parse(out) as { checks: Array<{ what: string }> }).checks.find(({ what }) => what === 'redis for durable sessions')
  }
  t.match(await durable(), { state: 'failed', found: /appendfsync is everysec, must be always/ })
  t.match(await durable('--durability', 'process'), { state: 'ok' })
})

t.test('cli: a head that does not come to its end is not waited for', async t => {
  const clock = new ManualClock()
  const hurry = new AbortController()
  const said: string[] = []
  const log = { error: (_facts: object, text: string) => { said.push(text) } }
  const never = async (): Promise<void> => await new Promise(() => {})
  await endWithin(async () => {}, { clock, log, hurry: hurry.signal })
  const late = t.rejects(endWithin(never, { clock, log, hurry: hurry.signal }), { exitCode: 1, message: 'the head did not close within 18000 ms; ended as it stood' })
  await clock.advance(18_000)
  await late
  t.strictSame(said, ['head did not close in order'])
  const hurried = endWithin(never, { clock, log, hurry: hurry.signal })
  hurry.abort()
  await hurried
  t.equal(clock.pending, 0)
})

t.test('npm start: an option that nobody knows is refused before anything is built or started', async t => {
  const start = (...args: string[]): { status: number | null, stderr: string } => spawnSync(process.execPath, [asset('scripts/start.mjs'), ...args], { encoding: 'utf8' })
  for (const [args, why] of [[['--bla'], '--bla is not known here'], [['--rows', '0'], '--rows: a whole number above 0 is expected, not 0'], [['--http'], '--http needs a value'], [['--exit=1'], '--exit=1 is not known here'], [['book'], 'book is not known here']] as const) {
    t.match(start(...args), { status: 2, stderr: `npm start: ${why} (npm start -- --help shows what there is)\n` })
  }
})

t.test('cli: doctor says what is there and how to mend what is not', async t => {
  const { env } = await head(t, 200, { items: [{}, {}] })
  const { code, out } = await run(['doctor', '--json'], { ...env, PATH: process.env.PATH ?? '', SOA_HTTP: '127.0.0.1:0', SOA_REDIS: '/nowhere/redis.sock', SOA_STORE_TIMEOUT_MS: '100', HOME: '/tmp' })
  const { ok, checks } = JSON.parse(out) as { ok: boolean, checks: Array<{ what: string, state: string, found: string, mend?: string }> }
  t.strictSame([code, ok], [1, false], 'a Redis that is named and not there is a failure')
  t.match(checks.find(check => check.what === 'redis'), { state: 'failed', mend: /start it/ })
  t.match(checks.find(check => check.what === 'head'), { state: 'ok', found: /2 nodes/ })
  for (const what of ['node', 'setpriv', 'flock', 'redis-server']) t.match(checks.find(check => check.what === what), { state: 'ok' }, what)
})
