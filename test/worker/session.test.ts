import { EventEmitter } from 'node:events'
import t from 'tap'
import type { TaskInfo, TaskState } from '../../store/placement-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import { userDataText } from '../../wire/soap/hpc-headers.ts'
import type { BrokerSession } from '../../broker/worker/session.ts'
import type { BrokerClient } from '../../broker/worker/broker-client.ts'
import { ManualClock, settle } from '../clock.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { FLUSH, never, open, openSession, reading, request, type TaskNews } from './open-session.ts'

const pull = async (client: BrokerClient, position: 'Begin' | 'Current', count: number, session: BrokerSession): Promise<{ users: string[], end: boolean }> => {
  const page = await client.pull(position, count, '', { maxBytes: 1e9, signal: never, end: () => session.readEnd() })
  return { users: page.responses.map(({ envelope }) => userDataText(envelope.userData as Uint8Array)).sort(), end: page.endOfMessages }
}

t.test('session: readers and waiting callers of a service that cannot start are told why, between the attempts; mended, the same requests run', async t => {
  const news: TaskNews = new EventEmitter()
  const { session, client } = await open(t, { durable: true, instances: 0, news })
  const told = async (id: string, state: TaskState, exit?: TaskInfo['exit']): Promise<void> => {
    news.emit('tasks', [{ id, sessionId: '7', node: 'n1', machineName: 'n1', state, capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '', exit }])
    await settle()
  }
  const exit = { code: 102, signal: null, stderr: 'service host: the service could not be loaded: module /srv/pricer.mjs cannot be loaded: SyntaxError\n', why: 'exit code 102 before it accepted connections' }
  await client().accept(request(1), -1, never)
  await client().endRequests(1, FLUSH)
  let answers = ''
  const ask = (): Promise<unknown> => pull(client(), 'Begin', 1, session).then(page => { answers += 'page '; return page }, (error: unknown) => { answers += 'fault '; return error })
  const [first, call] = [ask(), session.call(client('d'), request(2, { userData: undefined }), never).catch((error: unknown) => error)]
  for (const id of ['1-1', '1-2']) { await told(id, 'Dispatching'); await told(id, 'Failed', exit) }
  t.equal(answers, '', 'twice may be bad luck')
  await told('1-3', 'Dispatching')
  await told('1-3', 'Failed', exit)
  for (const error of [await first, await call]) t.match(error, { fault: 'Service_InitializeFailed', message: /exit code 102 before it accepted connections; its last lines on stderr:\nservice host: .*module \/srv\/pricer\.mjs cannot be loaded: SyntaxError/ })
  t.match(await ask(), { fault: 'Service_InitializeFailed' }, 'who comes now need not wait to hear it')
  await client('e').accept(request(3), -1, never)
  t.pass('requests are still taken')

  answers = ''
  await told('1-4', 'Dispatching')
  const second = ask()
  await settle()
  t.equal(answers, '', 'while it is tried again, a reader waits for what comes of it')
  await told('1-4', 'Running')
  t.same(await second, { users: ['1'], end: true })
})

for (const durable of [false, true]) {
  const kind = durable ? 'durable' : 'interactive'

  t.test(`session (${kind}): every request comes back once, with its user data, and the end mark with the last`, async t => {
    const { session, client } = await open(t, { durable })
    for (let n = 1; n <= 3; n++) await client().accept(request(n), -1, never)
    await client().endRequests(3, FLUSH)
    t.same(await pull(client(), 'Begin', 2, session), { users: ['1', '2'], end: false })
    t.same(await pull(client(), 'Current', 2, session), { users: ['3'], end: true })
    t.equal(client().status, 'Finished')
    t.match(session.counters.view(), { total: 3, processed: 3, processing: 0, faulted: 0 })
  })

  t.test(`session (${kind}): Flush waits for exactly as many requests as were announced since the last one`, async t => {
    const { client } = await open(t, { durable })
    await client().accept(request(1), -1, never)
    let isDone = false
    const flushing = client().flush(2, FLUSH).then(() => { isDone = true })
    await settle()
    t.notOk(isDone, 'one of two is there')
    await client().accept(request(2), -1, never)
    await flushing
    t.equal(client().queue.committed, 2)
    await client().accept(request(3), -1, never)
    await client().endRequests(1, FLUSH)
    t.equal(client().queue.committed, 3, 'counts since the last flush')
  })

  t.test(`session (${kind}): a count that is never reached times out, names both counts, and rolls nothing back`, async t => {
    const { client, clock } = await open(t, { durable })
    await client().accept(request(1), -1, never)
    const flushing = client().flush(2, { ...FLUSH, timeoutMs: 1000 })
    const refused = t.rejects(flushing, { name: 'SoaError', fault: 'OperationTimeout', message: /1 requests arrived since the last flush, 2 were announced/ })
    await clock.advance(1000)
    await refused
    await client().flush(1, FLUSH)
    t.equal(client().queue.committed, 1)
  })

  t.test(`session (${kind}): the same message id twice is one request`, async t => {
    const { session, client } = await open(t, { durable })
    await client().accept(request(1), -1, never)
    await client().accept(request(1), -1, never)
    await client().endRequests(1, FLUSH)
    t.same(await pull(client(), 'Begin', 10, session), { users: ['1'], end: true })
  })

  t.test(`session (${kind}): a late request gets a fault, and so does everything that comes too late`, async t => {
    const { session, client } = await open(t, { durable })
    await t.rejects(client().endRequests(0, FLUSH), { name: 'SoaError', fault: 'Broker_EOMReject_NoRequest' })
    await client().accept(request(1), -1, never)
    await client().endRequests(1, FLUSH)
    await t.rejects(client().accept(request(2), -1, never), { name: 'SoaError', fault: 'Broker_EOMReject_EndRequests' })
    await t.rejects(client().flush(1, FLUSH), { name: 'SoaError', fault: 'Broker_FlushRejected' })
    await pull(client(), 'Begin', 10, session)
    await t.rejects(client().endRequests(0, FLUSH), { name: 'SoaError', fault: 'Broker_EOMReject_GetResponse' })
  })

  t.test(`session (${kind}): client ids do not know case, the empty one is a client of its own`, async t => {
    const { client } = await open(t, { durable })
    t.equal(client('Ann'), client('aNN'))
    t.not(client(''), client('Ann'))
  })

  t.test(`session (${kind}): purge forgets the client and keeps the session's totals; its id may be used again`, async t => {
    const { session, client } = await open(t, { durable })
    await client().accept(request(1), -1, never)
    await client().endRequests(1, FLUSH)
    await pull(client(), 'Begin', 1, session)
    await session.purge('C')
    t.match(session.counters.view(), { total: 1, processed: 1, processing: 0, faulted: 0 })
    await client().accept(request(1), -1, never)
    await client().endRequests(1, FLUSH)
    t.same(await pull(client(), 'Begin', 5, session), { users: ['1'], end: true })
  })
}

for (const durable of [false, true]) {
  t.test(`session (${durable ? 'durable' : 'interactive'}): what is at an instance when its client is purged answers nobody, least of all the next client of that id`, async t => {
    const held: Array<() => void> = []
    const { session, client } = await open(t, {
      durable,
      answer: sent => sent.messageId === 'urn:uuid:1'
        ? new Promise<CallResult>(resolve => held.push(() => resolve({ outcome: 'answered', reading: reading(sent) })))
        : { outcome: 'answered', reading: reading(sent) },
      instances: 2,
    })
    await client().accept(request(1), -1, never)
    await client().flush(1, FLUSH)
    await settle()
    t.equal(held.length, 1, 'the first request is executing')
    const purging = session.purge('c')
    const sending = client().accept(request(2), -1, never)
    await Promise.all([purging, sending])
    await client().endRequests(1, FLUSH)
    held[0]?.()
    t.same(await pull(client(), 'Begin', 5, session), { users: ['2'], end: true })
    t.equal(session.state, 'Running', 'and the session lives')
    t.equal(session.counters.processing, 0)
  })
}

t.test('session (durable): nothing runs before the flush that covers it', async t => {
  const { session, client } = await open(t, { durable: true })
  await client().accept(request(1), -1, never)
  await settle()
  t.equal(session.counters.processed, 0)
  await client().flush(1, FLUSH)
  t.same(await pull(client(), 'Begin', 1, session), { users: ['1'], end: false })
})

t.test('session (interactive): requests run as soon as they come', async t => {
  const { session, client } = await open(t)
  await client().accept(request(1), -1, never)
  t.same(await pull(client(), 'Begin', 1, session), { users: ['1'], end: false })
})

t.test('session (durable): Begin brings everything again', async t => {
  const { session, client } = await open(t, { durable: true })
  for (let n = 1; n <= 3; n++) await client().accept(request(n), -1, never)
  await client().endRequests(3, FLUSH)
  await pull(client(), 'Begin', 3, session)
  t.same(await pull(client(), 'Begin', 3, session), { users: ['1', '2', '3'], end: true })
})

t.test('session (interactive): asking for more is the acknowledgement; a page lost on the way comes again with Begin', async t => {
  const { session, client } = await open(t)
  for (let n = 1; n <= 4; n++) await client().accept(request(n), -1, never)
  await client().endRequests(4, FLUSH)
  const first = await pull(client(), 'Begin', 2, session)
  t.same(await pull(client(), 'Begin', 2, session), first, 'not acknowledged: again')
  const second = await pull(client(), 'Current', 2, session)
  t.same([...first.users, ...second.users].sort(), ['1', '2', '3', '4'])
  t.same((await pull(client(), 'Begin', 2, session)).users, second.users, 'the first page was acknowledged by the second')
})

t.test('session (durable): a higher batch id forgets what was not flushed, a lower one is refused', async t => {
  const { session, client } = await open(t, { durable: true })
  await client().accept(request(1), 0, never)
  await client().flush(1, { ...FLUSH, batchId: 0 })
  await client().accept(request(2), 0, never)
  await Promise.all([client().accept(request(3), 1, never), client().accept(request(4), 1, never)])
  await t.rejects(client().accept(request(5), 0, never), { name: 'SoaError', fault: 'InvalidArgument', message: /batch 0 is over/ })
  await client().endRequests(2, { ...FLUSH, batchId: 1 })
  t.same(await pull(client(), 'Begin', 10, session), { users: ['1', '3', '4'], end: true })
  t.equal(session.counters.total, 3)
})

t.test('session: a user fault is a response like any other, a retry fault runs again and in the end is a RetryOperationError', async t => {
  let runs = 0
  const { session, client } = await open(t, {
    durable: true,
    settings: { messageResendLimit: 2 },
    answer: sent => {
      runs++
      const isUser = sent.messageId === 'urn:uuid:1'
      const detail = isUser ? '<mine/>' : '<RetryOperationError xmlns="http://hpc.microsoft.com/session/"><lastFailedServiceId>0</lastFailedServiceId><reason>disk full</reason><retryCount>0</retryCount></RetryOperationError>'
      const body = Buffer.from(`<s:Fault xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text xml:lang="en">no</s:Text></s:Reason><s:Detail>${detail}</s:Detail></s:Fault>`)
      const action = isUser ? 'urn:mine' : 'http://hpc.microsoft.com/session/RetryOperationError'
      return { outcome: 'answered', reading: { ...reading({ ...sent, action, body }, true), bodyElement: '{http://www.w3.org/2003/05/soap-envelope}Fault' } }
    },
  })
  await client().accept(request(1), -1, never)
  await client().accept(request(2), -1, never)
  await client().endRequests(2, FLUSH)
  const page = await client().pull('Begin', 2, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  t.equal(runs, 1 + 3, 'the user fault once, the other 1 + messageResendLimit times')
  const byUser = Object.fromEntries(page.responses.map(({ envelope, isFault, requestAction }) => {
    const seen = { isFault, requestAction, relatesTo: envelope.relatesTo, body: Buffer.from(envelope.body).toString() }
    return [userDataText(envelope.userData as Uint8Array), seen]
  }))
  t.match(byUser, { 1: { isFault: true, requestAction: 'urn:Echo', relatesTo: 'urn:uuid:1', body: /<mine\/>/ }, 2: { isFault: true, relatesTo: 'urn:uuid:2', body: /disk full/ } })
  t.match(byUser['2']?.body, /<retryCount>3<\/retryCount>/)
  t.equal(session.counters.faulted, 2)
})

t.test('session: cancel stops work, keeps what is stored readable, and may be said twice', async t => {
  let answer: (() => void) | undefined
  const { session, client, states } = await open(t, {
    durable: true,
    answer: sent => sent.messageId === 'urn:uuid:1' ? { outcome: 'answered', reading: reading(sent) } : new Promise<CallResult>(resolve => { answer = () => resolve({ outcome: 'aborted' }) }),
  })
  await client().accept(request(1), -1, never)
  await client().accept(request(2), -1, never)
  await client().endRequests(2, FLUSH)
  t.same(await pull(client(), 'Begin', 1, session), { users: ['1'], end: false })
  const waiting = t.rejects(pull(client(), 'Current', 1, session), { name: 'SoaError', fault: 'Session_ValidateJobFailed_JobCanceled' })
  const cancelling = session.cancel()
  answer?.()
  await cancelling
  await session.cancel()
  await waiting
  t.same(states, ['Canceled'])
  t.same(await pull(client(), 'Begin', 1, session), { users: ['1'], end: false }, 'stored responses are still there')
  t.throws(() => session.refuseUnlessTaking(), { name: 'SoaError', fault: 'Session_ValidateJobFailed_JobCanceled' })
})

t.test('session: idle clocks: no client ends it, a durable one with flushed requests is suspended; work in flight keeps it', async t => {
  const first = await open(t)
  await first.clock.advance(300_000)
  t.match(first.ended, ['destroyed: no client within 300000 ms (clientConnectionTimeout)'])

  const durable = await open(t, { durable: true })
  await durable.client().accept(request(1), -1, never)
  await durable.client().endRequests(1, FLUSH)
  await durable.clock.advance(300_000)
  t.same(durable.ended, [], 'the client has just left')
  await durable.clock.advance(300_000)
  t.match(durable.ended, ['suspended: no client for 300000 ms (sessionIdleTimeout)'])

  let answer: (() => void) | undefined
  const busy = await open(t, { answer: sent => new Promise<CallResult>(resolve => { answer = () => resolve({ outcome: 'answered', reading: reading(sent) }) }) })
  await busy.client().accept(request(1), -1, never)
  await busy.client().endRequests(1, FLUSH)
  await busy.clock.advance(3_000_000)
  t.same(busy.ended, [], 'a call in flight')
  answer?.()
  await busy.clock.advance(600_000)
  t.equal(busy.ended.length, 1)
})

t.test('session: instances leave when there is no work, and are asked for again when work comes', async t => {
  const { client, clock, session, targets } = await open(t, { durable: true, instances: 0 })
  t.same(targets, [16], 'at the start')
  await clock.advance(11_000)
  t.equal(targets.at(-1), 0)
  for (let n = 1; n <= 5; n++) await client().accept(request(n), -1, never)
  await client().endRequests(5, FLUSH)
  session.workCame()
  await settle()
  t.equal(targets.at(-1), 3, '5 requests, 2 calls per unit')
})

t.test('session: a call without user data is answered in the same exchange; a caller who goes away is not waited for', async t => {
  const { session, client } = await open(t)
  const answered = await session.call(client('p'), request(1), never)
  t.match(answered, { envelope: { action: 'urn:EchoResponse', relatesTo: 'urn:uuid:1' }, isFault: false })
  const { session: empty, client: plain } = await open(t, { instances: 0 })
  const stop = new AbortController()
  const waiting = empty.call(plain('p'), request(2), stop.signal)
  stop.abort(new Error('the caller is gone'))
  await t.rejects(waiting, { message: 'the caller is gone' })
})

t.test('session: one that failed gives what it has stored when it is raised again, then why it failed, computes nothing, and is let go of when nobody reads', async t => {
  const store = new MemoryMessageStore()
  store.close = async () => {}
  const clock = new ManualClock()
  const first = await openSession({ durable: true, store, clock })
  for (const n of [1, 2]) await first.client().accept(request(n), -1, never)
  await first.client().flush(2, FLUSH)
  await first.client().pull('Begin', 2, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  for (const n of [3]) await first.client().accept(request(n), -1, never)
  const closing = first.session.close('suspended')
  await clock.advance(0)
  await closing
  const { session, ended, targets, clock: later } = await open(t, { durable: true, store, record: { state: 'Failed', why: 'it was told to' } })
  const end = (): ReturnType<typeof session.readEnd> => session.readEnd()
  const { responses } = await session.client('c').pull('Begin', 2, '', { maxBytes: 1e9, signal: never, end })
  t.equal(responses.length, 2)
  await t.rejects(session.client('c').pull('Current', 1, '', { maxBytes: 1e9, signal: never, end }), /session 7 failed: it was told to/)
  t.throws(() => session.refuseUnlessTaking(), /it was told to/)
  t.same(targets, [], 'no service instance was asked for')
  await later.advance(session.service.settings.clientIdleTimeout + session.service.settings.sessionIdleTimeout)
  t.match(ended, [/^suspended: no client/])
})
