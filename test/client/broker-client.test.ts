import t, { type Test } from 'tap'
import { SoaError } from '../../core/errors.ts'
import { DurableSession, Session, type BrokerClient, type ClientOptions, type Response } from '../../client/index.ts'
import { FakeBroker } from './fake-broker.ts'

async function open (t: Test, options: ClientOptions = {}): Promise<{ broker: FakeBroker, session: Session, client: BrokerClient }> {
  const broker = await FakeBroker.open(t)
  const session = await DurableSession.create({ service: 'Echo', head: broker.head, retryForMs: 10_000 })
  t.teardown(() => session.detach())
  return { broker, session, client: session.client('C', options) }
}
async function collect (responses: AsyncIterable<Response>): Promise<Response[]> {
  const all: Response[] = []
  for await (const response of responses) all.push(response)
  return all
}
const send = (client: BrokerClient, n: number): Promise<string[]> => Promise.all(Array.from({ length: n }, (_, i) => client.send('Echo', { input: `i${i}` }, { userData: String(i) })))
const refusal = (fault: string): Error => ({ fault }) as unknown as Error
const userDataOf = (responses: Response[]): number[] => responses.map(response => Number(response.userData)).sort((a, b) => a - b)
const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

t.test('client: a hundred requests come back once each, with their user data, message id, operation and value', async t => {
  const { broker, client } = await open(t)
  const ids = await send(client, 100)
  t.equal(await client.endRequests(), 100)
  const responses = await collect(client.responses())
  t.same(userDataOf(responses), numbers(100))
  for (const response of responses) {
    t.equal(response.messageId, ids[Number(response.userData)])
    t.same([response.op, response.result()], ['Echo', { EchoResult: `node:i${response.userData}` }])
  }
  t.equal(await client.status(), 'Finished')
  t.equal(await client.requestsCount(), 100)
  t.equal(new Set(broker.requests.map(kept => kept.batchId)).size, 1, 'one batch id for all')
  t.ok((broker.requests[0]?.batchId ?? -1) > 0)
})

t.test('client: an interactive session sends no batch id', async t => {
  const broker = await FakeBroker.open(t)
  await using session = await Session.create({ service: 'Echo', head: broker.head })
  await session.client('C').send('Echo', { input: 'x' })
  t.match(broker.requests, [{ batchId: -1, envelope: { clientId: 'C' } }])
})

t.test('client: no more than the window are in flight', async t => {
  const { broker, client } = await open(t, { window: 3 })
  let release = (): void => {}
  broker.gate = new Promise(resolve => { release = resolve })
  const three = broker.arrived('Echo', 3)
  const calls = Promise.all(numbers(30).map(i => client.call('Echo', { input: `i${i}` })))
  await three
  release()
  t.equal((await calls).length, 30)
  t.equal(broker.most, 3)
})

for (const [trouble, name] of [['unavailable', 'the broker is not there yet'], ['cutBefore', 'the connection breaks before the broker has it'], ['cutAfter', 'the answer is lost']] as const) {
  t.test(`client: a send is made again with the same message id when ${name}, and counts once`, async t => {
    const { broker, client } = await open(t)
    broker.troubles.Echo = [trouble, trouble]
    const id = await client.send('Echo', { input: 'x' }, { userData: 'u' })
    t.same(new Set([id, ...broker.messageIds]), new Set([id]))
    t.equal(broker.log.filter(entry => entry === 'Echo').length, 3)
    t.equal(await client.endRequests(), 1)
    t.same((await collect(client.responses())).map(response => response.userData), ['u'])
  })
}

for (const fault of ['Broker_BrokerSuspending', 'Broker_BrokerUnavailable'] as const) {
  t.test(`client: a send refused with ${fault} is made again`, async t => {
    const { broker, client } = await open(t)
    broker.troubles.Echo = [new SoaError(fault, { sessionId: '4711' })]
    await client.send('Echo', { input: 'x' })
    t.equal(broker.requests.length, 1)
  })
}

t.test('client: a send that the broker refuses is not made again', async t => {
  const { broker, client } = await open(t)
  broker.troubles.Echo = [new SoaError('Broker_AlreadyClosed', {})]
  await t.rejects(client.send('Echo', { input: 'x' }), { name: 'SoapFaultError', code: 0x0100001b, fault: 'Broker_AlreadyClosed' } as object as Error)
  t.equal(broker.log.filter(entry => entry === 'Echo').length, 1)
})

t.test('client: gives up a send after retryForMs, and says what happened', async t => {
  const { broker, client } = await open(t, { retryForMs: 1 })
  broker.troubles.Echo = Array.from({ length: 20 }, () => 'unavailable')
  await t.rejects(client.send('Echo', { input: 'x' }), { name: 'ConnectionError', message: /send Echo: gave up after .*503.*no broker/ })
})

t.test('client: a flush after sends that failed, and may have arrived or not, covers what the broker has', async t => {
  const { broker, client } = await open(t, { retryForMs: 0 })
  await send(client, 3)
  broker.troubles.Echo = ['cutAfter', 'cutBefore']
  const failed = await Promise.allSettled([client.send('Echo', { input: 'arrived' }), client.send('Echo', { input: 'lost' })])
  t.same(failed.map(end => end.status), ['rejected', 'rejected'])
  t.equal(await client.flush(), 4)
})

for (const name of ['Flush', 'EndRequests'] as const) {
  const call = (client: BrokerClient): Promise<number> => name === 'Flush' ? client.flush() : client.endRequests()
  t.test(`client: a ${name} whose answer was lost is not said again`, async t => {
    const { broker, client } = await open(t)
    await send(client, 5)
    broker.troubles[name] = ['cutAfter']
    t.equal(await call(client), 5)
    t.equal(broker.log.filter(entry => entry === name).length, 1)
  })

  t.test(`client: a ${name} that never arrived is said again`, async t => {
    const { broker, client } = await open(t)
    await send(client, 5)
    broker.troubles[name] = ['cutBefore', 'unavailable']
    t.equal(await call(client), 5)
    t.equal(broker.committed, 5)
  })
}

t.test('client: a flush counts what was sent since the last one, and none is no exchange', async t => {
  const { broker, client } = await open(t)
  t.equal(await client.flush(), 0)
  t.same(broker.log.filter(entry => entry === 'Flush'), [])
  await send(client, 2)
  t.equal(await client.flush(), 2)
  await send(client, 3)
  t.equal(await client.flush(), 3)
  t.equal(await client.endRequests(), 0)
  t.equal(broker.committed, 5)
})

t.test('client: a flush waits for the sends in flight', async t => {
  const { client } = await open(t)
  const sends = send(client, 50)
  await client.send('Echo', { input: 'the service is open now' })
  t.equal(await client.flush(), 51)
  await sends
})

t.test('client: nothing is sent after EndRequests, and the second EndRequests is refused by the broker', async t => {
  const { broker, client } = await open(t)
  await send(client, 1)
  await client.endRequests()
  await t.rejects(client.send('Echo', { input: 'late' }), refusal('Broker_EOMReject_EndRequests'))
  await t.rejects(client.endRequests(), refusal('Broker_EOMReject_EndRequests'))
  t.equal(broker.requests.length, 1)
})

t.test('client: EndRequests of a program that only joins covers what those before it sent', async t => {
  const { broker, client } = await open(t)
  await send(client, 3)
  await using session = await DurableSession.attach(broker.sessionId, { head: broker.head })
  t.equal(await session.client('C').endRequests(), 3)
  t.equal(broker.committed, 3)
})

t.test('client: a flush that covered nothing, because another program took over the client id, does not pass for success', async t => {
  const { broker, client } = await open(t)
  await send(client, 2)
  broker.isOvertaken = true
  await t.rejects(client.flush(), { fault: 'Broker_FlushRejected', message: /covered 0 of 2 requests; another program has taken over client id "C"/ } as object as Error)
})

for (const [name, troubles, restarts] of [
  ['a page is lost after the broker gave it', ['cutAfter', undefined, 'cutAfter'], false],
  ['the broker is not there for a while', ['unavailable', undefined, 'unavailable', 'cutBefore'], false],
  ['the broker forgets its place between two pages', [], true]
] as const) {
  t.test(`client: every response comes once when ${name}`, async t => {
    const { broker, client } = await open(t)
    await send(client, 40)
    await client.endRequests()
    broker.troubles.PullResponses = [...troubles]
    const got: Response[] = []
    for await (const response of client.responses()) {
      got.push(response)
      if (restarts && (got.length === 3 || got.length === 20)) broker.restart()
    }
    t.same(userDataOf(got), numbers(40))
  })
}

t.test('client: responses go on where an iteration was left, and from the beginning when asked for', async t => {
  const { client } = await open(t)
  await send(client, 20)
  await client.endRequests()
  const first: Response[] = []
  for await (const response of client.responses()) { first.push(response); if (first.length === 6) break }
  const rest = await collect(client.responses({ from: 'current' }))
  t.same(userDataOf([...first, ...rest]), numbers(20))
  t.same(userDataOf(await collect(client.responses())), numbers(20))
})

t.test('client: a newer iteration ends an older one', async t => {
  const { client } = await open(t)
  await send(client, 5)
  await client.endRequests()
  const older = client.responses()
  await older.next()
  const newer = client.responses()
  await newer.next()
  await t.rejects(older.next(), { message: /newer iteration/ })
})

t.test('client: a service\'s fault is that response\'s fault, thrown by result()', async t => {
  const { broker, client } = await open(t)
  broker.answer = input => input === 'i1' ? new SoaError('Broker_RetryLimitExceeded', { tries: 4, why: 'no' }) : input
  await send(client, 3)
  await client.endRequests()
  const responses = await collect(client.responses())
  t.same(responses.filter(response => response.fault).map(response => [response.userData, response.fault?.fault, response.fault?.code, response.fault?.context]), [['1', 'Broker_RetryLimitExceeded', 0x04000001, ['4', 'no']]])
  for (const response of responses) if (response.fault) t.throws(() => response.result(), { name: 'SoapFaultError' })
})

t.test('client: call brings the value in the same exchange, a one-way operation nothing, a fault is thrown', async t => {
  const { broker, client } = await open(t)
  t.same(await client.call('Echo', { input: 'hi' }), { EchoResult: 'node:hi' })
  t.equal(await client.call('Note', { text: 'n' }), undefined)
  broker.answer = () => new SoaError('Service_Unreachable', { taskId: '3', why: 'gone' })
  await t.rejects(client.call('Echo', { input: 'hi' }), { name: 'SoapFaultError', message: 'service instance 3 cannot be reached: gone' })
  t.equal(broker.requests.length, 0, 'nothing is stored')
})

for (const [name, args, why] of [
  ['a member of the wrong type', { input: { a: 1 } }, /input/], ['a member that the WSDL does not have', { inptu: 'x' }, /inptu/], ['a character that XML has not', { input: '\u0001' }, /U\+0001/]
] as const) {
  t.test(`client: refuses ${name} before anything is sent`, async t => {
    const { broker, client } = await open(t)
    await t.rejects(client.send('Echo', args), { name: 'SoaError', message: why })
    t.equal(broker.log.filter(entry => entry === 'Echo').length, 0)
  })
}

t.test('client: refuses an operation that is not there by naming those that are, and to store a one-way one', async t => {
  const { client } = await open(t)
  await t.rejects(client.send('Ecko', {}), { name: 'SoaError', message: /Ecko.*Echo, Note/ })
  await t.rejects(client.send('Note', { text: 'n' }), refusal('Broker_UnsupportedOperation'))
})

t.test('client: a signal ends a send that waits, and one that is made again and again', async t => {
  const { broker, client } = await open(t)
  broker.troubles.Echo = Array.from({ length: 50 }, () => 'unavailable')
  const stop = new AbortController()
  const sending = client.send('Echo', { input: 'x' }, { signal: stop.signal })
  const calling = client.call('Echo', { input: 'x' }, { signal: stop.signal })
  stop.abort(new Error('enough'))
  await t.rejects(sending, { message: 'enough' })
  await t.rejects(calling, { message: 'enough' })
})

t.test('session: the same client id in any case gives the same client; a bad one is refused', async t => {
  const { session, client } = await open(t)
  t.equal(session.client('c'), client)
  t.throws(() => session.client('a/b'), refusal('Broker_InvalidClientIdOrTooLong'))
})

t.test('session: creating is tried again while nothing was sent, and not when it may have been done', async t => {
  const broker = await FakeBroker.open(t)
  broker.troubles['POST sessions'] = ['unavailable', 'cutBefore']
  await t.rejects(Session.create({ service: 'Echo', head: broker.head }), { message: /connection broke, and whether it was done is not known/ })
  t.same(broker.log, ['POST sessions', 'POST sessions'])
})

t.test('session: what the head refuses has HPC Pack\'s name and number', async t => {
  const broker = await FakeBroker.open(t)
  broker.troubles['POST sessions'] = [new SoaError('Service_NotFound', { serviceName: 'Nope' })]
  await t.rejects(Session.create({ service: 'Nope', head: broker.head }), { name: 'ProblemError', status: 404, fault: 'Service_NotFound', code: 50331678, message: /no service Nope/ } as object as Error)
})

t.test('session: disposing closes an interactive session that was created here, and leaves durable and attached ones running', async t => {
  const broker = await FakeBroker.open(t)
  const closed = (): number => broker.log.filter(entry => entry.startsWith('DELETE')).length
  { await using session = await Session.create({ service: 'Echo', head: broker.head }); t.equal(session.isDurable, false) }
  t.equal(closed(), 1)
  { await using session = await Session.attach(4711, { head: broker.head }); t.equal(session.id, '4711') }
  { await using session = await DurableSession.create({ service: 'Echo', head: broker.head }); t.equal(session.isDurable, true) }
  t.equal(closed(), 1)
  const session = await DurableSession.attach('4711', { head: broker.head })
  await session.close()
  await session.close()
  t.equal(closed(), 2)
})

t.test('session: a durable session cannot be had from an interactive one', async t => {
  const broker = await FakeBroker.open(t)
  broker.isDurable = false
  await t.rejects(DurableSession.attach('4711', { head: broker.head }), refusal('InvalidAttachDurableSession'))
})
