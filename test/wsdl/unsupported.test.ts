/** What the codec does not do is refused by name in messages: skipped or misread, it would leave a member silently empty. */
import t from 'tap'
import { readBody } from '../../wsdl/schema/reader.ts'
import { e, elementOf, INT, setOf, why, xsd } from './schemas.ts'

const set = setOf(elementOf(`<xs:sequence><xs:element name="o" minOccurs="0"><xs:complexType><xs:sequence><xs:element name="a" ${INT} minOccurs="0"/></xs:sequence></xs:complexType></xs:element><xs:element name="b" type="xs:base64Binary" minOccurs="0"/></xs:sequence>`))
const Z = 'xmlns:z="http://schemas.microsoft.com/2003/10/Serialization/"'
const ENC = 'xmlns:s="http://schemas.xmlsoap.org/soap/encoding/"'
const marks: Array<[what: string, inside: string, says: RegExp, alsoLenient: boolean]> = [
  ['a reference to an object', `<o z:Ref="i1" ${Z}/>`, /at \/e\/o: z:Ref: object references .* are not supported/, true],
  ['an object that may be referred to', `<o z:Id="i1" ${Z}><a>1</a></o>`, /at \/e\/o: z:Id: object references/, false],
  ['MTOM', '<b><x:Include xmlns:x="http://www.w3.org/2004/08/xop/include" href="cid:1"/></b>', /at \/e\/b: xop:Include: binary data outside the envelope \(MTOM\) is not supported; send it as base64/, true],
  ['a SOAP encoded array', `<o s:arrayType="x[2]" ${ENC}/>`, /at \/e\/o: attribute .*arrayType: SOAP encoding \(rpc\/encoded\) is not supported/, true],
  ['an encoding style', '<o s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/" xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"/>', /encodingStyle: SOAP encoding/, true],
  ['a reference between elements', '<o href="#id1"/>', /at \/e\/o: attribute href: references between elements/, true]
]
t.test('messages: what is not supported is refused by name, also by a lenient reader', async t => {
  for (const [what, inside, says, alsoLenient] of marks) {
    t.match(why(() => readBody(set, e(inside), [])), says, what)
    const lenient = why(() => readBody(set, e(inside), [], { isLenient: true }))
    if (alsoLenient) t.match(lenient, says, `${what}, lenient`)
    else t.equal(lenient, 'accepted', `${what}, lenient: an Id alone changes nothing`)
  }
})

const schemas: Array<[what: string, inside: string, says: RegExp]> = [
  ['xs:override', '<xs:override schemaLocation="x.xsd"/>', /xs:override \(XML Schema 1\.1\) is not supported/],
  ['an xs:all inside a sequence', `<xs:complexType name="T"><xs:sequence><xs:element name="x" ${INT}/><xs:all><xs:element name="a" ${INT}/></xs:all></xs:sequence></xs:complexType>`, /type \{urn:t\}T: an xs:all beside or inside other content/],
  ['an xs:all that repeats', `<xs:complexType name="T"><xs:all maxOccurs="2"><xs:element name="a" ${INT}/></xs:all></xs:complexType>`, /an xs:all beside or inside/],
  ['a limit on what has no order', '<xs:simpleType name="T"><xs:restriction base="xs:gMonth"><xs:minInclusive value="--03"/></xs:restriction></xs:simpleType>', /simple type \{urn:t\}T: minInclusive on gMonth, which has no order, is not supported/]
]
t.test('schemas: what is not supported is refused by name when the contract is loaded', async t => {
  for (const [what, inside, says] of schemas) t.match(why(() => setOf(xsd(inside))), says, what)
})

t.test('schemas: what is read and not checked in messages is told', async t => {
  const { notes } = setOf(xsd('<xs:element name="e" type="tns:T" block="extension"><xs:unique name="u"><xs:selector xpath="x"/><xs:field xpath="."/></xs:unique></xs:element><xs:complexType name="T"/>'))
  t.strictSame(notes, ['test.xsd: block="extension" is not checked in messages', 'test.xsd: xs:unique u is not checked in messages'])
})
