import t from 'tap'
import type { Test } from 'tap'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { silent } from '../../core/log.ts'
import { ManualClock, settle } from '../clock.ts'
import { END, preamble, PREAMBLE_END, sizedEnvelope, upgradeRequest } from '../../wire/framing/encoder.ts'
import { faultUri, type FramingFault } from '../../wire/framing/faults.ts'
import { MODE, MSBIN1, MSBINSESSION1 } from '../../wire/framing/records.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import { answeringEndpoint } from '../../transport/answering.ts'
import type { DuplexChannel, DuplexEndpoint } from '../../transport/channel.ts'
import { tcpCaller } from '../../transport/tcp/caller.ts'
import { openTcp } from '../../transport/tcp/client-session.ts'
import { listenTcp, type SoapOverTcp } from '../../transport/tcp/listener.ts'

const TEXT = 'application/soap+xml; charset=utf-8'
const limits = { maxMessageSize: 65_536, maxHeaderBytes: 65_536, maxDepth: 64 }
const never = new AbortController().signal
const message = (text: string, more: Partial<Envelope> = {}): Envelope => ({ v: 1, soap: 12, enc: 'utf8', action: 'urn:Echo', messageId: `urn:uuid:${text}`, otherHeaders: [], prefixesInScope: [], body: Buffer.from(`<n>${text}</n>`), ...more })
const body = (reading: Reading): string => Buffer.from(reading.envelope.body).toString()

const echo = answeringEndpoint({ limits, handle: async ({ reading }) => ({ envelope: { ...reading.envelope, action: 'urn:EchoResponse' } }) }, silent)

async function serve (t: Test, endpoint: DuplexEndpoint = echo, options: Partial<SoapOverTcp> = {}) {
  const clock = new ManualClock()
  const listener = await listenTcp({ listen: { host: '127.0.0.1', port: 0 }, route: path => path === '/echo' ? endpoint : undefined, log: silent, clock, ...options })
  t.teardown(() => listener.close())
  return { ...listener, clock, url: `${listener.address}/echo` }
}

/** A client made of bytes: what came back so far, and the wait for more. */
async function raw (t: Test, port: number) {
  const socket: Socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  t.teardown(() => socket.destroy())
  let got = Buffer.alloc(0)
  const state = { isClosed: false }
  socket.on('data', chunk => { got = Buffer.concat([got, chunk]); socket.emit('more') })
  for (const event of ['end', 'close', 'error']) socket.on(event, () => { state.isClosed = true; socket.emit('more') })
  return {
    socket,
    say: (...pieces: Buffer[]) => { socket.write(Buffer.concat(pieces)) },
    async until (bytes: number) { while (got.length < bytes && !state.isClosed) await once(socket, 'more'); return got },
    async closed () { while (!state.isClosed) await once(socket, 'more'); return got },
  }
}

const hello = (via: string, contentType = TEXT): Buffer => Buffer.concat([preamble({ via, contentType }), PREAMBLE_END])
const fault = (name: FramingFault): Buffer => { const uri = Buffer.from(faultUri(name)); return Buffer.concat([Buffer.of(8, uri.length), uri]) }

t.test('tcp: a session opens, answers by RelatesTo in any order, and ends on both sides', async t => {
  const held: Array<() => void> = []
  const slow = answeringEndpoint({ limits, handle: async ({ reading }) => { if (body(reading).includes('slow')) await new Promise<void>(resolve => held.push(resolve)); return { envelope: reading.envelope } } }, silent)
  const { url, server } = await serve(t, slow)
  const caller = tcpCaller(url, { limits, connections: 1, callsPerConnection: Infinity, contentType: TEXT })
  const first = caller.call(message('slow'), { timeoutMs: 60_000, signal: never })
  const second = await caller.call(message('quick'), { timeoutMs: 60_000, signal: never })
  t.match(second, { outcome: 'answered', reading: { envelope: { relatesTo: 'urn:uuid:quick' } } })
  t.equal(server.connections, 1)
  held[0]?.()
  t.match(await first, { outcome: 'answered', reading: { envelope: { relatesTo: 'urn:uuid:slow' } } })
  await caller.close()
})

for (const [what, bytes, name] of [
  ['a version that is not 1', Buffer.of(0, 2, 0, 1, 2), 'UnsupportedVersion'],
  ['a mode that is not served', Buffer.of(0, 1, 0, 1, 3), 'UnsupportedMode'],
  ['a via at which nothing is', hello('net.tcp://h/nothing'), 'EndpointNotFound'],
  ['a via that is no address', hello('echo'), 'EndpointNotFound'],
  ['an encoding that is not read', hello('net.tcp://h/echo', 'application/x-unknown'), 'ContentTypeInvalid'],
  ['a charset that nobody knows', hello('net.tcp://h/echo', 'application/soap+xml; charset=klingon'), 'ContentTypeInvalid'],
  ['Windows security', Buffer.concat([preamble({ via: 'net.tcp://h/echo', contentType: TEXT }), upgradeRequest('application/negotiate')]), 'UpgradeInvalid'],
  ['TLS where there is none', Buffer.concat([preamble({ via: 'net.tcp://h/echo', contentType: TEXT }), upgradeRequest('application/ssl-tls')]), 'UpgradeInvalid'],
] as const) {
  t.test(`tcp: ${what} is answered at once with ${name}, and closed`, async t => {
    const { port } = await serve(t)
    const client = await raw(t, port)
    client.say(bytes)
    t.same(await client.closed(), fault(name))
  })
}

t.test('tcp: a message larger than the endpoint takes is refused before it has come', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  client.say(hello('net.tcp://h/echo'), Buffer.of(6, 0xff, 0xff, 0xff, 0xff, 0x07))
  t.same((await client.closed()).subarray(1), fault('MaxMessageSizeExceededFault'))
})

t.test('tcp: what is no SOAP is answered with a fault, and the session ends', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  client.say(hello('net.tcp://h/echo'), sizedEnvelope(Buffer.from('<nonsense/>')))
  const got = await client.until(300)
  t.match(got.toString('latin1'), /Fault/)
  client.say(END)
  t.equal((await client.closed()).at(-1), 7)
})

t.test('tcp: nothing is taken, and nothing said, behind our own End', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  const payload = writeEnvelope(message('1'), { addressing: 'wsa' })
  client.say(hello('net.tcp://h/echo'), sizedEnvelope(Buffer.from('<nonsense/>')), sizedEnvelope(payload), sizedEnvelope(Buffer.from('<nonsense/>')), END)
  const got = await client.closed()
  t.equal(got.at(-1), 7)
  t.equal(got.toString('latin1').split('Envelope xmlns').length - 1, 1, 'one fault')
  t.notMatch(got.toString('latin1'), /EchoResponse/)
})

t.test('tcp: after End on both sides the connection carries another session; one for somebody else ends it without a word', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  client.say(hello('net.tcp://h/echo'), END)
  t.same(await client.until(2), Buffer.of(0x0b, 7))
  client.say(hello('net.tcp://h/ECHO'.replace('ECHO', 'echo')), END)
  t.same(await client.until(4), Buffer.of(0x0b, 7, 0x0b, 7))
  client.say(hello('net.tcp://h/other'))
  t.same(await client.closed(), Buffer.of(0x0b, 7, 0x0b, 7), '.NET then takes a new connection')
})

t.test('tcp: messages that came before End are answered before ours', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  const payload = writeEnvelope(message('1'), { addressing: 'wsa' })
  client.say(hello('net.tcp://h/echo'), sizedEnvelope(payload), END)
  const got = await client.until(payload.length)
  t.match(got.toString('latin1'), /EchoResponse/)
  while ((await client.until(1)).at(-1) !== 7) await once(client.socket, 'more')
})

t.test('tcp: a streamed client (mode 1) has one message each way for a preamble', async t => {
  const { port } = await serve(t)
  const client = await raw(t, port)
  const payload = writeEnvelope(message('1'), { addressing: 'wsa' })
  const cut = payload.length >> 1
  const size = (n: number): Buffer => n < 0x80 ? Buffer.of(n) : Buffer.of((n & 0x7f) | 0x80, n >> 7)
  for (let turn = 0; turn < 2; turn++) {
    const before = (await client.until(0)).length
    client.say(preamble({ via: 'net.tcp://h/echo', contentType: TEXT, mode: MODE.singletonUnsized }), PREAMBLE_END)
    client.say(Buffer.of(5), size(cut), payload.subarray(0, cut), size(payload.length - cut), payload.subarray(cut), Buffer.of(0), END)
    let got = await client.until(before + payload.length)
    while (got.at(-1) !== 7 || got.length < before + payload.length) { await once(client.socket, 'more'); got = await client.until(0) }
    t.equal(got[before], 0x0b)
    t.equal(got[before + 1], 5)
    t.equal(got.at(-2), 0)
  }
})

t.test('tcp: a preamble that does not come in time is given up; so is a connection that waits too long for its next session', async t => {
  const { port, clock, server } = await serve(t)
  const silentClient = await raw(t, port)
  const pooled = await raw(t, port)
  pooled.say(hello('net.tcp://h/echo'), END)
  await pooled.until(2)
  await settle()
  await clock.advance(30_000)
  t.equal((await silentClient.closed()).length, 0)
  t.equal(server.connections, 1)
  await clock.advance(90_000)
  t.same(await pooled.closed(), Buffer.of(0x0b, 7))
})

t.test('tcp: silent sockets do not keep out those that speak', async t => {
  const { port, server } = await serve(t, echo, { maxPending: 10 })
  const silentClients = await Promise.all(Array.from({ length: 30 }, () => raw(t, port)))
  const speaker = await raw(t, port)
  speaker.say(hello('net.tcp://h/echo'))
  t.same(await speaker.until(1), Buffer.of(0x0b))
  while (server.pending > 10) await once(silentClients[0]?.socket as Socket, 'close')
  t.ok(server.pending <= 10)
})

t.test('tcp: above maxConnections a client is told that the server is too busy', async t => {
  const { port } = await serve(t, echo, { maxConnections: 1 })
  const first = await raw(t, port)
  first.say(hello('net.tcp://h/echo'))
  await first.until(1)
  const second = await raw(t, port)
  t.same(await second.closed(), fault('ServerTooBusy'))
})

t.test('tcp: nothing is read while too many messages are in hand, and all are answered in the end', async t => {
  let go: Array<() => void> = []
  let most = 0
  let inHand = 0
  const slow: DuplexEndpoint = {
    limits,
    open: () => ({
      async message () {
        most = Math.max(most, ++inHand)
        await new Promise<void>(resolve => go.push(resolve))
        inHand--
      }
    })
  }
  const { port } = await serve(t, slow, { limits: { maxInHand: 8 } })
  const client = await raw(t, port)
  const payload = sizedEnvelope(writeEnvelope(message('1'), { addressing: 'wsa' }))
  client.say(hello('net.tcp://h/echo'), ...Array.from({ length: 100 }, () => payload), END)
  await client.until(1)
  let done = 0
  while (done < 100) {
    await settle()
    const ready = go
    go = []
    done += ready.length
    for (const finish of ready) finish()
  }
  t.equal(most, 8)
  t.same(await client.until(2), Buffer.of(0x0b, 7), 'End comes when all is done')
})

t.test('tcp: a server pushes when it likes, and knows when the client has gone', async t => {
  let opened: (channel: DuplexChannel) => void = () => {}
  const opening = new Promise<DuplexChannel>(resolve => { opened = resolve })
  let ended: (why: string) => void = () => {}
  const over = new Promise<string>(resolve => { ended = resolve })
  const pushing: DuplexEndpoint = { limits, open: channel => { opened(channel); return { message: async () => {}, closed: () => ended((channel.signal.reason as Error).message) } } }
  const { url } = await serve(t, pushing)
  const got: string[] = []
  let came: () => void = () => {}
  const all = new Promise<void>(resolve => { came = resolve })
  const client = await openTcp(url, { limits, contentType: TEXT, message: reading => { got.push(body(reading)); if (got.length === 100) came() } })
  const channel = await opening
  await Promise.all(Array.from({ length: 100 }, (_, i) => channel.send({ envelope: message(String(i)) })))
  await all
  t.same(got, Array.from({ length: 100 }, (_, i) => `<n>${i}</n>`), 'in order')
  await client.close()
  t.equal(await over, 'the client has ended the channel')
  await t.rejects(channel.send({ envelope: message('late') }), { name: 'ChannelClosed' })
})

t.test('tcp caller: nobody there is unreachable; a connection that breaks fails its calls at once; a late answer is nobody\'s', async t => {
  const gone = tcpCaller('net.tcp://127.0.0.1:1/echo', { limits, connections: 1, callsPerConnection: Infinity, contentType: TEXT })
  t.match(await gone.call(message('1'), { timeoutMs: 60_000, signal: never }), { outcome: 'unreachable' })
  const stuck: DuplexEndpoint = { limits, open: () => ({ message: () => new Promise(() => {}) }) }
  const { url, server } = await serve(t, stuck)
  const clock = new ManualClock()
  const caller = tcpCaller(url, { limits, connections: 1, callsPerConnection: Infinity, contentType: TEXT, clock })
  const [late, broken] = [caller.call(message('1'), { timeoutMs: 1000, signal: never }), caller.call(message('2'), { timeoutMs: 60_000, signal: never })]
  while (server.connections === 0 || server.pending > 0) await settle()
  await clock.advance(1000)
  t.same(await late, { outcome: 'timedOut' })
  const abort = new AbortController()
  const aborted = caller.call(message('3'), { timeoutMs: 60_000, signal: abort.signal })
  await settle()
  abort.abort()
  t.same(await aborted, { outcome: 'aborted' })
  await server.close()
  t.match(await broken, { outcome: 'broken' })
  await caller.close()
  const { url: other } = await serve(t)
  const lost = tcpCaller(other.replace('echo', 'none'), { limits, connections: 1, callsPerConnection: 1, contentType: TEXT })
  t.match(await lost.call(message('4'), { timeoutMs: 60_000, signal: never }), { outcome: 'unreachable', error: { message: /EndpointNotFound/ } })
})

t.test('tcp caller: one call per connection where it is said so; two calls with one id are not mixed up', async t => {
  let most = 0
  const { url, server } = await serve(t, answeringEndpoint({
    limits,
    async handle ({ reading }) {
      most = Math.max(most, server.connections)
      await settle()
      return { envelope: reading.envelope }
    }
  }, silent))
  const caller = tcpCaller(url, { limits, connections: 3, callsPerConnection: 1, contentType: TEXT })
  const results = await Promise.all(Array.from({ length: 9 }, (_, i) => caller.call(message(String(i), { messageId: 'urn:uuid:same' }), { timeoutMs: 60_000, signal: never })))
  t.same(results.map(result => result.outcome === 'answered' ? body(result.reading) : result.outcome), Array.from({ length: 9 }, (_, i) => `<n>${i}</n>`))
  t.equal(most, 3)
  await caller.close()
})

t.test('tcp: a binary session carries calls in both directions, one table each for all of them', async t => {
  const { url } = await serve(t)
  const caller = tcpCaller(url, { limits, connections: 1, callsPerConnection: Infinity })
  for (let i = 0; i < 3; i++) {
    const result = await caller.call(message(String(i), { prefixesInScope: [['p', 'urn:p']], body: Buffer.from(`<p:n>${i}</p:n>`) }), { timeoutMs: 60_000, signal: never })
    if (result.outcome !== 'answered') { t.fail(result.outcome); break }
    const { envelope } = result.reading
    t.equal(envelope.enc, 'nbfx-static')
    t.match(Buffer.from(withTextBody(envelope).body).toString(), new RegExp(`^<(\\w+:)?n[^>]*>${i}</`))
    t.match(result.reading, { bodyElement: '{urn:p}n', envelope: { action: 'urn:EchoResponse', relatesTo: `urn:uuid:${i}` } })
  }
  await caller.close()
})

t.test('tcp: both binary encodings are read', async t => {
  const { port } = await serve(t)
  for (const contentType of [MSBIN1, MSBINSESSION1]) {
    const client = await raw(t, port)
    client.say(hello('net.tcp://h/echo', contentType))
    t.same(await client.until(1), Buffer.of(0x0b))
  }
})
