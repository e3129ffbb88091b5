import t from 'tap'
import { clientKey, nextBatchId } from '../../client/client-id.ts'
import { readUserData, userDataHeader } from '../../client/user-data.ts'

/** What an error is compared by. */
const refusal = (fault: string): Error => ({ fault }) as unknown as Error

const back = (header: string): string => readUserData(Buffer.from(header))

for (const [name, text] of [
  ['text', 'row 7'], ['nothing', ''], ['markup that is meant as text', '<a href="x">&amp;</a>'], ['line ends, tabs and blanks', ' a\r\nb\tc '],
  ['characters beyond ASCII', 'Überprüfung 價格 🂡'], ['a CDATA end', 'x]]>y'], ['what looks like CDATA', '<![CDATA[x]]>']
] as const) {
  t.test(`user data: ${name} comes back unchanged`, async t => t.equal(back(userDataHeader(text)), text))
}

for (const [name, xml] of [
  ['an element in no namespace', '<row n="1">a<b/></row>'], ['several elements', '<a/><b>2</b>'], ['its own namespaces', '<p:a xmlns:p="urn:x" p:q="1"><p:b/></p:a>'],
  ['CDATA and comments', '<a><![CDATA[<x>]]><!-- c --></a>']
] as const) {
  t.test(`user data: an XML fragment with ${name} comes back as it is`, async t => t.equal(back(userDataHeader({ xml })), xml))
}

t.test('user data: elements of a fragment without a prefix do not fall into HPC Pack\'s namespace', async t => {
  t.equal(userDataHeader({ xml: '<a/>' }), '<h:HPCServer2008_Broker_UserDataNS xmlns:h="http://www.microsoft.com/hpc"><a/></h:HPCServer2008_Broker_UserDataNS>')
})

t.test('user data: a header of 1024 characters with its tags passes, one more is refused with both numbers', async t => {
  const room = 1024 - userDataHeader('').length
  t.equal(userDataHeader('x'.repeat(room)).length, 1024)
  t.throws(() => userDataHeader('x'.repeat(room + 1)), { fault: 'InvalidArgument', message: /1025 characters.*limit is 1024/ })
})

for (const [name, data] of [
  ['a fragment that is not well-formed', { xml: '<a>' }], ['a document type', { xml: '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>' }], ['a prefix that nobody declared', { xml: '<p:a/>' }],
  ['a character that XML has not', 'a\u0000b'], ['an end tag that would close the header', { xml: '</h:HPCServer2008_Broker_UserDataNS><x/>' }]
] as const) {
  t.test(`user data: refuses ${name} before anything is sent`, async t => t.throws(() => userDataHeader(data), refusal('InvalidArgument')))
}

t.test('user data: a response without the header has none', async t => t.equal(readUserData(undefined), ''))

t.test('client id: 128 letters, digits, blanks, _ - { } in any case; two that differ in case are one', async t => {
  t.equal(clientKey('{Client-1_A b}'), '{client-1_a b}')
  t.equal(clientKey(''), '')
  t.equal(clientKey('a'.repeat(128)).length, 128)
  for (const bad of ['a'.repeat(129), 'a/b', 'ä', 'a.b']) t.throws(() => clientKey(bad), refusal('Broker_InvalidClientIdOrTooLong'), bad.slice(0, 5))
})

t.test('batch id: grows with the clock and within the same second, and fits int32', async t => {
  const now = Date.UTC(2030, 0, 1)
  const [a, b, c] = [nextBatchId(now), nextBatchId(now), nextBatchId(now + 10_000)] as [number, number, number]
  t.ok(a < b && b < c, `${a} < ${b} < ${c}`)
  t.ok(c < 2 ** 31)
})
