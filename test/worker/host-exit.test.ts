import t, { type Test } from 'tap'
import { exitHost } from '../../broker/worker/host-exit.ts'
import { silent } from '../../core/log.ts'
import { hostController } from '../../service-host/controller.ts'
import type { SoapCaller, SoapEndpoint } from '../../transport/channel.ts'
import { httpCaller } from '../../transport/http/connector.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import type { TaskInfo } from '../../store/placement-store.ts'

const LIMITS = { maxMessageSize: 65_536, maxHeaderBytes: 65_536, maxDepth: 64 }
const task: TaskInfo = { id: '3-1', sessionId: '7', node: 'n1', machineName: 'n1', state: 'Running', capacity: 1, firstCoreIndex: 0, at: '' }
const connect = (url: string): SoapCaller => httpCaller(url, { connections: 1, maxMessageSize: 65_536, addressing: 'wsa' })

async function listen (t: Test, endpoint: SoapEndpoint): Promise<string> {
  const listener = await listenHttp({ route: path => path === '/7/3-1/_defaultEndpoint/controller' ? endpoint : undefined, listen: { host: '127.0.0.1', port: 0 }, log: silent })
  t.teardown(() => listener.close())
  return `${listener.address}/7/3-1/_defaultEndpoint/controller`
}

t.test('exit: a host of ours takes it once and ends', async t => {
  let exits = 0
  const controller = await listen(t, hostController(LIMITS, () => { exits++ }))
  t.equal(await exitHost({ ...task, controller }, connect, silent), true)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(exits, 1)
})

t.test('exit: a host that has no controller, is gone, or serves something else there does not take it', async t => {
  t.equal(await exitHost(task, connect, silent), false)
  const calls: string[] = []
  const controller = await listen(t, { limits: LIMITS, async handle ({ reading }) { calls.push(reading.envelope.action); throw new Error('no') } })
  t.equal(await exitHost({ ...task, controller }, connect, silent), false)
  t.same(calls, ['http://hpc.microsoft.com/hpcservicehost/exit'], 'who has said no is not asked again')
  t.equal(await exitHost({ ...task, controller: controller.replace('controller', 'nothing') }, connect, silent), false)
  t.equal(await exitHost({ ...task, controller: 'http://127.0.0.1:1/controller' }, connect, silent), false)
})
