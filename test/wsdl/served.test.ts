import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadWsdl, type WsdlDocument } from '../../wsdl/document.ts'
import { helpPage } from '../../wsdl/help-page.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { httpEndpoint, ServedWsdl } from '../../wsdl/served-wsdl.ts'
import { singleWsdl } from '../../wsdl/single.ts'
import { cases, difference, documents, forms, load, vectors } from './cases.ts'
import { CHAMELEON, SPLIT, XS } from './many.ts'

const URL = 'https://grid.example/soa/7/Http'
const AT = httpEndpoint(URL)

/** Every document that a client gets which follows each location, by its URL. */
function crawl (served: ServedWsdl, query = 'wsdl'): Record<string, string> {
  const found: Record<string, string> = {}
  const waiting = [`${URL}?${query}`]
  for (let url = waiting.shift(); url !== undefined; url = waiting.shift()) {
    if (url in found) continue
    const page = served.answer(url.slice(URL.length + 1), AT)
    if (page?.status !== 200) throw new Error(`${url}: ${page?.body ?? 'nothing'}`)
    found[url] = page.body
    for (const [, location] of page.body.matchAll(/(?:schemaLocation|\slocation)\s*=\s*"(https:[^"]*\?[^"]*)"/g)) waiting.push(location as string)
  }
  return found
}

/** As a client reads it: in parts, and as one. */
const asParts = (served: ServedWsdl): WsdlDocument => loadWsdl(crawl(served), `${URL}?wsdl`)
function asOne (served: ServedWsdl): WsdlDocument {
  const all = crawl(served, 'singleWsdl')
  if (Object.keys(all).length !== 1) throw new Error('more than one document')
  return loadWsdl(all, `${URL}?singleWsdl`)
}

const portsOf = (wsdl: WsdlDocument): unknown => wsdl.services.map(({ ports }) => ports.map(({ name, soap, portType, address, transport }) => [name, soap, portType, address === URL && transport.endsWith('/soap/http')]))
const meaning = ({ operations }: WsdlDocument): unknown => operations.map(({ soap, ...rest }) => rest)

t.test('served: only addresses and locations change, every other byte stays', async t => {
  const text = `<?xml version="1.0"?>\r\n<!-- <soap:address location="http://no"/> --><w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:s12='http://schemas.xmlsoap.org/wsdl/soap12/'
 targetNamespace="urn:t" xmlns:t="urn:t" xmlns:a="http://www.w3.org/2005/08/addressing" xmlns:xs="http://www.w3.org/2001/XMLSchema" note="a > b \u{1F600}"><w:documentation>location="http://no"</w:documentation><w:types><xs:schema><xs:import  namespace = 'u'  schemaLocation = 'x.xsd'
 /><xs:include schemaLocation="y.xsd"></xs:include><xs:import namespace="v" schemaLocation="http://elsewhere.example/v.xsd"/><xs:import namespace="n" schemaLocation="nowhere.xsd"/></xs:schema></w:types><w:import location="z.wsdl" namespace="n"/>
 <w:binding name="b" type="t:P"><s:binding transport="http://schemas.xmlsoap.org/soap/http"/></w:binding><w:binding name="c" type="t:P"><s12:binding transport="http://schemas.xmlsoap.org/soap/http"/></w:binding><w:service name="S"><w:port name="p" binding="t:b"><s:address location="http://old/1"/></w:port>
 <w:port name="q" binding="t:c" other:location="http://no" xmlns:other="o"><s12:address   location='http://old/2' /><a:EndpointReference><a:Address>http://old/2</a:Address></a:EndpointReference></w:port></w:service><a:Address>http://no</a:Address></w:definitions>`
  const schema = (namespace: string): string => `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"${namespace}/>`
  const served = new ServedWsdl({ 'd/w': text, 'd/x.xsd': schema(' targetNamespace="u"'), 'd/y.xsd': schema(''), 'd/z.wsdl': '<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="n"/>' }, 'd/w')
  const changed = text.replace('"http://old/1"', `"${URL}"`).replace("'http://old/2'", `"${URL}"`).replace('<a:Address>http://old/2<', `<a:Address>${URL}<`)
    .replace("'x.xsd'", `"${URL}?xsd=xsd0"`).replace('"y.xsd"', `"${URL}?xsd=xsd1"`).replace('"z.wsdl"', `"${URL}?wsdl=wsdl0"`).replace(' schemaLocation="nowhere.xsd"', '')
  t.equal(served.answer('wsdl', AT)?.body, changed)
  t.equal(served.answer('wsdl=wsdl0', AT)?.body, '<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="n"/>')
  t.strictSame(served.queries, ['wsdl', 'singleWsdl', 'xsd=xsd0', 'xsd=xsd1', 'wsdl=wsdl0'])
})

t.test('served: each of the WSDLs of WCF\'s shapes means the same, in parts and as one, and has a port for each version of SOAP', async t => {
  const all = cases()
  for (const name of ['calc', 'orders', 'shapes', 'telemetry', 'three', 'nettcp']) {
    for (const form of forms) {
      const served = new ServedWsdl(documents(name), `${form}.wsdl`)
      const original = load(name, form)
      for (const [how, wsdl] of [['parts', asParts(served)], ['one', asOne(served)]] as const) {
        const what = `${name}, ${form}, ${how}`
        t.strictSame(meaning(wsdl), meaning(original), `${what}: operations`)
        t.strictSame(wsdl.services.map(({ ports }) => ports.map(({ soap, address }) => [soap, address])), [[[11, URL], [12, URL]]], `${what}: ports`)
        for (const { operation, isReply, values, messages } of all.filter(c => c.wsdl === name)) {
          const element = wsdl.operations.find(o => o.name === operation)?.[isReply ? 'outputElement' : 'inputElement'] as string
          const read = readBody(wsdl.schema, messages[0]?.body as string, [])?.value
          if (difference(values as null, read) !== undefined) t.fail(`${what}: ${operation}: ${difference(values as null, read)}`)
          t.equal(writeElement(wsdl.schema, element, read), writeElement(original.schema, element, read))
        }
      }
    }
  }
})

t.test('served: one document that is one already stays as it is', async t => {
  const text = readFileSync(join(vectors, 'wsdl/orders/flat.wsdl'), 'utf8')
  t.equal(singleWsdl({ 'flat.wsdl': text }, 'flat.wsdl'), text)
})

const SOAP11 = 'http://schemas.xmlsoap.org/wsdl/soap/'
const SOAP12 = 'http://schemas.xmlsoap.org/wsdl/soap12/'
const HTTP = 'http://schemas.xmlsoap.org/soap/http'
const POLICY = 'http://schemas.xmlsoap.org/ws/2004/09/policy'
const binding = (name: string, soap: string, transport = HTTP, { policy = '', portType = 'P' } = {}): string => `<w:binding name="${name}" type="t:${portType}">${policy}<s:binding xmlns:s="${soap}" transport="${transport}"/><w:operation name="Op"><s:operation xmlns:s="${soap}" soapAction="urn:op"/><w:input><s:body xmlns:s="${soap}" use="literal"/></w:input><w:output><s:body xmlns:s="${soap}" use="literal"/></w:output></w:operation></w:binding>`
const port = (name: string, of: string, soap = SOAP11, address = 'http://old/'): string => `<w:port name="${name}" binding="t:${of}"><s:address xmlns:s="${soap}" location="${address}"/></w:port>`
const service = (ports: string, name = 'S'): string => `<w:service name="${name}">${ports}</w:service>`
const portType = (name: string): string => `<w:portType name="${name}"><w:operation name="Op"><w:input message="t:m"/><w:output message="t:m"/></w:operation></w:portType>`
/** A small WSDL by hand. */
function small (rest: string, { portTypes = portType('P'), schemas = '<xs:schema targetNamespace="urn:t"><xs:element name="a" type="xs:int"/></xs:schema>' } = {}): string {
  return `<w:definitions name="W" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"><w:types>${schemas}</w:types><w:message name="m"><w:part name="p" element="t:a"/></w:message>${portTypes}${rest}</w:definitions>`
}
const reference = (id: string): string => `<p:PolicyReference xmlns:p="${POLICY}" URI="#${id}"/>`
const policy = (id: string, assertion: string): string => `<p:Policy xmlns:p="${POLICY}" u:Id="${id}" xmlns:u="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"><p:ExactlyOne><p:All>${assertion}</p:All></p:ExactlyOne></p:Policy>`
const ADDRESSING = '<w:UsingAddressing xmlns:w="http://www.w3.org/2006/05/addressing/wsdl"/>'
const SECURITY = '<sp:TransportBinding xmlns:sp="http://schemas.xmlsoap.org/ws/2005/07/securitypolicy"/>'

const rows: Array<[what: string, text: string, ports: unknown, contract?: string]> = [
  ['SOAP 1.1 only', small(binding('B', SOAP11) + service(port('X', 'B'))), [[['X', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['SOAP 1.2 only', small(binding('B', SOAP12) + service(port('X', 'B', SOAP12))), [[['X', 12, 'P', true], ['P_Soap11', 11, 'P', true]]]],
  ['a named pipe only', small(binding('B', SOAP12, 'http://schemas.microsoft.com/soap/named-pipe') + service(port('X', 'B', SOAP12, 'net.pipe://localhost/x'))), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['names that are taken', small(binding('P_Soap12Binding', SOAP11) + service(port('P_Soap12', 'P_Soap12Binding'), 'P_Soap11')), [[['P_Soap12', 11, 'P', true], ['P_Soap12_2', 12, 'P', true]]]],
  ['a binding that no port uses', small(binding('B', SOAP11) + binding('C', SOAP12) + service(port('X', 'B'))), [[['X', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['several ports of one version', small(binding('B', SOAP11) + service(port('X', 'B') + port('Y', 'B', SOAP11, 'https://old/'))), [[['X', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['a port that addressing may be used at', small(policy('a', ADDRESSING) + binding('B', SOAP12, HTTP, { policy: reference('a') }) + service(port('X', 'B', SOAP12))), [[['X', 12, 'P', true], ['P_Soap11', 11, 'P', true]]]],
  ['a port that asks for security', small(policy('a', SECURITY) + binding('B', SOAP12, HTTP, { policy: reference('a') }) + service(port('X', 'B', SOAP12))), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['a policy that is not there', small(binding('B', SOAP11, HTTP, { policy: reference('none') }) + service(port('X', 'B'))), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['a policy of its own', small(binding('B', SOAP11, HTTP, { policy: policy('x', SECURITY) }) + service(port('X', 'B'))), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['plain HTTP only', small('<w:binding name="G" type="t:P"><h:binding xmlns:h="http://schemas.xmlsoap.org/wsdl/http/" verb="GET"/></w:binding>' + service('<w:port name="G" binding="t:G"/>')), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['an empty service', small('<w:service name="S"/>'), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['no service', small(binding('B', SOAP11)), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['no binding, no service', small(''), [[['P_Soap11', 11, 'P', true], ['P_Soap12', 12, 'P', true]]]],
  ['a port without address', small(binding('B', SOAP11) + binding('C', SOAP12) + service('<w:port name="X" binding="t:B"/>' + port('Y', 'C', SOAP12))), [[['X', 11, 'P', true], ['Y', 12, 'P', true]]]],
  ['two contracts, one of them served', small(binding('B', SOAP11) + binding('C', SOAP11, HTTP, { portType: 'Q' }) + service(port('X', 'B') + port('Y', 'C')), { portTypes: portType('P') + portType('Q') }), [[['Y', 11, 'Q', true], ['Q_Soap12', 12, 'Q', true]]], 'Contoso.Q'],
  ['two contracts, both served', small(binding('B', SOAP11) + binding('C', SOAP11, HTTP, { portType: 'Q' }) + service(port('X', 'B') + port('Y', 'C')), { portTypes: portType('P') + portType('Q') }), [[['X', 11, 'P', true], ['Y', 11, 'Q', true], ['P_Soap12', 12, 'P', true], ['Q_Soap12', 12, 'Q', true]]]],
  ['a service without what is served', small(binding('B', SOAP11) + binding('C', SOAP11, HTTP, { portType: 'Q' }) + service(port('X', 'B'), 'One') + service(port('Y', 'C'), 'Two'), { portTypes: portType('P') + portType('Q') }), [[['Y', 11, 'Q', true], ['Q_Soap12', 12, 'Q', true]]], 'Q']
]

t.test('served: one port for each version of SOAP, whatever ports there were', async t => {
  for (const [what, text, ports, contract = ''] of rows) {
    const served = new ServedWsdl({ w: text }, 'w', contract)
    for (const wsdl of [asParts(served), asOne(served)]) {
      t.strictSame(portsOf(wsdl), ports, what)
      t.strictSame(wsdl.operations.filter(({ portType }) => !what.includes('contract') || portType === 'Q').flatMap(({ soap }) => soap).sort().filter((s, i, all) => all.indexOf(s) === i), [11, 12], `${what}: bindings`)
    }
    const body = served.answer('wsdl', AT)?.body ?? ''
    t.notMatch(body, /http:\/\/old|https:\/\/old/, `${what}: no address that is not ours`)
    // A clone has none of the policies of what it was cloned from.
    for (const [clone] of body.matchAll(/<w:binding name="P_Soap[^]*?<\/w:binding>/g)) if (what !== 'names that are taken') t.notMatch(clone, /Policy/, what)
  }
})

t.test('served: cloned bindings have the prefixes that they need, whatever these mean elsewhere', async t => {
  // `soap12` means something else here, and SOAP's own elements have no prefix.
  const text = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:soap12="urn:other"><types><schema xmlns="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t"><element name="a"/></schema></types>
    <message name="m"><part name="p" element="t:a"/></message><portType name="P"><operation name="Op"><input message="t:m"/></operation></portType>
    <binding name="B" type="t:P"><binding xmlns="${SOAP11}" transport="${HTTP}"/><operation name="Op"><operation xmlns="${SOAP11}" soapAction="urn:op"/><input><body xmlns="${SOAP11}" use="literal"></body></input></operation></binding>
    <service name="S"><port name="X" binding="t:B"><address xmlns="${SOAP11}" location="http://old/"/></port></service></definitions>`
  const wsdl = asParts(new ServedWsdl({ w: text }, 'w'))
  t.strictSame(portsOf(wsdl), [[['X', 11, 'P', true], ['P_Soap12', 12, 'P', true]]])
  t.strictSame(wsdl.operations.map(({ soap, action }) => [soap, action]), [[[11, 12], 'urn:op']])
})

t.test('served: each caller gets its own addresses, and what one says stays out of another\'s', async t => {
  const served = new ServedWsdl(documents('orders'), 'split.wsdl')
  const seen = (url: string): string[] => [...new Set([...(served.answer('WSDL', httpEndpoint(url))?.body ?? '').matchAll(/[lL]ocation="([^"?]*)/g)].map(match => match[1] as string))]
  for (const url of ['http://a.example/7/Http', 'https://b.example:8443/x/7/Http', 'http://[::1]/7/Http', 'http://a.example/7/Http']) t.strictSame(seen(url), [url])
  t.strictSame(seen('http://x/"><evil a="&$&'), ['http://x/&quot;&gt;&lt;evil a=&quot;&amp;$&amp;'], 'even one that is none')
})

t.test('served: names of queries count in any case; what is not there is told so', async t => {
  const served = new ServedWsdl(documents('orders'), 'split.wsdl')
  for (const query of ['wsdl', 'WSDL', 'Wsdl=', 'singlewsdl', 'SINGLEWSDL', 'xsd=xsd0', 'XSD=XSD0', 'wsdl&x=1']) t.match(served.answer(query, AT), { status: 200, contentType: 'text/xml; charset=utf-8' }, query)
  for (const query of ['xsd=xsd9', 'xsd', 'xsd=', 'wsdl=wsdl0', 'xsd=../../etc/passwd', 'xsd=constructor']) t.match(served.answer(query, AT), { status: 404, body: /there is no .*; there are \?wsdl, \?singleWsdl, \?xsd=xsd0/ }, query)
  for (const query of ['disco', 'x=wsdl', 'wsdl2', '']) t.equal(served.answer(query, AT), undefined, query)
})

t.test('served: what a document says of its encoding is about the file that it came from', async t => {
  for (const prolog of ['<?xml version="1.0" encoding="utf-16"?>', "<?xml version='1.0' encoding='windows-1252' standalone='yes'?>"]) {
    t.match(new ServedWsdl({ w: `${prolog}${small('')}` }, 'w').answer('wsdl', AT)?.body, /^<\?xml version=.1\.0. encoding="utf-8"/)
  }
  t.match(new ServedWsdl({ w: `<?xml version="1.0" encoding='UTF-8'?>${small('')}` }, 'w').answer('wsdl', AT)?.body, /^<\?xml version="1\.0" encoding='UTF-8'\?>/, 'one that is right stays as it is')
})

t.test('served: a schema without namespace is its includer\'s, in parts and in one document', async t => {
  const served = new ServedWsdl(CHAMELEON, 'w.wsdl')
  const body = '<t:a xmlns:t="urn:t" xmlns:u="urn:u"><t:mine><t:v>1</t:v><t:e>2</t:e><t:far>x</t:far></t:mine><t:theirs><u:v>3</u:v><u:e>4</u:e><u:far>y</u:far></t:theirs><t:loose><unqualified>z</unqualified></t:loose></t:a>'
  const value = readBody(loadWsdl(CHAMELEON, 'w.wsdl').schema, body, [])?.value
  t.match(value, { mine: { v: 1, e: 2, far: 'x' }, theirs: { v: 3, e: 4, far: 'y' }, loose: { unqualified: 'z' } })
  t.strictSame(readBody(asParts(served).schema, body, [])?.value, value)
  t.strictSame(readBody(asOne(served).schema, body, [])?.value, value)
  const single = served.answer('singleWsdl', AT)?.body ?? ''
  t.notMatch(single, /schemaLocation|<xs:include|<\?xml[^]*<\?xml/)
  t.equal(single.match(/name="T"/g)?.length, 2, 'each namespace has its own')
  t.equal(single.match(/name="Far"/g)?.length, 1, 'what is imported stands once')
  t.equal(single.match(/<xs:schema[^>]*targetNamespace="urn:t"/g)?.length, 2, 'one schema, and one of other forms beside it')
  // Clients that do not know the rule find nothing that needs it.
  for (const text of Object.values(crawl(served))) for (const [schema] of text.matchAll(/<(?:xs:)?schema\b[^>]*>/g)) t.match(schema, /targetNamespace=/)
})

t.test('served: WSDLs that import others, in parts and poured into one', async t => {
  const served = new ServedWsdl(SPLIT, 'service.wsdl')
  t.strictSame(served.queries, ['wsdl', 'singleWsdl', 'wsdl=wsdl0', 'wsdl=wsdl1', 'xsd=xsd0'])
  const original = loadWsdl(SPLIT, 'service.wsdl')
  t.equal(original.operations[0]?.action, 'urn:contract:IShop:BuyRequest')
  for (const [how, wsdl] of [['parts', asParts(served)], ['one', asOne(served)]] as const) {
    t.strictSame(meaning(wsdl), meaning(original), `${how}: its actions too, which come of the contract's namespace`)
    t.strictSame(portsOf(wsdl), [[['Basic', 11, 'IShop', true], ['IShop_Soap12', 12, 'IShop', true]]], how)
    t.equal(readBody(wsdl.schema, '<Bought xmlns="urn:embedded">hat</Bought>', [])?.value, 'hat')
  }
  t.equal(asOne(served).targetNamespace, 'urn:contract')
  t.notMatch(served.answer('singleWsdl', AT)?.body, /Location="(?!https)|<(?:\w+:)?import [^>]*location/)
})

t.test('served: what one document cannot say is told, and the parts are there', async t => {
  const twins = { ...SPLIT, 'contract.wsdl': SPLIT['contract.wsdl']?.replace('</definitions>', '<message name="Buy"/></definitions>') as string }
  const redefines = { w: small('', { schemas: '<xs:schema targetNamespace="urn:t"><xs:redefine schemaLocation="r.xsd"/><xs:element name="a" type="xs:int"/></xs:schema>' }), 'r.xsd': `<xs:schema ${XS} targetNamespace="urn:t"/>` }
  for (const [files, main, why] of [[twins, 'service.wsdl', /both have a message Buy, so it cannot be one document/], [redefines, 'w', /xs:redefine, so it cannot be one document/]] as const) {
    const served = new ServedWsdl(files, main)
    t.match(served.answer('singleWsdl', AT), { status: 404, contentType: /^text\/plain/, body: why })
    t.match(served.answer('singleWsdl', AT)?.body, `${URL}?wsdl`)
    t.match(served.answer('wsdl', AT), { status: 200 })
  }
  const broken = new ServedWsdl({ w: '<a' }, 'w')
  t.match(broken.answer('wsdl', AT), { status: 404, body: /WSDL w: / })
  t.strictSame([broken.queries, broken.operations], [['wsdl', 'singleWsdl'], []])
})

t.test('help page: what people see is text, whatever it was', async t => {
  const page = helpPage({ title: '<b>"&', about: 'a < b', url: 'http://h/"><script>', queries: ['wsdl', 'xsd=xsd0'], operations: [{ name: '<Op>', action: '"<a>', oneWay: true }] })
  t.notMatch(page, /<script|<b>|<Op>|<a>/)
  t.match(page, '<h1>&lt;b&gt;&quot;&amp;</h1>')
  t.match(page, /href="http:\/\/h\/&quot;&gt;&lt;script&gt;\?xsd=xsd0"/)
  t.match(page, /&lt;Op&gt; \(one-way\)/)
  t.match(helpPage({ title: 'S', about: '', url: 'http://h/', queries: [], operations: [] }), 'There is no WSDL of it.')
})
