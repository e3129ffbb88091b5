import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { WebSocket, type ClientOptions } from 'ws'
import { SoaError } from '../../core/errors.ts'
import { silent } from '../../core/log.ts'
import { ManualClock, settle } from '../clock.ts'
import { answeringEndpoint } from '../../transport/answering.ts'
import type { DuplexChannel, DuplexEndpoint, SoapEndpoint } from '../../transport/channel.ts'
import { codecFor } from '../../transport/tcp/codec.ts'
import { closeHttp, listenHttp, serveWebSockets, soapServer } from '../../transport/http/listener.ts'
import type { SoapOverWebSocket } from '../../transport/http/web-socket.ts'
import { MSBIN1, MSBINSESSION1 } from '../../wire/framing/records.ts'
import { readBinaryEnvelope } from '../../wire/soap/binary.ts'
import { writeBinaryEnvelope } from '../../wire/soap/binary-write.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'

const TEXT = 'application/soap+xml; charset=utf-8'
const limits = { maxMessageSize: 65_536, maxHeaderBytes: 65_536, maxDepth: 64 }
const message = (text: string, more: Partial<Envelope> = {}): Envelope => ({ v: 1, soap: 12, enc: 'utf8', action: 'urn:Echo', messageId: `urn:uuid:${text.slice(0, 20)}`, otherHeaders: [], prefixesInScope: [], body: Buffer.from(`<n>${text}</n>`), ...more })
const body = (reading: Reading): string => Buffer.from(withTextBody(reading.envelope).body).toString()
const echo: SoapEndpoint = { limits, handle: async ({ reading }) => ({ envelope: { ...reading.envelope, action: 'urn:EchoResponse' } }) }

/** A server with a WebSocket at /echo and, for HTTP, an endpoint at the same path. */
async function serve (t: Test, endpoint: DuplexEndpoint = answeringEndpoint(echo, silent), options: Partial<SoapOverWebSocket> = {}) {
  const clock = new ManualClock()
  const server = soapServer({ route: path => path === '/echo' ? echo : undefined, log: silent })
  const door = serveWebSockets(server, { route: path => path === '/echo' ? endpoint : undefined, log: silent, clock, ...options })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => closeHttp(server))
  const { port } = server.address() as { port: number }
  return { port, door, clock, close: (graceMs?: number) => closeHttp(server, graceMs), url: `ws://127.0.0.1:${port}/echo` }
}

/** A client as WCF's is, or as the headers say. */
async function open (t: Test, url: string, { contentType = MSBINSESSION1, headers = {}, ...more }: ClientOptions & { contentType?: string } = {}) {
  const socket = new WebSocket(url, 'soap', { headers: { 'soap-content-type': contentType, 'microsoft-binary-transfer-mode': 'Buffered', ...headers }, ...more })
  t.teardown(() => socket.terminate())
  const codec = codecFor(contentType, limits)
  if (codec === undefined) throw new Error(contentType)
  const got: Reading[] = []
  const closed = new Promise<{ code: number, reason: string }>(resolve => socket.on('close', (code, reason) => resolve({ code, reason: String(reason) })))
  socket.on('message', data => { got.push(codec.read(data as Buffer)); socket.emit('got') })
  await once(socket, 'open')
  return {
    socket,
    closed,
    send: (envelope: Envelope) => { socket.send(codec.write({ envelope }, false)) },
    async next () { while (got.length === 0) await once(socket, 'got'); return got.shift() as Reading }
  }
}

/** The answer to a handshake that is refused. */
async function refused (url: string, subprotocol: string | undefined, headers: Record<string, string>) {
  const socket = new WebSocket(url, subprotocol === undefined ? [] : [subprotocol], { headers })
  socket.on('error', () => { /* the answer says it */ })
  const [, response] = await once(socket, 'unexpected-response') as [unknown, import('node:http').IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() }
}

for (const [what, contentType, mode] of [['a session\'s tables', MSBINSESSION1, 'Buffered'], ['static ids only', MSBIN1, 'Buffered'], ['text', TEXT, 'Buffered']] as const) {
  t.test(`WebSocket with ${what}: messages go both ways, answered in any order`, async t => {
    const held: Array<() => void> = []
    const slow: SoapEndpoint = { limits, handle: async ({ reading }) => { if (body(reading).includes('slow')) await new Promise<void>(resolve => held.push(resolve)); return { envelope: reading.envelope } } }
    const { url } = await serve(t, answeringEndpoint(slow, silent))
    const client = await open(t, url, { contentType, headers: { 'microsoft-binary-transfer-mode': mode } })
    client.send(message('slow'))
    for (let i = 0; i < 3; i++) {
      client.send(message(`quick ${i}`))
      const answer = await client.next()
      t.match([answer.envelope.relatesTo, body(answer)], [`urn:uuid:quick ${i}`, `<n>quick ${i}</n>`])
    }
    held[0]?.()
    t.match((await client.next()).envelope, { relatesTo: 'urn:uuid:slow' })
    client.socket.close(1000)
    t.match(await client.closed, { code: 1000 })
  })
}

t.test('WebSocket: in a direction that WCF streams, messages have static ids only', async t => {
  const { url } = await serve(t)
  const socket = new WebSocket(url, 'soap', { headers: { 'soap-content-type': MSBINSESSION1, 'microsoft-binary-transfer-mode': 'Streamed' } })
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  socket.send(writeBinaryEnvelope(message('streamed'), undefined))
  const [data] = await once(socket, 'message') as [Buffer]
  t.match(readBinaryEnvelope(data, undefined, { limits }).envelope, { action: 'urn:EchoResponse', relatesTo: 'urn:uuid:streamed' })
})

t.test('WebSocket: what is not served is refused with a status, in the headers that WCF reads', async t => {
  const { url, port, door } = await serve(t)
  const right = { 'soap-content-type': MSBINSESSION1, 'microsoft-binary-transfer-mode': 'Buffered' }
  t.match(await refused(url, 'chat', right), { status: 426, headers: { 'sec-websocket-protocol': 'soap' }, text: /subprotocol soap .* not "chat"/ })
  t.match(await refused(url, undefined, right), { status: 426, headers: { 'sec-websocket-protocol': 'soap' } })
  t.match(await refused(url, 'soap', { ...right, 'soap-content-type': 'application/json' }), { status: 400, headers: right, text: /soap-content-type.*application\/soap\+msbinsession1.*not "application\/json"/ })
  t.match(await refused(url, 'soap', {}), { status: 400, headers: right })
  t.match(await refused(url, 'soap', { ...right, 'microsoft-binary-transfer-mode': 'Slowly' }), { status: 400, headers: right })
  t.match(await refused(`ws://127.0.0.1:${port}/nowhere`, 'soap', right), { status: 404, text: /nowhere/ })
  t.equal(door.channels, 0)
  const subprotocol = await open(t, url)
  t.equal(subprotocol.socket.protocol, 'soap')
})

t.test('WebSocket: a message that is too large ends the channel by its first bytes, with the limit in the reason', async t => {
  const { url } = await serve(t)
  const client = await open(t, url)
  client.send(message('x'.repeat(limits.maxMessageSize)))
  t.match(await client.closed, { code: 1009, reason: /maxMessageSize, 65536 bytes/ })
})

t.test('WebSocket: a message that cannot be read is answered with a fault, and then the channel is over', async t => {
  const { url } = await serve(t)
  const client = await open(t, url)
  client.socket.send(Buffer.from('no envelope'))
  const answer = await client.next()
  t.ok(answer.isFault)
  t.match(readFault(answer.envelope), { code: 'Sender' })
  t.match(await client.closed, { code: 1007, reason: /\w/ })
})

t.test('WebSocket: too much in hand stops reading until something is settled', async t => {
  const settles: Array<() => void> = []
  let came: DuplexChannel | undefined
  const stuck: DuplexEndpoint = { limits, open (channel) { came = channel; return { message: () => new Promise<void>(resolve => settles.push(resolve)) } } }
  const { url } = await serve(t, stuck, { limits: { maxInHand: 4 } })
  const client = await open(t, url)
  // 16 MB: more than sockets and the reader's buffers hold.
  const SENT = 400
  for (let i = 0; i < SENT; i++) client.send(message(`${i} ${'x'.repeat(40_000)}`))
  while (settles.length < 4) await settle()
  // All that was on its way when the brake fell has come once nothing more does for some turns.
  for (let seen = 0, quiet = 0; quiet < 200; quiet++) { await settle(); if (settles.length > seen) { seen = settles.length; quiet = 0 } }
  t.ok(settles.length < SENT / 2, `${settles.length} of ${SENT} were read`)
  t.ok(client.socket.bufferedAmount > 0, 'the client is held up')
  while (settles.length < SENT) { for (const settled of settles) settled(); await settle() }
  t.equal(settles.length, SENT, 'all came in the end')
  for (const settled of settles) settled()
  client.socket.close()
  await client.closed
  t.ok(came?.signal.aborted)
})

t.test('WebSocket: what came before the client\'s Close is done before the channel is over', async t => {
  let channel: DuplexChannel | undefined
  let finish = (): void => {}
  const { url } = await serve(t, { limits, open (opened) { channel = opened; return { message: () => new Promise<void>(resolve => { finish = resolve }) } } })
  const client = await open(t, url)
  client.send(message('stored'))
  client.socket.close(1000)
  t.match(await client.closed, { code: 1000 }, 'the Close is answered meanwhile')
  t.notOk(channel?.signal.aborted)
  await t.rejects(async () => { await channel?.send({ envelope: message('late') }) }, { name: 'ChannelClosed' })
  finish()
  await once(channel?.signal as AbortSignal, 'abort')
})

t.test('WebSocket: our end is said with Close, and so is the server\'s; a connection that breaks ends the channel at once', async t => {
  const channels: DuplexChannel[] = []
  const { url, close, door } = await serve(t, { limits, open (channel) { channels.push(channel); return { message: async () => channel.end() } } })
  const first = await open(t, url)
  first.send(message('end, please'))
  t.match(await first.closed, { code: 1000 })
  const second = await open(t, url)
  second.socket.terminate()
  const { signal } = channels[1] as DuplexChannel
  if (!signal.aborted) await once(signal, 'abort')
  t.match(signal.reason, { name: 'ChannelClosed' })
  const third = await open(t, url)
  t.equal(door.channels, 1)
  const closing = close(60_000)
  t.match(await third.closed, { code: 1001, reason: 'the server stops' })
  await closing
  t.equal(door.channels, 0)
})

t.test('WebSocket: a client that answers no ping is gone; not one that was sent a message, which it may not read', async t => {
  const channels: DuplexChannel[] = []
  const { url, clock } = await serve(t, { limits, open (channel) { channels.push(channel); return { message: async () => {} } } })
  const dead = await open(t, url, { autoPong: false })
  const alive = await open(t, url)
  const round = async (): Promise<void> => {
    const ping = [dead, alive].filter(({ socket }) => socket.readyState === WebSocket.OPEN).map(({ socket }) => once(socket, 'ping'))
    clock.advance(30_000)
    await Promise.all(ping)
    // The pong has arrived when the answer to something sent behind it would have.
    await new Promise<void>(resolve => alive.socket.ping('', true, () => resolve()))
    await once(alive.socket, 'pong')
  }
  await channels[0]?.send({ envelope: message('unread') })
  await round()
  await round()
  await round()
  t.equal(dead.socket.readyState, WebSocket.OPEN, 'it may have stopped reading at the message')
  dead.socket.pong()
  dead.socket.ping()
  await once(dead.socket, 'pong')
  await round()
  clock.advance(30_000)
  t.match(await dead.closed, { code: 1006 })
  t.equal(alive.socket.readyState, WebSocket.OPEN)
})

t.test('a request that asks for another upgrade is served as if it had not asked', async t => {
  const { port } = await serve(t)
  const socket: Socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let got = ''
  socket.on('data', chunk => { got += String(chunk); socket.emit('more') })
  const text = '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><n>java</n></s:Body></s:Envelope>'
  for (let i = 1; i <= 2; i++) {
    // As Java's HttpClient asks a server that it does not know.
    socket.write(`POST /echo HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: ${text.length}\r\nHost: h\r\nHTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\nContent-Type: application/soap+xml\r\n\r\n${text}`)
    while (got.split('<n>java</n>').length <= i) await once(socket, 'more')
  }
  t.match(got, /^HTTP\/1\.1 200 OK/)
})

t.test('binary over HTTP: request, reply, fault and what cannot be read, all in the encoding of the request', async t => {
  const listener = await listenHttp({
    listen: { host: '127.0.0.1', port: 0 },
    route: () => ({ limits, handle: async ({ reading }) => { if (body(reading).includes('refuse')) throw new SoaError('Broker_ClientIdNotMatch', {}); return { envelope: { ...reading.envelope, action: 'urn:EchoResponse' } } } }),
    log: silent
  })
  t.teardown(() => listener.close())
  const post = async (bytes: Uint8Array, type = MSBIN1) => {
    const response = await request(`${listener.address}/any`, { method: 'POST', body: bytes, headers: { 'content-type': type } })
    const answer = Buffer.from(await response.body.arrayBuffer())
    return { status: response.statusCode, type: response.headers['content-type'], text: answer.toString(), reading: () => readBinaryEnvelope(answer, undefined, { limits }) }
  }
  const answered = await post(writeBinaryEnvelope(message('binary'), undefined, { replyTo: true, to: 'http://h/any' }))
  t.match([answered.status, answered.type, body(answered.reading())], [200, MSBIN1, '<n>binary</n>'])
  t.match(answered.reading(), { addressed: true, envelope: { action: 'urn:EchoResponse', relatesTo: 'urn:uuid:binary' } })
  const plain = await post(writeBinaryEnvelope(message('plain', { action: '', messageId: undefined }), undefined), `${MSBIN1}; action="urn:Echo"`)
  t.match([plain.status, plain.reading().envelope.action, plain.reading().addressed], [200, '', false], 'no addressing for who uses none')
  const fault = await post(writeBinaryEnvelope(message('refuse'), undefined))
  t.match([fault.status, fault.type, fault.reading().isFault, fault.reading().envelope.relatesTo], [500, MSBIN1, true, 'urn:uuid:refuse'])
  for (const bytes of [Buffer.from('no envelope'), Buffer.alloc(0), writeBinaryEnvelope(message('cut'), undefined).subarray(0, 40)]) {
    const unread = await post(bytes)
    t.match([unread.status, unread.type, unread.reading().isFault], [500, MSBIN1, true], `${bytes.length} bytes`)
  }
  const large = await post(Buffer.alloc(limits.maxMessageSize + 1))
  t.match([large.status, readFault(large.reading().envelope)?.reason], [500, /maxMessageSize/])
  for (const [type, says] of [[`${MSBIN1}+gzip`, /compressionFormat="None"/], [`${MSBIN1}+deflate`, /compressionFormat/], [MSBINSESSION1, /needs a channel/]] as const) {
    t.match(await post(Buffer.alloc(1), type), { status: 415, text: says }, type)
  }
})
