import t from 'tap'
import type { Test } from 'tap'
import { silent } from '../../core/log.ts'
import { ANONYMOUS, ChannelClosed, type DuplexChannel, type DuplexEndpoint, type OutgoingMessage } from '../../transport/channel.ts'
import { duplexEndpoints } from '../../broker/worker/duplex.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { userDataText } from '../../wire/soap/hpc-headers.ts'
import { BROKER_CONTROLLER, RESPONSE_SERVICE, type Operation } from '../../wsdl/contracts.ts'
import { END_OF_GET_RESPONSE, readEndOfResponses } from '../../wsdl/end-of-responses.ts'
import { encodeRequest, type Values } from '../../wsdl/shapes.ts'
import { settle } from '../clock.ts'
import { open, reading, request } from './open-session.ts'

/** A client's end of a channel: keeps what the broker sends, as long as it takes it. */
function channelTo (endpoint: DuplexEndpoint, path: string) {
  const over = new AbortController()
  const sent: OutgoingMessage[] = []
  let isStuck = false
  const channel: DuplexChannel = {
    path,
    baseUrl: 'net.tcp://grid.example:9091',
    signal: over.signal,
    send: async message => {
      if (over.signal.aborted || isStuck) throw new ChannelClosed('gone')
      sent.push(message)
    },
    end () {},
  }
  const session = endpoint.open(channel)
  return {
    sent,
    say: (envelope: Envelope, batchId = -1, replyTo?: string) => session.message({ ...reading(envelope), batchId, replyTo }),
    close () { over.abort(new ChannelClosed('closed')); session.closed?.() },
    stick () { isStuck = true },
    get bodies () { return sent.map(({ envelope }) => Buffer.from(envelope.body).toString()) },
  }
}

let ids = 1000
const call = (operation: Operation, values: Values): Envelope => ({ v: 1, soap: 12, enc: 'utf8', action: operation.action, messageId: `urn:uuid:${++ids}`, otherHeaders: [], prefixesInScope: [], body: encodeRequest(operation, values) })
const getResponses = (more: Values = {}): Envelope => call(RESPONSE_SERVICE.operations.GetResponses, { action: '', clientData: 'callback-1', resetToBegin: 'Begin', count: 512, clientId: 'c', ...more })
const endRequests = (count: number, more: Values = {}): Envelope => call(BROKER_CONTROLLER.operations.EndRequests, { count, clientid: 'c', batchId: -1, timeoutThrottlingMs: 5000, timeoutEOMMs: 5000, ...more })
const stored = (n: number, more: Partial<Envelope> = {}): Envelope => request(n, { clientId: 'c', ...more })

async function connect (t: Test, options: Parameters<typeof open>[1] = {}) {
  const opened = await open(t, options)
  const { front, control, responses } = duplexEndpoints(opened.session, silent)
  return { ...opened, front: () => channelTo(front, '/7/NetTcp'), control: () => channelTo(control, '/7/NetTcp/Controller'), responses: () => channelTo(responses, '/7/NetTcp/GetResponse') }
}

const header = (message: OutgoingMessage, name: string): string | undefined => message.extraHeaders?.map(bytes => Buffer.from(bytes).toString()).find(text => text.includes(name))
const pushes = (sent: OutgoingMessage[]): string[] => sent.filter(({ envelope }) => envelope.action === 'urn:EchoResponse').map(({ envelope }) => userDataText(envelope.userData as Uint8Array))
const ends = (sent: OutgoingMessage[]) => sent.filter(({ envelope }) => envelope.action === END_OF_GET_RESPONSE).map(({ envelope }) => readEndOfResponses(envelope.body))

for (const durable of [false, true]) {
  const kind = durable ? 'durable' : 'interactive'

  t.test(`duplex (${kind}): nothing comes back for a stored request; GetResponses pushes each response with its headers, then the exact count`, async t => {
    const { front, control, responses } = await connect(t, { durable })
    const [requests, controls, pushed] = [front(), control(), responses()]
    for (let n = 1; n <= 3; n++) await requests.say(stored(n))
    await pushed.say(getResponses())
    await controls.say(endRequests(3))
    await settle(20)
    t.same(requests.sent, [])
    t.match(controls.bodies, [/EndRequestsResponse/])
    t.match(pushed.sent.map(({ envelope }) => envelope.action), new Set(['http://hpc.microsoft.com/ResponseService/GetResponsesResponse', 'urn:EchoResponse', END_OF_GET_RESPONSE]))
    t.same(pushes(pushed.sent).sort(), ['1', '2', '3'])
    t.same(ends(pushed.sent), [{ count: 3, reason: 'Success' }])
    const [first] = pushed.sent.filter(({ envelope }) => envelope.action === 'urn:EchoResponse')
    t.match(first?.envelope.relatesTo, /^urn:uuid:[123]$/)
    t.match(header(first as OutgoingMessage, 'RequestActionNS'), />urn:Echo</)
    for (const message of pushed.sent.slice(1)) t.match(header(message, 'ResponseCallbackId'), />callback-1</, 'without it the client drops the message')
  })

  t.test(`duplex (${kind}): no more is pushed than was asked for, and a second call goes on where the first one stopped`, async t => {
    const { front, control, responses } = await connect(t, { durable })
    const [requests, controls, pushed] = [front(), control(), responses()]
    for (let n = 1; n <= 5; n++) await requests.say(stored(n))
    await controls.say(endRequests(5))
    await settle(20)
    await pushed.say(getResponses({ count: 2 }))
    await settle(20)
    t.equal(pushes(pushed.sent).length, 2)
    t.same(ends(pushed.sent), [])
    await pushed.say(getResponses({ count: 256, resetToBegin: 'Current' }))
    await settle(20)
    t.same(pushes(pushed.sent).sort(), ['1', '2', '3', '4', '5'])
    t.same(ends(pushed.sent), [{ count: 5, reason: 'Success' }])
    await pushed.say(getResponses({ count: 256, resetToBegin: 'Current' }))
    await settle(20)
    t.same(ends(pushed.sent), [{ count: 5, reason: 'Success' }, { count: 5, reason: 'Success' }], 'who asks again is told again')
  })

  t.test(`duplex (${kind}): a purge ends the responses with its reason`, async t => {
    const { front, control, responses } = await connect(t, { durable })
    const [requests, controls, pushed] = [front(), control(), responses()]
    await requests.say(stored(1))
    await pushed.say(getResponses({ count: -1 }))
    await settle(20)
    await controls.say(call(BROKER_CONTROLLER.operations.Purge, { clientid: 'c' }))
    await settle(20)
    t.same(ends(pushed.sent).map(({ reason }) => reason), ['ClientPurged'])
  })
}

t.test('duplex: Begin brings all responses of a durable session again, also to another process', async t => {
  const { front, control, responses } = await connect(t, { durable: true })
  const [requests, controls, first] = [front(), control(), responses()]
  for (let n = 1; n <= 2; n++) await requests.say(stored(n))
  await controls.say(endRequests(2))
  await first.say(getResponses())
  await settle(20)
  for (const channel of [requests, controls, first]) channel.close()
  const second = responses()
  await second.say(getResponses({ clientData: 'callback-2' }))
  await settle(20)
  t.same(pushes(second.sent).sort(), ['1', '2'])
  t.same(ends(second.sent), [{ count: 2, reason: 'Success' }])
})

t.test('duplex: what an interactive client was sent is not sent again; what its broken channel did not take is', async t => {
  const { front, control, responses } = await connect(t)
  const [requests, controls, broken] = [front(), control(), responses()]
  for (let n = 1; n <= 3; n++) await requests.say(stored(n))
  await controls.say(endRequests(3))
  await settle(20)
  await broken.say(getResponses({ count: 1 }))
  await settle(20)
  broken.stick()
  await broken.say(getResponses({ count: 2, resetToBegin: 'Current' })).catch(() => undefined)
  await settle(20)
  broken.close()
  const again = responses()
  await again.say(getResponses({ clientData: 'callback-2' }))
  await settle(20)
  t.same([...pushes(broken.sent), ...pushes(again.sent)].sort(), ['1', '2', '3'])
  t.same(ends(again.sent), [{ count: 2, reason: 'Success' }])
})

t.test('duplex: responses that a filter passed over come with a later Begin, once', async t => {
  const { front, control, responses } = await connect(t)
  const [requests, controls, pushed] = [front(), control(), responses()]
  for (let n = 1; n <= 4; n++) await requests.say(stored(n, { action: n % 2 === 0 ? 'urn:Even' : 'urn:Echo' }))
  await controls.say(endRequests(4))
  await settle(20)
  await pushed.say(getResponses({ action: 'urn:Even' }))
  await settle(20)
  t.same(pushes(pushed.sent).sort(), ['2', '4'])
  t.same(ends(pushed.sent), [{ count: 2, reason: 'Success' }], 'others are not counted')
  const all = responses()
  await all.say(getResponses({ clientData: 'callback-2' }))
  await settle(20)
  t.same(pushes(all.sent).sort(), ['1', '3'])
})

t.test('duplex: a session that fails delivers what there is, then a fault that counts, then the end', async t => {
  const { front, responses, session } = await connect(t)
  const [requests, pushed] = [front(), responses()]
  await requests.say(stored(1))
  await settle(20)
  await pushed.say(getResponses({ count: -1 }))
  await settle(20)
  session.fail(new Error('the disk is on fire'))
  await settle(20)
  t.same(pushes(pushed.sent), ['1'])
  t.match(pushed.bodies.find(body => body.includes('Fault')), /the disk is on fire/)
  t.same(ends(pushed.sent), [{ count: 2, reason: 'Success' }])
})

t.test('duplex: a request without user data is answered on its channel; a one-way one is not', async t => {
  const { front } = await connect(t)
  const requests = front()
  await requests.say(request(1, { userData: undefined }))
  t.match(requests.sent, [{ envelope: { relatesTo: 'urn:uuid:1', action: 'urn:EchoResponse' } }])
  await requests.say(request(2, { userData: undefined, action: 'urn:Tell' }))
  await settle(20)
  t.equal(requests.sent.length, 1)
})

t.test('duplex: a channel belongs to its first client id, in any case of letters', async t => {
  const { front, control } = await connect(t)
  const requests = front()
  await requests.say(stored(1))
  await requests.say(stored(2, { clientId: 'C' }))
  t.same(requests.sent, [])
  await requests.say(stored(3, { clientId: 'other' }))
  t.match(requests.bodies, [/ClientIdNotMatch/])
  const controls = control()
  await controls.say(endRequests(2))
  await controls.say(endRequests(2, { clientid: 'other' }))
  t.match(controls.bodies, [/EndRequestsResponse/, /ClientIdNotMatch/])
})

t.test('duplex: who sent a request that was refused learns it from EndRequests, not from a time limit', async t => {
  const { front, control, client } = await connect(t, { durable: true })
  const [requests, controls] = [front(), control()]
  await requests.say(stored(1), 5)
  await requests.say(stored(2), 4)
  t.match(requests.bodies, [/batch 4 is over/])
  await controls.say(endRequests(2, { batchId: 5 }))
  t.match(controls.bodies, [/batch 4 is over/])
  t.equal(client('c').queue.uncommitted, 1, 'nothing is rolled back')
  await controls.say(endRequests(1, { batchId: 5 }))
  t.match(controls.bodies[1], /EndRequestsResponse/)
})

t.test('duplex: a client whose last channel is closed in order goes when nothing is left to do, and not before', async t => {
  let answer = (): void => {}
  const waits = new Promise<void>(resolve => { answer = resolve })
  const { front, session } = await connect(t, { answer: async sent => { await waits; return { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) } } })
  const requests = front()
  await requests.say(stored(1))
  await settle(20)
  const client = session.client('c')
  requests.close()
  t.equal(client.state, 'ClientConnected', 'a request is under way')
  answer()
  await settle(20)
  t.equal(client.state, 'Disconnected')
})

t.test('duplex: what HPC\'s client had not flushed goes with its last channel, so that the same client can begin again with the same batch id', async t => {
  const { front, control, client } = await connect(t, { durable: true })
  const [requests, controls] = [front(), control()]
  await requests.say(stored(1), 0)
  await controls.say(call(BROKER_CONTROLLER.operations.Flush, { count: 1, clientid: 'c', batchId: 0, timeoutThrottlingMs: 5000, timeoutFlushMs: 5000 }))
  await settle(20)
  await requests.say(stored(2), 0)
  requests.close()
  t.equal(client('c').queue.uncommitted, 1, 'its controller is still open')
  controls.close()
  const again = front()
  await again.say(stored(2), 0)
  await again.say(stored(3), 0)
  const ending = control()
  await ending.say(endRequests(2, { batchId: 0 }))
  await settle(20)
  t.match(ending.bodies, [/EndRequestsResponse/])
  t.equal(client('c').queue.committed, 3)
})

t.test('duplex: a stored request with a ReplyTo is acknowledged, and stays when its channel is gone', async t => {
  const { front, control, client } = await connect(t, { durable: true })
  const requests = front()
  await requests.say(stored(1), 4711, ANONYMOUS)
  t.match(requests.sent, [{ envelope: { relatesTo: 'urn:uuid:1', action: 'urn:EchoResponse', body: Buffer.alloc(0) }, to: ANONYMOUS }])
  requests.close()
  t.equal(client('c').state, 'ClientConnected')
  const again = front()
  await again.say(stored(2), 4711, ANONYMOUS)
  const ending = control()
  await ending.say(endRequests(2, { batchId: 4711 }))
  t.match(ending.bodies, [/EndRequestsResponse/])
})

t.test('duplex: an interactive client that left in the middle counts from zero when it comes back, and gets the rest of its responses', async t => {
  let answer = (): void => {}
  const waits = new Promise<void>(resolve => { answer = resolve })
  const { front, control, responses } = await connect(t, { answer: async sent => { await waits; return { outcome: 'answered', reading: reading({ ...sent, action: 'urn:EchoResponse' }) } } })
  const requests = front()
  await requests.say(stored(1))
  requests.close()
  const [again, ending, pushed] = [front(), control(), responses()]
  await again.say(stored(2))
  await ending.say(endRequests(1))
  await pushed.say(getResponses({ count: -1 }))
  answer()
  await settle(20)
  t.same(pushes(pushed.sent).sort(), ['1', '2'])
  t.same(ends(pushed.sent), [{ count: 2, reason: 'Success' }])
})
