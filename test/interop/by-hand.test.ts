import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { DurableSession, Session } from '../../client/index.ts'
import { HPC, SOAP11, SOAP12, WSA } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { Cluster } from '../e2e/cluster.ts'
import { caseServices, servicesFolder } from './services.ts'

/** Requests as real clients write them, byte for byte on a socket of their own, through front door, worker and host. */

const ADD = 'http://tempuri.org/ICalc/Add'
const body = '<Add xmlns="http://tempuri.org/"><a>2</a><b>-3</b></Add>'
const soap = (version: string, header = '', inner = body): string => `<s:Envelope xmlns:s="${version}"><s:Header>${header}</s:Header><s:Body>${inner}</s:Body></s:Envelope>`
const action = `<a:Action xmlns:a="${WSA}" s:mustUnderstand="1">${ADD}</a:Action>`
const addressed = `${action}<a:MessageID xmlns:a="${WSA}">urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55</a:MessageID><a:ReplyTo xmlns:a="${WSA}"><a:Address>${WSA}/anonymous</a:Address></a:ReplyTo><a:To xmlns:a="${WSA}" s:mustUnderstand="1">http://grid.example/</a:To>`

interface Answer { status: number, headers: Map<string, string>, body: Buffer, interim: boolean }

/** One exchange on a connection of its own; `pieces` are written one after the other, the next when the server has had the last. */
async function exchange (port: number, pieces: ReadonlyArray<string | Buffer>, waitsForContinue = false): Promise<Answer> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  let interim = false
  socket.setNoDelay(true)
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  for (const [at, piece] of pieces.entries()) {
    socket.write(piece)
    if (at === 0 && waitsForContinue) {
      await once(socket, 'data')
      interim = /^HTTP\/1\.1 100 /.test(Buffer.concat(chunks).toString('latin1'))
      chunks.length = 0
    } else await new Promise(resolve => setImmediate(resolve))
  }
  await closed
  const whole = Buffer.concat(chunks)
  const end = whole.indexOf('\r\n\r\n')
  const [line = '', ...fields] = whole.toString('latin1', 0, end).split('\r\n')
  const headers = new Map(fields.map(field => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 1).trim()]))
  let content: Buffer = whole.subarray(end + 4)
  if (headers.get('transfer-encoding') === 'chunked') content = dechunk(content)
  return { status: Number(line.split(' ')[1]), headers, body: headers.get('content-encoding') === 'gzip' ? gunzipSync(content) : content, interim }
}

function dechunk (bytes: Buffer): Buffer {
  const out: Buffer[] = []
  for (let at = 0; ;) {
    const line = bytes.indexOf('\r\n', at)
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    if (!(size > 0)) return Buffer.concat(out)
    out.push(bytes.subarray(line + 2, line + 2 + size))
    at = line + 4 + size
  }
}

const chunked = (bytes: Buffer, size: number): Buffer => Buffer.concat([...Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => {
  const piece = bytes.subarray(i * size, (i + 1) * size)
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)};ext=1\r\n`), piece, Buffer.from('\r\n')])
}), Buffer.from('0\r\nX-Trailer: 1\r\n\r\n')])

const utf16 = (text: string, order: 'le' | 'be', mark: boolean): Buffer => {
  const bytes: Buffer = Buffer.from((mark ? '\ufeff' : '') + text, 'utf16le')
  return order === 'le' ? bytes : bytes.swap16()
}

t.setTimeout(120_000)

t.test('requests by hand: each content type, action, charset, coding and framing that clients send', async t => {
  const cluster = await Cluster.start(t, { services: servicesFolder(t, caseServices(['calc'])), flags: ['--gzip-from-bytes', '100', '--receive-idle-timeout-ms', '3000'] })
  await using session = await Session.create({ service: 'calc', head: cluster.head, maxUnits: 1 })
  const { port, pathname, host } = new URL(session.endpoint)
  const send = async (headers: readonly string[], bytes: string | Buffer, { version = '1.1', length = true, waits = false, pieces }: { version?: string, length?: boolean, waits?: boolean, pieces?: readonly Buffer[] } = {}): Promise<Answer> => {
    const content = Buffer.from(bytes)
    const head = [`POST ${pathname} HTTP/${version}`, `Host: ${host}`, 'Connection: close', ...length ? [`Content-Length: ${content.length}`] : [], ...headers].join('\r\n') + '\r\n\r\n'
    return await exchange(Number(port), [head, ...pieces ?? [content]], waits)
  }
  const right = (t: Test, answer: Answer, soap: 11 | 12, name: string): void => {
    const isRight = answer.status === 200 && answer.body.includes('AddResult>-1<') && (answer.headers.get('content-type') ?? '').startsWith(soap === 11 ? 'text/xml' : 'application/soap+xml') &&
      readEnvelope(answer.body, { limits: { maxHeaderBytes: 65_536, maxDepth: 64 } }).envelope.soap === soap
    t.ok(isRight, name, isRight ? {} : { found: `${answer.status} ${[...answer.headers].join(' ')} ${answer.body.toString()}` })
  }

  await t.test('actions', async t => {
    const type11 = 'Content-Type: text/xml; charset=utf-8'
    const cases: Array<[name: string, headers: string[], soap: 11 | 12, header?: string]> = [
      ['1.1, quoted', [type11, `SOAPAction: "${ADD}"`], 11],
      ['1.1, unquoted', [type11, `SOAPAction: ${ADD}`], 11],
      ['1.1, in capitals and with blanks', [type11, `SOAPACTION:   "${ADD}"  `], 11],
      ['1.1, empty quotes: by the body element', [type11, 'SOAPAction: ""'], 11],
      ['1.1, nothing behind the colon: by the body element', [type11, 'SOAPAction:'], 11],
      ['1.1, absent: by the body element', [type11], 11],
      ['1.1, absent, but addressing has it', [type11], 11, addressed],
      ['1.1, empty quotes, but addressing has it', [type11, 'SOAPAction: ""'], 11, action],
      ['1.1, addressing says something else than HTTP, and is right', [type11, 'SOAPAction: "urn:wrong"'], 11, addressed],
      ['1.1, as a parameter of text/xml', [`Content-Type: text/xml; charset=utf-8; action="${ADD}"`], 11],
      ['1.2, parameter quoted', [`Content-Type: application/soap+xml; charset=utf-8; action="${ADD}"`], 12],
      ['1.2, parameter unquoted', [`Content-Type: application/soap+xml;action=${ADD}`], 12],
      ['1.2, parameter first, blanks and an empty parameter', [`Content-Type: application/soap+xml ;  action = "${ADD}" ; ; charset = utf-8;`], 12],
      ['1.2, parameter empty: by the body element', ['Content-Type: application/soap+xml; action=""'], 12],
      ['1.2, absent: by the body element', ['Content-Type: application/soap+xml'], 12],
      ['1.2, absent, but addressing has it', ['Content-Type: application/soap+xml; charset=utf-8'], 12, addressed],
      ['1.2, in SOAP 1.1\'s header', ['Content-Type: application/soap+xml', `SOAPAction: "${ADD}"`], 12],
    ]
    for (const [name, headers, version, header] of cases) right(t, await send(headers, soap(version === 11 ? SOAP11 : SOAP12, header)), version, name)
    const none = await send([type11], soap(SOAP11, '', '<Nothing xmlns="urn:x"/>'))
    t.match([none.status, none.body.toString()], [500, /<faultcode[^]*Nothing/], 'no action and an element that is nobody\'s: a fault that names it')
  })

  await t.test('media types and charsets', async t => {
    const xml = (charset: string): string => `<?xml version="1.0" encoding="${charset}"?>`
    const text11 = soap(SOAP11); const text12 = soap(SOAP12)
    const cases: Array<[type: string, bytes: string | Buffer, soap: 11 | 12]> = [
      ['text/xml', text11, 11],
      ['TEXT/XML', text11, 11],
      ['text/xml;charset=UTF-8', text11, 11],
      ['text/xml; charset="UTF-8"', text11, 11],
      ["text/xml; charset='utf-8'", text11, 11],
      ['text/xml; Charset=Utf8', text11, 11],
      ['text/xml; charset=utf-8', `\ufeff${xml('utf-8')}${text11}`, 11],
      ['text/xml; charset=us-ascii', text11, 11],
      ['text/xml', `${xml('utf-8')}\n<!-- a comment -->\n${text11}\n`, 11],
      ['text/xml; charset=iso-8859-1', Buffer.from(soap(SOAP11, '<x xmlns="urn:ü"/>'), 'latin1'), 11],
      ['text/xml', Buffer.from(xml('ISO-8859-1') + soap(SOAP11, '<x xmlns="urn:ü"/>'), 'latin1'), 11],
      ['text/xml; charset=windows-1252', Buffer.from(soap(SOAP11, '<x xmlns="urn:ü"/>'), 'latin1'), 11],
      ['text/xml; charset=utf-16', utf16(text11, 'le', true), 11],
      ['text/xml; charset=utf-16', utf16(text11, 'be', true), 11],
      ['text/xml; charset="UTF-16"', utf16(text11, 'le', false), 11],
      ['text/xml; charset=utf-16be', utf16(text11, 'be', false), 11],
      ['text/xml; charset=utf-16le', utf16(text11, 'le', false), 11],
      ['text/xml', utf16(xml('utf-16') + text11, 'le', true), 11],
      ['application/soap+xml', text12, 12],
      ['Application/Soap+XML; Charset="utf-8"', text12, 12],
      ['application/soap+xml; charset=utf-16', utf16(text12, 'le', true), 12],
      ['application/soap+xml; charset=utf-16', utf16(text12, 'be', false), 12],
    ]
    for (const [type, bytes, version] of cases) right(t, await send([`Content-Type: ${type}`], bytes), version, `${type}, ${bytes.length} ${typeof bytes === 'string' ? 'characters' : 'bytes'}`)
    const wrong: Array<[type: string | undefined, says: RegExp]> = [
      ['multipart/related; type="application/xop+xml"; start="<a@b>"; start-info="text/xml"; boundary="x"', /multipart\/related is not served here; send text\/xml .*MTOM is not supported/],
      ['multipart/related; type="text/xml"; boundary=x', /SOAP with attachments is not supported/],
      ['application/xop+xml', /MTOM/],
      ['application/soap+msbin1+gzip', /application\/soap\+msbin1\+gzip is not served here.*WCF's packed binary encoding/],
      ['application/json', /application\/json is not served here/],
      [undefined, /\(none\) is not served here/],
    ]
    for (const [type, says] of wrong) t.match(await send(type === undefined ? [] : [`Content-Type: ${type}`], text11).then(({ status, body }) => [status, body.toString()]), [415, says], type ?? 'no content type')
    const strange = await send(['Content-Type: text/xml; charset=klingon'], text11)
    t.match([strange.status, strange.body.toString()], [500, /charset klingon is not known here/])
  })

  await t.test('framing and codings', async t => {
    const plain = Buffer.from(soap(SOAP11))
    const type = 'Content-Type: text/xml; charset=utf-8'
    for (const [coding, pack] of [['gzip', gzipSync], ['x-gzip', gzipSync], ['deflate', deflateSync], ['br', brotliCompressSync], ['GZip', gzipSync], ['identity', Buffer.from]] as const) {
      right(t, await send([type, `Content-Encoding: ${coding}`], pack(plain)), 11, coding)
    }
    for (const size of [1, 7, 10_000]) right(t, await send([type, 'Transfer-Encoding: chunked'], '', { length: false, pieces: [chunked(plain, size)] }), 11, `chunks of ${size}`)
    right(t, await send([type, 'Transfer-Encoding: chunked', 'Content-Encoding: gzip'], '', { length: false, pieces: [chunked(gzipSync(plain), 5)] }), 11, 'chunked and packed')
    right(t, await send([type], plain, { pieces: [...plain].map(byte => Buffer.of(byte)) }), 11, 'byte by byte')
    const waited = await send([type, 'Expect: 100-continue'], plain, { waits: true })
    right(t, waited, 11, 'Expect: 100-continue')
    t.equal(waited.interim, true, 'and it was told to go on')
    right(t, await send([type, 'Expect: 100-Continue', 'Transfer-Encoding: chunked'], '', { length: false, waits: true, pieces: [chunked(plain, 50)] }), 11, '100-continue, chunked')
    right(t, await send([type], plain, { version: '1.0' }), 11, 'HTTP/1.0')
    const refused = await send([type, 'Content-Encoding: zstd'], plain)
    t.match([refused.status, refused.headers.get('accept-encoding'), refused.body.toString()], [415, 'gzip, deflate, br', /zstd is not served here; send one of gzip, deflate, br/])
    const bomb = await send([type, 'Content-Encoding: gzip'], gzipSync(soap(SOAP11, '', `<Add xmlns="http://tempuri.org/">${' '.repeat(8_000_000)}</Add>`)))
    t.match([bomb.status, bomb.body.toString()], [500, /maxMessageSize is more than 4194304, the limit is 4194304/], 'a body that unpacks to more than maxMessageSize')
  })

  await t.test('replies: in the version and with the addressing of the request, packed when that is asked for', async t => {
    const limits = { maxHeaderBytes: 65_536, maxDepth: 64 }
    const type12 = 'Content-Type: application/soap+xml; charset=utf-8'
    const reply = readEnvelope((await send([type12], soap(SOAP12, addressed))).body, { limits })
    t.match(reply, { addressed: true, mustUnderstand: [], envelope: { soap: 12, action: 'http://tempuri.org/ICalc/AddResponse', relatesTo: 'urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55' } })
    t.match(readEnvelope((await send(['Content-Type: text/xml'], soap(SOAP11))).body, { limits }), { addressed: false, envelope: { otherHeaders: [] } })
    const refusal = await send([type12], soap(SOAP12, '', '<Add xmlns="http://tempuri.org/"><a>x</a></Add>'))
    t.match([refusal.status, readFault(readEnvelope(refusal.body, { limits }).envelope)], [500, { code: 'Sender', reason: /\/Add\/a/ }], 'a request that the schema does not allow: a fault of the sender that names the place')
    const oneWay = await send(['Content-Type: text/xml', 'SOAPAction: "http://tempuri.org/ICalc/Ping"'], soap(SOAP11, '', '<Ping xmlns="http://tempuri.org/"><id>x</id></Ping>'))
    t.match([oneWay.status, oneWay.body.length], [202, 0], 'one-way: 202 and no body')
    const stored = await send(['Content-Type: text/xml', `SOAPAction: ${ADD}`], soap(SOAP11, `<h:HPCServer2008_Broker_ClientIdNS xmlns:h="${HPC}">hand</h:HPCServer2008_Broker_ClientIdNS><h:HPCServer2008_Broker_UserDataNS xmlns:h="${HPC}"/>`))
    t.match([stored.status, readEnvelope(stored.body, { limits }).bodyElement], [200, undefined], 'with UserData: stored, and an empty body at once')
    const packed = await send(['Content-Type: text/xml', 'Accept-Encoding: gzip, deflate'], soap(SOAP11))
    t.match([packed.headers.get('content-encoding'), packed.headers.get('vary'), packed.body.toString()], ['gzip', 'accept-encoding', /AddResult>-1</], 'gzipFromBytes has reached the worker')
    const stalled = await exchange(Number(port), [`POST ${pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<s:`])
    t.match(stalled, { status: NaN }, 'and so has receiveIdleTimeoutMs: a body that stops coming is given up')
    // Our own server behind the front door keeps connections longer than .NET's pool (120 s), the worker's and the head's alike.
    for (const path of [`${pathname}?wsdl`, '/api/v1/sessions']) t.match(await fetch(`${cluster.head}${path}`).then(async answer => { await answer.text(); return answer.headers.get('keep-alive') }), 'timeout=125', path)
  })

  await t.test('client ids with every kind of blank: stored, flushed, pulled, asked for by REST, shown by the command line, and logged in one line each', async t => {
    await using durable = await DurableSession.create({ service: 'calc', head: cluster.head, maxUnits: 1 })
    const named = (id: string): string => JSON.stringify(id).replace(/[^ -~]/g, c => `\\u${c.charCodeAt(0).toString(16)}`) // TAP is lines too
    const ids = ['a b', 'a\tb', 'a\nb', 'a\r\nb', 'a\rb', ' a ', '\u00a0', '\u2028', '\ufeff', '{a}', '\n']
    for (const id of ids) {
      const client = durable.client(id)
      await client.send('Add', { a: 2, b: -3 }, { userData: JSON.stringify(id) })
      await client.endRequests()
      const answers: string[] = []
      for await (const response of client.responses()) answers.push(`${response.userData} ${JSON.stringify(response.result())}`)
      t.same(answers, [`${JSON.stringify(id)} {"AddResult":-1}`], named(id))
      const lines = await fetch(`${cluster.head}/api/v1/sessions/${durable.id}/clients/${encodeURIComponent(id)}/responses?from=begin`).then(answer => answer.text())
      t.equal((JSON.parse(lines) as { userData: string }).userData, JSON.stringify(id), 'by REST')
    }
    const { clients } = await cluster.session(durable.id)
    t.same(clients.map(({ clientId, processed }) => [clientId, processed]).sort(), ids.map(id => [id, 1]).sort(), 'each is a client of its own')
    const entry = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [entry, 'session', 'show', durable.id, '--head', cluster.head])
    for (const id of ['a\\u000ab', 'a\\u000d\\u000ab', '\\u2028']) t.equal(stdout.split('\n').filter(line => line.startsWith(`${id} `)).length, 1, `${id} is one row of the table`)
    const lines = cluster.log.split('\n').filter(line => line.startsWith('{')).slice(1) // the first may be cut
    const isJson = (line: string): boolean => { try { JSON.parse(line); return true } catch { return false } }
    t.ok(lines.length > 0 && lines.every(isJson), 'log lines are lines')
    const refused = await fetch(`${cluster.head}/api/v1/sessions/${durable.id}/clients/${encodeURIComponent('a"b')}/responses`)
    t.match([refused.status, await refused.json()], [400, { name: 'Broker_InvalidClientIdOrTooLong' }])
  })

  await t.test('one connection for many requests, pipelined ones too', async t => {
    const socket = connect(Number(port), '127.0.0.1')
    let answer = ''
    socket.on('data', chunk => { answer += String(chunk) })
    const one = (last: boolean): string => `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: text/xml\r\n${last ? 'Connection: close\r\n' : ''}Content-Length: ${Buffer.byteLength(soap(SOAP11))}\r\n\r\n${soap(SOAP11)}`
    socket.write(Array.from({ length: 20 }, (_, i) => one(i === 19)).join(''))
    await once(socket, 'close')
    t.equal(answer.split('AddResult>-1<').length - 1, 20)
  })
})
