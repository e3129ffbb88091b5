import t, { type Test } from 'tap'
import { FrameDecoder } from '../../../wire/framing/decoder.ts'
import { readBinaryEnvelope } from '../../../wire/soap/binary.ts'
import { ANONYMOUS, writeBinaryEnvelope } from '../../../wire/soap/binary-write.ts'
import { withBinaryBody, withTextBody } from '../../../wire/soap/body-form.ts'
import type { Reading } from '../../../wire/soap/envelope.ts'
import { readEnvelope } from '../../../wire/soap/read.ts'
import { writeEnvelope } from '../../../wire/soap/write.ts'
import { ReaderTables, WriterTables } from '../../../wire/xml/binary/tables.ts'
import { bytesOf, vectors } from '../net-tcp-vectors.ts'
import { infosetOfBody, infosetOfText, session } from './infoset.ts'

process.env.TZ = 'America/New_York'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const MAX = 1_000_000

/** All that a reading says, the bytes as what they mean. */
function meaning (reading: Reading): object {
  const { body, otherHeaders, userData, prefixesInScope, enc, ...envelope } = reading.envelope
  return {
    ...reading,
    envelope: { ...envelope, headers: otherHeaders.map(header => infosetOfText(header)), userData: userData && infosetOfText(userData) },
    body: infosetOfBody(reading.envelope)
  }
}
/** Prefixes that a value could mean, sorted. */
const scope = (reading: Reading): string[] => reading.envelope.prefixesInScope.map(String).sort()

/** Reads the binary message and the XML that it is said to be, and takes it through every other form. */
function compare (t: Test, name: string, payload: Buffer, tables: ReaderTables | undefined, xml: string): Reading {
  const reading = readBinaryEnvelope(payload, tables, { limits })
  const expected = readEnvelope(Buffer.from(xml), { limits })
  t.same(meaning(reading), meaning(expected), `${name}: read`)
  t.same(scope(reading), scope(expected), `${name}: prefixes`)
  const { envelope } = reading
  const asText = withTextBody(envelope)
  t.same(infosetOfBody(asText), infosetOfBody(envelope), `${name}: body as text`)
  t.same(infosetOfBody(withBinaryBody(asText)), infosetOfBody(envelope), `${name}: and as binary again`)
  t.same(infosetOfBody(withBinaryBody(expected.envelope)), infosetOfBody(expected.envelope), `${name}: text as binary`)

  // Over another session, over none, and by HTTP: what is passed on is the same.
  const { batchId, to, replyTo, requestAction, preemption, mustUnderstand, ...passedOn } = reading
  const on = (again: Reading): object => { const { batchId, to, replyTo, requestAction, preemption, mustUnderstand, ...rest } = again; return meaning({ ...rest } as Reading) }
  const same = on(passedOn as Reading)
  const writer = new WriterTables(); const reader = new ReaderTables()
  for (const round of [1, 2]) t.same(on(readBinaryEnvelope(writeBinaryEnvelope(envelope, writer), reader, { limits })), same, `${name}: in another session, message ${round}`)
  t.same(on(readBinaryEnvelope(writeBinaryEnvelope(expected.envelope, undefined), undefined, { limits })), same, `${name}: from text, without a session`)
  t.same(on(readEnvelope(writeEnvelope(envelope, { addressing: 'wsa' }), { limits })), same, `${name}: as text`)
  return reading
}

t.test('binary envelopes: every message of net.tcp means what Microsoft\'s reader says, and comes through every other form unchanged', async t => {
  let seen = 0
  for (const { name, hex, nbfxHex, sessionStringsBefore, newStrings, xml } of vectors('sized-envelopes')) {
    if (nbfxHex === undefined) continue
    const frame = new FrameDecoder({ of: 'server', maxMessageSize: MAX }).push(Buffer.concat([Buffer.of(0x0b), bytesOf(hex)]))
    frame.next()
    const { bytes } = frame.next() as { bytes: Buffer }
    const tables = session(sessionStringsBefore)
    const before = tables.size
    compare(t, name, bytes, tables, xml ?? '')
    t.equal(tables.size - before, newStrings?.length, name)
    seen++
  }
  t.equal(seen, 114)
})

t.test('binary envelopes: those of streams and of HTTP, which have no session', async t => {
  for (const { name, nbfxHex, xml } of vectors('unsized-envelopes')) compare(t, name, bytesOf(nbfxHex ?? ''), undefined, xml ?? '')
  let seen = 0
  for (const { name, headers, bodyHex, xml } of vectors('http')) {
    if (headers?.includes('msbin1') !== true || bodyHex === '') continue
    compare(t, name, bytesOf(bodyHex ?? ''), undefined, xml ?? '')
    seen++
  }
  t.ok(seen > 10, `${seen} by HTTP`)
})

t.test('binary envelopes: sessions are read through, each direction with its own table', async t => {
  for (const { name, steps } of vectors('conversations')) {
    if (name.startsWith('mono-stream') || name.startsWith('mono-tcptext')) continue
    // Mono's own writer knows no quota.
    const tables: Record<string, ReaderTables> = { 'client-to-server': new ReaderTables(100_000), 'server-to-client': new ReaderTables(100_000) }
    for (const { direction, record, hex, xml } of steps ?? []) {
      if (record !== 'sized-envelope') continue
      const frame = new FrameDecoder({ of: 'server', maxMessageSize: MAX }).push(Buffer.concat([Buffer.of(0x0b), bytesOf(hex)]))
      frame.next()
      const reading = readBinaryEnvelope((frame.next() as { bytes: Buffer }).bytes, tables[direction], { limits })
      t.same(meaning(reading), meaning(readEnvelope(Buffer.from(xml ?? ''), { limits })), name)
    }
  }
})

t.test('binary envelopes: headers are written byte for byte as WCF writes them', async t => {
  const sides: Record<string, readonly [ReaderTables, WriterTables]> = { 'client-to-server': [new ReaderTables(), new WriterTables()], 'server-to-client': [new ReaderTables(), new WriterTables()] }
  const conversation = vectors('conversations').find(({ name }) => name === 'ms-session-conversation')
  let seen = 0
  for (const { direction, record, hex } of conversation?.steps ?? []) {
    if (record !== 'sized-envelope') continue
    const [reader, writer] = sides[direction] as [ReaderTables, WriterTables]
    const name = `${direction} ${seen}`
    const decoder = new FrameDecoder({ of: 'server', maxMessageSize: MAX }).push(Buffer.concat([Buffer.of(0x0b), bytesOf(hex)]))
    decoder.next()
    const { bytes } = decoder.next() as { bytes: Buffer }
    const { envelope, to, replyTo } = readBinaryEnvelope(bytes, reader, { limits })
    const ours = writeBinaryEnvelope(envelope, writer, { to, replyTo: replyTo === ANONYMOUS })
    // The tables differ in what bodies add to WCF's, and the ids with them.
    const headers = (payload: Buffer): string => payload.subarray(payload.indexOf(Buffer.from('56020b0173', 'hex')), payload.indexOf(Buffer.from('01560e', 'hex')) + 3).toString('hex').replace(/82ab[0-7][13579bdf]/, '82abXX').replace(/(440c1e0082ab)[0-7][13579bdf]/, '$1YY')
    t.equal(headers(ours), headers(bytes), name)
    seen++
  }
  t.equal(seen, 25, 'messages')
})

t.test('binary envelopes: a message that is cut off is refused, wherever it is cut', async t => {
  for (const { name, nbfxHex, newStrings, sessionStringsBefore } of vectors('sized-envelopes')) {
    if (nbfxHex === undefined || nbfxHex.length > 8000) continue
    const bytes = bytesOf(nbfxHex)
    const tables = session([...sessionStringsBefore ?? [], ...newStrings ?? []])
    // A table of its own before each, or the strings would be there twice.
    const accepted: number[] = []
    for (let cut = 0; cut < bytes.length; cut++) {
      try {
        readBinaryEnvelope(Buffer.concat([Buffer.of(0), bytes.subarray(0, cut)]), tables, { limits })
        accepted.push(cut)
      } catch (error) {
        if ((error as { fault?: string }).fault !== 'badEnvelope') throw error
      }
    }
    t.same(accepted, [], name)
  }
})
