import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { loadServiceFile } from '../../config/load-services.ts'
import { asset } from '../../core/assets.ts'
import { needsRedis } from '../redis-server.ts'
import { LISTENER, eventually, openGrid, processesOf } from './grid.ts'

/** Our own host speaks HTTP on its net.tcp port too. */
const overHttp = ({ address = '' }: { address?: string | undefined }): string => address.replace(/^net\.tcp:/, 'http:')

let sessions = process.pid * 100
const newSession = (): string => String(++sessions)

t.test('node manager', needsRedis, async t => {
  const grid = await openGrid(t)
  await grid.script('Listen', LISTENER)
  const n1 = await grid.node('n1', 4, { LANG: 'C.UTF-8' })

  t.test('node: a JavaScript module runs in our own host, and what the host was told does not lie about', async t => {
    await grid.services.put(await loadServiceFile(asset('examples/services/CcpEchoSvc/CcpEchoSvc.config')))
    const id = newSession()
    await grid.demand(id, 'CcpEchoSvc')
    const task = await grid.until(id, ({ state }) => state === 'Running' || state === 'Failed')
    t.equal(task.state, 'Running', task.exit?.stderr ?? '')
    t.match(task.address, /^net\.tcp:/)
    t.match(await (await fetch(`${overHttp(task)}?wsdl`)).text(), /definitions/)
    t.same(await readdir(n1.runDir), [])
    await grid.board.remove(id)
    t.match(await grid.until(id, ({ state }) => state === 'Canceled'), { exit: { code: 0, why: 'exit code 0' } }, 'it ends by itself when asked to')
    await grid.board.remove(id, { forget: true })
  })

  t.test('node: a task is Running when its port accepts, and is canceled when nobody wants it any more', async t => {
    const id = newSession()
    await grid.demand(id, 'Listen', { target: 2 })
    const task = await grid.until(id, ({ state }) => state === 'Running')
    const answer = await fetch(overHttp(task))
    t.equal(await answer.text(), task.id, 'the host of this very task answers')
    t.ok((await processesOf(id)).includes(task.pid ?? -1), 'under the pid that was told')
    await grid.board.remove(id)
    t.match(await grid.until(id, ({ id, state }) => id === task.id && state === 'Canceled'), { exit: { signal: 'SIGTERM' } })
    await eventually(async () => (await grid.tasks(id)).length === 0)
    t.same(await processesOf(id), [], 'nothing runs, grandchildren neither')
  })

  t.test('node: a host gets HPC Pack\'s variables, the service\'s and the session\'s, and nothing of the broker\'s', async t => {
    const id = newSession()
    const dump = join(grid.dir, 'env.txt')
    await grid.demand(id, 'Listen', { environment: { DUMP: dump, FROM_SESSION: 'yes', CCP_JOBID: 'forged' }, coresPerUnit: 2 })
    const task = await grid.until(id, ({ state }) => state === 'Running')
    const env = Object.fromEntries((await readFile(dump, 'utf8')).trimEnd().split('\n').map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    await grid.board.remove(id, { forget: true })
    t.match(env, {
      CCP_JOBID: id, CCP_TASKINSTANCEID: task.id, CCP_TASKSYSTEMID: /^\d+$/, CCP_NUMCPUS: '2', CCP_COREIDS: '0 1', CCP_SERVICENAME: 'Listen', CCP_SERVICE_CONFIG_FILENAME: join(grid.dir, 'Listen.config'),
    })
    t.match(env, {
      CCP_CANCEL_TASK_GRACEPERIOD: '1', CCP_SERVICE_INITIALIZATION_TIMEOUT: '60000', CCP_MESSAGE_LEVEL_PREEMPTION: 'True', FROM_SERVICE: 'yes', FROM_SESSION: 'yes', LANG: 'C.UTF-8',
    })
    t.same(Object.keys(env).filter(name => !/^(CCP_|FROM_)/.test(name)).sort(), ['DUMP', 'HOME', 'LANG', 'NODE', 'PATH', 'PWD', 'SOA_HOST_ID', 'SOA_LISTEN_URL'].sort(), 'a list of what is let through')
    t.notMatch(JSON.stringify(env), /hunter2|redis\.sock/)
  })

  t.test('node: a host that does not listen in time is killed, and the failure says why with its last words', async t => {
    await grid.script('Deaf', '#!/bin/sh\necho "thinking hard" >&2\nsleep 1000\n', 'serviceInitializationTimeout="700"')
    const id = newSession()
    await grid.demand(id, 'Deaf')
    const task = await grid.until(id, ({ state }) => state === 'Failed')
    t.match(task.exit, { signal: 'SIGKILL', stderr: 'thinking hard\n', why: 'did not accept connections within 700 ms (serviceInitializationTimeout)' })
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await processesOf(id)).length === 0)
  })

  t.test('node: a host that ends at once fails, is tried again more and more rarely, and does not hurt others', async t => {
    await grid.script('Broken', '#!/bin/sh\necho "no licence" >&2\nexit 7\n')
    const id = newSession()
    const other = newSession()
    await grid.demand(id, 'Broken', { target: 1 })
    const first = await grid.until(id, ({ state }) => state === 'Failed')
    t.match(first.exit, { code: 7, stderr: 'no licence\n', why: 'exit code 7 before it accepted connections' })
    const second = await grid.until(id, ({ id, state }) => state === 'Failed' && id !== first.id)
    t.ok(Date.parse(second.at) - Date.parse(first.at) > 400, 'not at once')
    await grid.demand(other, 'Listen')
    t.match(await grid.until(other, ({ state }) => state === 'Running'), { node: 'n1' })
    await Promise.all([id, other].map(session => grid.board.remove(session, { forget: true })))
  })

  t.test('node: a host whose port was taken meanwhile gets another one', async t => {
    await grid.script('Unlucky', LISTENER.replace('exec', `if [ ! -e "${grid.dir}/once" ]; then touch "${grid.dir}/once"; echo "listen EADDRINUSE: address already in use" >&2; exit 1; fi\nexec`))
    const id = newSession()
    await grid.demand(id, 'Unlucky')
    const found = await grid.until(id, ({ state }) => state !== 'Dispatching')
    t.equal(found.state, 'Running', 'the session never hears of it')
    await grid.board.remove(id, { forget: true })
  })

  t.test('node: an executable or a service that is not there fails with its name', async t => {
    const id = newSession()
    await grid.demand(id, 'Nowhere')
    t.match((await grid.until(id, ({ state }) => state === 'Failed')).exit?.why, /no service Nowhere is registered/)
    await grid.board.remove(id, { forget: true })
  })

  t.test('node: a host that ends with 0 while it runs is Finished, and another takes its place while it is wanted', async t => {
    await grid.script('Brief', LISTENER.replace('.listen(', '.on("request", () => setImmediate(() => process.exit(0))).listen('))
    const id = newSession()
    await grid.demand(id, 'Brief')
    const task = await grid.until(id, ({ state }) => state === 'Running')
    await fetch(overHttp(task)).catch(() => {})
    t.match(await grid.until(id, ({ state }) => state === 'Finished'), { id: task.id, exit: { code: 0 } })
    t.ok(await grid.until(id, ({ id, state }) => state === 'Running' && id !== task.id))
    await grid.board.remove(id, { forget: true })
    await eventually(async () => (await processesOf(id)).length === 0)
  })
})
