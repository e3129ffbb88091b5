import t from 'tap'
import { packEnvelope, packRequest, packResponse, rowBytes, unpackEnvelope, unpackRequest, unpackResponse } from '../../store/pack.ts'
import { envelope, fault } from './store-promises.ts'

t.test('pack: a row is laid out as its head says', async t => {
  const row = packRequest({ seq: 7, batchId: 2, envelope: envelope('body', { userData: Buffer.from('<u/>'), otherHeaders: [Buffer.from('<h/>')] }) })
  t.equal(row[0], 1, 'v')
  t.equal(String.fromCharCode(row[1] ?? 0), 'q')
  t.equal(row.readDoubleBE(2), 7, 'seq')
  const head = row.readUInt32BE(10)
  t.match(JSON.parse(row.toString('utf8', 14, 14 + head)), { soap: 11, enc: 'utf8', action: 'urn:test/Do', userData: 4, others: [4], batchId: 2 })
  t.equal(row.toString('utf8', 14 + head), '<u/><h/>body', 'the bytes as they came, none twice')
})

t.test('pack: absent and empty stay different, each field for itself', async t => {
  const fields = ['messageId', 'relatesTo', 'clientId', 'userData'] as const
  for (const field of fields) {
    for (const [name, value] of [['empty', field === 'userData' ? Buffer.alloc(0) : ''], ['absent', undefined]] as const) {
      const back = unpackEnvelope(packEnvelope(envelope('', { [field]: value })))
      t.equal(field in back, value !== undefined, `${field} ${name}`)
      if (value !== undefined) t.equal(back[field]?.length, 0)
    }
  }
  t.same(unpackEnvelope(packEnvelope(envelope('', { otherHeaders: [] }))).otherHeaders, [])
  t.equal(unpackEnvelope(packEnvelope(envelope('', { otherHeaders: [Buffer.alloc(0)] }))).otherHeaders.length, 1)
})

t.test('pack: text of any kind and bytes of any kind come back', async t => {
  const odd = 'ä\u0000\u2028"\\\u{1f600}\n'
  const bytes = Uint8Array.from({ length: 512 }, (_, i) => i)
  const back = unpackResponse(packResponse({ seq: 2 ** 40, isFault: true, requestAction: odd, envelope: envelope(bytes, { action: odd, messageId: odd, prefixesInScope: [[odd, odd], ['', '']] }) }), 12)
  t.match(back, { at: 12, seq: 2 ** 40, isFault: true, requestAction: odd, envelope: { action: odd, messageId: odd, prefixesInScope: [[odd, odd], ['', '']] } })
  t.ok(Buffer.from(bytes).equals(back.envelope.body))
})

t.test('pack: a view into a larger buffer is packed for its own bytes only', async t => {
  const large = Buffer.from('....body....')
  t.equal(Buffer.from(unpackEnvelope(packEnvelope(envelope(large.subarray(4, 8)))).body).toString(), 'body')
})

t.test('pack: a form newer than this broker is refused by number, and rubbish is refused', async t => {
  const row = packRequest({ seq: 1, batchId: 0, envelope: envelope('b') })
  const newer = Buffer.from(row)
  newer[0] = 2
  t.throws(() => unpackRequest(newer), fault('Broker_UnsupportedVersion', ['2', '1']))
  t.throws(() => unpackResponse(row, 0), fault('StorageFailure'), 'a request is no response')
  t.throws(() => unpackRequest(Buffer.alloc(0)), fault('StorageFailure'))
  t.throws(() => unpackRequest(Buffer.from('row')), Error)
  const cut = packEnvelope(envelope('', { userData: Buffer.from('12345') }))
  t.throws(() => unpackEnvelope(cut.subarray(0, cut.length - 2)), fault('StorageFailure'))
})

t.test('pack: the memory store\'s estimate is near what a row takes', async t => {
  for (const size of [0, 1000, 100_000]) {
    const one = envelope('x'.repeat(size), { userData: Buffer.alloc(50) })
    const real = packRequest({ seq: 1, batchId: -1, envelope: one }).length
    t.ok(Math.abs(rowBytes(one) - real) < 120, `${size}: ${rowBytes(one)} for ${real}`)
  }
})
