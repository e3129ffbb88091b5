import { EventEmitter, once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { Callers } from '../../client/callers.ts'
import { Session } from '../../client/index.ts'
import type { CallResult } from '../../transport/channel.ts'
import { tcpServer } from '../../transport/tcp/listener.ts'
import { FakeBroker } from './fake-broker.ts'

/** The fake broker over net.tcp, and how many sockets it has: `sockets.emit('count')` whenever that changes. */
async function overTcp (t: Test) {
  const broker = await FakeBroker.open(t)
  const sockets = Object.assign(new EventEmitter<{ count: [] }>(), { open: 0, ever: 0 })
  const server = tcpServer({ route: path => broker.endpoint(path), log: silent })
  const listener = createServer({ allowHalfOpen: true }, socket => {
    sockets.open++
    sockets.ever++
    sockets.emit('count')
    socket.once('close', () => { sockets.open--; sockets.emit('count') })
    server.take(socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  broker.netTcp = `net.tcp://127.0.0.1:${(listener.address() as AddressInfo).port}`
  t.teardown(async () => { listener.close(); await server.close() })
  const session = await Session.create({ service: 'Echo', head: broker.head, transport: 'netTcp' })
  t.teardown(() => session.detach())
  const until = async (count: number): Promise<void> => { while (sockets.open !== count) await once(sockets, 'count') }
  return { broker, session, sockets, until }
}

t.test('client: a purge lets go of the client\'s two connections over net.tcp, and of no other client\'s', async t => {
  const { session, sockets, until } = await overTcp(t)
  const anna = session.client('anna')
  const bert = session.client('bert')
  await bert.send('Echo', { input: 'b' })
  await bert.flush()
  const others = sockets.open
  await anna.send('Echo', { input: 'a' })
  await anna.flush()
  t.equal(sockets.open, others + 2, 'one for messages, one for its controller')
  await anna.purge()
  await until(others)
  await bert.requestsCount()
  t.equal(sockets.open, others, 'bert goes on over the connections that he has')
})

t.test('client: an id may be used again after its purge, over new connections, by the object that was purged and by the session', async t => {
  const { session, sockets, until, broker } = await overTcp(t)
  const anna = session.client('anna')
  await anna.send('Echo', { input: 'one' })
  await anna.flush()
  await anna.purge()
  await until(0)
  t.equal(session.client('ANNA'), anna, 'the same object')
  await anna.send('Echo', { input: 'two' })
  await anna.endRequests()
  const values: unknown[] = []
  for await (const response of anna.responses()) values.push(response.result())
  t.same([values.length, broker.committed, sockets.open, sockets.ever], [1, 1, 2, 4])
  await session.detach()
  await until(0)
})

t.test('client: a hundred ids, each used and purged, leave no connection', async t => {
  const { session, sockets, until } = await overTcp(t)
  for (let i = 0; i < 100; i++) {
    const client = session.client(`client ${i}`)
    await client.send('Echo', { input: 'x' })
    await client.flush()
    await client.purge()
  }
  await until(0)
  t.equal(sockets.ever, 200)
})

t.test('client: what is let go of while a call waits on it is closed behind the answer, and the next call has another', async t => {
  const made: Array<{ answer: (result: CallResult) => void, isClosed: boolean }> = []
  const callers = new Callers(() => {
    const one: (typeof made)[number] = { answer: () => {}, isClosed: false }
    made.push(one)
    return { call: () => new Promise(resolve => { one.answer = resolve }), close: async () => { one.isClosed = true } }
  })
  const call = (): Promise<CallResult> => callers.call('anna', { v: 1, soap: 12, enc: 'utf8', action: 'a', otherHeaders: [], prefixesInScope: [], body: Buffer.alloc(0) }, { timeoutMs: 1, signal: AbortSignal.timeout(60_000) })
  const first = call()
  await callers.release('anna')
  t.equal(made[0]?.isClosed, false, 'somebody waits')
  const second = call()
  made[0]?.answer({ outcome: 'accepted' })
  t.same(await first, { outcome: 'accepted' })
  t.same(made.map(({ isClosed }) => isClosed), [true, false])
  made[1]?.answer({ outcome: 'accepted' })
  await second
  await callers.close()
  t.same(made.map(({ isClosed }) => isClosed), [true, true])
})
