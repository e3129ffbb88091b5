import t from 'tap'
import { SoaError } from '../../../core/errors.ts'
import { TOKEN, XmlScanner } from '../../../wire/xml/scan.ts'

/** The document as a line: `<name` starts, `>` ends, text in brackets. */
function scanned (xml: string, options: Partial<Parameters<XmlScanner['open']>[1]> = {}): string {
  const scanner = new XmlScanner().open(Buffer.from(xml), { maxDepth: 100, ...options })
  let out = ''
  for (let token = scanner.next(); token !== TOKEN.eof; token = scanner.next()) {
    out += token === TOKEN.start ? `<${scanner.namespace()}|${scanner.local()}` : token === TOKEN.end ? '>' : `[${scanner.value(token)}]`
  }
  return out
}

t.test('elements, text, CDATA, references and line ends', async t => {
  t.equal(scanned('<a><b/>x&amp;&#65;&#x1F600;<c>\r\ny</c ><![CDATA[<&\r]]></a>\n<!-- end -->'), '<|a<|b>[x&A😀]<|c[\ny]>[<&\n]>')
  t.equal(scanned('<p:a xmlns:p="urn:1" xmlns="urn:2"><b xmlns=""/><b p:c="1"/><p:b xmlns:p="urn:3"/></p:a>'), '<urn:1|a<|b><urn:2|b><urn:3|b>>')
  t.equal(scanned('<é:ü xmlns:é="urn:é"/>'), '<urn:é|ü>')
  t.equal(scanned('one<a/>two<p:b/>', { fragmentOf: [['p', 'urn:p'], ['', 'urn:d']] }), '[one]<urn:d|a>[two]<urn:p|b>')
})

const refused: Array<[why: string, ...xml: string[]]> = [
  ['it ends too early', '', '<a>', '<a><b></b>', '<!-- only -->', ' \n'],
  ['a tag without an end', '<a', '<a b="1"', '<a b="1"  '],
  ['an end tag that is not </a>', '<a></b>', '<a></ab>', '<a></a b>', '<a></A>', '<a></a'],
  ['an end tag without a start tag', '</a>'],
  ['text behind the root element', '<a/>x'],
  ['text before the root element', 'x<a/>', '\u0009\u00a0<a/>'],
  ['a second root element', '<a/><b/>'],
  ['document type declaration', '<!DOCTYPE a><a/>', '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', '<a><!ENTITY x "y"></a>', '<![CDATA[x]]><a/>', '<a><!></a>'],
  ['a reference to something else', '<a>&x;</a>', '<a>&nbsp;</a>', '<a>&</a>', '<a>& </a>', '<a>&#0;</a>', '<a>&#xD800;</a>', '<a>&#x110000;</a>', '<a b="&lt"/>', '<a>&#;</a>', '<a>&#xFFFE;</a>', '<a>&constructor;</a>'],
  ['a character that XML does not have', '<a>\u0001</a>', '<a b="\u0002"/>', '<a>\ufffe</a>', '<a><![CDATA[\u0003]]></a>', '<a><!-- \u0004 --></a>', '<a b="\uffff"/>', '<a>\0</a>'],
  [']]> in text', '<a>]]></a>', '<a>x]]]></a>'],
  ['< in an attribute value', '<a b="<"/>'],
  ['a quote that is not closed', '<a b="1', '<a b=\'1"/>'],
  ['an attribute value without quotes', '<a b=1/>', '<a b=/>'],
  ['an attribute without a value', '<a b/>', '<a b c="1"/>'],
  ['an attribute given twice', '<a b="1" b="2"/>', '<a xmlns="1" xmlns="2"/>', '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>', `<a ${Array.from({ length: 20 }, (_, i) => `b${i % 19}="1"`).join(' ')}/>`],
  ['a character that a tag cannot have here', '<a b="1"c="2"/>', '<a<b>', '<a/', '<a/b>'],
  ['no name where a name is due', '<1a/>', '< a/>', '<a /b>', '<:a/>', '<a:/>', '<a 1b="1"/>', '<>', '<a:1 xmlns:a="u"/>'],
  ['a name with two colons', '<a:b:c xmlns:a="u"/>'],
  ['a name with a character', '<a×/>', '<a\u2190/>'],
  ['is not declared', '<p:a/>', '<a p:b="1"/>', '<a><b xmlns:p="u"/><p:c/></a>'],
  ['empty namespace', '<a xmlns:p=""/>'],
  ['cannot be declared anew', '<a xmlns:xml="urn:x"/>', '<a xmlns:xmlns="urn:x"/>'],
  ['a comment without an end', '<a><!-- x</a>', '<!--'],
  ['-- in a comment', '<a><!-- x -- y --></a>', '<a><!-- x ---></a>'],
  ['a CDATA section without an end', '<a><![CDATA[x</a>'],
  ['a processing instruction without an end', '<a><?x</a>'],
  ['a processing instruction that is not allowed', ' <?xml version="1.0"?><a/>', '<a><?XML x?></a>', '<a><? x?></a>', '<?xml?><a/>', '<?xml version="2.0"?><a/>', '<a><?a:b?></a>', '<a><?a"b?></a>'],
  ['more than 1024 attributes', `<a ${Array.from({ length: 1025 }, (_, i) => `b${i}="1"`).join(' ')}/>`],
  ['more than 1024 namespace declarations', `${Array.from({ length: 11 }, (_, n) => `<a ${Array.from({ length: 100 }, (_, i) => `xmlns:p${i}x${n}="1"`).join(' ')}>`).join('')}`],
]
for (const [why, ...documents] of refused) {
  t.test(`refused: ${why}`, async t => {
    for (const xml of documents) {
      try {
        t.fail(`passed: ${scanned(xml)}`)
      } catch (error) {
        t.ok(error instanceof SoaError && error.fault === 'badEnvelope' && error.message.includes(why), `${JSON.stringify(xml.slice(0, 60))}: ${(error as Error).message}`)
      }
    }
  })
}

t.test('allowed, though it looks odd', async t => {
  for (const xml of ['<a b=">"/>', '<a>]]</a>', '<a>]] ></a>', '<a b="\'" c=\'"\'/>', '<a\n\tb = "1"\r\n/>', '<a.-_1/>', '<a xml:lang="en"/>', '<a xmlns:xml="http://www.w3.org/XML/1998/namespace"/>', '<?xml version="1.1" standalone=\'yes\'?><a/>', '<a>\ufffd</a>', '<?xml-stylesheet x?><a/>', '<a><!----></a>', '<xmlnsa xmlnsb="1"/>']) {
    t.doesNotThrow(() => scanned(xml), xml)
  }
})

t.test('no prefix of a document is a document, and no cut of it goes unnoticed', async t => {
  const xml = '<?xml version="1.0"?><a x="1"><!-- c --><b y=\'2\'>t&amp;<![CDATA[d]]></b><c/></a>'
  for (let cut = 0; cut < xml.length; cut++) t.throws(() => scanned(xml.slice(0, cut)), { message: /no SOAP envelope/ }, `cut at ${cut}`)
})

t.test('depth is refused as it grows', async t => {
  t.throws(() => scanned('<a><b><c><d>', { maxDepth: 3 }), new SoaError('overLimit', { setting: 'maxDepth', limit: 3, value: 4 }))
})
