import { EventEmitter } from 'node:events'
import t from 'tap'
import { CustomBroker, type CustomDispatcher, type CustomRequest, type CustomResponse, type CustomSession, type TaskNotice, type Verdict } from '../../broker/custom-broker.ts'
import type { BrokerClient } from '../../broker/worker/broker-client.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import type { CallResult } from '../../transport/channel.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { ManualClock } from '../clock.ts'
import { FLUSH, never, open, openSession, reading, request, type OpenOptions, type TaskNews } from './open-session.ts'

const textOf = (body: Uint8Array): string => Buffer.from(body).toString()
const send = async (client: BrokerClient, count: number, from = 0): Promise<void> => {
  for (let n = from; n < from + count; n++) await client.accept(request(n), -1, never)
}
const bodies = async (client: BrokerClient, count: number): Promise<string[]> => {
  const { responses } = await client.pull('Begin', count, '', { maxBytes: 1e9, signal: never, end: () => undefined })
  return responses.map(({ envelope }) => textOf(envelope.body)).sort()
}
/** Turns of the event loop, for what goes on without a clock. */
const turns = async (count = 20): Promise<void> => { for (let n = 0; n < count; n++) await new Promise(resolve => setImmediate(resolve)) }

t.test('onRequest: what it replaces is what the service gets, and what it answers no service sees', async t => {
  const sent: string[] = []
  class Cache extends CustomBroker {
    override onRequest (request: CustomRequest): Verdict {
      if (request.userData === '1') return { answer: { body: '<cached/>' } }
      return request.userData === '2' ? { replace: { body: '<n>two</n>' } } : 'pass'
    }
  }
  const { session, client } = await open(t, { durable: true, custom: new Cache(), answer: echo(sent) })
  const c = client()
  await send(c, 3)
  await c.endRequests(3, FLUSH)
  t.same(await bodies(c, 3), ['<cached/>', '<n>0</n>', '<n>two</n>'])
  t.same(sent.sort(), ['<n>0</n>', '<n>two</n>'])
  t.match(session.counters.view(), { total: 3, processed: 3, processing: 0, faulted: 0 })
})

t.test('onRequest: a refusal is the fault that it names, and nothing is stored', async t => {
  class Strict extends CustomBroker {
    override onRequest (request: CustomRequest): Verdict { return request.body.includes('1') ? { refuse: 'InvalidArgument', why: 'no ones here' } : 'pass' }
  }
  const { session, client } = await open(t, { durable: true, custom: new Strict() })
  const c = client()
  await c.accept(request(0), -1, never)
  await t.rejects(c.accept(request(1), -1, never), /request: no ones here/)
  await t.rejects(session.call(c, request(1, { userData: undefined }), never), /no ones here/, 'a call in the same exchange too')
  t.equal(session.state, 'Running')
  await c.endRequests(1, FLUSH)
  t.same(await bodies(c, 1), ['<n>0</n>'])
})

t.test('onRequest: the same message again while it is asked is asked once', async t => {
  let asked = 0
  let decide = (_verdict: Verdict): void => {}
  class Slow extends CustomBroker {
    override async onRequest (): Promise<Verdict> { asked++; return await new Promise<Verdict>(resolve => { decide = resolve }) }
  }
  const { client } = await open(t, { durable: true, custom: new Slow() })
  const c = client()
  const both = Promise.all([c.accept(request(1), -1, never), c.accept(request(1), -1, never)])
  await turns()
  decide('pass')
  await both
  t.equal(asked, 1)
  await c.endRequests(1, FLUSH)
  t.equal((await bodies(c, 1)).length, 1)
})

t.test('onRequest: after the broker was raised again its decisions hold, and nobody is asked twice', async t => {
  const asked: string[] = []
  class Once extends CustomBroker {
    override onRequest (request: CustomRequest): Verdict {
      asked.push(request.userData ?? '')
      return request.userData === '0' ? { answer: { body: '<decided/>' } } : request.userData === '1' ? { scatter: [{ body: '<n>a</n>' }, { body: '<n>b</n>' }] } : 'pass'
    }

    override onGather (_request: CustomRequest, parts: readonly CustomResponse[]) { return { body: `<all>${parts.map(({ body }) => body).join('')}</all>` } }
  }
  const store = keeping()
  const first = await openBriefly({ durable: true, store, custom: new Once(), instances: 0 })
  await send(first.client(), 2)
  await first.client().flush(2, FLUSH)
  await send(first.client(), 1, 2)
  await first.suspend()
  const { client } = await open(t, { durable: true, store: store.reopened(), custom: new Once() })
  await client().endRequests(1, FLUSH)
  t.same(await bodies(client(), 3), ['<all><n>a</n><n>b</n></all>', '<decided/>', '<n>2</n>'])
  t.same(asked, ['0', '1', '2'])
})

t.test('onRequest: higher lanes are dispatched first, whoever came first', async t => {
  const sent: string[] = []
  class Lanes extends CustomBroker {
    override onRequest (request: CustomRequest): Verdict { return { lane: Number(request.userData) % 3 } }
  }
  const { client } = await open(t, { durable: true, custom: new Lanes(), settings: { serviceRequestPrefetchCount: 0 }, answer: echo(sent) })
  const c = client()
  await send(c, 6)
  await c.endRequests(6, FLUSH)
  await bodies(c, 6)
  t.same(sent, ['<n>0</n>', '<n>2</n>', '<n>5</n>', '<n>1</n>', '<n>4</n>', '<n>3</n>'], 'the first found a free slot')
})

t.test('scatter and gather: one response of all parts, in their order, and counts of one', async t => {
  class Halves extends CustomBroker {
    override onRequest (request: CustomRequest): Verdict { return { scatter: [{ body: `<n>${request.userData}l</n>` }, { body: `<n>${request.userData}r</n>` }] } }
    override onGather (_request: CustomRequest, parts: readonly CustomResponse[]) { return { body: `<both>${parts.map(({ body }) => body).join('')}</both>` } }
  }
  for (const durable of [true, false]) {
    const { session, client } = await open(t, { durable, custom: new Halves(), instances: 3 })
    const c = client()
    await send(c, 4)
    await c.endRequests(4, FLUSH)
    t.same(await bodies(c, 4), [0, 1, 2, 3].map(n => `<both><n>${n}l</n><n>${n}r</n></both>`))
    t.match(session.counters.view(), { total: 4, processed: 4, processing: 0 })
    const reply = await session.call(client('direct'), request(9, { userData: undefined }), never) as { envelope: Envelope }
    t.equal(textOf(reply.envelope.body), '<both><n>undefinedl</n><n>undefinedr</n></both>', 'a call in the same exchange too')
  }
})

t.test('scatter: a purge in the middle leaves nothing at work', async t => {
  const held: Array<() => void> = []
  class Two extends CustomBroker {
    override onRequest (): Verdict { return { scatter: [{ body: '<n>1</n>' }, { body: '<n>2</n>' }] } }
    override onGather () { return { body: '<never/>' } }
  }
  const settings = { serviceRequestPrefetchCount: 0 }
  const { session, client } = await open(t, { durable: true, custom: new Two(), settings, answer: async sent => await new Promise<CallResult>(resolve => held.push(() => resolve(answered(sent)))) })
  await send(client(), 1)
  await client().endRequests(1, FLUSH)
  await turns()
  await session.purge('c')
  for (const go of held) go()
  await turns()
  t.equal(session.callsWanted, 0)
  t.equal(session.state, 'Running')
})

t.test('chooseDispatcher: each request goes to the dispatcher that it names, also to one that is busy', async t => {
  const at = new Map<string, string[]>()
  class Affinity extends CustomBroker {
    session: CustomSession | undefined
    override onSessionStart (session: CustomSession): void { this.session = session }
    override chooseDispatcher (request: CustomRequest): CustomDispatcher | string {
      const all = [...this.session?.dispatchers ?? []].sort((a, b) => a.id < b.id ? -1 : 1)
      return all[Number(request.userData) % all.length] ?? 'wait'
    }
  }
  const { client } = await open(t, {
    durable: true,
    instances: 3,
    custom: new Affinity(),
    connect: ({ id }) => ({
      call: async sent => { at.set(id, [...at.get(id) ?? [], textOf(sent.body)]); await turns(id === '1-0' ? 5 : 1); return answered(sent) },
      close: async () => {},
    }),
  })
  const c = client()
  await send(c, 30)
  await c.endRequests(30, FLUSH)
  t.equal((await bodies(c, 30)).length, 30)
  for (const [n, id] of ['1-0', '1-1', '1-2'].entries()) t.ok(at.get(id)?.every(body => Number(/\d+/.exec(body)?.[0]) % 3 === n), `${id} got only its own`)
  t.equal([...at.values()].flat().length, 30)
})

t.test('chooseDispatcher: who waits is asked again when something changes, and goes elsewhere when its dispatcher is gone', async t => {
  const news: TaskNews = new EventEmitter()
  let isOpen = false
  class Gate extends CustomBroker {
    override chooseDispatcher (request: CustomRequest, free: readonly CustomDispatcher[]): CustomDispatcher | string {
      if (request.userData === '0') return isOpen ? 'any' : 'wait'
      return free[0] as CustomDispatcher
    }
  }
  const task = { id: '2-0', sessionId: '7', node: 'n2', machineName: 'n2', state: 'Running' as const, capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '' }
  const { session, client } = await open(t, { durable: true, instances: 1, news, custom: new Gate() })
  const c = client()
  await send(c, 2)
  await c.endRequests(2, FLUSH)
  await turns()
  t.match(session.counters.view(), { processed: 1 }, 'one goes, one waits')
  isOpen = true
  news.emit('tasks', [task])
  t.same(await bodies(c, 2), ['<n>0</n>', '<n>1</n>'])
})

t.test('onResponse: what it makes of a response is what is stored; faults and replies of calls too', async t => {
  class Stamp extends CustomBroker {
    override async onResponse (request: CustomRequest, response: CustomResponse) {
      if (request.userData === '1') return undefined
      return { ...response, body: `<stamped by="${request.clientId}">${response.body}</stamped>`, isFault: false }
    }
  }
  const { session, client } = await open(t, { durable: true, custom: new Stamp() })
  const c = client('Ada')
  await send(c, 2)
  await c.endRequests(2, FLUSH)
  t.same(await bodies(c, 2), ['<n>1</n>', '<stamped by="Ada"><n>0</n></stamped>'])
  const reply = await session.call(client('b'), request(5, { userData: undefined }), never) as { envelope: Envelope }
  t.equal(textOf(reply.envelope.body), '<stamped by="b"><n>5</n></stamped>')
})

t.test('state: what a hook keeps with a request or response is there when the session is raised again', async t => {
  class Counting extends CustomBroker {
    override onRequest (request: CustomRequest, { state }: CustomSession): Verdict { state.set('seen', Number(state.get('seen') ?? 0) + 1); state.set(`last ${request.clientId}`, request.userData); return 'pass' }
    override onResponse (_request: CustomRequest, response: CustomResponse, { state }: CustomSession): CustomResponse { state.set('answered', Number(state.get('answered') ?? 0) + 1); return response }
  }
  const store = keeping()
  const first = await openBriefly({ durable: true, store, custom: new Counting() })
  await send(first.client(), 5)
  await first.client().endRequests(5, FLUSH)
  await bodies(first.client(), 5)
  // Not closed: it crashed. What was kept is what the store has.
  let found: Record<string, unknown> = {}
  class Looking extends CustomBroker {
    override onSessionStart ({ state }: CustomSession): void { found = Object.fromEntries(state.keys().map(key => [key, state.get(key)])) }
  }
  await open(t, { durable: true, store: store.reopened(), custom: new Looking() })
  t.same(found, { seen: 5, 'last c': '4', answered: 5 })
  await first.suspend()
})

t.test('state: what JSON cannot carry and what is too much is refused', async t => {
  const errors: string[] = []
  class Greedy extends CustomBroker {
    override onSessionStart ({ state }: CustomSession): void {
      for (const value of [undefined, () => 1, 'x'.repeat(200)]) try { state.set('k', value) } catch (error) { errors.push(String(error)) }
    }
  }
  await open(t, { custom: new Greedy(), settings: { maxStateBytes: 100 } })
  t.match(errors, [/TypeError.*undefined/, /TypeError.*function/, /RangeError.*203 bytes, the limit is 100 \(maxStateBytes\)/])
})

t.test('notices: tasks as HPC Pack tells of them, in order, and what becomes of the job', async t => {
  const told: string[] = []
  class Watcher extends CustomBroker {
    override async onTaskStateChanged (tasks: readonly TaskNotice[]): Promise<void> { await turns(2); for (const { Id, State, Capacity, MachineName } of tasks) told.push(`${Id} ${State} ${Capacity} ${MachineName}`) }
    override onJobStateChanged (state: string): void { told.push(state) }
    override onSessionEnd (why: string): void { told.push(why) }
  }
  const news: TaskNews = new EventEmitter()
  const task = { id: '1-0', sessionId: '7', node: 'n1', machineName: 'n1', capacity: 1, firstCoreIndex: 0, address: 'http://127.0.0.1:1/', at: '' }
  const { session } = await open(t, { durable: true, news, custom: new Watcher() })
  await turns()
  news.emit('tasks', [{ ...task, state: 'Running' }])
  news.emit('tasks', [{ ...task, state: 'Canceling' }])
  news.emit('tasks', [{ ...task, state: 'Canceled' }])
  await turns()
  await session.close('destroyed')
  t.same(told, ['Running', '1-0 Running 1 n1', '1-0 Running 1 n1', '1-0 Canceling 1 n1', '1-0 Canceled 1 n1', 'Finished', 'closed'])
})

const boom = (): never => { throw new Error('boom') }
const BROKEN: Array<[string, CustomBroker, RegExp]> = [
  ['onRequest throws', new class Bad extends CustomBroker { override onRequest (): Verdict { return boom() } }(), /custom broker Bad: onRequest threw Error: boom/],
  ['onRequest never returns', new class Bad extends CustomBroker { override async onRequest (): Promise<Verdict> { return await new Promise(() => {}) } }(), /custom broker Bad: onRequest did not return within 500 ms \(hookTimeoutMs\)/],
  ['onRequest gives rubbish', new class Bad extends CustomBroker { override onRequest (): Verdict { return { anwser: 1 } as never } }(), /Bad: onRequest gave back what is no answer: .*"anwser":1/],
  ['onRequest gives markup that is none', new class Bad extends CustomBroker { override onRequest (): Verdict { return { answer: { body: '<a>' } } } }(), /Bad: onRequest gave back what is no answer: answer\.body/],
  ['onRequest refuses by a fault that is none', new class Bad extends CustomBroker { override onRequest (): Verdict { return { refuse: 'Nope' as never } } }(), /Bad: onRequest .*"Nope"/],
  ['onRequest scatters nothing', new class Bad extends CustomBroker { override onRequest (): Verdict { return { scatter: [] } } }(), /Bad: onRequest .*scatter is a list of 1 to 10000/],
  ['chooseDispatcher throws', new class Bad extends CustomBroker { override chooseDispatcher (): string { return boom() } }(), /Bad: chooseDispatcher threw Error: boom/],
  ['chooseDispatcher gives rubbish', new class Bad extends CustomBroker { override chooseDispatcher (): string { return 'nobody' } }(), /Bad: chooseDispatcher gave back "nobody"/],
  ['onResponse throws later', new class Bad extends CustomBroker { override async onResponse (): Promise<CustomResponse> { await turns(1); return boom() } }(), /Bad: onResponse threw Error: boom/],
  ['onGather is not there', new class Bad extends CustomBroker { override onRequest (): Verdict { return { scatter: [{ body: '<a/>' }] } } }(), /Bad: onGather is not there/],
  ['onTaskStateChanged throws', new class Bad extends CustomBroker { override onTaskStateChanged (): void { boom() } }(), /Bad: onTaskStateChanged threw Error: boom/],
]
BROKEN.push(
  ['onRequest throws what cannot be shown', new class Bad extends CustomBroker { override onRequest (): Verdict { throw { toJSON () { boom() }, toString () { boom() } } } }(), /Bad: onRequest threw what cannot be shown/], // eslint-disable-line no-throw-literal
  ['onRequest throws a proxy', new class Bad extends CustomBroker { override onRequest (): Verdict { throw new Proxy({}, { getPrototypeOf: boom, get: boom }) } }(), /Bad: onRequest threw what cannot be shown/],
  ['onRequest throws an error whose message throws', new class Bad extends CustomBroker { override onRequest (): Verdict { throw Object.defineProperty(new Error('x'), 'message', { get: boom }) } }(), /Bad: onRequest threw what cannot be shown/],
  ['onRequest throws null', new class Bad extends CustomBroker { override onRequest (): Verdict { throw null } }(), /Bad: onRequest threw null/], // eslint-disable-line no-throw-literal
  ['onRequest gives a then that throws', new class Bad extends CustomBroker { override onRequest (): Verdict { return Object.defineProperty({}, 'then', { get: boom }) as never } }(), /Bad: onRequest threw Error: boom/],
  ['onRequest scatters a list with holes', new class Bad extends CustomBroker { override onRequest (): Verdict { return { scatter: Array(3) as never } } }(), /Bad: onRequest .*scatter\[0\] is an object/],
  ['onRequest gives an action that no header can carry', new class Bad extends CustomBroker { override onRequest (): Verdict { return { replace: { action: 'a\ud800' } } } }(), /Bad: onRequest .*replace\.action is text/]
)

for (const [what, broker, why] of BROKEN) {
  t.test(`a hook that fails ends its session, and says which: ${what}`, async t => {
    const { session, clock, states, whys, client } = await open(t, { durable: true, custom: broker, settings: { hookTimeoutMs: 500 } })
    const c = client()
    const sent = c.accept(request(1), -1, never).then(() => c.endRequests(1, FLUSH)).then(() => undefined, (error: Error) => error)
    await turns()
    await clock.advance(600)
    await turns()
    const error = await sent
    t.same(states, ['Failed'])
    t.match(whys, [why])
    if ((error as { fault?: string } | undefined)?.fault === 'Broker_SessionFailure') t.match(error, { fault: 'Broker_SessionFailure', context: ['7', why] }, 'whoever sent it learns why')
    t.match(session.readEnd(), { fault: 'Broker_SessionFailure', context: ['7', why] })
  })
}

t.test('settings: a class sees those of its session, and nothing that names the store', async t => {
  let seen: Readonly<Record<string, unknown>> = {}
  class Looks extends CustomBroker { override onSessionStart ({ settings }: CustomSession): void { seen = settings } }
  await open(t, { custom: new Looks(), settings: { messageResendLimit: 7 } })
  t.match(seen, { messageResendLimit: 7, maxMessageSize: Number })
  t.same(Object.keys(seen).filter(name => /redis|tls|dir|http/i.test(name)), [])
})

t.test('a broker whose start fails opens no session', async t => {
  class Bad extends CustomBroker { override onSessionStart (): void { boom() } }
  await t.rejects(openSession({ custom: new Bad() }), /custom broker Bad: onSessionStart threw Error: boom/)
})

t.test('hooks that are not there cost no view and no wait: the stock path is taken', async t => {
  class Nothing extends CustomBroker { override onJobStateChanged (): void {} }
  const { client } = await open(t, { durable: true, custom: new Nothing() })
  const c = client()
  await send(c, 100)
  await c.endRequests(100, FLUSH)
  t.equal((await bodies(c, 100)).length, 100)
})

function answered (sent: Envelope): CallResult { return { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) } }
function echo (into: string[]) { return async (sent: Envelope): Promise<CallResult> => { into.push(textOf(sent.body)); return answered(sent) } }

/** A session that the test suspends itself. */
async function openBriefly (options: Omit<OpenOptions, 'clock'>) {
  const clock = new ManualClock()
  const opened = await openSession({ ...options, clock })
  return { ...opened, suspend: async () => { const closing = opened.session.close('suspended'); await clock.advance(0); await closing } }
}

/** A memory store that outlives its broker, as Redis does. */
function keeping (): MemoryMessageStore & { reopened (): MemoryMessageStore } {
  const store = new MemoryMessageStore()
  const kept = Object.assign(store, { reopened: () => kept })
  store.close = async () => {}
  return kept
}
