/** How fast binary messages are read and written, and bodies changed between text and binary, per second of processor time. `node dist/bench/nbfx.bench.js`; one JSON line per case. */
import { isUtf8 } from 'node:buffer'
import { readBinaryEnvelope } from '../wire/soap/binary.ts'
import { ANONYMOUS, writeBinaryEnvelope } from '../wire/soap/binary-write.ts'
import { withBinaryBody, withTextBody } from '../wire/soap/body-form.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import { userDataHeader } from '../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../wire/soap/read.ts'
import { writeEnvelope } from '../wire/soap/write.ts'
import { staticIdOf } from '../wire/xml/binary/dictionary.ts'
import { elementToBinary, textToBinary } from '../wire/xml/binary/from-text.ts'
import { readBinary } from '../wire/xml/binary/read.ts'
import { BinaryScanner, TOKEN } from '../wire/xml/binary/scan.ts'
import { ReaderTables, WriterTables } from '../wire/xml/binary/tables.ts'
import { BinaryWriter } from '../wire/xml/binary/writer.ts'
import { readText } from '../wire/xml/text.ts'
import { perSecond } from './per-second.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const report = (figures: object): void => console.log(JSON.stringify(figures))
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const sized = (text: string): string => Buffer.concat([Buffer.of(Buffer.byteLength(text)), Buffer.from(text)]).toString('hex')

// What a .NET client sends from its second message on: ids of the session for action, To and the body's names.
const strings = ['http://tempuri.org/IEchoSvc/Echo', 'net.tcp://localhost:9091/1/NetTcp', 'Echo', 'http://tempuri.org/', 'data']
const table = (): string => { const entries = strings.map(sized).join(''); return (entries.length / 2).toString(16).padStart(2, '0') + entries }
const head = '56020b0173040b01610656 08 440a1e0082ab01 441aad00112233445566778899aabbccddeeff'
const custom = (name: string, value: string): string => `40${sized(name)}08${sized('http://www.microsoft.com/hpc')}99${sized(value)}`
const tail = '440c1e0082ab03 01 560e 42050a0742099905 68656c6c6f 01 01 01'
const plain = `${head}442c442aab1401${tail}`
const withHeaders = `${head}${custom('HPCServer2008_Broker_UserDataNS', '7')}${custom('HPCServer2008_Broker_ClientIdNS', 'client-1')}${tail}`

const reading = (document: string): (() => unknown) => {
  const session = new ReaderTables()
  readBinaryEnvelope(hex(table() + document), session, { limits })
  const message = hex(`00${document}`)
  return () => readBinaryEnvelope(message, session, { limits })
}
report({ case: 'read a small request', perSecond: perSecond(reading(plain)) })
report({ case: 'read it with UserData and ClientId', perSecond: perSecond(reading(withHeaders)) })

const body = hex(`40${sized('EchoResponse')}08${sized('http://tempuri.org/')}40${sized('EchoResult')}9905 68656c6c6f 01`)
const reply: Envelope = { v: 1, soap: 12, enc: 'nbfx-static', action: 'http://tempuri.org/IEchoSvc/EchoResponse', relatesTo: 'urn:uuid:00112233-4455-6677-8899-aabbccddeeff', otherHeaders: [], prefixesInScope: [['s', 'http://www.w3.org/2003/05/soap-envelope'], ['a', 'http://www.w3.org/2005/08/addressing']], body }
const writer = new WriterTables()
report({ case: 'write a small reply', perSecond: perSecond(() => writeBinaryEnvelope(reply, writer, { to: ANONYMOUS, framed: true })) })
const withUserData: Envelope = { ...reply, clientId: 'client-1', userData: userDataHeader('7') }
report({ case: 'write it with UserData and ClientId', perSecond: perSecond(() => writeBinaryEnvelope(withUserData, writer, { to: ANONYMOUS, framed: true })) })
const read = reading(plain)
report({ case: 'read and write', perSecond: perSecond(() => { read(); writeBinaryEnvelope(reply, writer, { to: ANONYMOUS, framed: true }) }) })
const readUserData = reading(withHeaders)
report({ case: 'read and write with UserData and ClientId', perSecond: perSecond(() => { readUserData(); writeBinaryEnvelope(withUserData, writer, { to: ANONYMOUS, framed: true }) }) })

const text = Buffer.from('<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header><a:Action s:mustUnderstand="1">http://tempuri.org/IEchoSvc/Echo</a:Action><a:MessageID>urn:uuid:33221100-5544-7766-8899-aabbccddeeff</a:MessageID></s:Header><s:Body><Echo xmlns="http://tempuri.org/"><data>hello</data></Echo></s:Body></s:Envelope>')
report({ case: 'beside it: read the small request as text', perSecond: perSecond(() => readEnvelope(text, { limits })) })
const textReply = withTextBody(reply)
report({ case: 'beside it: write the small reply as text', perSecond: perSecond(() => writeEnvelope(textReply, { addressing: 'wsa' })) })

const line = '<Line><Sku>A-1042</Sku><Quantity>12</Quantity><Price>101.25</Price><Note>left at the door</Note></Line>'
const order = (lines: number): string => `<Order xmlns="urn:orders" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><Id>7</Id><Comment i:nil="true"/>${line.repeat(lines)}</Order>`
for (const [name, xml] of [['order of 2 KB', order(19)], ['order of 100 KB', order(1000)], ['CJK, 100 KB', `<t xmlns="urn:t">${'日本語テキスト'.repeat(4800)}</t>`], ['base64, 1 MB', `<t xmlns="urn:t">${Buffer.alloc(750_000, 'soa').toString('base64')}</t>`]] as const) {
  const asText = { enc: 'utf8', body: Buffer.from(xml), prefixesInScope: [] } as unknown as Envelope
  const asBinary = withBinaryBody(asText)
  const scanner = new BinaryScanner()
  const handler = { start () {}, text () {}, end () {} }
  const mbs = (bytes: number, work: () => unknown): number => Math.round(perSecond(work) * bytes / 1e6)
  report({
    case: name,
    textBytes: asText.body.length,
    binaryBytes: asBinary.body.length,
    toBinaryMBs: mbs(asText.body.length, () => withBinaryBody(asText)),
    toTextMBs: mbs(asBinary.body.length, () => withTextBody(asBinary)),
    skipMBs: mbs(asBinary.body.length, () => { scanner.open(asBinary.body, { maxDepth: 128, fragmentOf: [] }); while (scanner.next() !== TOKEN.eof); }),
    eventsMBs: mbs(asBinary.body.length, () => readBinary(asBinary.body, handler, { fragment: true })),
    eventsOfTextMBs: mbs(asText.body.length, () => readText(asText.body, handler, { fragment: true })),
  })
}

// Choices of docs/adr/0016, each beside what was not chosen.
const name = Buffer.from('HPCServer2008_Broker_UserDataNS')
const choice = (what: string, chosen: () => unknown, other: () => unknown): void => report({ choice: what, chosen: perSecond(chosen), other: perSecond(other) })
choice('a name of 31 ASCII bytes as a string: utf8, latin1', () => name.toString('utf8', 0, 31), () => name.toString('latin1', 0, 31))
const byText = new Map(strings.map((text, i) => [2 * i + 1, text])); const byId = strings
choice('the string of an id: array, Map', () => { let n = 0; for (let i = 0; i < 100; i++) n += byId[i % 5]!.length; return n }, () => { let n = 0; for (let i = 0; i < 100; i++) n += byText.get(i % 5 * 2 + 1)!.length; return n })
const uri = Buffer.from('http://www.w3.org/2001/XMLSchema-instance'); const STATIC_IDS = new Map([['http://www.w3.org/2001/XMLSchema-instance', 0x372]])
choice('the id of a name in bytes: compared, as a key', () => staticIdOf(uri, 0, uri.length), () => STATIC_IDS.get(uri.toString('latin1', 0, uri.length)))
const header = userDataHeader('7'); const output = new BinaryWriter()
choice('a header to binary: as a simple one, by the scanner', () => { output.open(); elementToBinary(header, output) }, () => { output.open(); textToBinary(header, [], output) })
const piece = Buffer.alloc(40)
choice('20 pieces: one growing buffer, concat', () => { output.open(); for (let i = 0; i < 20; i++) output.bytes(piece); return output.take() }, () => { const pieces: Buffer[] = []; for (let i = 0; i < 20; i++) pieces.push(piece); return Buffer.concat(pieces) })
const short = Buffer.from('left at the door')
choice('UTF-8 of a short text: checked in a loop, by isUtf8', () => { let i = 0; while (i < short.length && short[i]! < 0x80) i++; return i === short.length }, () => isUtf8(short.subarray(0, short.length)))
