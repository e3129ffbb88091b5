import t from 'tap'
import { SoaError } from '../../core/errors.ts'
import { loadWsdl, operationsOf } from '../../wsdl/document.ts'
import { resolveLocation } from '../../wsdl/imports.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { forms, load } from './cases.ts'

function refusal (act: () => unknown): SoaError {
  try { act() } catch (error) { if (error instanceof SoaError) return error; throw error }
  throw new Error('was accepted')
}

t.test('contract: operations with their actions, elements, faults and versions', async t => {
  const wsdl = load('orders', 'split')
  t.same(wsdl.portTypes, ['IOrders'])
  t.same(wsdl.operations.map(o => o.name), ['Place', 'Find', 'Keys', 'Cancel'])
  const { inputElement, outputElement, action, replyAction, faults, oneWay, soap } = wsdl.operations[0] ?? t.fail('no operation') as never
  t.same({ inputElement, outputElement, action, replyAction, faults, oneWay, soap }, {
    inputElement: '{http://tempuri.org/}Place',
    outputElement: '{http://tempuri.org/}PlaceResponse',
    action: 'http://tempuri.org/IOrders/Place',
    replyAction: 'http://tempuri.org/IOrders/PlaceResponse',
    faults: [{ name: 'OrderFaultFault', element: '{http://schemas.datacontract.org/2004/07/Contoso.Orders}OrderFault', action: 'http://tempuri.org/IOrders/PlaceOrderFaultFault' }],
    oneWay: false,
    soap: [11, 12]
  })
  t.same(wsdl.services.map(s => [s.name, s.ports.map(p => [p.name, p.soap, p.address])]), [['OrderService', [['BasicHttpBinding_IOrders', 11, 'http://127.0.0.1:8765/orders'], ['WSHttpBinding_IOrders', 12, 'http://127.0.0.1:8765/orders/ws']]]])
})

t.test('contract: a one-way operation has no reply', async t => {
  const ping = load('calc', 'flat').operations.find(o => o.name === 'Ping')
  t.match(ping, { oneWay: true })
  t.equal(ping?.outputElement, undefined)
  t.equal(ping?.replyAction, undefined)
})

t.test('contract: a binding that is only net.tcp is a contract too', async t => {
  for (const form of forms) {
    const wsdl = load('nettcp', form)
    t.ok(wsdl.operations.length > 0)
    t.ok(wsdl.operations.every(o => o.soap.includes(12)), 'its messages are SOAP 1.2')
    t.match(wsdl.services[0]?.ports[0]?.address, /^net\.tcp:/)
  }
})

t.test('contract: chosen by portType, by a .NET name that ends in it, or because it is the only one', async t => {
  const wsdl = load('calc', 'flat')
  for (const name of ['ICalc', 'Contoso.Calc.ICalc', '']) t.equal(operationsOf(wsdl, name).length, 8, name)
  t.match(refusal(() => operationsOf(wsdl, 'IOther')).message, /it has no contract IOther, only ICalc/)
  t.match(refusal(() => operationsOf({ ...wsdl, portTypes: ['A', 'B'] }, '')).message, /2 contracts \(A, B\)/)
})

/** A small WSDL by hand: what is not given is the plainest that works. */
function wsdl (parts: { types?: string, messages?: string, operation?: string, binding?: string, head?: string } = {}): string {
  const { types = '<xs:schema targetNamespace="urn:t"><xs:element name="a" type="xs:int"/></xs:schema>', messages = '<w:message name="m"><w:part name="p" element="t:a"/></w:message>' } = parts
  const { operation = '<w:operation name="Op"><w:input message="t:m"/><w:output message="t:m"/></w:operation>', binding = '', head = '' } = parts
  return `<w:definitions name="W" targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema">${head}<w:types>${types}</w:types>${messages}<w:portType name="P">${operation}</w:portType>${binding}</w:definitions>`
}
const bindingOf = (operation: string, attributes = ''): string => `<w:binding name="B" type="t:P"><s:binding transport="http://schemas.xmlsoap.org/soap/http" ${attributes}/><w:operation name="Op">${operation}</w:operation></w:binding>`

t.test('contract: actions that are not said are made as WS-Addressing says, or are the SOAPAction', async t => {
  const plain = loadWsdl({ w: wsdl() }, 'w').operations[0]
  t.equal(plain?.action, 'urn:t:P:OpRequest')
  t.equal(plain?.replyAction, 'urn:t:P:OpResponse')
  const said = loadWsdl({ w: wsdl({ binding: bindingOf('<s:operation soapAction="urn:do"/><w:input><s:body use="literal"/></w:input><w:output><s:body use="literal"/></w:output>') }) }, 'w').operations[0]
  t.equal(said?.action, 'urn:do')
  t.equal(said?.replyAction, 'urn:doResponse')
})

const refused: Array<[what: string, text: string, says: RegExp]> = [
  ['encoded use', wsdl({ binding: bindingOf('<w:input><s:body use="encoded"/></w:input>') }), /use="encoded"/],
  ['MTOM', wsdl({ head: '<p:Policy xmlns:p="http://schemas.xmlsoap.org/ws/2004/09/policy"><o:OptimizedMimeSerialization xmlns:o="http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization"/></p:Policy>' }), /MTOM/],
  ['a part with a type', wsdl({ messages: '<w:message name="m"><w:part name="p" type="xs:int"/></w:message>' }), /made of a type instead of an element/],
  ['a body of two parts', wsdl({ messages: '<w:message name="m"><w:part name="p" element="t:a"/><w:part name="q" element="t:a"/></w:message>' }), /a body of 2 parts/],
  ['an element that is not defined', wsdl({ messages: '<w:message name="m"><w:part name="p" element="t:none"/></w:message>' }), /element \{urn:t\}none, which no schema given defines/],
  ['a message that is not defined', wsdl({ messages: '' }), /message \{urn:t\}m, which is not defined/],
  ['a notification', wsdl({ operation: '<w:operation name="Op"><w:output message="t:m"/></w:operation>' }), /notifications are not supported/],
  ['an import that is not there', wsdl({ types: '<xs:schema><xs:import namespace="urn:x" schemaLocation="x.xsd"/></xs:schema>' }), /it imports x\.xsd \(namespace urn:x\), which is not there/],
  ['an entity', '<!DOCTYPE d [<!ENTITY e "x">]><d>&e;</d>', /document type is not accepted/],
  ['something else', '<html/>', /it is no WSDL 1\.1, but html/],
  ['WSDL 2.0', '<description xmlns="http://www.w3.org/ns/wsdl"/>', /no WSDL 1\.1/]
]
t.test('contract: what is not supported is refused by name when it is loaded', async t => {
  for (const [what, text, says] of refused) {
    const error = refusal(() => loadWsdl({ 'dir/w.wsdl': text }, 'dir/w.wsdl'))
    t.equal(error.fault, 'badContract', what)
    t.match(error.message, says, what)
    t.match(error.message, /WSDL dir\/w\.wsdl/, `${what}: says which document`)
  }
})

t.test('contract: bindings of plain HTTP are passed over', async t => {
  const binding = '<w:binding name="G" type="t:P"><h:binding verb="GET" xmlns:h="http://schemas.xmlsoap.org/wsdl/http/"/><w:operation name="Op"/></w:binding>'
  t.same(loadWsdl({ w: wsdl({ binding }) }, 'w').operations[0]?.soap, [])
})

t.test('contract: what ASMX has for GET and POST beside a contract for SOAP is passed over, with its messages of types', async t => {
  const head = '<w:message name="get"><w:part name="n" type="xs:string"/></w:message><w:portType name="PHttpGet"><w:operation name="Op"><w:input message="t:get"/><w:output message="t:get"/></w:operation></w:portType><w:binding name="G" type="t:PHttpGet"><h:binding verb="GET" xmlns:h="http://schemas.xmlsoap.org/wsdl/http/"/><w:operation name="Op"/></w:binding>'
  const literal = '<w:input><s:body use="literal"/></w:input><w:output><s:body use="literal"/></w:output>'
  const both = loadWsdl({ w: wsdl({ head, binding: bindingOf(literal) }) }, 'w')
  t.same([both.portTypes, operationsOf(both, '').map(o => [o.portType, o.inputElement])], [['P'], [['P', '{urn:t}a']]])
  t.match(refusal(() => loadWsdl({ w: wsdl({ head }) }, 'w')).message, /message \{urn:t\}get is made of a type/, 'alone it is what there is')
})

t.test('contract: a part that soap:body does not list is not the body', async t => {
  const messages = '<w:message name="m"><w:part name="o" type="xs:int"/><w:part name="p" element="t:a"/></w:message>'
  const body = '<s:body parts="p" use="literal"/>'
  t.equal(loadWsdl({ w: wsdl({ messages, binding: bindingOf(`<w:input>${body}</w:input><w:output>${body}</w:output>`) }) }, 'w').operations[0]?.inputElement, '{urn:t}a')
})

t.test('contract: header parts are not the body', async t => {
  const messages = '<w:message name="m"><w:part name="p" element="t:a"/><w:part name="h" element="t:a"/></w:message>'
  const binding = bindingOf('<w:input><s:header message="t:m" part="h" use="literal"/><s:body parts="p" use="literal"/></w:input><w:output><s:body use="literal"/></w:output>')
  t.equal(loadWsdl({ w: wsdl({ messages, binding }) }, 'w').operations[0]?.inputElement, '{urn:t}a')
})

t.test('schemas: an include without namespace takes the includer\'s, two files of one namespace add up, and circles end', async t => {
  const types = '<xs:schema targetNamespace="urn:t" xmlns="urn:t" elementFormDefault="qualified"><xs:include schemaLocation="sub/a.xsd"/><xs:element name="a" type="T"/></xs:schema>'
  const files = {
    'x/w.wsdl': wsdl({ types }),
    'x/sub/a.xsd': '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" elementFormDefault="qualified"><xs:include schemaLocation="../sub/b%20c.xsd"/><xs:complexType name="T"><xs:sequence><xs:element name="v" type="U"/></xs:sequence></xs:complexType></xs:schema>',
    'x/sub/b c.xsd': '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="a.xsd"/><xs:simpleType name="U"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>'
  }
  const { schema } = loadWsdl(files, 'x/w.wsdl')
  t.same(readBody(schema, '<a xmlns="urn:t"><v>1</v></a>', [])?.value, { v: 1 })
})

t.test('locations: relative to where they stand, as paths and as URLs, or keys as they are', async t => {
  const keys = (...names: string[]): Record<string, string> => Object.fromEntries(names.map(n => [n, '']))
  t.equal(resolveLocation(keys('/a/b/c.xsd'), '/a/w.wsdl', 'b/c.xsd'), '/a/b/c.xsd')
  t.equal(resolveLocation(keys('/a/c.xsd'), '/a/b/w.wsdl', '../c.xsd'), '/a/c.xsd')
  t.equal(resolveLocation(keys('/a #1/c.xsd'), '/a #1/w.wsdl', 'c.xsd'), '/a #1/c.xsd')
  t.equal(resolveLocation(keys('http://h/s?xsd=xsd0'), 'http://h/s?wsdl', '?xsd=xsd0'), 'http://h/s?xsd=xsd0')
  t.equal(resolveLocation(keys('http://h/x.xsd'), '/a/w.wsdl', 'http://h/x.xsd'), 'http://h/x.xsd')
  t.equal(resolveLocation(keys('a.xsd'), 'w.wsdl', 'b.xsd'), undefined)
  t.equal(resolveLocation(keys('a%.xsd'), 'w.wsdl', 'a%.xsd'), 'a%.xsd')
})
