import { once } from 'node:events'
import { connect } from 'node:net'
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { silent } from '../../core/log.ts'
import { acceptsGzip, codingOf } from '../../transport/http/coding.ts'
import { listenHttp, type SoapOverHttp } from '../../transport/http/listener.ts'
import { SOAP11 } from '../../wire/soap/envelope.ts'

const limits = { maxMessageSize: 1_000_000, maxHeaderBytes: 65_536, maxDepth: 128 }
const soap11 = (body: string): string => `<s:Envelope xmlns:s="${SOAP11}"><s:Body>${body}</s:Body></s:Envelope>`

/** A listener that answers with a body of as many characters as the request's text says. */
async function listening (t: Test, options: Partial<SoapOverHttp> = {}): Promise<{ url: string, port: number }> {
  const listener = await listenHttp({
    listen: { host: '127.0.0.1', port: 0 },
    route: () => ({
      limits,
      handle: async ({ reading: { envelope } }) => ({ envelope: { ...envelope, body: Buffer.from(`<r>${'xyz '.repeat(Number(/\d+/.exec(Buffer.from(envelope.body).toString())?.[0] ?? 0) / 4)}</r>`) } })
    }),
    log: silent,
    ...options
  })
  t.teardown(() => listener.close())
  return { url: listener.address, port: Number(new URL(listener.address).port) }
}

async function ask (url: string, size: number, acceptEncoding?: string): Promise<{ coding: unknown, vary: unknown, length: unknown, wire: number, text: string }> {
  const { headers, body } = await request(url, { method: 'POST', body: soap11(`<m>${size}</m>`), headers: { 'content-type': 'text/xml', ...acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding } } })
  const bytes = Buffer.from(await body.arrayBuffer())
  return { coding: headers['content-encoding'], vary: headers.vary, length: headers['content-length'], wire: bytes.length, text: (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString() }
}

t.test('Accept-Encoding is read as RFC 9110 has it', async t => {
  for (const yes of ['gzip', 'GZIP', 'x-gzip', 'gzip, deflate', 'deflate,gzip;q=0.5', 'br;q=1.0, gzip ; q=0.001', '*', 'deflate, *;q=0.1', 'gzip;q=1, *;q=0', ' gzip ']) t.equal(acceptsGzip(yes), true, yes)
  for (const no of [undefined, '', 'identity', 'deflate', 'br', 'gzip;q=0', 'gzip; q=0.000', '*;q=0', '*;q=1, gzip;q=0', 'gzipped']) t.equal(acceptsGzip(no), false, String(no))
})

t.test('codings of requests by their names; several on top of each other are not taken', async t => {
  t.same(['', undefined, 'identity', 'identity, gzip', 'X-GZip', 'deflate', 'br'].map(codingOf), ['identity', 'identity', 'identity', 'gzip', 'gzip', 'deflate', 'br'])
  t.same(['zstd', 'gzip, br', 'gzip, gzip', 'compress', 'gzip;q=1'].map(codingOf), [undefined, undefined, undefined, undefined, undefined])
})

t.test('a large reply is packed for whoever accepts it, a small one never; both large forms say that they vary', async t => {
  const { url } = await listening(t)
  t.match(await ask(url, 400_000, 'gzip, deflate'), { coding: 'gzip', vary: 'accept-encoding', length: undefined, text: new RegExp(`<r>${'xyz '.repeat(10)}[^]*</r>`) })
  const packed = await ask(url, 400_000, 'gzip')
  t.ok(packed.wire < 20_000 && packed.text.length > 400_000, `${packed.wire} bytes for ${packed.text.length}`)
  t.match(await ask(url, 400_000), { coding: undefined, vary: 'accept-encoding', length: /^400\d\d\d$/ })
  t.match(await ask(url, 400_000, 'gzip;q=0, *'), { coding: undefined, vary: 'accept-encoding' })
  t.match(await ask(url, 400, 'gzip'), { coding: undefined, vary: undefined, length: /^\d+$/ })
  const { url: never } = await listening(t, { gzipFromBytes: 0 })
  t.match(await ask(never, 400_000, 'gzip'), { coding: undefined, vary: undefined })
  const { url: always } = await listening(t, { gzipFromBytes: 1 })
  t.match(await ask(always, 4, 'gzip'), { coding: 'gzip' })
})

t.test('HTTP/1.0: no chunks, so nothing is packed, and the connection ends unless it was to be kept', async t => {
  const { port } = await listening(t)
  const send = async (head: string, ends: boolean): Promise<string> => {
    const socket = connect(port, '127.0.0.1')
    const body = soap11('<m>20000</m>')
    let answer = ''
    socket.on('data', chunk => { answer += String(chunk) })
    socket.write(`POST / HTTP/1.0\r\n${head}Content-Type: text/xml\r\nAccept-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    if (ends) await once(socket, 'close')
    else while (!answer.endsWith('</s:Envelope>')) await once(socket, 'data')
    socket.destroy()
    return answer
  }
  t.match(await send('', true), /^HTTP\/1\.1 200 [^]*content-length: 20\d\d\d[^]*connection: close[^]*<\/s:Envelope>$/i)
  t.match(await send('Host: x\r\nConnection: keep-alive\r\n', false), /^HTTP\/1\.1 200 [^]*connection: keep-alive/i)
})

t.test('what unpacks to more than maxMessageSize is refused as it passes the limit, with each coding', async t => {
  const { url } = await listening(t)
  const bomb = Buffer.from(soap11(`<m>${' '.repeat(50_000_000)}</m>`))
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  const look = setInterval(() => { most = Math.max(most, process.memoryUsage().arrayBuffers) }, 1)
  for (const [coding, packed] of [['gzip', gzipSync(bomb, { level: 1 })], ['deflate', deflateSync(bomb, { level: 1 })], ['br', brotliCompressSync(bomb, { params: { 1: 1 } })]] as const) {
    if (packed.length > limits.maxMessageSize) t.fail(`${coding}: ${packed.length} bytes are too many for what this test is about`)
    const { statusCode, body } = await request(url, { method: 'POST', body: packed, headers: { 'content-type': 'text/xml', 'content-encoding': coding } })
    t.match([statusCode, await body.text()], [500, /maxMessageSize is more than 1000000, the limit is 1000000/], coding)
    t.match((await ask(url, 4)).text, '<r>xyz </r>')
  }
  clearInterval(look)
  t.ok(most < before + bomb.length, `${(most - before) / 1e6} MB more than before, of a body that says ${bomb.length / 1e6}`)
})

t.test('a caller that leaves in the middle of a packed reply harms nobody', async t => {
  const { url, port } = await listening(t)
  const body = soap11('<m>900000</m>')
  for (let i = 0; i < 20; i++) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nAccept-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await once(socket, 'data')
    socket.resetAndDestroy()
  }
  t.match(await ask(url, 400_000, 'gzip'), { coding: 'gzip' })
})
