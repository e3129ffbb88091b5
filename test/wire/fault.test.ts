import { XmlDocument, XmlElement } from 'libxml2-wasm'
import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { HPC, SOAP11, SOAP12, WSA, WSA_NONE, type Envelope, type Reading, type SoapVersion } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { DEFAULT_FAULT_ACTION, readRetryOperationError, readSessionFault, retryOperationFault, serviceFault, SESSION_FAULT_ACTION, toFault } from '../../wire/soap/fault.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope, type WriteOptions } from '../../wire/soap/write.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const over = (envelope: Envelope, options: Partial<WriteOptions> = {}): Reading => readEnvelope(writeEnvelope(envelope, { addressing: 'wsa', ...options }), { limits })

/** The fault as a foreign reader sees it. */
function seen (envelope: Envelope, options: Partial<WriteOptions> = {}): Record<string, string | undefined> {
  const document = XmlDocument.fromBuffer(writeEnvelope(envelope, { addressing: 'wsa', ...options }))
  const get = (path: string): string | undefined => document.get(path, { s11: SOAP11, s12: SOAP12, f: 'http://hpc.microsoft.com/session/' })?.content
  try {
    return {
      code: get('//s11:Fault/faultcode') ?? get('//s12:Fault/s12:Code/s12:Value'),
      subcode: get('//s12:Fault/s12:Code/s12:Subcode/s12:Value'),
      reason: get('//s11:Fault/faultstring') ?? get('//s12:Fault/s12:Reason/s12:Text'),
      detail: get('(//s11:Fault/detail/* | //s12:Fault/s12:Detail/*)[1]'),
      number: get('//f:SessionFault/f:Code'),
      template: get('//f:SessionFault/f:Reason'),
      context: get('//f:SessionFault/f:Context')
    }
  } finally { document.dispose() }
}

for (const soap of [11, 12] as const) {
  t.test(`SOAP ${soap}: a refusal with a number of HPC Pack is a SessionFault that its clients read`, async t => {
    const fault = toFault(new SoaError('Service_NotFound', { serviceName: 'F<oo' }), { soap, relatesTo: 'urn:1', requestAction: 'urn:r' })
    t.match(fault, { soap, action: SESSION_FAULT_ACTION, relatesTo: 'urn:1' })
    t.match(seen(fault), { number: '50331678', template: 'no service {0} is registered', context: 'F<oo', reason: 'no service F<oo is registered' })
    const reading = over(fault)
    t.equal(reading.requestAction, 'urn:r')
    t.same(readSessionFault(reading), { code: 50331678, name: 'Service_NotFound', context: ['F<oo'], reason: 'no service {0} is registered' })
    t.match(readFault(reading.envelope), { code: 'Sender', subcodes: [`{${HPC}}Service_NotFound`] })
  })

  t.test(`SOAP ${soap}: a bug tells nothing`, async t => {
    const fault = toFault(new TypeError('password is hunter2'), { soap })
    t.notMatch(writeEnvelope(fault, { addressing: 'wsa' }).toString(), 'hunter2')
    t.match(readFault(fault), { code: 'Receiver', subcodes: [/InternalServiceFault$/] })
  })

  t.test(`SOAP ${soap}: a limit is named with its value, a bad envelope with what is wrong`, async t => {
    t.match(seen(toFault(new SoaError('overLimit', { setting: 'maxMessageSize', limit: 1000, value: 2000 }), { soap })), { code: soap === 11 ? 's:Client' : 's:Sender', reason: 'maxMessageSize is 2000, the limit is 1000' })
    t.match(readFault(toFault(new SoaError('badEnvelope', { why: 'x' }), { soap })), { code: 'Sender', subcodes: [], reason: 'no SOAP envelope: x' })
  })

  t.test(`SOAP ${soap}: giving up is a RetryOperationError that relates to the request`, async t => {
    const request: Envelope = { v: 1, soap, enc: 'utf8', action: 'urn:a', messageId: 'urn:7', otherHeaders: [], prefixesInScope: [], body: Buffer.alloc(0) }
    const fault = retryOperationFault(request, { reason: 'disk & full', retryCount: 4, lastFailedServiceId: '3' })
    t.match(fault, { action: 'http://hpc.microsoft.com/session/RetryOperationError', relatesTo: 'urn:7' })
    t.equal(seen(fault).detail, '3disk & full4', 'members in alphabetical order')
    t.same(readRetryOperationError(over(fault)), { reason: 'disk & full' })
    t.equal(readSessionFault(over(fault)), undefined)
  })
}

t.test('what was not understood is named, and SOAP 1.2 says it in a header too', async t => {
  const fault = toFault(new SoaError('mustUnderstand', { header: '{urn:x}Lock' }), { soap: 12 })
  t.match(readFault(fault), { code: 'MustUnderstand', reason: /\{urn:x\}Lock/ })
  t.match(String(fault.otherHeaders[0]), 'xmlns:h="urn:x" qname="h:Lock"')
  t.same(toFault(new SoaError('mustUnderstand', { header: '{urn:x}Lock' }), { soap: 11 }).otherHeaders, [])
})

t.test('an unknown version is answered with the versions that are spoken', async t => {
  const fault = toFault(new SoaError('versionMismatch', { namespace: 'urn:3' }), { soap: 12 })
  t.match(readFault(fault), { code: 'VersionMismatch' })
  t.match(String(fault.otherHeaders[0]), /SupportedEnvelope qname="s:Envelope".*SupportedEnvelope qname="e:Envelope"/)
})

t.test('an unknown action: the code that WCF clients look for, in the namespace where they look', async t => {
  const error = new SoaError('actionNotSupported', { action: 'urn:a' })
  t.match(toFault(error, { soap: 12 }), { action: `${WSA}/fault` })
  t.match(readFault(toFault(error, { soap: 12 })), { code: 'Sender', subcodes: [`{${WSA}}ActionNotSupported`] })
  t.match(readFault(toFault(error, { soap: 11 })), { code: 'Sender', subcodes: [`{${WSA_NONE}}ActionNotSupported`] })
  t.match(readFault(toFault(error, { soap: 11, addressed: true })), { code: 'Sender', subcodes: [`{${WSA}}ActionNotSupported`] })
})

t.test('a fault of the service carries its detail, and any detail may look like anything', async t => {
  const fault = serviceFault({ soap: 12, blame: 'sender', reason: 'no', subcode: '{urn:q}Odd', action: 'urn:f', detail: Buffer.from('<d xmlns="urn:d">1</d>'), relatesTo: 'urn:1' })
  t.match(fault, { action: 'urn:f', relatesTo: 'urn:1' })
  t.match(readFault(fault), { code: 'Sender', subcodes: ['{urn:q}Odd'], reason: 'no', detail: { content: Buffer.from('<d xmlns="urn:d">1</d>') } })
  t.equal(serviceFault({ soap: 11, blame: 'receiver', reason: 'x' }).action, DEFAULT_FAULT_ACTION)
  const decoy = serviceFault({ soap: 12, blame: 'sender', reason: 'SessionFault', detail: Buffer.from('<SessionFault xmlns="urn:other"><Code>50331684</Code></SessionFault>') })
  t.equal(readSessionFault(over(decoy)), undefined, 'only the element of that namespace counts')
  t.equal(readRetryOperationError(over(decoy)), undefined)
})

t.test('a fault takes the shape of the version that it is written in; its detail does not change by a byte', async t => {
  const detail = '<d:x xmlns:d="urn:d" t="p:T" u="own:U"><y xmlns="">&#65;<![CDATA[b]]></y></d:x>'
  const soap11 = `<e:Envelope xmlns:e="${SOAP11}" xmlns:p="urn:p"><e:Body><e:Fault xmlns:own="urn:own"><faultcode xmlns:c="urn:c">c:Broken</faultcode><faultstring>it &lt;broke</faultstring>` +
    `<faultactor>urn:node</faultactor><detail p:a="1">${detail}</detail></e:Fault></e:Body></e:Envelope>`
  const soap12 = `<e:Envelope xmlns:e="${SOAP12}" xmlns:p="urn:p"><e:Body><e:Fault xmlns:own="urn:own"><e:Code><e:Value>e:Receiver</e:Value><e:Subcode><e:Value xmlns:c="urn:c">c:Broken</e:Value></e:Subcode></e:Code>` +
    `<e:Reason><e:Text xml:lang="de">kaputt</e:Text><e:Text xml:lang="en">it &lt;broke</e:Text></e:Reason><e:Node>urn:node</e:Node><e:Role>urn:role</e:Role><e:Detail p:a="1">${detail}</e:Detail></e:Fault></e:Body></e:Envelope>`
  for (const [from, xml] of [[11, soap11], [12, soap12]] as const) {
    const { envelope } = readEnvelope(Buffer.from(xml), { limits })
    const to: SoapVersion = from === 11 ? 12 : 11
    const reading = over(envelope, { soap: to })
    t.match(reading, { isFault: true, envelope: { soap: to } })
    const fault = readFault(reading.envelope)
    t.match(fault, { code: 'Receiver', subcodes: ['{urn:c}Broken'], reason: 'it <broke', node: 'urn:node' })
    t.equal(String(fault?.detail?.content), detail)
    t.match(fault?.detail?.attributes, 'p:a="1"')
    const scope = new Map([...reading.envelope.prefixesInScope, ...fault?.detail?.scope ?? []])
    t.equal(scope.get('p'), 'urn:p')
    t.equal(scope.get('own'), 'urn:own', 'a declaration that only values use travels too')
    t.match(seen(envelope, { soap: to }), { code: to === 11 ? 'c:Broken' : /:Receiver$/, reason: 'it <broke' })
  }
})

t.test('standard codes become their namesakes', async t => {
  const pairs = [['Client', 'Sender'], ['Server', 'Receiver'], ['MustUnderstand', 'MustUnderstand'], ['VersionMismatch', 'VersionMismatch'], ['Client.Auth', 'Sender'], ['constructor', 'Receiver']] as const
  for (const [old, now] of pairs) {
    const { envelope } = readEnvelope(Buffer.from(`<s:Envelope xmlns:s="${SOAP11}"><s:Body><s:Fault><faultcode>s:${old}</faultcode><faultstring>x</faultstring></s:Fault></s:Body></s:Envelope>`), { limits })
    t.equal(readFault(over(envelope, { soap: 12 }).envelope)?.code, now, old)
  }
})

t.test('a default namespace around a fault ends before the children of SOAP 1.1, and comes back for the detail', async t => {
  const { envelope } = readEnvelope(Buffer.from(`<Envelope xmlns="${SOAP12}" xmlns:e="${SOAP12}"><Body><Fault><Code><Value>e:Sender</Value></Code><Reason><Text xml:lang="en">x</Text></Reason>` +
    '<e:Detail xmlns="urn:d"><d/>text<d xmlns="urn:e"/><p:d xmlns:p="urn:p"/></e:Detail></Fault></Body></Envelope>'), { limits })
  const reading = over(envelope, { soap: 11 })
  const document = XmlDocument.fromBuffer(writeEnvelope(envelope, { soap: 11, addressing: 'omit' }))
  const names = document.find('//s:Fault/*', { s: SOAP11 }).map(node => node instanceof XmlElement && `${node.namespaceUri}|${node.name}`)
  const inDetail = document.find('//detail/*').map(node => node instanceof XmlElement && node.namespaceUri)
  document.dispose()
  t.same(names, ['|faultcode', '|faultstring', '|detail'])
  t.same(inDetail, ['urn:d', 'urn:e', 'urn:p'])
  t.match(readFault(reading.envelope), { code: 'Sender', reason: 'x' })
})

t.test('a body that is no fault stays as it is in the other version', async t => {
  const body = '<m xmlns="urn:m"/>'
  const { envelope } = readEnvelope(Buffer.from(`<s:Envelope xmlns:s="${SOAP11}"><s:Body>${body}</s:Body></s:Envelope>`), { limits })
  t.equal(String(over(envelope, { soap: 12 }).envelope.body), body)
})
