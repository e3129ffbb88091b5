import t from 'tap'
import { SoaError } from '../../../core/errors.ts'
import { readBinaryEnvelope } from '../../../wire/soap/binary.ts'
import { ANONYMOUS, writeBinaryEnvelope } from '../../../wire/soap/binary-write.ts'
import { readEnvelopeBody, withBinaryBody, withTextBody } from '../../../wire/soap/body-form.ts'
import { HPC, SOAP11, WSA, type Envelope, type Reading } from '../../../wire/soap/envelope.ts'
import { hasFault, readFault } from '../../../wire/soap/fault-body.ts'
import { toFault } from '../../../wire/soap/fault.ts'
import { clientInstanceIdHeader, HPC_HEADER, preemptionHeader, requestActionHeader, userDataHeader } from '../../../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../../../wire/soap/read.ts'
import { writeEnvelope } from '../../../wire/soap/write.ts'
import { MAX_SESSION_BYTES, ReaderTables, WriterTables } from '../../../wire/xml/binary/tables.ts'
import { infosetOfBody, infosetOfText, tableOf } from './infoset.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex')
const binary = (payload: Buffer, session?: ReaderTables): Reading => readBinaryEnvelope(payload, session, { limits })
/** `<s:Envelope><s:Header>` … `</s:Header><s:Body>`, and what closes it. */
const HEAD = '56020b0173040b01610656 08'; const BODY = '01560e'; const END = '0101'
const message = (parts: { headers?: string, body?: string, end?: string }): Buffer => hex(HEAD + (parts.headers ?? '') + BODY + (parts.body ?? '') + (parts.end ?? END))
const of = (soap: 11 | 12, body: string, more: Partial<Envelope> = {}): Envelope => ({ v: 1, soap, enc: 'utf8', action: 'urn:a', otherHeaders: [], prefixesInScope: [], body: Buffer.from(body), ...more })
const over = (envelope: Envelope, options: Parameters<typeof writeBinaryEnvelope>[2] = {}): Reading => binary(writeBinaryEnvelope(envelope, undefined, options))

t.test('binary envelopes: a body without ids of the session is a view, one with them is written out with static ids where there are some', async t => {
  const payload = message({ body: '4001 6d 0801 75 99 0568656c6c6f' })
  t.equal(binary(payload).envelope.body.buffer, payload.buffer, 'not copied')
  const session = new ReaderTables()
  const strings = ['Echo', 'http://tempuri.org/', 'nil', 'http://www.w3.org/2001/XMLSchema-instance', 'x']
  // <Echo xmlns="http://tempuri.org/" xmlns:i="…instance"><x i:nil="true"/><b:x xmlns:b="tempuri" q="b:x">x</b:x> with each kind of record that has an id
  const { body } = binary(Buffer.concat([tableOf(strings), message({ body: '4201 0a03 0b016907 4209 1405 8601 4509 0b016203 0701 6209 bc01 09 ab09 01' })]), session).envelope
  t.equal(Buffer.from(body).toString('hex'), hex(`4004 4563686f 0813 ${Buffer.from('http://tempuri.org/').toString('hex')} 0b0169f206 4001 78 14f606 8601 5f01 78 09016213 ${Buffer.from('http://tempuri.org/').toString('hex')} 0501 6201 78 98 03623a78 9901 78 01`).toString('hex'))
  t.equal(session.size, 5)
})

t.test('binary envelopes: a text that ends the body along with itself, arrays, comments and nothing at all are bodies', async t => {
  for (const [what, body, end, events] of [
    ['text', '9803616263', END, ['"abc']], ['text that ends it', '9903616263', '01', ['"abc']], ['zero that ends it', '81', '01', ['"0']], ['empty', '', END, []], ['empty that ends it', 'a9', '01', []],
    ['array', '0340016901 8d 02 01000000 02000000', END, ['<i', '"1', '>', '<i', '"2', '>']],
    ['array with declarations', '03 5f 0169 09016201 75 01 b5 02 0001', END, ['<{u}i', ' xmlns:b=u', '"false', '>', '<{u}i', ' xmlns:b=u', '"true', '>']],
    ['bytes in pieces', '4001 62 9e0401020304 9e0205 06 9f0107', END, ['<b', '"AQIDBAUGBw==', '>']],
    ['a comment', '020163 4001 62 01', END, ['<b', '>']]
  ] as const) {
    const { envelope } = binary(message({ body, end }))
    t.same(infosetOfBody(envelope), events, what)
    t.same(infosetOfBody(withTextBody(envelope)), events, `${what}, as text`)
    t.same(infosetOfBody(over(envelope).envelope), events, `${what}, again`)
  }
  t.match(String(withTextBody(binary(message({ body: '020163 4001 62 01' })).envelope).body), '<!--c--><b/>')
  const session = new ReaderTables()
  t.same(infosetOfBody(binary(Buffer.concat([tableOf(['only in the session']), message({ body: 'ab01', end: '01' })]), session).envelope), ['"only in the session'])
})

t.test('binary envelopes: HPC Pack\'s headers both ways, and a header with what it needs from outside', async t => {
  const userData = Buffer.from(`<${HPC_HEADER.userData} xmlns="${HPC}" xmlns:i="urn:i" i:k="&lt;1&gt;"><v>1 &amp; 2</v></${HPC_HEADER.userData}>`)
  const sent = of(12, '<m/>', { messageId: 'urn:uuid:7c2b3c52-0d6e-4a58-9d2e-8f3b8a1c4e55', relatesTo: 'urn:uuid:7C2B3C52-0d6e-4a58-9d2e-8f3b8a1c4e55', clientId: '', userData, otherHeaders: [Buffer.from('<o xmlns="urn:o">1</o>')] })
  const reading = over(sent, { to: ANONYMOUS, replyTo: true, extraHeaders: [requestActionHeader('urn:r'), clientInstanceIdHeader(3), preemptionHeader(2)] })
  t.match(reading, { batchId: 3, requestAction: 'urn:r', preemption: 2, to: ANONYMOUS, replyTo: ANONYMOUS, mustUnderstand: [], addressed: true, envelope: { soap: 12, action: 'urn:a', clientId: '' } })
  t.match(reading.envelope, { messageId: sent.messageId, relatesTo: sent.relatesTo }, 'capitals stay')
  t.same(infosetOfText(reading.envelope.userData as Buffer), infosetOfText(userData))
  t.same(reading.envelope.otherHeaders.map(String), ['<o xmlns="urn:o">1</o>'])

  // <p:k p:r="false" xmlns:n="w">q:x</p:k>, where p and q are declared on Header; o, which is too, it does not mean.
  const header = binary(hex(HEAD + '0901700175 0901710176 09016f0177 6d016b 350172 84 09016e0177 9903713a78 01560e0101'))
  t.same(header.envelope.otherHeaders.map(String), ['<p:k xmlns:p="u" xmlns:q="v" xmlns:n="w" p:r="false">q:x</p:k>'])
})

t.test('binary envelopes: SOAP 1.1 in text and 1.2 in binary mean the same, prefixes in values and faults included', async t => {
  const text = `<s:Envelope xmlns:s="${SOAP11}" xmlns:x="urn:x" xmlns:a="urn:not-wsa"><s:Body xmlns="urn:d"><v xmlns:i="urn:i" i:type="x:T" s:k="1">x:q<![CDATA[<&]]>&#233;\u{1f600}<a:b/></v></s:Body></s:Envelope>`
  const { envelope } = readEnvelope(Buffer.from(text), { limits })
  const there = over(envelope).envelope
  t.same(infosetOfBody(there), infosetOfBody(envelope))
  for (const [prefix, uri] of [['s', SOAP11], ['x', 'urn:x'], ['a', 'urn:not-wsa'], ['', 'urn:d']] as const) t.equal(there.prefixesInScope.find(([known]) => known === prefix)?.[1], uri, prefix)
  const back = readEnvelope(writeEnvelope(there, { soap: 11, addressing: 'omit' }), { limits })
  t.same(infosetOfBody(back.envelope), infosetOfBody(envelope))
  t.equal(back.envelope.soap, 11)

  const fault = toFault(new SoaError('Service_NotFound', { serviceName: 'x<y' }), { soap: 11 })
  const binaryFault = over(fault)
  t.match(binaryFault, { isFault: true, envelope: { soap: 12, enc: 'nbfx-static', action: fault.action } })
  t.ok(hasFault(binaryFault.envelope))
  t.match(readFault(binaryFault.envelope), { code: 'Sender', subcodes: [`{${HPC}}Service_NotFound`], reason: readFault(fault)?.reason })
  const asText = readEnvelope(writeEnvelope(binaryFault.envelope, { soap: 11, addressing: 'omit' }), { limits })
  t.match(asText, { isFault: true, envelope: { soap: 11 } })
  t.same(infosetOfText(readFault(asText.envelope)?.detail?.content as Buffer), infosetOfText(readFault(fault)?.detail?.content as Buffer))
  t.equal(over({ ...fault, action: '' }).envelope.action, `${WSA}/soap/fault`, 'a client of binary messages must have an action')
  t.notOk(hasFault(over(of(12, '<Fault/>')).envelope))
})

t.test('binary envelopes: prefixes that are taken are left alone', async t => {
  for (const letters of ['s', 'sa', 'saevwt', 'saevwtbcdfghijklmnopqruxyz']) {
    const scope = [...letters].map((letter, i) => [letter, `urn:${i}`] as const)
    const body = `<m ${[...letters].map(letter => `${letter}:k="1"`).join(' ')}/>`
    const { envelope, mustUnderstand } = over(of(12, body, { prefixesInScope: scope }), { to: 'urn:to' })
    t.same(infosetOfBody(envelope), infosetOfBody(of(12, body, { prefixesInScope: scope })), letters)
    t.match(envelope, { action: 'urn:a' })
    t.same(mustUnderstand, [])
  }
})

t.test('binary envelopes: a body is read as events in either form', async t => {
  const envelope = of(12, '<m xmlns="urn:m"><a>1</a></m>')
  const names = (envelope: Envelope): string[] => { const found: string[] = []; readEnvelopeBody(envelope, { start: ({ local }) => { found.push(local) }, text () {}, end () {} }); return found }
  t.same(names(envelope), ['m', 'a'])
  t.same(names(withBinaryBody(envelope)), ['m', 'a'])
  t.throws(() => readEnvelopeBody(withBinaryBody(envelope), { start () {}, text () {}, end () {} }, { maxDepth: 1 }), { name: 'SoaError', fault: 'overLimit' })
})

t.test('binary envelopes: what is refused, and why', async t => {
  const refuse = (what: string, payload: Buffer, error: object, session?: ReaderTables, options = { limits }): void => { t.throws(() => readBinaryEnvelope(payload, session, options), { name: 'SoaError', ...error }, what) }
  refuse('nothing', Buffer.alloc(0), { fault: 'badEnvelope', message: /no root element/ })
  refuse('another root', hex('40016501'), { fault: 'badEnvelope', message: /root element is e/ })
  refuse('another version', hex('56 02 09 0173 03 75726e 01'), { fault: 'versionMismatch', message: /urn/ })
  refuse('no Body', hex('56020b017304 01'), { fault: 'badEnvelope', message: /no Body/ })
  refuse('Body as an array', hex('56020b017304 03 560e 01 8d 01 01000000 01'), { fault: 'badEnvelope', message: /array where Header or Body/ })
  refuse('a header as an array', message({ headers: '03 400168 01 8d 01 01000000' }), { fault: 'badEnvelope', message: /array where a header/ })
  refuse('something behind Body', message({ body: '', end: '01 400178 01 01' }), { fault: 'badEnvelope', message: /behind Body/ })
  refuse('a header twice', message({ headers: '440a 9901 61 440a 9901 61' }), { fault: 'badEnvelope', message: /Action is there twice/ })
  refuse('too deep', message({ body: '400178'.repeat(129) }), { fault: 'overLimit', context: ['maxDepth', '128', '129'] })
  refuse('too large a header', message({ headers: `400178 9a e803 ${'61'.repeat(1000)} 01` }), { fault: 'overLimit', context: ['maxHeaderBytes', '500', '1010'] }, undefined, { limits: { ...limits, maxHeaderBytes: 500 } })
  refuse('an id of no session', message({ body: '420101' }), { fault: 'badEnvelope', message: /string 1 is not in the dictionary of the session/ })
  const long = 'x'.repeat(2000)
  refuse('names that grow without end', Buffer.concat([tableOf([long]), message({ body: '4201 01'.repeat(5000) })]), { fault: 'overLimit', message: /names written out/ }, new ReaderTables())
  refuse('a header that grows', Buffer.concat([tableOf([long]), message({ headers: '400178 4201 01'.replace('4201 01', '4201 01'.repeat(50)) + '01' })]), { fault: 'overLimit', message: /maxHeaderBytes/ }, new ReaderTables())
  t.throws(() => withTextBody(binary(message({ body: '400165990101' })).envelope), { name: 'SoaError', fault: 'badValue', message: /U\+0001/ }, 'what no text can say')
  const array = binary(message({ body: `03 40 ff01 ${'6e'.repeat(255)} 01 b5 ffff0f ${'01'.repeat(0x3ffff)}` })).envelope
  t.throws(() => withTextBody(array), { name: 'SoaError', fault: 'overLimit', context: ['size of the message as text', String(64 * 1024 * 1024)] })
})

t.test('string tables: a reader takes 2048 bytes in a session and no more, and after a bad table nothing', async t => {
  const hundred = tableOf(Array.from({ length: 20 }, (_, i) => String(i).padStart(100, 'x')))
  const session = new ReaderTables()
  binary(Buffer.concat([hundred, message({})]), session)
  binary(Buffer.concat([tableOf(['y'.repeat(27)]), message({})]), session)
  t.throws(() => binary(Buffer.concat([tableOf(['z']), message({})]), session), { name: 'SoaError', fault: 'overLimit', context: ['size of the string tables of a session', '2048', '2050'] })
  t.throws(() => binary(Buffer.concat([Buffer.of(0), message({})]), session), { name: 'SoaError', fault: 'badEnvelope', message: /earlier message/ })
  for (const [what, table, why] of [['longer than the message', '7f', /has 127 bytes, the message 0/], ['a string longer than its table', '020261', /longer than the rest/], ['a size that is none', 'ffffffff0f', /above 2147483647/], ['no UTF-8', '0201ff', /not UTF-8/], ['nothing', '', /ends in the size/], ['a length that goes on behind it', '018001', /longer|another size|ends in/]] as const) {
    const session = new ReaderTables()
    t.throws(() => binary(hex(table), session), { name: 'SoaError', fault: 'badEnvelope', message: why }, what)
    t.throws(() => binary(Buffer.concat([Buffer.of(0), message({})]), session), { name: 'SoaError', fault: 'badEnvelope', message: /earlier message/ }, `${what}, and then`)
  }
  const healthy = new ReaderTables()
  t.throws(() => binary(hex('0040016501'), healthy), { name: 'SoaError', fault: 'badEnvelope' })
  t.ok(binary(Buffer.concat([Buffer.of(0), message({})]), healthy), 'a bad document spoils only itself')
})

t.test('string tables: a writer says each string once, closes for good at the first that does not fit, and takes back what is not sent', async t => {
  const writer = new WriterTables(); const reader = new ReaderTables()
  const send = (action: string, to = 'net.tcp://h/x'): Buffer => { const payload = writeBinaryEnvelope({ ...of(12, '<m/>'), action }, writer, { to }); t.match(binary(payload, reader), { to, envelope: { action } }); return payload }
  const [first, second] = [send('urn:first'), send('urn:first')]
  t.equal(first.length - second.length, 'urn:first'.length + 'net.tcp://h/x'.length + 2)
  for (let i = 0; i < 19; i++) send(`urn:${String(i).padStart(96, '0')}`)
  const sizeBefore = reader.size
  send('u'.repeat(300))
  send('urn:short')
  t.equal(reader.size, sizeBefore, 'full is full')
  t.ok(send('urn:first').length <= second.length, 'what it has it uses')

  const other = new WriterTables(); const its = new ReaderTables()
  t.throws(() => writeBinaryEnvelope({ ...of(12, '<m'), action: 'urn:lost' }, other), { name: 'SoaError', fault: 'badEnvelope' })
  for (const action of ['urn:other', 'urn:lost', 'urn:other']) t.match(binary(writeBinaryEnvelope({ ...of(12, '<m/>'), action }, other), its), { envelope: { action } })
  t.equal(MAX_SESSION_BYTES, 2048)
})

t.test('binary envelopes: framed ones are what the frame makes of the payload', async t => {
  for (const size of [0, 100, 200, 20_000]) {
    const envelope = of(12, `<m>${'x'.repeat(size)}</m>`)
    const payload = writeBinaryEnvelope(envelope, new WriterTables())
    const framed = writeBinaryEnvelope(envelope, new WriterTables(), { framed: true })
    t.equal(framed[0], 6)
    t.same(framed.subarray(framed.length - payload.length), payload)
    t.ok(framed.length - payload.length <= 4)
  }
})

t.test('text to binary: what the text says is what comes back', async t => {
  for (const xml of [
    '<a/>', '<a></a>', ' <a> </a> ', '<a>1</a><b>0</b>', '<a k="" l=\'"\' m="&lt;&#9;&quot;&#xe9;"/>', '<a k="a\tb\nc"/>', '<a>x\r\ny</a>', '<a><![CDATA[]]></a>', '<a><![CDATA[x]]>y<![CDATA[z]]></a>', '<a>x<!-- c -->y</a>',
    '<!-- a --><?pi x?><a><?pi y?></a><!-- b -->', 'text <b/> more', '<a xml:lang="en" xml:space="preserve"> </a>', '<a xmlns="urn:a"><b xmlns=""/></a>', '<long:a xmlns:long="urn:l" long:k="1"/>', '<A:a xmlns:A="urn:A"/>',
    '<naïve ключ="日本">é</naïve>', '<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body s:mustUnderstand="1"/></s:Envelope>', `<a>${'x'.repeat(255)}</a><b>${'y'.repeat(256)}</b><c>${'z'.repeat(70_000)}</c>`, '<i:x xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true" i:type="i:y"/>'
  ]) {
    const text = { enc: 'utf8' as const, body: Buffer.from(xml), prefixesInScope: [] }
    const there = withBinaryBody(text as unknown as Envelope)
    t.same(infosetOfBody(there), infosetOfBody(text), xml.slice(0, 60))
    t.same(infosetOfBody(withTextBody(there)), infosetOfBody(text))
  }
  t.equal(Buffer.from(withBinaryBody(of(12, '<z>1</z><!-- c -->')).body).toString('hex'), '40017a830203206320', 'comments stay')
  t.throws(() => withBinaryBody(of(12, '<a>')), { name: 'SoaError', fault: 'badEnvelope' })
  t.ok(userDataHeader('x').length > 0)
})
