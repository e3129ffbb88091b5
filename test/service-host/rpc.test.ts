/** An rpc/literal contract in a service host over HTTP: both versions of SOAP, with an action and without, replies judged by libxml2. */
import t from 'tap'
import { loadWsdl } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { asset } from '../../core/assets.ts'
import { DEPOT, judgeDepot } from '../wsdl/depot.ts'
import { serve } from './serve.ts'

const { schema, operations } = loadWsdl(DEPOT.documents, DEPOT.main)
const bodyOf = (text: string): string => /<(\w+):Body[^>]*>([^]*)<\/\1:Body>/.exec(text)?.[2] ?? ''
const line = { sku: 'a & b', quantity: 3, price: '1.10' }
const D = '{urn:depot:data}'

const calls: Array<[operation: string, args: unknown, result: unknown]> = [
  ['add', { a: -1, b: 2 }, { return: 1 }],
  ['place', { order: { id: 9007199254740993n, customer: 'C', lines: [line, null] }, rush: true }, { receipt: { orderId: 9007199254740993n, at: '2026-11-30T10:11:12.1234567Z', remark: 'for C: a & b' }, total: '8.30' }],
  ['sum', { values: { item: [1, 2] } }, { return: 3n }],
  ['stock', {}, { return: { $attributes: { level: 'LOW' }, items: [{ sku: 'bolt', quantity: 7, price: '0.10' }, { quantity: 0 }] } }],
  ['touch', { key: 'k' }, {}],
  ['grow', { shape: { $type: `${D}Square`, side: 2 }, by: 1.5 }, { return: { $type: `${D}Square`, side: 3 } }],
]

t.test('host: an rpc/literal service answers in SOAP 1.1 and 1.2, and by the body element where no action is said; its replies are valid', async t => {
  const host = await serve(t, '', { files: DEPOT, module: asset('test/interop/services/depot.mjs') })
  const judge = judgeDepot()
  t.teardown(() => judge.close())
  for (const [name, args, result] of calls) {
    const { action } = operations.find(op => op.name === name) ?? { action: '' }
    const request = writeElement(schema, `{urn:depot}${name}`, args)
    for (const [soap, said] of [[11, action], [11, ''], [12, action]] as const) {
      const { status, text } = await host.call(soap, said, request)
      const body = bodyOf(text)
      t.strictSame([status, judge.check(body)], [200, undefined], `${name}, SOAP ${soap}, action ${said || 'none'}: ${text}`)
      t.strictSame(readBody(schema, body, []), { name: `{urn:depot}${name}Response`, value: result })
    }
  }
  t.match(await host.call(11, 'urn:depot/note', writeElement(schema, '{urn:depot}note', { line: 'l', level: 'HIGH' })), { status: 202, text: '' })
  t.match((await host.call(11, '', '<d:stock xmlns:d="urn:depot"/>')).text, /level="HIGH"/, 'the one-way call has arrived')
})

t.test('host: faults of an rpc/literal service are elements of its schema, and what does not fit is refused with its path', async t => {
  const host = await serve(t, '', { files: DEPOT, module: asset('test/interop/services/depot.mjs') })
  const empty = writeElement(schema, '{urn:depot}place', { order: { id: 5n, customer: 'C' }, rush: false })
  for (const soap of [11, 12] as const) {
    const { status, text } = await host.call(soap, 'urn:depot/place', empty)
    t.equal(status, 500)
    const detail = /<(\w+:)?[dD]etail[^>]*>([^]*)<\/(?:\w+:)?[dD]etail>/.exec(text)?.[2] ?? ''
    t.strictSame(readBody(schema, detail, []), { name: `${D}BadOrder`, value: { code: 7, message: 'C' } }, text)
  }
  const send = async (body: string): Promise<string> => (await host.call(11, 'urn:depot/place', body)).text
  t.match(await send('<p:place xmlns:p="urn:depot"><order><id>x</id></order><rush>1</rush></p:place>'), /faultcode>\w+:Client<.*at \/place\/order\/id: (?:"|&quot;)x(?:"|&quot;) is not a valid long/s)
  t.match(await send('<p:place xmlns:p="urn:depot"><order><id>1</id></order></p:place>'), /at \/place: element rush is missing/)
  t.match(await send('<place xmlns="urn:other"/>'), /place takes \{urn:depot\}place, not \{urn:other\}place/)
})

t.test('host: a reply that lacks a part is the service\'s fault, and says which', async t => {
  const host = await serve(t, 'const none = () => ({}); export default { add: none, place: () => ({ receipt: { orderId: 1n } }), sum: () => ({ return: null }), stock: none, touch: none, grow: none, note: none }', { files: DEPOT })
  const said = async (name: string, args: unknown): Promise<string> => (await host.call(11, '', writeElement(schema, `{urn:depot}${name}`, args))).text
  t.match(await said('add', { a: 1, b: 2 }), /faultcode>\w+:Server<.*\/addResponse lacks return/s)
  t.match(await said('place', { order: { id: 1n }, rush: false }), /\/placeResponse lacks total/)
  t.match(await said('sum', { values: {} }), /\/sumResponse\/return is null, but may not be nil/)
})

t.test('host: a node-soap module serves an rpc/literal contract too', async t => {
  const host = await serve(t, 'const port = { add: ({ a, b }, callback) => callback(null, { return: a + b }), touch: () => ({}) }; for (const name of ["place", "sum", "stock", "grow", "note"]) port[name] = () => ({}); export default { DepotService: { DepotPort: port } }', { files: DEPOT })
  t.match((await host.call(11, '', '<d:add xmlns:d="urn:depot"><a>1</a><b>2</b></d:add>')).text, /<return>3<\/return>/)
})
