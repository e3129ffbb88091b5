import { join } from 'node:path'
import t from 'tap'
import type { Item } from '../../cli/wire-decode.ts'
import { infosetOfText } from '../wire/binary/infoset.ts'
import { bytesOf, vectors, type Vector } from '../wire/net-tcp-vectors.ts'
import { run } from './helpers.ts'

const named = (file: Parameters<typeof vectors>[0], name: string): Vector => vectors(file).find(vector => vector.name === name) as Vector
const conversation = named('conversations', 'ms-session-conversation')
interface Decoded { form: string, bytes: number, items: Item[] }

t.test('soa wire decode: both sides of a whole connection, from raw bytes and from hex', async t => {
  const dir = t.testdir({ 'client.bin': bytesOf(conversation.hex), 'client.hex': conversation.hex.replace(/(..)/g, '$1 ').replace(/(.{48})/g, '$1\n'), 'server.hex': conversation.serverHex ?? '' })
  for (const [file, direction] of [['client.bin', 'client-to-server'], ['client.hex', 'client-to-server'], ['server.hex', 'server-to-client']] as const) {
    const { code, out, err } = await run(['wire', 'decode', join(dir, file), '--json'])
    t.strictSame([code, err], [0, ''], file)
    const { items, form } = JSON.parse(out) as Decoded
    t.equal(form, 'conversation')
    const steps = (conversation.steps ?? []).filter(step => step.direction === direction && step.record !== 'tcp-fin')
    t.same(items.map(item => item.record), steps.map(step => step.record.replace(/-(.)/g, (_, c: string) => c.toUpperCase())))
    const meaning = (all: ReadonlyArray<{ readonly xml?: string }>): unknown => all.flatMap(({ xml }) => xml === undefined ? [] : [infosetOfText(xml)])
    t.same(meaning(items), meaning(steps), 'the XML of every message')
    let at = 0
    t.ok(items.every((item, i) => { const starts = item.at === at; at += (steps[i]?.hex.length ?? 0) / 2; return starts }), 'each at its offset')
  }
  const { out } = await run(['wire', 'decode', join(dir, 'client.bin')])
  t.match(out, /^ {6}0 {2}version {2}1\.0\n.*\n +5 {2}via {2}net\.tcp:\/\/127\.0\.0\.1:18081\/echo\n/)
  t.match(out, /strings: "http:\/\/tempuri\.org\/IEcho\/EchoInt" "net\.tcp/)
})

t.test('soa wire decode: a payload with its records, a document, single records, HTTP with text and with binary XML', async t => {
  const request = named('sized-envelopes', 'ms-session-1-echoint-request')
  const binary = vectors('http').find(({ headers }) => headers?.includes('msbin1')) as Vector
  const dir = t.testdir({
    'payload.hex': request.hex.slice(6),
    'document.hex': named('nbfx-documents', 'nbfx-ar-int-one').hex,
    'encoding.hex': '0307',
    'fault.hex': named('records', 'nmf-fault-ViaTooLong').hex,
    'text.http': bytesOf(named('http', 'mono-basic-add-request').hex),
    'binary.http': bytesOf(binary.hex),
    'tls.hex': `${named('records', 'nmf-preamble-tls').hex}160301000548656c6c6f`
  })
  const decode = async (file: string, ...options: string[]): Promise<Decoded> => {
    const { code, out, err } = await run(['wire', 'decode', join(dir, file), '--json', ...options])
    t.strictSame([code, err], [0, ''], file)
    return JSON.parse(out) as Decoded
  }
  const payload = await decode('payload.hex', '--as', 'payload', '--records')
  t.match(payload.items, [{ newStrings: request.newStrings, xml: request.xml, records: [{ at: 0, record: 'element s:[2] "Envelope"' }, { at: 2, record: 'xmlns s:[4] "http://www.w3.org/2003/05/soap-envelope"' }] }])
  t.ok(payload.items[0]?.records?.some(({ record }) => record === 'text uniqueId "00000000-1111-2222-3333-000000000001", end'))
  t.ok(payload.items[0]?.records?.some(({ record }) => record === 'element [5] "EchoInt"'))
  t.match(await decode('document.hex'), { form: 'nbfx', items: [{ xml: '<r><i>7</i></r>' }] })
  t.match(await decode('encoding.hex'), { form: 'conversation', items: [{ record: 'knownEncoding', value: 'application/soap+msbin1' }] })
  t.match(await decode('fault.hex'), { items: [{ record: 'fault', value: /ViaTooLong$/ }] })
  t.match(await decode('text.http'), { form: 'http', items: [{ record: 'head', value: 'POST /echo HTTP/1.1' }, { record: 'body', xml: /<s:Body><Add/ }] })
  t.match(await decode('binary.http'), { form: 'http', items: [{ record: 'head' }, { record: 'body', xml: /<s:Envelope .*<s:Body>/ }] })
  t.match((await decode('tls.hex')).items.at(-1), { record: 'upgraded', value: /not read/ })
  t.match(await run(['wire', 'decode', join(dir, 'document.hex'), '--records']), { code: 0, out: /array of 1 int32 \(element "i", end\): 7/ })
})

t.test('soa wire decode: what is wrong is said with the place, and what came before it is printed', async t => {
  const half = conversation.hex.slice(0, 300)
  const dir = t.testdir({ cut: half, record: '0001000102ff', order: '00010002036162630c', document: '4001659901ff01', payload: '05017856020b', letters: '0001 xy', odd: '00010', empty: '', id: '06050042ab0101', text: 'GET / HTTP/1.1\r\nContent-Type: text/xml\r\n\r\n\xff' })
  for (const [file, options, code, err] of [
    ['cut', [], 1, /sizedEnvelope at byte 40: 161 bytes are announced, 107 are there \(byte 43\)/], ['record', [], 1, /unknown at byte 5: there is no record 0xff \(byte 5\)/], ['order', [], 1, /order of records: a record via \(0x02\) cannot come here \(state versioned\)/],
    ['document', ['--as', 'nbfx'], 1, /text that is not UTF-8 \(byte 3\)/], ['payload', ['--as', 'payload'], 1, /a string is longer than the rest of its table/], ['letters', ['--from', 'hex'], 2, /byte 5 is no hexadecimal digit \(0x78\)/],
    ['odd', [], 2, /5 hexadecimal digits, which is half a byte too many/], ['empty', [], 2, /is empty/], ['id', [], 1, /string \d+ is not in the dictionary/], ['absent', [], 4, /absent does not exist/], ['empty', ['--as', 'x'], 2, /Known are: conversation, payload/]
  ] as const) t.match(await run(['wire', 'decode', join(dir, file), ...options]), { code, err }, `${file} ${options.join(' ')}`)
  const { out } = await run(['wire', 'decode', join(dir, 'cut')])
  t.match(out, /via {2}net\.tcp/, 'as far as it goes')
})

t.test('soa wire decode: a file that is not there is named, with those that may have been meant', async t => {
  const dir = t.testdir({ 'client-side.bin': '0001', folder: {} })
  t.strictSame(await run(['wire', 'decode', join(dir, 'clientside.bin')]), { code: 4, out: '', err: `soa: ${join(dir, 'clientside.bin')} does not exist; did you mean ${join(dir, 'client-side.bin')}?\n` })
  t.strictSame(await run(['wire', 'decode', join(dir, 'gone', 'x.bin')]), { code: 4, out: '', err: `soa: ${join(dir, 'gone', 'x.bin')} does not exist\n` })
})
