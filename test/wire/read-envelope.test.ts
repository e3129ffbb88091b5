import { readFileSync } from 'node:fs'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { SoaError } from '../../core/errors.ts'
import { SOAP11, SOAP12, WSA, type Reading } from '../../wire/soap/envelope.ts'
import { userDataInner, userDataText } from '../../wire/soap/hpc-headers.ts'
import { readEnvelope, type ReadOptions } from '../../wire/soap/read.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const read = (xml: string | Uint8Array, options: Partial<ReadOptions> = {}): Reading => readEnvelope(typeof xml === 'string' ? Buffer.from(xml) : xml, { limits, ...options })
const text = (bytes: Uint8Array | undefined): string | undefined => bytes === undefined ? undefined : Buffer.from(bytes).toString()
const soap12 = (header: string, body = '<m xmlns="urn:m"/>'): string => `<s:Envelope xmlns:s="${SOAP12}" xmlns:a="${WSA}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
const soap11 = (header: string, body = '<m xmlns="urn:m"/>'): string => `<s:Envelope xmlns:s="${SOAP11}"><s:Header>${header}</s:Header><s:Body>${body}</s:Body></s:Envelope>`
const hpc = (name: string, value: string): string => `<${name} xmlns="http://www.microsoft.com/hpc">${value}</${name}>`

t.test('the envelope of the seed is read byte for byte', async t => {
  const reading = read(readFileSync(asset('test/wire/seed-generate-request.xml')))

  t.match(reading, { to: 'net.tcp://lab49hpc:9091/SampleBroker', batchId: -1, bodyElement: '{http://tempuri.org/}Generate', isFault: false, addressed: true })
  t.match(reading.envelope, { v: 1, soap: 12, enc: 'utf8', action: 'http://tempuri.org/ISimpleService/Generate', clientId: '', messageId: undefined })
  t.equal(text(reading.envelope.userData), '<HPCServer2008_Broker_UserDataNS xmlns="http://www.microsoft.com/hpc">0</HPCServer2008_Broker_UserDataNS>')
  t.equal(text(reading.envelope.body), '\n<Generate xmlns="http://tempuri.org/">\n<max>10000</max>\n</Generate>\n')
  t.same(reading.envelope.prefixesInScope, [['s', SOAP12], ['a', WSA]])
  t.same(reading.envelope.otherHeaders, [])
  t.same(reading.mustUnderstand, [], 'Action and To are understood')
})

t.test('every header that has a field gets there, under any prefix, in CDATA, with comments and references', async t => {
  const reading = read(`<?xml version='1.0' encoding="utf-8"?><!-- hello --><Envelope xmlns='${SOAP12}'><Header xmlns:wsa="${WSA}" xmlns:h="http://www.microsoft.com/hpc">
    <wsa:Action mustUnderstand="1"><![CDATA[urn:x?a=1&b=2]]></wsa:Action>
    <wsa:MessageID>urn:uuid:<!-- split -->1<?pi too?></wsa:MessageID><wsa:RelatesTo RelationshipType="urn:other">no</wsa:RelatesTo><wsa:RelatesTo> urn:uuid:0 </wsa:RelatesTo>
    <wsa:To>http://h/&#x41;&amp;B</wsa:To><wsa:ReplyTo><wsa:Address>http://back/</wsa:Address><wsa:ReferenceParameters><Address xmlns="urn:q">no</Address></wsa:ReferenceParameters></wsa:ReplyTo>
    <wsa:FaultTo><wsa:Address>http://f/</wsa:Address></wsa:FaultTo><wsa:From><wsa:Address>http://f/</wsa:Address></wsa:From>
    <h:HPCServer2008_Broker_ClientIdNS>my <![CDATA[client]]></h:HPCServer2008_Broker_ClientIdNS><h:HPCServer2008_Broker_ClientInstanceIdNS> 3 </h:HPCServer2008_Broker_ClientInstanceIdNS>
    <h:HPCServer2008_Broker_RequestActionNS>urn:r</h:HPCServer2008_Broker_RequestActionNS><h:preemption>2</h:preemption><h:HPCServer2008_Broker_MessageIdNS>urn:uuid:9</h:HPCServer2008_Broker_MessageIdNS>
    <h:HPCServer2008_Broker_DispatchIdNS>g</h:HPCServer2008_Broker_DispatchIdNS></Header><Body/></Envelope>`)

  t.match(reading.envelope, { action: 'urn:x?a=1&b=2', messageId: 'urn:uuid:1', relatesTo: 'urn:uuid:0', clientId: 'my client' }, 'WS-Addressing MessageID wins over MessageIdNS')
  t.match(reading, { to: 'http://h/A&B', replyTo: 'http://back/', batchId: 3, requestAction: 'urn:r', preemption: 2, bodyElement: undefined })
  t.equal(reading.envelope.body.length, 0)
  t.same(reading.envelope.otherHeaders.map(text), [
    `<wsa:RelatesTo xmlns="${SOAP12}" xmlns:wsa="${WSA}" RelationshipType="urn:other">no</wsa:RelatesTo>`,
    `<h:HPCServer2008_Broker_DispatchIdNS xmlns="${SOAP12}" xmlns:h="http://www.microsoft.com/hpc">g</h:HPCServer2008_Broker_DispatchIdNS>`
  ], 'what has none stays, self-contained')
})

t.test('SOAP 1.1 without addressing: MessageIdNS is the message id, the HTTP action the action', async t => {
  const reading = read(soap11(hpc('HPCServer2008_Broker_MessageIdNS', 'urn:uuid:9')), { soapAction: 'urn:a', soap: 11 })
  t.match(reading.envelope, { soap: 11, action: 'urn:a', messageId: 'urn:uuid:9', clientId: undefined, userData: undefined })
  t.equal(reading.addressed, false)
})

t.test('the action: WS-Addressing, then the addressing/none header, then HTTP, then any header called Action, then none', async t => {
  const wsa = `<a:Action xmlns:a="${WSA}">urn:wsa</a:Action>`
  const none = '<Action xmlns="http://schemas.microsoft.com/ws/2005/05/addressing/none">urn:none</Action>'
  const stray = '<Action xmlns="http://service.example/java">urn:stray</Action>'
  t.equal(read(soap11(stray + none + wsa), { soapAction: 'urn:http' }).envelope.action, 'urn:wsa')
  t.equal(read(soap11(stray + none), { soapAction: 'urn:http' }).envelope.action, 'urn:none')
  t.equal(read(soap11(stray), { soapAction: 'urn:http' }).envelope.action, 'urn:http')
  t.equal(read(soap11(stray)).envelope.action, 'urn:stray')
  t.equal(read(soap11(stray)).envelope.otherHeaders.length, 1, 'a header in a namespace that is not ours is passed on too')
  t.equal(read(soap11('')).envelope.action, '')
})

t.test('UserData is any XML and keeps the declarations that it needs', async t => {
  const inner = '<p:Row xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="q:Thing" p:n="1"><!-- kept --><![CDATA[<&>]]></p:Row>'
  const { userData } = read(`<s:Envelope xmlns:s="${SOAP12}" xmlns:p="urn:p" xmlns:unused="urn:u"><s:Header xmlns:q="urn:q&amp;&quot;">${hpc('HPCServer2008_Broker_UserDataNS', inner)}</s:Header><s:Body/></s:Envelope>`).envelope
  t.equal(text(userData), `<HPCServer2008_Broker_UserDataNS xmlns:p="urn:p" xmlns:q="urn:q&amp;&quot;" xmlns="http://www.microsoft.com/hpc">${inner}</HPCServer2008_Broker_UserDataNS>`)
  t.equal(text(userDataInner(userData as Uint8Array)), inner)
  t.equal(userDataText(userData as Uint8Array), '<&>')
  t.equal(text(userDataInner(Buffer.from('<a/>'))), '')
})

t.test('a prefix that is redeclared on the header itself is left alone, one written by reference is not lost', async t => {
  const { otherHeaders } = read(`<s:Envelope xmlns:s="${SOAP12}" xmlns:p="urn:outer"><s:Header><p:x xmlns:p="urn:inner"/><x xmlns="urn:x">&#112;:y</x></s:Header><s:Body/></s:Envelope>`).envelope
  t.same(otherHeaders.map(text), ['<p:x xmlns:p="urn:inner"/>', `<x xmlns:s="${SOAP12}" xmlns:p="urn:outer" xmlns="urn:x">&#112;:y</x>`])
})

t.test('Security is dropped, and with it its mustUnderstand', async t => {
  const wsse = 'http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd'
  const reading = read(soap12(`<o:Security s:mustUnderstand="1" xmlns:o="${wsse}"><o:UsernameToken><o:Password>secret</o:Password></o:UsernameToken></o:Security>`))
  t.same(reading.envelope.otherHeaders, [])
  t.same(reading.mustUnderstand, [])
})

t.test('mustUnderstand counts when it is 1 or true, of the version of the envelope, and for us', async t => {
  const header = (attributes: string): string => `<x:H xmlns:x="urn:x" ${attributes}/>`
  const of12 = (attributes: string): string[] => [...read(soap12(header(attributes))).mustUnderstand]
  t.same(of12('s:mustUnderstand="1"'), ['{urn:x}H'])
  t.same(of12('s:mustUnderstand="true"'), ['{urn:x}H'])
  t.same(of12(`s:mustUnderstand="1" s:role="${SOAP12}/role/next"`), ['{urn:x}H'])
  t.same(of12(`s:mustUnderstand="1" s:role="${SOAP12}/role/ultimateReceiver"`), ['{urn:x}H'])
  t.same(of12('s:mustUnderstand="1" s:role="urn:somebody"'), [])
  t.same(of12('s:mustUnderstand="0"'), [])
  t.same(of12('mustUnderstand="1"'), [], 'without a namespace it is another attribute')
  t.same(read(soap11(header('s:mustUnderstand="1" s:actor="http://schemas.xmlsoap.org/soap/actor/next"'))).mustUnderstand, ['{urn:x}H'])
  t.same(read(soap11(header('s:mustUnderstand="1" s:actor="urn:somebody"'))).mustUnderstand, [])
})

t.test('the body stays closed: its bytes come back as they were, whatever is in them', async t => {
  const body = ' text <a:b xmlns:a="urn:1" c=\'"&lt;>\' >&amp;&#10;<!-- </s:Body> --><![CDATA[</s:Body><x>]]><?pi </s:Body>?><a:b/>ü€😀</a:b><q:z xmlns:q="urn:2"\n/>\r\n'
  const reading = read(soap12('', body))
  t.equal(text(reading.envelope.body), body)
  t.equal(reading.bodyElement, '{urn:1}b')
})

t.test('declarations in force at the body are those of Envelope and Body, the inner one winning', async t => {
  const reading = read(`<e:Envelope xmlns:e="${SOAP11}" xmlns="urn:d" xmlns:p="urn:1" xmlns:r="urn:&#x61;"><e:Header xmlns:gone="urn:g"/><e:Body xmlns:p="urn:2"><m/></e:Body></e:Envelope>`)
  t.same(reading.envelope.prefixesInScope, [['e', SOAP11], ['', 'urn:d'], ['p', 'urn:2'], ['r', 'urn:a']])
  t.equal(reading.bodyElement, '{urn:d}m')
  t.same(read(`<e:Envelope xmlns:e="${SOAP11}" xmlns="urn:d"><e:Body xmlns=""><m/></e:Body></e:Envelope>`).envelope.prefixesInScope, [['e', SOAP11]])
})

t.test('a Fault of the version of the envelope is a fault, another element of that name is not', async t => {
  t.equal(read(soap11('', '<s:Fault><faultcode>s:Server</faultcode><faultstring/></s:Fault>')).isFault, true)
  t.equal(read(soap11('', '<Fault xmlns="urn:f"/>')).isFault, false)
  t.equal(read(soap11('', `<Fault xmlns="${SOAP12}"/>`)).isFault, false)
})

t.test('other charsets are transcoded once, and byte order marks are fine', async t => {
  const xml = (encoding: string): string => `<?xml version="1.0"${encoding}?>${soap12('', '<m xmlns="urn:m">Grüße</m>')}`
  const body = '<m xmlns="urn:m">Grüße</m>'
  const utf16be = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()
  const cases: Array<[string, Uint8Array, string?]> = [
    ['UTF-8 with a mark', Buffer.from('\ufeff' + xml(' encoding="UTF-8"'))],
    ['Latin-1 by the media type', Buffer.from(xml(''), 'latin1'), 'iso-8859-1'],
    ['Latin-1 by its own declaration', Buffer.from(xml(' encoding="ISO-8859-1"'), 'latin1')],
    ['UTF-16, little end first, with a mark', Buffer.from('\ufeff' + xml(' encoding="utf-16"'), 'utf16le')],
    ['UTF-16, big end first, with a mark', utf16be('\ufeff' + xml(' encoding="utf-16"')), 'UTF-16'],
    ['UTF-16, little end first, without', Buffer.from(xml(''), 'utf16le'), 'utf-16'],
    ['UTF-16, big end first, without', utf16be(xml(''))],
  ]
  for (const [name, bytes, charset] of cases) t.equal(text(read(bytes, { charset }).envelope.body), body, name)
  t.throws(() => read(Buffer.from(xml(''), 'latin1')), new SoaError('badEnvelope', { why: 'the bytes are not UTF-8, which they should be' }))
  t.throws(() => read(xml(''), { charset: 'klingon' }), new SoaError('badEnvelope', { why: 'charset klingon is not known here' }))
})

t.test('limits name setting, limit and value', async t => {
  const header = `<x xmlns="urn:x">${'y'.repeat(2000)}</x>`
  const size = `<s:Header>${header}</s:Header>`.length
  t.throws(() => read(soap12(header), { limits: { maxHeaderBytes: 1024, maxDepth: 128 } }), new SoaError('overLimit', { setting: 'maxHeaderBytes', limit: 1024, value: size }))
  t.ok(read(soap12(header), { limits: { maxHeaderBytes: size, maxDepth: 128 } }))
  t.throws(() => read(soap12(header), { limits: { maxHeaderBytes: size - 1, maxDepth: 128 } }), { name: 'SoaError', message: /the limit is/ })
  const deep = (levels: number): string => soap12('', '<d>'.repeat(levels) + '</d>'.repeat(levels))
  t.ok(read(deep(128)))
  t.throws(() => read(deep(129)), new SoaError('overLimit', { setting: 'maxDepth', limit: 128, value: 129 }))
  t.throws(() => read(deep(100_000)), { name: 'SoaError', message: /the limit is/ })
})

t.test('versions: another namespace is a mismatch, a media type of the other version is refused', async t => {
  t.throws(() => read('<Envelope xmlns="urn:soap3"/>'), new SoaError('versionMismatch', { namespace: 'urn:soap3' }))
  t.throws(() => read(soap12(''), { soap: 11 }), { fault: 'badEnvelope', message: /media type is that of SOAP 1.1/ })
})

t.test('a reading does not change when the next message is read', async t => {
  const first = read(soap12(hpc('HPCServer2008_Broker_UserDataNS', '1'), '<one/>'))
  read(soap12(hpc('HPCServer2008_Broker_UserDataNS', '2'), '<two/>'))
  t.equal(text(first.envelope.body), '<one/>')
  t.match(text(first.envelope.userData), '>1<')
})
