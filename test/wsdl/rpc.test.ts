import t from 'tap'
import { checkContract } from '../../wsdl/check-contract.ts'
import { loadWsdl, type WsdlDocument } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { httpEndpoint, ServedWsdl } from '../../wsdl/served-wsdl.ts'
import { typescriptOf } from '../../wsdl/typescript.ts'
import { DEPOT, judgeDepot } from './depot.ts'
import { why, XSI } from './schemas.ts'

const depot = loadWsdl(DEPOT.documents, DEPOT.main)
const D = '{urn:depot:data}'

t.test('rpc: a message is the operation\'s name in the namespace of soap:body, a reply the same with Response, and actions are as of any contract', async t => {
  t.strictSame(depot.operations.map(o => [o.name, o.style, o.inputElement, o.outputElement, o.oneWay]), [
    ['add', 'rpc', '{urn:depot}add', '{urn:depot}addResponse', false], ['place', 'rpc', '{urn:depot}place', '{urn:depot}placeResponse', false], ['sum', 'rpc', '{urn:depot}sum', '{urn:depot}sumResponse', false],
    ['stock', 'rpc', '{urn:depot}stock', '{urn:depot}stockResponse', false], ['touch', 'rpc', '{urn:depot}touch', '{urn:depot}touchResponse', false], ['grow', 'rpc', '{urn:depot}grow', '{urn:depot}growResponse', false],
    ['note', 'rpc', '{urn:depot}note', undefined, true]
  ])
  t.strictSame(depot.operations.slice(0, 2).map(o => [o.action, o.replyAction]), [['urn:depot:IDepot:addRequest', 'urn:depot:IDepot:addResponse'], ['urn:depot/place', 'urn:depot/placeResponse']])
  t.strictSame(depot.operations[1]?.faults, [{ name: 'BadOrder', element: '{urn:depot:data}BadOrder', action: 'urn:depot:IDepot:place:Fault:BadOrder' }])
  t.strictSame(checkContract(DEPOT.documents, DEPOT.main, 'Contoso.IDepot').warnings, [])
})

const line = { sku: 'a<b', quantity: 2, price: '0.10' }
const messages: Array<[what: string, name: string, value: unknown]> = [
  ['two simple parts', 'add', { a: -1, b: 2147483647 }],
  ['a reply of one simple part', 'addResponse', { return: 7 }],
  ['a complex part and a simple one', 'place', { order: { id: 9007199254740993n, customer: 'Größe', lines: [line, null, { quantity: 0 }] }, rush: true }],
  ['a complex part with nothing that may be absent', 'place', { order: { id: 1n }, rush: false }],
  ['two parts in a reply, with an element of a third schema', 'placeResponse', { receipt: { orderId: 1n, at: '2026-11-30T10:11:12.1234567Z', remark: 'r' }, total: '12.30' }],
  ['an array', 'sum', { values: { item: [1, -2, 3] } }],
  ['an array without items', 'sum', { values: {} }],
  ['a long', 'sumResponse', { return: -9223372036854775808n }],
  ['no parts', 'stock', {}],
  ['a part with attributes', 'stockResponse', { return: { $attributes: { level: 'HIGH' }, items: [line, line] } }],
  ['blanks and an empty text', 'touch', { key: ' a\tb ' }],
  ['an empty reply', 'touchResponse', {}],
  ['a derived type', 'grow', { shape: { $type: `${D}Circle`, label: 'c', radius: 1.5 }, by: Infinity }],
  ['another one in a reply', 'growResponse', { return: { $type: `${D}Square`, side: 1e-7 } }],
  ['an enumeration', 'note', { line: '', level: 'LOW' }],
]
t.test('rpc: values to bodies and back, and what is written is valid for libxml2 by the profile\'s rules as a schema', async t => {
  const judge = judgeDepot()
  t.teardown(() => judge.close())
  for (const [what, name, value] of messages) {
    const body = writeElement(depot.schema, `{urn:depot}${name}`, value)
    t.equal(judge.check(body), undefined, `${what}: ${body}`)
    t.strictSame(readBody(depot.schema, body, [])?.value, value, what)
  }
  t.same([...new Set(messages.map(([, name]) => `{urn:depot}${name}`))].sort(), depot.operations.flatMap(o => [o.inputElement ?? [], o.outputElement ?? []].flat()).sort(), 'no message was left out')
})

t.test('rpc: parts are written in the order of the message and read in any', async t => {
  const { schema } = depot
  t.strictSame(readBody(schema, '<t:add xmlns:t="urn:depot"><b>1</b><a>2</a></t:add>', [])?.value, { b: 1, a: 2 })
  t.equal(writeElement(schema, '{urn:depot}add', { b: 1, a: 2 }), '<a:add xmlns:a="urn:depot"><a>2</a><b>1</b></a:add>')
})

t.test('rpc: a message that does not fit is refused with path and reason', async t => {
  const add = (inside: string): string => why(() => readBody(depot.schema, `<t:add xmlns:t="urn:depot" ${XSI}>${inside}</t:add>`, []))
  t.match(add('<a>1</a>'), /at \/add: element b is missing/)
  t.match(add('<a>1</a><b>x</b>'), /at \/add\/b: "x" is not a valid int/)
  t.match(add('<a>1</a><b>1</b><b>1</b>'), /at \/add: element b stands there twice/)
  t.match(add('<a>1</a><b>1</b><c/>'), /at \/add: element c, expected the end/)
  t.match(add('<t:a>1</t:a><b>1</b>'), /at \/add: element \{urn:depot\}a, expected a, b/)
  t.match(add('<a i:nil="true"/><b>1</b>'), /at \/add\/a.*nil/)
  t.match(add('<a s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/" xmlns:s="http://schemas.xmlsoap.org/soap/envelope/">1</a><b>1</b>'), /at \/add\/a: .*encodingStyle: SOAP encoding \(rpc\/encoded\) is not supported/)
  t.match(add('<a href="#1"/><b>1</b>'), /at \/add\/a: attribute href: references between elements/)
  t.match(why(() => readBody(depot.schema, '<add xmlns="urn:other"><a>1</a><b>1</b></add>', [])), /the contract has no element \{urn:other\}add/)
  const write = (name: string, value: unknown): string => why(() => writeElement(depot.schema, `{urn:depot}${name}`, value))
  t.match(write('placeResponse', { receipt: { orderId: 1n } }), /\/placeResponse lacks total/)
  t.match(write('addResponse', { return: null }), /\/addResponse\/return is null, but may not be nil/)
  t.match(write('touchResponse', { key: 'k' }), /\/touchResponse has key, which the contract does not know/)
})

t.test('rpc: types for TypeScript are those of the parts', async t => {
  const types = typescriptOf(depot, 'depot.wsdl')
  for (const text of ['  add: {\n    args: {\n      a: number\n      b: number\n    }\n    result: {\n      return: number\n    }\n  }', 'order: Order\n      rush: boolean', 'stock: {\n    args: Record<string, never>\n    result: {\n      return: Stock', 'touch: {\n    args: {\n      key: string\n    }\n    result: Record<string, never>', 'shape: AnyShape\n      by: number', 'level: \'LOW\' | \'HIGH\'\n    }\n    result: undefined']) t.ok(types.includes(text), text)
})

t.test('rpc: the WSDL is served with a port for each version of SOAP, style and namespaces as they were, and means the same', async t => {
  const served = new ServedWsdl(DEPOT.documents, DEPOT.main, 'IDepot')
  const { body = '' } = served.answer('singleWsdl', httpEndpoint('http://h/1/Http')) ?? {}
  t.equal(body.match(/<soap(?:12)?:body use="literal" namespace="urn:depot"\/>/g)?.length, 26)
  t.equal(body.match(/<soap(?:12)?:binding transport="http:\/\/schemas\.xmlsoap\.org\/soap\/http" style="rpc"\/>/g)?.length, 2)
  const again = loadWsdl({ w: body }, 'w')
  const facts = ({ operations }: WsdlDocument): unknown => operations.map(({ soap, ...rest }) => rest)
  t.strictSame(facts(again), facts(depot))
  t.strictSame(again.operations[0]?.soap, [11, 12])
  t.equal(typescriptOf(again, ''), typescriptOf(depot, ''))
  t.strictSame(again.services[0]?.ports.map(p => [p.soap, p.address]), [[11, 'http://h/1/Http'], [12, 'http://h/1/Http']])
})

/** A small contract by hand: what is not given is the plainest that works. */
interface Parts { input?: string, output?: string, operations?: string, bindings?: string, types?: string, messages?: string }
const operationOf = (name: string, input = 'In', output = 'Out'): string => `<w:operation name="${name}"><w:input message="t:${input}"/><w:output message="t:${output}"/></w:operation>`
const boundOf = (name: string, body = 'namespace="urn:n"', operation = '', headers = ''): string => `<w:operation name="${name}"><s:operation ${operation}/><w:input>${headers}<s:body use="literal" ${body}/></w:input><w:output><s:body use="literal" ${body}/></w:output></w:operation>`
const bindingOf = (operations: string, name = 'B', style = 'rpc'): string => `<w:binding name="${name}" type="t:P"><s:binding transport="http://schemas.xmlsoap.org/soap/http" style="${style}"/>${operations}</w:binding>`
function wsdl ({ input = '<w:part name="x" type="xs:int"/>', output = '<w:part name="y" type="t:T"/>', operations = operationOf('Op'), bindings = bindingOf(boundOf('Op')), types = '', messages = '' }: Parts = {}): string {
  return `<w:definitions name="W" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:n="urn:n" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:e="http://schemas.xmlsoap.org/soap/encoding/">
  <w:types><xs:schema targetNamespace="urn:t"><xs:complexType name="T"><xs:sequence><xs:element name="v" type="xs:int"/></xs:sequence></xs:complexType><xs:element name="E" type="xs:int"/></xs:schema>${types}</w:types>
  <w:message name="In">${input}</w:message><w:message name="Out">${output}</w:message>${messages}<w:portType name="P">${operations}</w:portType>${bindings}</w:definitions>`
}
const loaded = (parts: Parts): WsdlDocument => loadWsdl({ w: wsdl(parts) }, 'w')
const TWO = '<w:part name="x" type="xs:int"/><w:part name="y" type="xs:string"/>'

t.test('rpc: the wrapper has the namespace of soap:body, not the WSDL\'s; the style may be said by the operation alone', async t => {
  for (const bindings of [bindingOf(boundOf('Op')), bindingOf(boundOf('Op', undefined, 'style="rpc"'), 'B', 'document')]) {
    const { schema, operations } = loaded({ bindings })
    t.same([operations[0]?.inputElement, operations[0]?.outputElement], ['{urn:n}Op', '{urn:n}OpResponse'])
    t.equal(writeElement(schema, '{urn:n}OpResponse', { y: { v: 1 } }), '<a:OpResponse xmlns:a="urn:n"><y><v>1</v></y></a:OpResponse>')
  }
})

t.test('rpc: parameterOrder is for those who write code, and changes no message', async t => {
  const { schema } = loaded({ input: TWO, operations: '<w:operation name="Op" parameterOrder="y x"><w:input message="t:In"/><w:output message="t:Out"/></w:operation>' })
  t.equal(writeElement(schema, '{urn:n}Op', { x: 1, y: 'a' }), '<a:Op xmlns:a="urn:n"><x>1</x><y>a</y></a:Op>')
})

t.test('rpc: parts that soap:body does not list, and those that are headers, are not in the body', async t => {
  const input = `${TWO}<w:part name="h" element="t:E"/>`
  const header = '<s:header message="t:In" part="h" use="literal"/>'
  for (const [headers, body, value] of [['', 'namespace="urn:n" parts="y x"', { x: 1, y: 'a' }], [header, 'namespace="urn:n"', { x: 1, y: 'a' }], ['', 'namespace="urn:n" parts="y"', { y: 'a' }], ['', 'namespace="urn:n" parts=""', {}]] as const) {
    const { schema } = loaded({ input, output: '<w:part name="x" type="xs:int"/><w:part name="y" type="xs:string"/>', bindings: bindingOf(boundOf('Op', body, '', headers)) })
    const written = writeElement(schema, '{urn:n}Op', value)
    t.equal(written.replace(/<\/?a:Op[^>]*>/g, ''), [value].map(v => `${'x' in v ? '<x>1</x>' : ''}${'y' in v ? '<y>a</y>' : ''}`).join(), body)
    t.strictSame(readBody(schema, written, [])?.value, value)
  }
})

t.test('rpc: a wrapper is no element of the schema: one of the same name is another', async t => {
  const types = '<xs:schema targetNamespace="urn:n"><xs:element name="Op" type="xs:date"/><xs:complexType name="Any"><xs:sequence><xs:element ref="n:Op"/><xs:any namespace="urn:n"/></xs:sequence></xs:complexType></xs:schema>'
  const { schema } = loaded({ types, input: '<w:part name="x" type="n:Any"/>' })
  const value = { x: { Op: '2026-11-30', $xml: '<Op xmlns="urn:n">2026-12-01</Op>' } }
  t.strictSame(readBody(schema, writeElement(schema, '{urn:n}Op', value), [])?.value, value)
  t.match(why(() => writeElement(schema, '{urn:n}Op', { x: { Op: 'x', $xml: value.x.$xml } })), /is not a valid date/)
})

t.test('rpc: two bindings of a contract that say the same are one, and two operations may have the same messages', async t => {
  const { operations } = loaded({ operations: operationOf('A') + operationOf('B'), bindings: ['B1', 'B2'].map(name => bindingOf(boundOf('A', 'namespace="urn:n" parts="x"').replace(/(<w:output>.*)parts="x"/, '$1') + boundOf('B'), name)).join('') })
  t.same(operations.map(o => o.inputElement), ['{urn:n}A', '{urn:n}B'])
})

const element = (name: string): string => `<w:part name="${name}" element="t:E"/>`
const refused: Array<[what: string, text: string, says: RegExp]> = [
  ['use="encoded"', wsdl({ bindings: bindingOf(boundOf('Op').replaceAll('"literal"', '"encoded"')) }), /operation Op of binding \{urn:t\}B has use="encoded", which is not supported \(document\/literal and rpc\/literal are\)/],
  ['no namespace', wsdl({ bindings: bindingOf(boundOf('Op', '')) }), /operation Op of binding \{urn:t\}B has style rpc, but the soap:body of its input has no namespace, .*R2717/],
  ['an empty namespace', wsdl({ bindings: bindingOf(boundOf('Op', 'namespace=""')) }), /the soap:body of its input has no namespace/],
  ['a style that there is not', wsdl({ bindings: bindingOf(boundOf('Op'), 'B', 'wrapped') }), /operation Op of binding \{urn:t\}B has style wrapped; there are document and rpc/],
  ['a part of an element', wsdl({ input: element('x') }), /part x of message \{urn:t\}In is element \{urn:t\}E, but style rpc takes types .*R2203/],
  ['a part of nothing', wsdl({ input: '<w:part name="x"/>' }), /part x of message \{urn:t\}In has no type/],
  ['a type that is not defined', wsdl({ input: '<w:part name="x" type="t:None"/>' }), /part x of message \{urn:t\}In has type \{urn:t\}None, which no schema given defines/],
  ['a type of SOAP encoding', wsdl({ input: '<w:part name="x" type="e:string"/>' }), /part x of message \{urn:t\}In has type .*encoding\/\}string of SOAP encoding \(rpc\/encoded\), which is not supported/],
  ['two parts of one name', wsdl({ input: '<w:part name="x" type="xs:int"/><w:part name="x" type="xs:int"/>' }), /message \{urn:t\}In has two parts x/],
  ['a part listed that there is not', wsdl({ bindings: bindingOf(boundOf('Op', 'namespace="urn:n" parts="x z"')) }), /operation Op of binding \{urn:t\}B names part z, which message \{urn:t\}In does not have/],
  ['style document with parts of types', wsdl({ bindings: bindingOf(boundOf('Op', ''), 'B', 'document') }), /message \{urn:t\}In is made of a type instead of an element, which only messages of style rpc may be/],
  ['style document with several parts', wsdl({ input: element('x') + element('y'), bindings: bindingOf(boundOf('Op', ''), 'B', 'document') }), /message \{urn:t\}In has a body of 2 parts, which is not supported with style document/],
  ['types and no binding', wsdl({ bindings: '' }), /message \{urn:t\}In is made of a type instead of an element/],
  ['a fault of a type', wsdl({ operations: '<w:operation name="Op"><w:input message="t:In"/><w:output message="t:Out"/><w:fault name="F" message="t:In"/></w:operation>' }), /message \{urn:t\}In is made of a type instead of an element/],
  ['both styles for one operation', wsdl({ bindings: bindingOf(boundOf('Op')) + bindingOf(boundOf('Op', ''), 'C', 'document') }), /operation Op of binding \{urn:t\}B has style rpc, and operation Op of binding \{urn:t\}C has style document/],
  ['two namespaces for one message', wsdl({ bindings: bindingOf(boundOf('Op')) + bindingOf(boundOf('Op', 'namespace="urn:m"'), 'C') }), /B has namespace urn:n in the soap:body of its input, and operation Op of binding \{urn:t\}C has urn:m/],
  ['different parts for one message', wsdl({ bindings: bindingOf(boundOf('Op')) + bindingOf(boundOf('Op', 'namespace="urn:n" parts=""'), 'C') }), /have different parts in the soap:body of their input/],
  ['a reply that is called as a request is', wsdl({ operations: operationOf('Op') + operationOf('OpResponse'), bindings: bindingOf(boundOf('Op') + boundOf('OpResponse')) }), /the output of Op and the input of OpResponse are both element \{urn:n\}OpResponse, with different parts/],
  ['a fault that is called as a request is', wsdl({ types: '<xs:schema targetNamespace="urn:n"><xs:element name="Op" type="xs:int"/></xs:schema>', messages: '<w:message name="F"><w:part name="f" element="n:Op"/></w:message>', operations: '<w:operation name="Op"><w:input message="t:In"/><w:output message="t:Out"/><w:fault name="F" message="t:F"/></w:operation>' }), /the input of Op \(style rpc\) and fault F of Op are both element \{urn:n\}Op/],
  ...['1x', 'x y', 'a:b', '', '<x>', '$type', ' x '].flatMap((name): typeof refused => {
    const seen = JSON.stringify(name).replace(/\$/, '\\$')
    const written = name.replace('<', '&lt;')
    return [
      [`a part called ${seen}`, wsdl({ input: `<w:part name="${written}" type="xs:int"/>` }), new RegExp(`part ${seen} of message \\{urn:t\\}In has a name that no element can have`)],
      [`an operation called ${seen}`, wsdl({ operations: operationOf(written), bindings: bindingOf(boundOf(written)) }), new RegExp(`operation ${seen} has style rpc, but its name is none that an element can have`)]
    ]
  }),
  ...['http://schemas.xmlsoap.org/soap/envelope/', 'http://www.w3.org/2003/05/soap-envelope', 'http://www.w3.org/XML/1998/namespace', 'http://www.w3.org/2000/xmlns/', '  ', ' urn:n ', 'urn:}{'].map((uri): typeof refused[number] =>
    [`namespace ${uri}`, wsdl({ operations: operationOf('Fault'), bindings: bindingOf(boundOf('Fault', `namespace="${uri}"`)) }), /operation Fault of binding \{urn:t\}B has namespace ".*" in the soap:body of its input, in which no message can be/]),
  ['an operation twice in a binding, otherwise', wsdl({ bindings: bindingOf(boundOf('Op') + boundOf('Op', 'namespace="urn:m"')) }), /operation Op of binding \{urn:t\}B has namespace urn:n in the soap:body of its input, and operation Op of binding \{urn:t\}B has urn:m/],
  ['an operation that no binding has', wsdl({ operations: operationOf('Op') + operationOf('Other') }), /operation Other of \{urn:t\}P is in none of its bindings \(\{urn:t\}B\).*R2718/],
  ['overloads', wsdl({ operations: operationOf('Op') + operationOf('Op') }), /operation Op is there twice/],
]
t.test('rpc: what is not supported, or means two things, is refused by name when the contract is added', async t => {
  t.equal(why(() => checkContract({ w: wsdl() }, 'w', '')), 'accepted', 'the plainest is one that works')
  for (const [what, text, says] of refused) t.match(why(() => checkContract({ w: text }, 'w', '')), says, what)
})

t.test('rpc: thousands of operations are read in one go each, with two bindings and headers', async t => {
  const names = Array.from({ length: 5000 }, (_, i) => `Op${i}`)
  const bound = names.map(name => boundOf(name, undefined, `soapAction="urn:${name}"`, '<s:header message="t:In" part="h" use="literal"/>')).join('')
  const text = wsdl({ input: `${TWO}${element('h')}`, operations: names.map(name => operationOf(name)).join(''), bindings: bindingOf(bound) + bindingOf(bound, 'C') })
  const { operations, warnings } = checkContract({ w: text }, 'w', 'P')
  t.same([operations.length, operations.at(-1)?.inputElement, warnings], [5000, '{urn:n}Op4999', ['message header h is not handed to the service']])
})
