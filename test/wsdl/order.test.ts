import t from 'tap'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { e, elementOf, INT, libxml2, NAME, setOf, why } from './schemas.ts'

const A = `<xs:element name="a" ${INT}/>`
const B = `<xs:element name="b" ${INT}/>`
// Groups that repeat, with bodies and the values that they are read to; written again, each must be the same body.
const groups: Array<[what: string, content: string, bodies: Array<[inside: string, value: unknown]>]> = [
  ['a choice that repeats', `<xs:choice maxOccurs="unbounded">${A}${B}</xs:choice>`, [
    ['<a>1</a><a>2</a><b>3</b>', { a: [1, 2], b: [3] }],
    ['<b>3</b><a>1</a><a>2</a>', { a: [1, 2], b: [3], $order: ['b', 'a', 'a'] }],
    ['<a>1</a><b>3</b><a>2</a>', { a: [1, 2], b: [3], $order: ['a', 'b', 'a'] }],
    ['<b>3</b>', { b: [3] }]
  ]],
  ['a sequence that repeats comes in turns', `<xs:sequence maxOccurs="unbounded">${A}<xs:element name="b" ${INT} minOccurs="0"/></xs:sequence>`, [
    ['<a>1</a><b>2</b><a>3</a><b>4</b>', { a: [1, 3], b: [2, 4] }],
    ['<a>1</a><a>3</a><b>4</b>', { a: [1, 3], b: [4], $order: ['a', 'a', 'b'] }],
  ]],
  ['an element in two places', `<xs:sequence>${A}<xs:choice minOccurs="0">${B}<xs:element name="c" ${INT}/></xs:choice><xs:element name="a" ${INT} minOccurs="0"/></xs:sequence>`, [
    ['<a>1</a><a>2</a>', { a: [1, 2] }],
    ['<a>1</a><c>5</c><a>2</a>', { a: [1, 2], c: 5 }],
  ]],
  ['wildcards between elements', `<xs:choice maxOccurs="unbounded">${A}<xs:any namespace="##other" processContents="lax"/></xs:choice>`, [
    ['<a>1</a><x:y xmlns:x="urn:x"/><a>2</a>', { a: [1, 2], $xml: ['<x:y xmlns:x="urn:x"/>'], $order: ['a', '$xml', 'a'] }]
  ]],
  ['members of a substitution group, repeating', '<xs:sequence><xs:element ref="tns:head" maxOccurs="unbounded"/></xs:sequence>', [
    ['<sub>2</sub><head>1</head>', { head: [1], sub: [2], $order: ['sub', 'head'] }]
  ]]
]
const HEADS = `<xs:element name="head" ${INT}/><xs:element name="sub" ${INT} substitutionGroup="tns:head"/>`

for (const [what, content, bodies] of groups) {
  t.test(`order: ${what}: nothing is lost, and $order is there only where it says something`, async t => {
    const schema = elementOf(content, HEADS)
    const set = setOf(schema)
    for (const [inside, value] of bodies) {
      t.ok(libxml2(schema, e(inside)), `libxml2 takes ${inside}`)
      t.strictSame(readBody(set, e(inside), [])?.value, value, inside)
      const written = writeElement(set, NAME, value)
      t.ok(libxml2(schema, written), `and what we write: ${written}`)
      t.strictSame(readBody(set, written, [])?.value, value, `written the same: ${written}`)
    }
  })
}

t.test('order: an $order that the schema or the value has no place for is refused', async t => {
  const set = setOf(elementOf(`<xs:sequence maxOccurs="unbounded">${A}${B}</xs:sequence>`))
  const write = (value: unknown): string => why(() => writeElement(set, NAME, value))
  t.match(write({ a: [1, 2], b: [3, 4], $order: ['a', 'a', 'b', 'b'] }), /\/e has an \$order with a where the contract has none/)
  t.match(write({ a: [1], b: [3], $order: ['a', 'b', 'a', 'b'] }), /has an \$order with more a than there are/)
  t.match(write({ a: [1, 2], b: [3, 4], $order: ['a', 'b'] }), /has 1 a more than the contract has places for/)
  t.match(write({ a: [1], $order: ['a'] }), /has an \$order that ends too early/)
  t.match(write({ a: [1], b: [2], $order: 'a b' }), /has an \$order that is no array of keys/)
  t.match(write({ a: [1], b: [2], $order: ['a', 'x'] }), /has an \$order with x where/)
  t.match(write({ a: ['x'], b: [2], $order: ['a', 'b'] }), /\/e\/a\[1\] is wrong: "x"/, 'paths count the items')
})

t.test('order: maxOccurs counts exactly, for an element of any number and for a group that is one element', async t => {
  const schema = elementOf(`<xs:sequence><xs:sequence maxOccurs="5000">${A}</xs:sequence></xs:sequence>`)
  const set = setOf(schema)
  t.same(set.notes, [])
  const many = (n: number): string => e('<a>1</a>'.repeat(n))
  t.ok(libxml2(schema, many(5000)))
  t.ok(readBody(set, many(5000), []))
  t.notOk(libxml2(schema, many(5001)))
  t.match(why(() => readBody(set, many(5001), [])), /element \{urn:t\}a, expected the end/)
  t.match(setOf(elementOf(`<xs:sequence maxOccurs="5000">${A}${B}</xs:sequence>`)).notes, [/group with so large a minOccurs or maxOccurs that it is not counted/], 'what is not counted is told')
})
