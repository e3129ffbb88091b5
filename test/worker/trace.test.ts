import t from 'tap'
import type { FaultName } from '../../core/errors.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { userDataHeader } from '../../wire/soap/hpc-headers.ts'
import type { TraceAnswer, TraceStep } from '../../broker/contract.ts'
import { ManualClock } from '../clock.ts'
import { FLUSH, never, open, openSession, reading, request } from './open-session.ts'

type Opened = Awaited<ReturnType<typeof open>>
const ask = ({ session }: Pick<Opened, 'session'>, query: Record<string, string> = {}): Promise<TraceAnswer> => session.tracing.answer(new URLSearchParams(query), never)
const names = (steps: readonly TraceStep[] | undefined): string[] => (steps ?? []).map(({ step }) => step)
const answered = (sent: Envelope, isFault = false): CallResult => ({ outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }, isFault) })
const refused = (fault: FaultName, more: { message?: RegExp } = {}): { name: string } => ({ name: 'SoaError', fault, ...more }) as { name: string }
const page = { maxBytes: 1e6, signal: never, end: () => undefined }

/** A service instance whose calls end when the test says so. */
function held () {
  const calls: Array<(result: CallResult) => void> = []
  let came: () => void = () => {}
  return {
    answer: async () => await new Promise<CallResult>(resolve => { calls.push(resolve); came() }),
    async next () { while (calls.length === 0) await new Promise<void>(resolve => { came = resolve }); return calls.shift() as (result: CallResult) => void },
  }
}

t.test('trace: a message is followed from its arrival to its reader, each step with its time and the time since the step before', async t => {
  const host = held()
  const opened = await open(t, { durable: true, answer: host.answer })
  const { clock, client } = opened
  const c = client('Anna')
  const sent = request(1)
  await c.accept(sent, 0, never)
  t.match((await ask(opened, { message: 'urn:uuid:1' })).message, { state: 'received', clientId: 'Anna', userData: '1', steps: [{ step: 'received', at: new Date(1_000_000).toISOString() }] })
  clock.jump(10)
  await c.flush(1, { ...FLUSH, batchId: 0 })
  const end = await host.next()
  t.match((await ask(opened, { message: '1' })).message, { state: 'running', steps: [{}, { step: 'queued', sinceMs: 10 }, { step: 'dispatched', sinceMs: 0, try: 1, taskId: '1-0', node: 'n1', address: 'http://127.0.0.1:1/' }] })
  clock.jump(250)
  end(answered(sent))
  while (c.queue.responses === 0) await c.queue.changed.next(clock, -1, never)
  clock.jump(7)
  await c.pull('Begin', 1, '', page)
  const { message } = await ask(opened, { message: 'urn:uuid:1' })
  t.same(names(message?.steps), ['received', 'queued', 'dispatched', 'replied', 'answered', 'delivered'])
  t.same(message?.steps.map(({ sinceMs }) => sinceMs), [undefined, 10, 0, 250, 0, 7])
  t.match(message, { state: 'answered', from: 'memory', tries: 1, waitMs: 0, runMs: 250, totalMs: 260, isDelivered: true, seq: 1 })
})

t.test('trace: runs that came to nothing are named with what they died of and what became of the request', async t => {
  const fates: CallResult[] = [{ outcome: 'timedOut' }, { outcome: 'badReply', error: new Error('no SOAP') }]
  const opened = await open(t, { durable: true, answer: sent => fates.shift() ?? answered(sent), settings: { messageResendLimit: 5 } })
  const c = opened.client()
  await c.accept(request(1), 0, never)
  await c.endRequests(1, { ...FLUSH, batchId: 0 })
  await c.pull('Begin', 1, '', page)
  const { message } = await ask(opened, { message: '1' })
  t.same(message?.steps.filter(({ step }) => step === 'failed').map(step => [step.try, step.outcome, step.then]), [[1, 'timedOut', 'put back'], [2, 'badReply', 'put back']])
  t.match(message, { state: 'answered', tries: 3, outcome: 'badReply' })
  t.equal((await ask(opened)).failed?.length, 1, 'and it is among those that failed')
})

t.test('trace: after a crash of the broker the store says who answered, in how many runs, and what is still to be done', async t => {
  const store = new MemoryMessageStore()
  const clock = new ManualClock()
  const fates: CallResult[] = [{ outcome: 'timedOut' }]
  const first = await openSession({ durable: true, store, clock, answer: sent => fates.shift() ?? answered(sent) })
  const c = first.client('anna')
  await c.accept(request(1), 0, never)
  clock.jump(5)
  await c.flush(1, { ...FLUSH, batchId: 0 })
  while (c.queue.responses === 0) await c.queue.changed.next(clock, -1, never)
  await c.accept(request(2), 0, never)
  // The broker is gone without a word; the next one has the store alone, and no instance.
  const second = await openSession({ durable: true, store, clock, instances: 0 })
  const { message } = await ask(second, { message: '1' })
  t.same(names(message?.steps), ['received', 'queued', 'failed', 'dispatched', 'replied', 'answered'], 'of runs before the last one only the end is kept')
  t.match(message, { from: 'store', state: 'answered', tries: 2, taskId: '1-0', node: 'n1', receivedAt: new Date(1_000_000).toISOString() })
  t.match((await ask(second, { message: '2' })).message, { from: 'store', state: 'received' })
  t.equal((await ask(second)).latest?.[0]?.messageId, 'urn:uuid:1')
  await second.session.close('suspended')
})

t.test('trace: the setting bounds what is kept, and what was forgotten is counted; 0 keeps nothing and stores no times', async t => {
  const opened = await open(t, { settings: { traceMessages: 10 } })
  const c = opened.client()
  for (let n = 1; n <= 25; n++) await c.accept(request(n), -1, never)
  await c.endRequests(25, FLUSH)
  await c.pull('Begin', 25, '', page)
  t.match((await ask(opened)).summary, { traced: 10, most: 10, forgotten: 15, answered: 25 })
  t.match((await ask(opened, { message: '3' })).message, { from: 'store', state: 'answered', steps: [{ step: 'answered', at: null }] })
  await c.pull('Current', 1, '', page)
  await t.rejects(ask(opened, { message: '3' }), refused('noMessage'), 'delivered and freed')
  t.match((await ask(opened, { message: '20' })).message, { from: 'memory', isDelivered: true })

  const off = await open(t, { settings: { traceMessages: 0 } })
  await off.client().accept(request(1), -1, never)
  await off.client().endRequests(1, FLUSH)
  while (!off.client().queue.isAllProcessed) await off.client().queue.changed.next(off.clock, -1, never)
  t.match((await ask(off, { message: '1' })).message, { from: 'store', state: 'answered', steps: [{ step: 'answered', at: null }] })
})

t.test('trace: a request that runs for long is known as running, whatever came and went meanwhile', async t => {
  const host = held()
  const opened = await open(t, { instances: 2, settings: { traceMessages: 5, serviceRequestPrefetchCount: 0 }, answer: sent => sent.messageId === 'urn:uuid:1' ? host.answer() : answered(sent) })
  const c = opened.client()
  for (let n = 1; n <= 30; n++) await c.accept(request(n), -1, never)
  while (c.queue.responses < 29) await c.queue.changed.next(opened.clock, -1, never)
  t.match((await ask(opened, { message: '1' })).message, { state: 'running', from: 'memory' })
  t.same((await ask(opened, { state: 'running' })).items?.map(({ messageId }) => messageId), ['urn:uuid:1'])
  ;(await host.next())(answered(request(1)))
  while (c.queue.responses < 30) await c.queue.changed.next(opened.clock, -1, never)
  t.equal((await ask(opened)).summary?.traced, 5)
})

t.test('trace: messages are found by the beginning of their id, where it is the beginning of one only', async t => {
  const opened = await open(t, { durable: true })
  const c = opened.client('anna')
  for (const id of ['abc1', 'abc2', 'b1']) await c.accept(request(1, { messageId: `urn:uuid:${id}` }), 0, never)
  await opened.client('bert').accept(request(1, { messageId: 'urn:uuid:b1' }), 0, never)
  t.equal((await ask(opened, { message: 'abc2' })).message?.messageId, 'urn:uuid:abc2')
  await t.rejects(ask(opened, { message: 'abc' }), refused('InvalidArgument', { message: /more than one message id begins with "abc": urn:uuid:abc2, urn:uuid:abc1/ }))
  await t.rejects(ask(opened, { message: 'b1' }), refused('InvalidArgument', { message: /several clients sent urn:uuid:b1/ }))
  t.equal((await ask(opened, { message: 'b1', client: 'Bert' })).message?.clientId, 'bert')
  await t.rejects(ask(opened, { message: 'c' }), refused('noMessage'))
})

t.test('trace: messages are found by user data, client and state, page by page', async t => {
  const opened = await open(t, { durable: true, answer: sent => answered(sent, Buffer.from(sent.body).toString().includes('7')) })
  const c = opened.client('anna')
  for (let n = 1; n <= 20; n++) await c.accept(request(n, { userData: userDataHeader(`row <${n}> & more`) }), 0, never)
  await c.flush(20, { ...FLUSH, batchId: 0 })
  while (c.queue.responses < 20) await c.queue.changed.next(opened.clock, -1, never)
  await opened.client('bert').accept(request(99, { userData: userDataHeader('row') }), 0, never)
  const seqs = async (query: Record<string, string>): Promise<unknown> => (await ask(opened, query)).items?.map(({ clientId, seq }) => `${clientId} ${seq}`)
  t.same(await seqs({ userData: 'row <17> & more', exact: 'true' }), ['anna 17'])
  t.same(await seqs({ userData: '<7>' }), ['anna 7'])
  t.same(await seqs({ userData: 'row', exact: 'true' }), ['bert 1'])
  t.same(await seqs({ state: 'faulted' }), ['anna 17', 'anna 7'])
  t.same(await seqs({ state: 'received' }), ['bert 1'])
  t.equal((await ask(opened, { client: 'anna' })).items?.length, 20)
  const first = await ask(opened, { client: 'anna', limit: '15' })
  const second = await ask(opened, { client: 'anna', limit: '15', cursor: first.next as string })
  t.same([first.items?.length, second.items?.length, second.next], [15, 5, undefined])
  t.equal(new Set([...first.items ?? [], ...second.items ?? []].map(({ seq }) => seq)).size, 20)
})

t.test('trace: bad questions are refused by name', async t => {
  const opened = await open(t)
  for (const [query, argument] of [[{ limit: '0' }, 'limit'], [{ state: 'lost' }, 'state'], [{ cursor: 'x' }, 'cursor'], [{ userData: '' }, 'userData']] as const) await t.rejects(ask(opened, query), { fault: 'InvalidArgument', message: new RegExp(`^${argument}:`) })
})

t.test('trace: a call in the same exchange is traced too', async t => {
  const opened = await open(t)
  await opened.session.call(opened.client(), request(5), never)
  t.match((await ask(opened, { message: '5' })).message, { state: 'answered', seq: 0, isDelivered: true })
})

t.test('trace: what a client purged is known no more', async t => {
  const opened = await open(t)
  await opened.client('anna').accept(request(1), -1, never)
  await opened.session.purge('anna')
  await t.rejects(ask(opened, { message: '1' }), refused('noMessage'))
  t.equal((await ask(opened)).summary?.traced, 0)
})
