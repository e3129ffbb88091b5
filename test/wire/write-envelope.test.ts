import { readFileSync } from 'node:fs'
import { XmlDocument } from 'libxml2-wasm'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { SOAP11, SOAP12, WSA, type Envelope } from '../../wire/soap/envelope.ts'
import { requestActionHeader, userDataHeader, userDataText } from '../../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope, writeParts } from '../../wire/soap/write.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const message: Envelope = { v: 1, soap: 12, enc: 'utf8', action: 'urn:a&b', otherHeaders: [], prefixesInScope: [], body: Buffer.from('<m xmlns="urn:m"/>') }
const write = (envelope: Partial<Envelope>, options: Parameters<typeof writeEnvelope>[1]): string => writeEnvelope({ ...message, ...envelope }, options).toString()

t.test('with WS-Addressing', async t => {
  t.equal(write({ messageId: 'urn:1', relatesTo: 'urn:0' }, { addressing: 'wsa', to: 'http://x/?a&b' }),
    `<s:Envelope xmlns:s="${SOAP12}" xmlns:a="${WSA}"><s:Header><a:Action s:mustUnderstand="1">urn:a&amp;b</a:Action><a:MessageID>urn:1</a:MessageID>` +
    '<a:RelatesTo>urn:0</a:RelatesTo><a:To>http://x/?a&amp;b</a:To></s:Header><s:Body><m xmlns="urn:m"/></s:Body></s:Envelope>')
  t.notMatch(write({}, { addressing: 'wsa', soap: 11 }), 'mustUnderstand')
})

t.test('without: nothing, or the one header that an embedded message needs', async t => {
  t.equal(write({ soap: 11 }, { addressing: 'omit' }), `<s:Envelope xmlns:s="${SOAP11}"><s:Body><m xmlns="urn:m"/></s:Body></s:Envelope>`)
  t.equal(write({ soap: 11 }, { addressing: 'none' }), `<s:Envelope xmlns:s="${SOAP11}"><s:Header><Action s:mustUnderstand="1" xmlns="http://schemas.microsoft.com/ws/2005/05/addressing/none">` +
    'urn:a&amp;b</Action></s:Header><s:Body><m xmlns="urn:m"/></s:Body></s:Envelope>')
})

t.test('an empty body is an empty Body, no action is no header', async t => {
  t.equal(write({ body: Buffer.alloc(0), action: '' }, { addressing: 'wsa' }), `<s:Envelope xmlns:s="${SOAP12}" xmlns:a="${WSA}"><s:Body/></s:Envelope>`)
})

t.test('headers: client id, user data, the others, the extra ones', async t => {
  const out = write({ clientId: '', userData: userDataHeader('<7>'), otherHeaders: [Buffer.from('<x xmlns="urn:x"/>')] }, { addressing: 'omit', extraHeaders: [requestActionHeader('urn:r')] })
  const reading = readEnvelope(Buffer.from(out), { limits })
  t.equal(reading.envelope.clientId, '')
  t.equal(userDataText(reading.envelope.userData as Uint8Array), '<7>')
  t.equal(reading.requestAction, 'urn:r')
  t.same(reading.envelope.otherHeaders.map(String), ['<x xmlns="urn:x"/>'])
})

t.test('the body means the same wherever it goes: its declarations travel with it and ours never hide them', async t => {
  const clash = `<x:Envelope xmlns:x="${SOAP12}" xmlns:s="urn:mine" xmlns:s1="urn:mine1" xmlns:a="urn:a" xmlns="urn:d&amp;e"><x:Body><m s:p="1"><s1:q a:t="s:QName"/></m></x:Body></x:Envelope>`
  const { envelope } = readEnvelope(Buffer.from(clash), { limits })
  for (const soap of [11, 12] as const) {
    for (const addressing of ['wsa', 'none', 'omit'] as const) {
      const out = writeEnvelope(envelope, { soap, addressing })
      const again = readEnvelope(out, { limits })
      t.equal(again.bodyElement, '{urn:d&e}m')
      t.equal(again.envelope.soap, soap)
      const scope = new Map(again.envelope.prefixesInScope)
      for (const [prefix, uri] of envelope.prefixesInScope) t.equal(scope.get(prefix), uri, `${soap} ${addressing}: ${prefix}`)
      t.same(again.envelope.body, envelope.body, 'not a byte is changed')
      XmlDocument.fromBuffer(out).dispose()
    }
  }
})

t.test('written in parts the body is not copied', async t => {
  const parts = writeParts(message, { addressing: 'wsa' })
  t.ok(parts.some(part => part.buffer === message.body.buffer && part.byteOffset === message.body.byteOffset && part.length === message.body.length))
  t.same(Buffer.concat(parts), writeEnvelope(message, { addressing: 'wsa' }))
})

t.test('the envelope of the seed survives being stored and written in every form', async t => {
  const { envelope } = readEnvelope(readFileSync(asset('test/wire/seed-generate-request.xml')), { limits })
  for (const soap of [11, 12] as const) {
    const again = readEnvelope(writeEnvelope(envelope, { soap, addressing: 'wsa' }), { limits }).envelope
    t.same({ ...again, prefixesInScope: [] }, { ...envelope, soap, prefixesInScope: [] })
  }
})

t.test('characters that XML cannot carry do not break the message', async t => {
  const out = write({ action: 'urn:\u0000\ud800x\r' }, { addressing: 'wsa' })
  t.equal(readEnvelope(Buffer.from(out), { limits }).envelope.action, 'urn:\ufffd\ufffdx')
})
