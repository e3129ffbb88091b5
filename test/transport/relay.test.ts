import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { relayListener, type ConnectionHead, type RelayOptions } from '../../transport/relay.ts'

interface House { port: number, far: Server, heads: ConnectionHead[], dir: string, farSockets: Socket[], close: (graceMs?: number) => Promise<void> }

/** A relay in front of an echo server behind a Unix socket (`/far…`) and of this process's HTTP server (all else), which echoes bodies. */
async function house (t: Test, options: Partial<RelayOptions> = {}, onFar: (socket: Socket) => void = socket => socket.pipe(socket)): Promise<House> {
  const dir = mkdtempSync(join(tmpdir(), 'soa-'))
  const path = join(dir, 'far')
  const farSockets: Socket[] = []
  const far = createServer({ allowHalfOpen: true }, socket => { farSockets.push(socket); socket.on('error', () => {}); onFar(socket) }).listen(path)
  const httpServer: HttpServer = createHttpServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', chunk => chunks.push(chunk as Buffer)).on('end', () => { response.setHeader('x-url', request.url ?? ''); response.end(Buffer.concat(chunks)) })
  }).listen(join(dir, 'http'))
  await Promise.all([once(far, 'listening'), once(httpServer, 'listening')])
  const heads: ConnectionHead[] = []
  const relay = await relayListener({
    host: '127.0.0.1',
    port: 0,
    httpServer,
    log: silent,
    decide: async head => { heads.push(head); return head.path.startsWith('/far') ? { to: path } : { http: true } },
    ...options
  })
  t.teardown(async () => {
    httpServer.closeAllConnections()
    httpServer.close()
    for (const socket of farSockets) socket.destroy()
    far.close()
    await relay.close()
    rmSync(dir, { recursive: true })
  })
  return { port: relay.port, far, heads, dir, farSockets, close: relay.close }
}

/** Writes the pieces, each in a packet of its own if it can be, ends, and collects what comes back until the other side ends. */
async function talk (port: number, pieces: Array<Buffer | string>, { end = true } = {}): Promise<Buffer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk))
  socket.on('error', () => {})
  const ended = new Promise(resolve => { socket.once('end', resolve); socket.once('close', resolve) })
  await once(socket, 'connect')
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise(resolve => setImmediate(resolve))
  }
  if (end) socket.end()
  await ended
  socket.destroy()
  return Buffer.concat(chunks)
}

const cutAt = (bytes: Buffer, ...cuts: number[]): Buffer[] => [0, ...cuts].map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length))

t.test('two thousand connections, cut at every odd place: no byte is lost, doubled or out of order, on either way', async t => {
  const { port } = await house(t)
  const message = (way: string, n: number): Buffer => {
    const body = Buffer.from(`${n}:`.repeat(1 + n % 700))
    return Buffer.concat([Buffer.from(`POST /${way}/${n}?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`), body])
  }
  let wrong = 0
  const one = async (n: number): Promise<void> => {
    const bytes = message(n % 2 === 0 ? 'far' : 'http', n)
    // The first cuts walk through the request line and the headers byte by byte, the second ones lie anywhere behind.
    const first = n % 90
    const second = first + (n * 7919) % (bytes.length - first)
    const answer = await talk(port, cutAt(bytes, first, second), { end: n % 3 !== 0 || n % 2 === 0 })
    const right = n % 2 === 0 ? answer.equals(bytes) : answer.includes(`x-url: /http/${n}?q`) && answer.subarray(answer.indexOf('\r\n\r\n') + 4).equals(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4))
    if (!right) { wrong++; t.fail(`${n}: sent ${bytes.length} bytes cut at ${first}, ${second}; got ${answer.length}: ${answer.toString('latin1', 0, 200)}`) }
  }
  let next = 0
  await Promise.all(Array.from({ length: 50 }, async () => { while (next < 2000) await one(next++) }))
  t.equal(wrong, 0)
})

t.test('a large message goes through whole, both ways', async t => {
  const { port } = await house(t)
  const bytes = Buffer.concat([Buffer.from('POST /far HTTP/1.1\r\n\r\n'), Buffer.alloc(20_000_000, 'soa')])
  t.ok((await talk(port, [bytes])).equals(bytes))
})

t.test('while it is being decided the socket is read no further than its buffer; then all goes on', async t => {
  let go = (): void => {}
  const gate = new Promise<void>(resolve => { go = resolve })
  const { port, dir } = await house(t, { decide: async () => { await gate; return { to: join(dir, 'far') } } })
  const bytes = Buffer.concat([Buffer.from('POST /far HTTP/1.1\r\n\r\n'), Buffer.alloc(30_000_000, 'x')])
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let sent = false
  socket.end(bytes, () => { sent = true })
  for (let i = 0; i < 50; i++) await talk(port, ['\r\n'])
  t.equal(sent, false, 'the sender waits')
  go()
  let size = 0
  for await (const chunk of socket) size += (chunk as Buffer).length
  t.equal(size, bytes.length)
})

t.test('the head has method and path without query; empty lines before the request are passed over', async t => {
  const { port, heads } = await house(t)
  await talk(port, ['\r\n\r\n', 'GET /far/x?y=/z HTTP/1.1\r\n'])
  await talk(port, ['PUT http://grid.example:80/far/abs?q HTTP/1.0\n'])
  t.match(heads, [{ method: 'GET', path: '/far/x' }, { method: 'PUT', path: '/far/abs' }])
  t.equal(String(heads[0]?.bytes), '\r\n\r\nGET /far/x?y=/z HTTP/1.1\r\n')
})

t.test('what is no HTTP gets the answer of the HTTP server', async t => {
  const { port, heads } = await house(t)
  t.match(String(await talk(port, ['\x16\x03\x01\x02\x00\n'])), /^HTTP\/1.1 400 /)
  t.match(String(await talk(port, ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'])), /^HTTP\/1.1 [45]\d\d /)
  t.equal(heads.length, 0)
})

t.test('either side may end first, and the other still says what it has to say', async t => {
  const { port } = await house(t, {}, socket => {
    socket.resume()
    socket.once('end', () => socket.end('late answer'))
  })
  t.equal(String(await talk(port, ['GET /far HTTP/1.1\r\n\r\n'])), 'late answer')
  const early = await house(t, {}, socket => { socket.end('early answer'); socket.resume() })
  t.equal(String(await talk(early.port, ['GET /far HTTP/1.1\r\n\r\n'], { end: false })), 'early answer')
})

t.test('a far process that dies breaks the connection, a client that dies ends the far one', async t => {
  const { port, farSockets } = await house(t, {}, socket => socket.once('data', () => socket.write('begun')))
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /far HTTP/1.1\r\n\r\n')
  await once(socket, 'data')
  const closed = new Promise(resolve => socket.once('close', resolve))
  socket.on('error', () => {})
  farSockets[0]?.destroy()
  await closed
  const second = connect(port, '127.0.0.1')
  second.write('GET /far HTTP/1.1\r\n\r\n')
  await once(second, 'data')
  const far = farSockets[1] as Socket
  const ended = Promise.race([once(far, 'end'), once(far, 'close')])
  second.resetAndDestroy()
  await ended
  t.pass('both ended')
})

t.test('a destination that is gone, and a decision that fails, are answered with 503', async t => {
  const gone = await house(t, { decide: async () => ({ to: '/nowhere/at/all' }) })
  t.match(String(await talk(gone.port, ['GET /far HTTP/1.1\r\nHost: x\r\n\r\n'], { end: false })), /^HTTP\/1.1 503 /)
  const fails = await house(t, { decide: async () => { throw new Error('no') } })
  t.match(String(await talk(fails.port, ['GET /far HTTP/1.1\r\nHost: x\r\n\r\n'], { end: false })), /^HTTP\/1.1 503 /)
})

t.test('too long, too late, too many', async t => {
  const { port } = await house(t, { maxHeadBytes: 100, firstByteTimeoutMs: 100, maxConnections: 3 })
  t.match(String(await talk(port, [`GET /far${'x'.repeat(200)}`], { end: false })), /^HTTP\/1.1 431 /)
  t.match(String(await talk(port, ['GET /fa'], { end: false })), /^HTTP\/1.1 408 /)
  t.equal(String(await talk(port, [], { end: false })), '', 'who says nothing hears nothing')
  const patient = await house(t, { maxConnections: 3 })
  const held = Array.from({ length: 3 }, () => connect(patient.port, '127.0.0.1'))
  await Promise.all(held.map(socket => once(socket, 'connect')))
  t.equal(String(await talk(patient.port, ['GET /far HTTP/1.1\r\n\r\n'])), '', 'the fourth is closed at once')
  for (const socket of held) socket.destroy()
})

t.test('one connection, several requests: the HTTP server gets them all', async t => {
  const { port } = await house(t)
  const request = (n: number): string => `POST /${n} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n${n === 3 ? 'Connection: close\r\n' : ''}\r\n${n}`
  const answer = String(await talk(port, [request(1) + request(2).slice(0, 20), request(2).slice(20), request(3)], { end: false }))
  t.same([...answer.matchAll(/x-url: \/(\d)/g)].map(([, n]) => n), ['1', '2', '3'])
})

t.test('closing takes no more, lets relayed connections end, and cuts those that do not', async t => {
  const { port, close } = await house(t)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write('GET /far HTTP/1.1\r\n')
  await once(socket, 'data')
  const closing = close(60_000)
  const late = connect(port, '127.0.0.1')
  await new Promise(resolve => late.once('error', resolve))
  socket.end('more')
  t.equal(String(await once(socket, 'data')), 'more')
  await closing
  const other = await house(t)
  const held = connect(other.port, '127.0.0.1')
  held.write('GET /far HTTP/1.1\r\n')
  await once(held, 'data')
  held.on('error', () => {})
  const closed = new Promise(resolve => held.once('close', resolve))
  await other.close(10)
  await closed
  t.pass('cut')
})
