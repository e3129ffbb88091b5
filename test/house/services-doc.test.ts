/** docs/services.md: its tables are printed from the code and by running it, so that none of them can be wrong. UPDATE_DOCS=1 writes them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import t from 'tap'
import { REGISTRATION_TABLE } from '../../config/registration-table.ts'
import { asset } from '../../core/assets.ts'
import { isSoaError } from '../../core/errors.ts'
import { checkContract } from '../../wsdl/check-contract.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { e, elementOf, INT, NAME, setOf, xsd } from '../wsdl/schemas.ts'

const cell = (text: string): string => text.replaceAll('|', '\\|')
const table = (heads: string[], rows: string[][]): string => [heads, heads.map(() => '---'), ...rows].map(row => `| ${row.map(cell).join(' | ')} |`).join('\n')

function registration (): string {
  const sections = Object.entries(REGISTRATION_TABLE).map(([path, rows]) => {
    const lines = Object.entries(rows).map(([name, { does, takes, default: fallback, says, isOurs }]) => {
      const what = does === 'used' ? says : does === 'warned' ? `no effect, with a warning: ${says}` : `no effect: ${says}`
      return [`\`${name.replace(/^@/, '')}\`${name.startsWith('@') ? '' : ' (element)'}${isOurs ? ' (ours)' : ''}`, takes, fallback, what]
    })
    return `### ${path === 'configuration' ? 'configuration' : `\`${path}\``}\n\n${table(['', 'takes', 'default', 'here'], lines)}`
  })
  return `Attributes unless marked as elements. \`*\` is any kind of binding.\n\n${sections.join('\n\n')}`
}

/** What stands on the wire for a type, and what the reader makes of it. */
const SAMPLES: ReadonlyArray<readonly [what: string, type: string, text: string]> = [
  ['boolean', 'xs:boolean', '1'], ['byte, short, int, unsignedByte, unsignedShort, unsignedInt', 'xs:int', '7'], ['long, unsignedLong, integer and what restricts it', 'xs:long', '9007199254740993'],
  ['decimal', 'xs:decimal', '12345678901234567.89'], ['float, double', 'xs:double', '1.5E3'], ['the same, without an end', 'xs:double', '-INF'],
  ['dateTime that a Date holds whole (UTC, milliseconds)', 'xs:dateTime', '2026-11-30T10:11:12.5Z'], ['any other dateTime', 'xs:dateTime', '2026-11-30T10:11:12.1234567+02:00'],
  ['date, time, gYear …', 'xs:date', '2026-11-30'], ['duration', 'xs:duration', 'P1DT2H'], ['base64Binary, hexBinary', 'xs:base64Binary', 'AP8Q'], ['string', 'xs:string', ' a b '],
  ['enumeration, guid, anyURI and the rest', 'xs:anyURI', 'http://x/'], ['QName', 'xs:QName', 'i:nil'], ['list', 'xs:NMTOKENS', 'a b']
]
const SHAPES: ReadonlyArray<readonly [what: string, content: string, inside: string]> = [
  ['absent', `<xs:sequence><xs:element name="a" ${INT} minOccurs="0"/></xs:sequence>`, ''],
  ['nil', `<xs:sequence><xs:element name="a" ${INT} nillable="true"/></xs:sequence>`, '<a i:nil="true"/>'],
  ['empty text', '<xs:sequence><xs:element name="a" type="xs:string"/></xs:sequence>', '<a/>'],
  ['repeated, once', `<xs:sequence><xs:element name="a" ${INT} maxOccurs="9"/></xs:sequence>`, '<a>1</a>'],
  ['an array of .NET', `<xs:sequence><xs:element name="a"><xs:complexType><xs:sequence><xs:element name="int" ${INT} minOccurs="0" maxOccurs="unbounded" nillable="true"/></xs:sequence></xs:complexType></xs:element></xs:sequence>`, '<a><int>1</int><int i:nil="true"/></a>'],
  ['the same, empty', `<xs:sequence><xs:element name="a"><xs:complexType><xs:sequence><xs:element name="int" ${INT} minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element></xs:sequence>`, '<a/>'],
  ['attributes, and text beside them', '<xs:sequence><xs:element name="a"><xs:complexType><xs:simpleContent><xs:extension base="xs:double"><xs:attribute name="unit" type="xs:string"/></xs:extension></xs:simpleContent></xs:complexType></xs:element></xs:sequence>', '<a unit="m">1.5</a>'],
  ['xs:anyType', '<xs:sequence><xs:element name="a" type="xs:anyType"/></xs:sequence>', '<a i:type="x:int" xmlns:x="http://www.w3.org/2001/XMLSchema">5</a>']
]

const show = (value: unknown): string => value instanceof Date ? `new Date('${value.toISOString()}')` : inspect(value, { breakLength: Infinity, depth: 5 })

function values (): string {
  const simple = SAMPLES.map(([what, type, text]) => {
    const set = setOf(xsd(`<xs:element name="e" type="${type}"/>`))
    const value = readBody(set, e(text), [])?.value
    if (show(readBody(set, writeElement(set, NAME, value), [])?.value) !== show(value)) throw new Error(`${type} does not come back`)
    return [what, `\`${text}\``, `\`${show(value)}\``]
  })
  const shapes = SHAPES.map(([what, content, inside]) => [what, inside === '' ? '' : `\`${inside.replace(/ xmlns:x="[^"]*"/, '')}\``, `\`${show(readBody(setOf(elementOf(content)), e(inside), [])?.value)}\``])
  return table(['in the schema', 'on the wire', 'value'], [...simple, ...shapes])
}

const wsdl = (binding: string, policy = '', part = '<w:part name="p" element="t:a"/>'): string => `<w:definitions targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:p="http://schemas.xmlsoap.org/ws/2004/09/policy">
  <w:types><xs:schema targetNamespace="urn:t"><xs:element name="a" type="xs:int"/></xs:schema></w:types><w:message name="m">${part}</w:message><w:portType name="P"><w:operation name="Op"><w:input message="t:m"/></w:operation></w:portType>
  <w:binding name="B" type="t:P">${policy === '' ? '' : `<p:Policy>${policy}</p:Policy>`}<s:binding transport="http://schemas.xmlsoap.org/soap/http"/><w:operation name="Op">${binding}</w:operation></w:binding></w:definitions>`
const contract = (binding: string, policy?: string, part?: string): void => { checkContract({ w: wsdl(binding, policy, part) }, 'w', '') }
const schema = (inside: string): void => { setOf(xsd(inside)) }
const message = (inside: string): void => { readBody(setOf(elementOf('<xs:sequence><xs:element name="a" type="xs:base64Binary" minOccurs="0"/><xs:element name="o" minOccurs="0"><xs:complexType/></xs:element></xs:sequence>')), e(inside), []) }
const Z = 'xmlns:z="http://schemas.microsoft.com/2003/10/Serialization/"'

/** Each is done when the page is printed: what is not refused any more cannot stay in the list. */
const REFUSED: ReadonlyArray<readonly [what: string, when: string, act: () => void]> = [
  ['SOAP encoding (`use="encoded"`)', 'added', () => contract('<w:input><s:body use="encoded"/></w:input>')],
  ['style document with types instead of elements', 'added', () => contract('', '', '<w:part name="p" type="xs:int"/>')],
  ['style document with several parts', 'added', () => contract('', '', '<w:part name="p" element="t:a"/><w:part name="q" element="t:a"/>')],
  ['style rpc without a namespace', 'added', () => contract('<s:operation style="rpc"/><w:input><s:body use="literal"/></w:input>', '', '<w:part name="p" type="xs:int"/>')],
  ['style rpc with elements instead of types', 'added', () => contract('<s:operation style="rpc"/><w:input><s:body use="literal" namespace="urn:t"/></w:input>')],
  ['SOAP encoded arrays', 'added', () => schema('<xs:complexType name="T"><xs:complexContent><xs:restriction base="s:Array" xmlns:s="http://schemas.xmlsoap.org/soap/encoding/"/></xs:complexContent></xs:complexType>')],
  ['IsReference (`z:Id`, `z:Ref` in the schema)', 'added', () => schema(`<xs:complexType name="T"><xs:attribute ref="z:Ref" ${Z}/></xs:complexType>`)],
  ['preserveObjectReferences (`z:Ref` in a message)', 'in the message', () => message(`<o z:Ref="i1" ${Z}/>`)],
  ['MTOM in a policy', 'added', () => contract('', '<x:OptimizedMimeSerialization xmlns:x="http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization"/>')],
  ['MTOM in a message (`xop:Include`)', 'in the message', () => message('<a><x:Include xmlns:x="http://www.w3.org/2004/08/xop/include"/></a>')],
  ['policies for security of messages', 'added', () => contract('', '<sp:AsymmetricBinding xmlns:sp="http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702"/>')],
  ['policies for reliable messaging', 'added', () => contract('', '<r:RMAssertion xmlns:r="http://docs.oasis-open.org/ws-rx/wsrmp/200702"/>')],
  ['policies for transactions', 'added', () => contract('', '<x:ATAssertion xmlns:x="http://docs.oasis-open.org/ws-tx/wsat/2006/06"/>')],
  ['duplex contracts (the service calls its client)', 'added', () => contract('', '<x:CompositeDuplex xmlns:x="http://schemas.microsoft.com/net/2006/06/duplex"/>')],
  ['WS-Addressing of August 2004, replies to other addresses', 'added', () => contract('', '<x:UsingAddressing xmlns:x="http://schemas.xmlsoap.org/ws/2004/08/addressing/policy"/>')],
  ['xs:redefine, xs:override', 'added', () => schema('<xs:redefine schemaLocation="x.xsd"/>')],
  ['xs:all beside other content', 'added', () => schema('<xs:complexType name="T"><xs:sequence><xs:all/><xs:element name="b" type="xs:int"/></xs:sequence></xs:complexType>')],
  ['character blocks in patterns (`\\p{IsGreek}`)', 'added', () => schema('<xs:simpleType name="T"><xs:restriction base="xs:string"><xs:pattern value="\\p{IsGreek}"/></xs:restriction></xs:simpleType>')]
]

function refused (): string {
  return table(['what', 'refused when it is', 'in these words'], REFUSED.map(([what, when, act]) => {
    try { act() } catch (error) { if (isSoaError(error)) return [what, when, error.message.replace(/^(?:WSDL (?:w|test\.xsd): |the body does not match the contract at )/, '')]; throw error }
    throw new Error(`${what} is not refused`)
  }))
}

const PARTS: ReadonlyArray<readonly [mark: string, print: () => string]> = [['registration table', registration], ['values', values], ['refused', refused]]

t.test('services page: its tables are what the code says and does', async t => {
  const file = asset('docs/services.md')
  const page = readFileSync(file, 'utf8')
  const printed = PARTS.reduce((text, [mark, print]) => {
    const [begin, end] = [`<!-- begin: ${mark} -->\n`, `<!-- end: ${mark} -->`]
    const [from, to] = [text.indexOf(begin), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`docs/services.md has no marks for ${mark}`)
    return `${text.slice(0, from + begin.length)}${print()}\n${text.slice(to)}`
  }, page)
  if (process.env.UPDATE_DOCS !== undefined) writeFileSync(file, printed)
  else t.equal(page, printed, 'UPDATE_DOCS=1 node dist/test/house/services-doc.test.js writes it anew')
  for (const command of ['check', 'add', 'list', 'types']) t.match(page, `soa service ${command}`)
})
