import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import type { SoapEndpoint } from '../../transport/channel.ts'
import { baseUrls } from '../../transport/http/base-url.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import { introduction } from '../../transport/introduction.ts'
import { relayListener } from '../../transport/relay.ts'

/** A front door and the process behind it, which answers with the address that it takes itself to be called by. */
async function house (t: Test, trustedProxies: string, host = '127.0.0.1') {
  const dir = mkdtempSync(join(tmpdir(), 'soa-'))
  const path = join(dir, 'w')
  const limits = { maxMessageSize: 1000, maxHeaderBytes: 1000, maxDepth: 10 }
  const endpoint: SoapEndpoint = { limits, handle: () => Promise.reject(new Error('not called')), get: async ({ baseUrl, query }) => ({ status: 200, contentType: 'text/plain', body: `<${baseUrl}>${query}` }) }
  const worker = await listenHttp({ listen: { path }, takesIntroductions: true, route: () => endpoint, baseUrl: baseUrls({ advertise: '', trustedProxies }), log: silent })
  const relay = await relayListener({ host, port: 0, httpServer: createHttpServer(), decide: async () => ({ to: path, isIntroduced: true }), log: silent })
  t.teardown(async () => { await relay.close(); await worker.close(); rmSync(dir, { recursive: true }) })
  return { path, port: relay.port, worker }
}

async function talk (socket: Socket, pieces: ReadonlyArray<Buffer | string>): Promise<string> {
  let said = ''
  socket.on('data', chunk => { said += String(chunk) }).on('error', () => {})
  const closed = once(socket, 'close').catch(() => {})
  await once(socket, 'connect')
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise(resolve => setImmediate(resolve))
  }
  await closed
  return said
}
const get = (target: string, headers = '', close = true): string => `GET ${target} HTTP/1.1\r\n${headers}${close ? 'Connection: close\r\n' : ''}\r\n`
const LIES = 'Host: grid.example\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: proxy.example\r\n'

t.test('introduction: behind the front door a caller is who it is there, for every request of its connection', async t => {
  const stranger = await house(t, '192.0.2.1')
  const trusted = await house(t, 'loopback')
  const two = get('/1/Http?a', LIES, false) + get('/1/Http?b', LIES)
  t.match(await talk(connect(stranger.port, '127.0.0.1'), [two]), /<http:\/\/grid\.example>a[^]*<http:\/\/grid\.example>b/)
  t.match(await talk(connect(trusted.port, '127.0.0.1'), [two]), /<https:\/\/proxy\.example>a[^]*<https:\/\/proxy\.example>b/)
  t.match(await talk(connect(stranger.port, '127.0.0.1'), [get('/1/Http', 'Host: "\r\n')]), `<http://127.0.0.1:${stranger.port}>`, 'and the address that it reached is known')
})

t.test('introduction: IPv6 too', async t => {
  const { port } = await house(t, '::1', '::1')
  t.match(await talk(connect(port, '::1'), [get('/1/Http', LIES)]), '<https://proxy.example>')
  t.match(await talk(connect(port, '::1'), [get('/1/Http', 'Host: "\r\n')]), `<http://[::1]:${port}>`)
  const all = await house(t, '', '::')
  t.match(await talk(connect(all.port, '127.0.0.1'), [get('/1/Http', 'Host: "\r\n')]), `<http://127.0.0.1:${all.port}>`, 'IPv4 on a socket for both')
})

t.test('introduction: a caller cannot introduce itself', async t => {
  const { port } = await house(t, '10.0.0.1')
  const answer = await talk(connect(port, '127.0.0.1'), ['PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n' + get('/1/Http', LIES)])
  t.match(answer, /^HTTP\/1\.1 400 /)
  t.notMatch(answer, 'proxy.example')
})

t.test('introduction: cut anywhere, it is read, and not a byte behind it is lost', async t => {
  const { path } = await house(t, '10.0.0.1')
  const line = 'PROXY TCP4 10.0.0.1 10.0.0.2 4711 80\r\n'
  const bytes = Buffer.from(line + get('/1/Http?x', LIES))
  for (let cut = 1; cut < line.length + 20; cut++) {
    t.match(await talk(connect(path), [bytes.subarray(0, cut), bytes.subarray(cut)]), '<https://proxy.example>x', `cut at ${cut}`)
  }
  t.match(await talk(connect(path), [get('/1/Http?x', 'Host: x\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: head.example\r\n')]), '<https://head.example>x', 'without one it is a process of ours')
  t.match(await talk(connect(path), ['PROXY UNKNOWN\r\n', get('/1/Http?x', LIES)]), '<http://grid.example>x')
})

t.test('introduction: a wrong one ends the connection, and closing waits for none', async t => {
  const { path, worker } = await house(t, '')
  for (const wrong of ['PROXY TCP4 10.0.0.1 10.0.0.2 4711\r\n', 'PROXY TCP6 10.0.0.1 10.0.0.2 1 2\r\n', 'PROXY TCP5 ::1 ::1 1 2\r\n', `PROXY UNKNOWN ${'x'.repeat(200)}\r\n`, 'PROXY ' + 'x'.repeat(107)]) {
    t.equal(await talk(connect(path), [wrong + get('/1/Http')]), '', wrong)
  }
  const silentOne = connect(path)
  await once(silentOne, 'connect')
  const gone = once(silentOne, 'close')
  const half = connect(path)
  await once(half, 'connect')
  half.write('PROXY')
  const halfGone = once(half, 'close')
  await worker.close(0)
  await Promise.all([gone, halfGone])
  t.pass('both are cut')
})

t.test('introduction: of a connection that is gone nothing is known', async t => {
  t.equal(introduction(new Socket()), 'PROXY UNKNOWN\r\n')
})
