import t from 'tap'
import { readText } from '../../../wire/xml/text.ts'
import { XmlWriter, escapeAttribute, escapeText } from '../../../wire/xml/text-writer.ts'
import { readTree } from '../../../wire/xml/tree.ts'
import { qname, resolveQName, splitQName, XSI, type XmlHandler } from '../../../wire/xml/events.ts'
import { SoaError, isSoaError, type FaultName } from '../../../core/errors.ts'

/** Events as short lines: `<{ns}name a=1`, text in quotes, `>` for an end. */
function hear (log: string[]): XmlHandler {
  return {
    start: e => { log.push(`<${qname(e.uri, e.local)}${e.attributes.map(a => ` ${qname(a.uri, a.local)}=${a.value}`).join('')}`) },
    text: value => { log.push(JSON.stringify(value)) },
    end: () => { log.push('>') }
  }
}
const events = (xml: string | Uint8Array, options?: Parameters<typeof readText>[2]): string[] => { const log: string[] = []; readText(xml, hear(log), options); return log }
function refusal (act: () => unknown): SoaError {
  try { act() } catch (error) { if (error instanceof SoaError) return error; throw error }
  throw new Error('was accepted')
}

t.test('text: names are pairs of namespace and local, declarations are no attributes', async t => {
  t.same(events('<p:a xmlns:p="urn:1" xmlns="urn:2" k="v" p:k="w"><b xmlns=""/></p:a>'), ['<{urn:1}a k=v {urn:1}k=w', '<b', '>', '>'])
})

t.test('text: a fragment takes its prefixes from the scope around it and may hold any number of elements', async t => {
  t.same(events(Buffer.from('<p:a/>x<b/>'), { fragment: true, scope: [['p', 'urn:1'], ['', 'urn:2']] }), ['<{urn:1}a', '>', '"x"', '<{urn:2}b', '>'])
  t.same(events('', { fragment: true }), [])
  t.same(events('<__proto__:a xmlns:__proto__="urn:x"/>'), ['<{urn:x}a', '>'])
  t.same(events('<__proto__:a/>', { fragment: true, scope: [['__proto__', 'urn:y']] }), ['<{urn:y}a', '>'])
})

t.test('text: CDATA, references and comments only cut text into pieces', async t => {
  const text = events('<a>1<!-- no --><![CDATA[<2>]]>&amp;&#x33;\r\n</a>').filter(line => line.startsWith('"')).map(line => JSON.parse(line) as string).join('')
  t.equal(text, '1<2>&3\n')
})

const refused: Array<[name: string, xml: string | Uint8Array, fault: FaultName, says: RegExp, options?: Parameters<typeof readText>[2]]> = [
  ['a document type', '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', 'badXml', /document type is not accepted/],
  ['a document type in a fragment', '<!DOCTYPE a><a/>', 'badXml', /document type is not accepted/, { fragment: true }],
  ['an entity that XML does not have', '<a>&nbsp;</a>', 'badXml', /entit/],
  ['an undeclared prefix', '<p:a/>', 'badXml', /unbound namespace prefix/],
  ['an attribute given twice by two prefixes', '<a xmlns:p="u" xmlns:q="u" p:x="" q:x=""/>', 'badXml', /duplicate attribute/],
  ['an end that does not match', '<a><b></a></b>', 'badXml', /unexpected close tag/],
  ['an element left open', '<a>', 'badXml', /unclosed tag/],
  ['two roots in a document', '<a/><b/>', 'badXml', /one root/],
  ['a control character', '<a>\u0001</a>', 'badXml', /disallowed character/],
  ['a control character by reference', '<a>&#1;</a>', 'badXml', /./],
  ['bytes that are no UTF-8', Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0x3c, 0x2f, 0x61, 0x3e]), 'badXml', /not UTF-8/],
  ['nesting deeper than the limit', '<a>'.repeat(9) + '</a>'.repeat(9), 'overLimit', /maxDepth is more than 8, the limit is 8/, { maxDepth: 8 }],
]
for (const [name, xml, fault, says, options] of refused) {
  t.test(`text: refuses ${name}`, async t => {
    const error = refusal(() => events(xml, options))
    t.equal(error.fault, fault)
    t.match(error.message, says)
  })
}

t.test('text: an error says line and column', async t => {
  t.match(refusal(() => events('<a>\n  <p:b/>\n</a>')).message, /line 2, column 8/)
})

t.test('text: a nesting as deep as the limit is read', async t => {
  t.equal(events('<a>'.repeat(8) + '</a>'.repeat(8), { maxDepth: 8 }).length, 16)
})

t.test('writer: each namespace is declared where it is first needed and taken out of scope with its element', async t => {
  const w = new XmlWriter().start('urn:1', 'r').start('', 'plain').end().start('urn:2', 'x').end().start('urn:2', 'y').end().end()
  t.equal(w.toString(), '<a:r xmlns:a="urn:1"><plain/><b:x xmlns:b="urn:2"/><b:y xmlns:b="urn:2"/></a:r>')
  t.equal(new XmlWriter().start('u', 'r').use('v').start('v', 'x').end().end().toString(), '<a:r xmlns:a="u" xmlns:b="v"><b:x/></a:r>')
})

t.test('writer: what it writes reads back, whatever characters are in it', async t => {
  const nasty = 'a & b < c > d ]]> "e" \'f\' \r\n\t g \u{1F600} \u0085 \u2028 <![CDATA[x]]>'
  const w = new XmlWriter().start('urn:1', 'r').attribute('', 'k', nasty).attribute(XSI, 'nil', 'true').text(nasty).end()
  const [root] = readTree(w.toString())
  t.equal(root?.text, nasty)
  t.equal(root?.get('k'), nasty)
  t.equal(root?.get(`{${XSI}}nil`), 'true')
})

t.test('writer: QNames in values carry their declaration', async t => {
  const w = new XmlWriter().start('', 'r')
  w.attribute(XSI, 'type', w.qname('{urn:t}T')).end()
  t.equal(readTree(w.toString())[0]?.qname(`{${XSI}}type`), '{urn:t}T')
})

t.test('writer: thirty namespaces get thirty prefixes, none of them reserved', async t => {
  const w = new XmlWriter().start('', 'r')
  for (let i = 0; i < 30; i++) w.start(`urn:${i}`, 'e').end()
  w.end()
  t.same(readTree(w.toString())[0]?.children.map(c => c.uri), Array.from({ length: 30 }, (_, i) => `urn:${i}`))
})

t.test('writer: refuses characters that XML cannot carry', async t => {
  for (const bad of ['\u0000', 'a\u0008', '\ud800', '\udc00x', '\uffff']) {
    t.ok(isSoaError(refusal(() => escapeText(bad)), 'badValue'))
    t.ok(isSoaError(refusal(() => escapeAttribute(bad)), 'badValue'))
  }
})

t.test('names: QNames split and resolve', async t => {
  t.same(splitQName('{urn:a}b'), { uri: 'urn:a', local: 'b' })
  t.same(splitQName('b'), { uri: '', local: 'b' })
  const scope = new Map([['p', 'urn:p'], ['', 'urn:d']])
  t.equal(resolveQName('p:x', p => scope.get(p)), '{urn:p}x')
  t.equal(resolveQName('x', p => scope.get(p)), '{urn:d}x')
  t.equal(resolveQName('q:x', p => scope.get(p)), undefined)
})

t.test('tree: text of an element joins its pieces, children keep their order', async t => {
  const [root] = readTree('<r xmlns:p="u">a<p:x/>b<y/><p:z k="p:v"/></r>')
  t.equal(root?.text, 'ab')
  t.same(root?.children.map(c => c.name), ['{u}x', 'y', '{u}z'])
  t.equal(root?.all('u').length, 2)
  t.equal(root?.first('u', 'z')?.qname('k'), '{u}v')
})
