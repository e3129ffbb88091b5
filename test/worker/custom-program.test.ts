import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../core/clock.ts'
import type { BrokerClient } from '../../broker/worker/broker-client.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { eventually } from '../e2e/cluster.ts'
import { isAlive, proc, processes } from '../e2e/processes.ts'
import { HeldClock, openScript } from './custom-programs.ts'
import { FLUSH, never, openSession, reading, request, type OpenOptions, type TaskNews } from './open-session.ts'

t.setTimeout(240_000)

const textOf = (body: Uint8Array): string => Buffer.from(body).toString()
const answered = (sent: Envelope): CallResult => ({ outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) })
const send = async (client: BrokerClient, count: number, from = 0): Promise<void> => {
  for (let n = from; n < from + count; n++) await client.accept(request(n), -1, never)
}
const bodies = async (client: BrokerClient, count: number): Promise<string[]> => {
  const { responses } = await client.pull('Begin', count, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  return responses.map(({ envelope }) => textOf(envelope.body)).sort()
}

/** A session whose custom broker is this script. */
async function open (t: Test, script: string, { settings = {}, clock = systemClock, ...options }: OpenOptions = {}) {
  const program = await openScript(t, script, { settings, clock })
  const opened = await openSession({ durable: true, clock: systemClock, program, settings, ...options })
  t.teardown(() => opened.session.close('destroyed'))
  return { ...opened, folder: program.folder, told: () => existsSync(join(program.folder, 'told')) ? readFileSync(join(program.folder, 'told'), 'utf8').trim().split('\n') : [] }
}
const TELL = 'import { appendFileSync } from \'node:fs\'\nconst tell = text => appendFileSync(\'told\', text + \'\\n\')'

t.test('a program decides as a class does: what it replaces, answers, refuses and scatters, and what it makes of responses', async t => {
  const { session, client } = await open(t, `serve({
    onRequest: ({ request: { userData, body } }) => ({ result: [
      'pass',
      { answer: { body: '<cached/>' } },
      { replace: { body: '<n>two</n>' } },
      { refuse: 'InvalidArgument', why: 'no threes: ' + body },
      { scatter: [{ body: '<n>l</n>' }, { body: '<n>r</n>' }] }
    ][userData] }),
    onResponse: ({ request, response }) => request.userData === '2' ? { result: { body: '<stamped by="' + request.clientId + '">' + response.body + '</stamped>' } } : {},
    onGather: ({ parts }) => ({ result: { body: '<all>' + parts.map(({ body }) => body).join('') + '</all>' } })
  })`)
  const c = client('Ada')
  await send(c, 3)
  await t.rejects(c.accept(request(3), -1, never), /no threes: <n>3<\/n>/)
  await c.accept(request(4), -1, never)
  await c.endRequests(4, FLUSH)
  t.same(await bodies(c, 4), ['<all><n>l</n><n>r</n></all>', '<cached/>', '<n>0</n>', '<stamped by="Ada"><n>two</n></stamped>'])
  t.match(session.counters.view(), { total: 4, processed: 4, faulted: 0 })
})

t.test('a program is told of tasks and of the job, in order, and of the end', async t => {
  const news: TaskNews = new EventEmitter()
  const { session, told } = await open(t, `${TELL}
    serve({
      onTaskStateChanged: async ({ tasks }) => { await new Promise(resolve => setTimeout(resolve, 5)); for (const { Id, State, Capacity, MachineName } of tasks) tell([Id, State, Capacity, MachineName].join(' ')) },
      onJobStateChanged: ({ state }) => tell(state),
      onSessionEnd: ({ why }) => tell(why)
    }, { concurrency: 8 })`, { news, instances: 0 })
  const task = { id: '1-0', sessionId: '7', node: 'n1', machineName: 'n1', capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '' }
  for (const state of ['Running', 'Canceling', 'Canceled'] as const) news.emit('tasks', [{ ...task, state }])
  await eventually('it was told of the last', () => told().length === 4)
  await session.close('destroyed')
  t.same(told(), ['Running', '1-0 Running 1 n1', '1-0 Canceling 1 n1', '1-0 Canceled 1 n1', 'Finished', 'closed'])
})

t.test('state: what answers keep is stored with the request or response, and given to the next program', async t => {
  const store = new MemoryMessageStore()
  store.close = async () => {}
  const script = `let seen = 0, answered = 0
    serve({
      onSessionStart: ({ state }) => { writeFileSync('state', JSON.stringify(state)) },
      onRequest: ({ request }) => ({ state: { set: { seen: ++seen, ['last ' + request.clientId]: request.userData, gone: 1 }, delete: ['gone'] } }),
      onResponse: () => ({ state: { set: { answered: ++answered }, delete: ['gone'] } })
    })`
  const first = await open(t, script, { store })
  await send(first.client(), 5)
  await first.client().endRequests(5, FLUSH)
  await bodies(first.client(), 5)
  const { folder } = await open(t, script, { store })
  t.same(JSON.parse(readFileSync(join(folder, 'state'), 'utf8')), { seen: 5, 'last c': '4', answered: 5 })
})

t.test('chooseDispatcher: each request goes where the program says, and it is asked about many at once', async t => {
  const at = new Map<string, string[]>()
  const { client, told } = await open(t, `${TELL}
    serve({ chooseDispatcher: ({ requests, dispatchers }) => {
      tell(requests.length + ' ' + (requests.some(request => 'body' in request) ? 'with' : 'without') + ' bodies')
      const ids = dispatchers.map(({ id }) => id).sort()
      return { result: requests.map(({ userData }) => ids.length < 3 ? 'wait' : ids[userData % 3]) }
    } })`, {
    instances: 3,
    connect: ({ id }) => ({ call: async sent => { at.set(id, [...at.get(id) ?? [], textOf(sent.body)]); return answered(sent) }, close: async () => {} })
  })
  const c = client()
  await send(c, 600)
  await c.endRequests(600, FLUSH)
  t.equal((await bodies(c, 600)).length, 600)
  for (const [n, id] of ['1-0', '1-1', '1-2'].entries()) t.ok(at.get(id)?.every(body => Number(/\d+/.exec(body)?.[0]) % 3 === n), `${id} got only its own`)
  t.equal([...at.values()].flat().length, 600)
  const asked = told()
  t.ok(asked.every(line => line.endsWith('without bodies') && parseInt(line) <= 256))
  t.ok(asked.length < 400, `${asked.length} questions about 600 requests`)
})

t.test('chooseDispatcher: who waits is asked again when something changes, and about 300 that wait for others nobody is stuck', async t => {
  const news: TaskNews = new EventEmitter()
  const { session, client } = await open(t, `serve({ chooseDispatcher: ({ requests, dispatchers }) => ({
    result: requests.map(({ userData }) => userData >= 300 ? 'any' : dispatchers.length > 1 ? 'any' : 'wait') }) })`, { instances: 1, news })
  const c = client()
  await send(c, 301)
  await c.endRequests(301, FLUSH)
  t.same(await bodies(c, 1), ['<n>300</n>'], 'the one that does not wait')
  t.match(session.counters.view(), { processed: 1 })
  news.emit('tasks', [{ id: '2-0', sessionId: '7', node: 'n2', machineName: 'n2', state: 'Running', capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '' }])
  t.equal((await bodies(c, 301)).length, 301)
})

t.test('chooseDispatcher: what a choice keeps is stored before any request is sent by it', async t => {
  const store = new MemoryMessageStore()
  let keptAtCall: string | undefined
  const { client } = await open(t, 'serve({ chooseDispatcher: ({ requests, dispatchers }) => ({ result: requests.map(() => dispatchers[0].id), state: { set: { home: dispatchers[0].id } } }) })', {
    store,
    answer: async sent => { keptAtCall ??= (await store.state()).entries.get('home'); return answered(sent) }
  })
  await send(client(), 1)
  await client().endRequests(1, FLUSH)
  await bodies(client(), 1)
  t.equal(keptAtCall, '"1-0"')
})

t.test('a program that crashes is started again, told all it knew, and asked again what it owed; nothing is lost or counted twice', async t => {
  const { session, states, client, told } = await open(t, `${TELL}
    const n = starts()
    let seen = 0
    serve({
      onSessionStart: ({ state, session }) => { seen = state.seen ?? 0; tell('start ' + JSON.stringify(state) + session.id) },
      onRequest: ({ request }) => { if (n === 1 && request.userData === '2') process.kill(process.pid, 'SIGKILL'); return { state: { set: { seen: ++seen } } } },
      onTaskStateChanged: ({ tasks }) => tell(tasks.map(({ Id }) => Id).join()),
      onJobStateChanged: ({ state }) => tell(state),
      onResponse: ({ request }) => { if (n === 2 && request.userData === '3') process.exit(3); return { result: { body: '<r>' + request.userData + '</r>' } } }
    })`)
  const c = client()
  await send(c, 5)
  await c.endRequests(5, FLUSH)
  t.same(await bodies(c, 5), [0, 1, 2, 3, 4].map(n => `<r>${n}</r>`))
  t.same(states, [])
  t.equal(session.state, 'Running')
  t.same(told(), ['start {}7', 'Running', '1-0', 'start {"seen":2}7', 'Running', '1-0', 'start {"seen":5}7', 'Running', '1-0'])
})

t.test('an idle program that is killed is started again at once, and its session never notices', async t => {
  const { states, client, folder } = await open(t, 'starts(); writeFileSync(\'pid\', String(process.pid)); serve({ onResponse: () => ({}) })')
  process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
  await eventually('it is started again', () => readFileSync(join(folder, 'starts'), 'utf8') === '2')
  await send(client(), 1)
  await client().endRequests(1, FLUSH)
  t.same(await bodies(client(), 1), ['<n>0</n>'])
  t.same(states, [])
})

const ON_REQUEST = (does: string, before = ''): string => `${before}\nserve({ onRequest: ({ request }, res) => { ${does} } })`
const BROKEN: Array<[what: string, script: string, why: RegExp]> = [
  ['throws', ON_REQUEST('throw new Error(\'boom\')'), /^custom broker test \(\S+ program\.mjs\): onRequest answered with status 500: boom; its last lines: boom$/],
  ['hangs', ON_REQUEST('writeFileSync(\'asked\', \'\'); return new Promise(() => {})'), /: onRequest did not return within 20000 ms \(hookTimeoutMs\)/],
  ['stops in the middle of an answer', ON_REQUEST('res.writeHead(200, { \'content-length\': 100 }); res.write(\'{\', () => writeFileSync(\'asked\', \'\')); return res'), /: onRequest did not return within 20000 ms \(hookTimeoutMs\)/],
  ['answers garbage', ON_REQUEST('return \'<html>\''), /: onRequest answered what is no JSON \(.*\): <html>/],
  ['answers a list', ON_REQUEST('return []'), /: onRequest gave back what is no answer: an answer is an object, not \[\]/],
  ['answers beside the point', ON_REQUEST('return { verdict: \'pass\' }'), /: onRequest gave back what is no answer: an answer has result, state; it had "verdict"/],
  ['gives a verdict that is none', ON_REQUEST('return { result: { anwser: 1 } }'), /: onRequest gave back what is no answer: .*"anwser":1/],
  ['gives markup that is none', ON_REQUEST('return { result: { answer: { body: \'<a>\' } } }'), /: onRequest gave back what is no answer: answer\.body/],
  ['keeps too much', ON_REQUEST('return { state: { set: { big: \'x\'.repeat(2000) } } }'), /: onRequest gave back what is no answer: state would have \d+ bytes, the limit is 1000 \(maxStateBytes\)/],
  ['answers without end', ON_REQUEST('const more = () => { while (res.write(\'x\'.repeat(65536))); res.once(\'drain\', more) }; res.writeHead(200); more(); return res'), /: onRequest answered \d+ bytes or more, the limit is \d+/],
  ['hangs up', ON_REQUEST('res.socket.destroy(); return res'), /: onRequest closed the connection without an answer/],
  ['leaves', ON_REQUEST('process.exit(0)'), /: its program ended with exit code 0 during onRequest, and its session had not ended/],
  ['crashes each time', ON_REQUEST('console.error(\'poison\'); process.exit(9)'), /: its program ended with exit code 9 during onRequest, and had been started again 3 times; its last lines: poison/],
  ['does not come back', ON_REQUEST('process.exit(9)', 'if (starts() > 1) process.exit(4)'), /: its program was started again 3 times: the custom broker .* ended before it was ready: exit code 4/],
  ['has forgotten a hook', 'serve({ onRequest: () => process.exit(9), ...starts() > 1 ? {} : { onResponse: () => ({}) } })', /: its program was started again 1 times: it no longer has onResponse/],
  ['chooses too few', 'serve({ chooseDispatcher: () => ({ result: [] }) })', /: chooseDispatcher gave back 0 choices for 1 requests/],
  ['chooses nobody', 'serve({ chooseDispatcher: () => ({ result: [\'nobody\'] }) })', /: chooseDispatcher gave back "nobody"/],
]
for (const [what, script, why] of BROKEN) {
  t.test(`a program that ${what}: its session fails, and says which hook`, async t => {
    const clock = new HeldClock(20_000)
    const { session, states, whys, client, folder } = await open(t, script, { clock, settings: { hookTimeoutMs: 20_000, maxStateBytes: 1000, maxMessageSize: 2000 } })
    const c = client()
    if (why.source.includes('hookTimeoutMs')) void eventually('it is asked', () => existsSync(join(folder, 'asked'))).then(() => clock.over())
    await c.accept(request(1), -1, never).then(() => c.endRequests(1, FLUSH)).catch((error: Error) => t.match(error.message, why.source.startsWith('^') ? /onRequest/ : why, 'whoever sent it learns why'))
    await eventually('it has failed', () => states.length > 0)
    t.same(states, ['Failed'])
    t.match(whys, [why])
    t.match(session.readEnd(), { fault: 'Broker_SessionFailure' })
  })
}

t.test('megabytes on stderr are read and do not fail anything; the last lines are told', async t => {
  const { states, client } = await open(t, `serve({ onRequest: async ({ request }) => {
    for (let i = 0; i < 64; i++) if (!process.stderr.write(('line ' + i + ' ').repeat(8000) + '\\n')) await new Promise(resolve => process.stderr.once('drain', resolve))
    if (request.userData === '1') { process.stderr.write('this is why\\n'); throw new Error('no') }
    return {}
  } })`)
  await client().accept(request(0), -1, never)
  t.same(states, [])
  await t.rejects(client().accept(request(1), -1, never), /onRequest answered with status 500: no; its last lines: [^]{0,1500}this is why/)
})

const UNREADY: Array<[what: string, script: string, fault: string, says: RegExp, element?: string]> = [
  ['is not there', '', 'Broker_InvalidConfiguration', /customBroker\/@executive: .*nothing-here is not on this machine/, '<customBroker executive="./nothing-here"/>'],
  ['is not on PATH', '', 'Broker_CustomBrokerExitBeforeReady', /soa-no-such-program ended before it was ready: exit code 127; its last lines: .*not found/, '<customBroker executive="soa-no-such-program"/>'],
  ['ends before it is ready', 'console.error(\'no licence\'); process.exit(2)', 'Broker_CustomBrokerExitBeforeReady', /program\.mjs ended before it was ready: exit code 2; its last lines: no licence/],
  ['never listens', 'setInterval(() => {}, 1000)', 'Broker_CustomBrokerReadyTimeout', /program\.mjs was not ready within 300 ms/],
  ['is busy for ever', 'createServer((req, res) => res.writeHead(503).end()).listen(url.port, url.hostname)', 'Broker_CustomBrokerReadyTimeout', /was not ready within 300 ms/],
  ['says another thing than what it is', 'createServer((req, res) => res.end(\'hello\')).listen(url.port, url.hostname)', 'Broker_InvalidConfiguration', /GET \/ answered what is no JSON .*hello/],
  ['has no hook', 'serve({})', 'Broker_InvalidConfiguration', /GET \/ gave back what is no description: hooks names none of onSessionStart/],
  ['has a hook that is none', 'serve({ onReqest: 1 })', 'Broker_InvalidConfiguration', /"onReqest" is none of it/],
  ['takes too many calls at a time', 'serve({ onRequest: 1 }, { concurrency: 65 })', 'Broker_InvalidConfiguration', /concurrency is a whole number from 1 to 64, not 65/],
]
for (const [what, script, fault, says, element] of UNREADY) {
  t.test(`a program that ${what} opens no session, and is gone`, async t => {
    const settings = { hookTimeoutMs: fault === 'Broker_CustomBrokerReadyTimeout' ? 300 : 20_000 }
    const error = await openScript(t, script, { settings, ...(element === undefined ? {} : { element }) }).then(() => undefined, (error: Error & { fault?: string }) => error)
    t.equal(error?.fault, fault)
    t.match(error?.message, says)
  })
}

t.test('a program that is not ready at first is waited for', async t => {
  const { client } = await open(t, `let busy = 3
    const { port, hostname } = url
    createServer(async (req, res) => {
      await whole(req)
      if (busy-- > 0) return res.writeHead(503).end()
      res.end(req.method === 'GET' ? '{ "name": "slow", "hooks": ["onRequest"] }' : '')
    }).listen(port, hostname)`)
  await send(client(), 1)
  await client().endRequests(1, FLUSH)
  t.same(await bodies(client(), 1), ['<n>0</n>'], 'an empty answer is no result')
})

t.test('environment: that of the worker without this house\'s settings, the file\'s variables, and what it is for', async t => {
  const element = `<customBroker executive="${process.execPath}" arguments="program.mjs &quot;two words&quot;"><environmentVariables><add name="LEVEL" value="2"/><add name="CCP_JOBID" value="mine"/></environmentVariables></customBroker>`
  const { folder, close } = await openScript(t, 'writeFileSync(\'env\', JSON.stringify({ env: process.env, args: process.argv.slice(2), cwd: process.cwd() })); serve({ onRequest: 1 })',
    { element, settings: { hookTimeoutMs: 12_345 }, env: { PATH: process.env.PATH, HOME: '/home/x', SOA_REDIS_URL: 'redis://:secret@h', SOA_WORKER_SPEC: '{"redisUrl":"redis://:secret@h"}' } })
  const { env, args, cwd } = JSON.parse(readFileSync(join(folder, 'env'), 'utf8')) as { env: Record<string, string>, args: string[], cwd: string }
  t.match(env, { HOME: '/home/x', LEVEL: '2', CCP_JOBID: '7', CCP_SERVICENAME: 'Echo', SOA_LISTEN_URL: /^http:\/\/127\.0\.0\.1:\d+\/$/ })
  t.match(JSON.parse(env.SOA_SESSION ?? ''), { id: '7', service: 'Echo', isDurable: true, settings: { hookTimeoutMs: 12_345 } })
  t.notMatch(JSON.stringify(env), /rediss?:\/\//i, 'where the store is, it is not told')
  t.same(Object.keys(env).filter(name => name.startsWith('SOA_')).sort(), ['SOA_LISTEN_URL', 'SOA_SESSION'])
  t.same([args, cwd], [['two words'], folder])
  await close()
})

t.test('canceled while the program has a response in hand: the session is canceled, and does not fail by the program\'s end', async t => {
  const { session, states, client, folder } = await open(t, 'serve({ onResponse: () => { writeFileSync(\'asked\', \'\'); return new Promise(() => {}) } })')
  await send(client(), 1)
  await client().endRequests(1, FLUSH)
  await eventually('it has the response', () => existsSync(join(folder, 'asked')))
  const program = processes().filter(({ commandLine, pid }) => commandLine.endsWith('program.mjs') && readlinkSync(`/proc/${pid}/cwd`) === folder)
  t.equal(program.length, 1)
  await session.cancel()
  await eventually('the program has ended', () => !program.some(isAlive))
  await new Promise(resolve => setImmediate(resolve))
  t.same(states, ['Canceled'])
  t.equal(session.state, 'Canceled')
})

t.test('killed with -9, a worker takes its program with it, and what that has started', async t => {
  const folder = t.testdir()
  const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href)
  const worker = spawn(process.execPath, ['--input-type=module', '-e', `
    const { ProgramProcess } = await import(${url('../../broker/worker/custom-program-process.js')})
    const { systemClock } = await import(${url('../../core/clock.js')})
    const { silent } = await import(${url('../../core/log.js')})
    new ProgramProcess({ command: '/bin/sh', args: ['-c', 'sleep 1000 & echo $$ $! > pids.new; mv pids.new pids; wait'], env: { PATH: process.env.PATH }, cwd: process.argv[1] }, { clock: systemClock, log: silent })
    setInterval(() => {}, 1000)`, folder], { stdio: ['ignore', 'ignore', 'inherit'] })
  t.teardown(() => worker.kill('SIGKILL'))
  await eventually('they run', () => existsSync(join(folder, 'pids')))
  const started = readFileSync(join(folder, 'pids'), 'utf8').trim().split(' ').map(pid => proc(Number(pid)))
  t.equal(started.filter(one => one !== undefined).length, 2)
  worker.kill('SIGKILL')
  await eventually('they are gone', () => started.every(one => one === undefined || !isAlive(one)))
})

t.test('at the end it gets SIGTERM, and whatever it has started goes too', async t => {
  const program = await openScript(t, `import { spawn } from 'node:child_process'
    const child = spawn('sleep', ['1000'])
    process.on('SIGTERM', () => { writeFileSync('term', 'yes'); process.exit(0) })
    writeFileSync('pids', [process.pid, child.pid].join(' '))
    serve({ onRequest: 1 })`)
  const pids = readFileSync(join(program.folder, 'pids'), 'utf8').split(' ').map(pid => proc(Number(pid)))
  t.equal(pids.filter(one => one !== undefined).length, 2)
  await program.close()
  await eventually('both are gone', () => pids.every(one => one === undefined || !isAlive(one)))
  t.equal(readFileSync(join(program.folder, 'term'), 'utf8'), 'yes')
})
