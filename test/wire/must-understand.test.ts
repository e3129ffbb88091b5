import t from 'tap'
import { OLD_WSA, SOAP11, SOAP12, WSA, type Reading } from '../../wire/soap/envelope.ts'
import { withoutMustUnderstand } from '../../wire/soap/must-understand.ts'
import { readEnvelope } from '../../wire/soap/read.ts'

const read = (version: string, header: string, soapAction?: string): Reading =>
  readEnvelope(Buffer.from(`<s:Envelope xmlns:s="${version}"><s:Header>${header}</s:Header><s:Body><m/></s:Body></s:Envelope>`), { limits: { maxHeaderBytes: 65_536, maxDepth: 64 }, soapAction })

t.test('the mark comes off wherever it stands in the start tag, and nothing else changes', async t => {
  const cases: Array<[header: string, after: string]> = [
    ['<x xmlns="urn:x" s:mustUnderstand="1"/>', '<x xmlns:s="NS" xmlns="urn:x" s:mustUnderstand="0"/>'],
    ["<p:x xmlns:p='urn:x' p:a='1>2' s:mustUnderstand = 'true' p:b=\"s:mustUnderstand='1'\">s:mustUnderstand=\"1\"</p:x>", "<p:x xmlns:s=\"NS\" xmlns:p='urn:x' p:a='1>2' s:mustUnderstand = \"0\" p:b=\"s:mustUnderstand='1'\">s:mustUnderstand=\"1\"</p:x>"],
    ['<x xmlns="urn:x"><y s:mustUnderstand="1">ü€</y></x>', '<x xmlns:s="NS" xmlns="urn:x"><y s:mustUnderstand="1">ü€</y></x>'],
    ['<x xmlns="urn:x" mustUnderstand="1"/>', '<x xmlns="urn:x" mustUnderstand="1"/>'],
    ['<x xmlns="urn:x" e:mustUnderstand="1" xmlns:e="NS" e:actor="urn:me"/>', '<x xmlns="urn:x" e:mustUnderstand="0" xmlns:e="NS" e:actor="urn:me"/>'],
  ]
  for (const version of [SOAP11, SOAP12]) {
    for (const [header, after] of cases) {
      const { envelope } = read(version, header.replaceAll('NS', version))
      t.same(withoutMustUnderstand(envelope).otherHeaders.map(bytes => Buffer.from(bytes).toString()), [after.replaceAll('NS', version)])
    }
  }
})

t.test('addressing of older versions is read where 1.0 says nothing, is not passed on, and needs not be understood by anybody', async t => {
  for (const old of OLD_WSA) {
    const header = `<w:Action xmlns:w="${old}" s:mustUnderstand="1">urn:old</w:Action><w:MessageID xmlns:w="${old}">uuid:1</w:MessageID><w:RelatesTo xmlns:w="${old}" RelationshipType="w:Reply">uuid:0</w:RelatesTo>` +
      `<w:To xmlns:w="${old}" s:mustUnderstand="1">http://x/</w:To><w:From xmlns:w="${old}"><w:Address>http://y/</w:Address></w:From><w:ReplyTo xmlns:w="${old}"><w:Address>http://z/</w:Address></w:ReplyTo>`
    t.match(read(SOAP11, header, 'urn:http'), { envelope: { action: 'urn:old', messageId: 'uuid:1', relatesTo: 'uuid:0', otherHeaders: [] }, mustUnderstand: [], addressed: false }, old)
    const both = `<a:Action xmlns:a="${WSA}">urn:new</a:Action><a:RelatesTo xmlns:a="${WSA}">uuid:9</a:RelatesTo>`
    t.match(read(SOAP12, header + both), { envelope: { action: 'urn:new', messageId: 'uuid:1', relatesTo: 'uuid:9' }, addressed: true })
  }
})
