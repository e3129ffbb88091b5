import t, { type Test } from 'tap'
import { isSoaError } from '../../core/errors.ts'
import { FrameDecoder } from '../../wire/framing/decoder.ts'
import { preamble, PREAMBLE_END } from '../../wire/framing/encoder.ts'
import { MSBINSESSION1 } from '../../wire/framing/records.ts'
import { readBinaryEnvelope } from '../../wire/soap/binary.ts'
import { writeBinaryEnvelope } from '../../wire/soap/binary-write.ts'
import { withBinaryBody, withTextBody } from '../../wire/soap/body-form.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import { listRecords } from '../../wire/xml/binary/listing.ts'
import { readBinary } from '../../wire/xml/binary/read.ts'
import { ReaderTables, STATIC } from '../../wire/xml/binary/tables.ts'
import { infosetOfBody, tableOf } from '../wire/binary/infoset.ts'
import { bytesOf, vectors } from '../wire/net-tcp-vectors.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }
const MAX = 200_000
/** How many times as many rounds; a failure names its seed, and `SOA_FUZZ_SEED` begins there. */
const TIMES = Number(process.env.SOA_FUZZ_TIMES ?? 1)
const SEED = Number(process.env.SOA_FUZZ_SEED ?? 20_261_130)

/** The same numbers for the same seed, so that a failure can be looked at. */
function random (seed: number): (below: number) => number {
  let state = seed >>> 0
  return below => {
    state = (Math.imul(state ^ state >>> 15, 2246822519) + 3266489917) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}

/** Bytes that mean something where they may land. */
const PIECES = ['00', '01', '0101', '03', '04', '08', '0b0173', '42', '56', '560e', '84', '99', '9c', '9cffffff7f', 'a4', 'a6', 'a5', 'ab', 'ab01', 'bd19', 'bd1a', 'ffffffff07', 'ffffffff0f', '8080', '8d01', 'b5ffff03', '4001', '09', '440a', '06', '0600', '07'].map(bytesOf)

function mutate (bytes: Buffer, below: (n: number) => number): Buffer {
  let out = bytes
  for (let n = below(2) * below(3); n >= 0; n--) {
    const at = below(out.length + 1)
    const to = Math.min(out.length, at + below(24))
    const piece = PIECES[below(PIECES.length)] as Buffer
    switch (below(7)) {
      case 0: out = Buffer.concat([out.subarray(0, at), piece, out.subarray(at)]); break
      case 1: out = Buffer.concat([out.subarray(0, at), out.subarray(to)]); break
      case 2: out = Buffer.concat([out.subarray(0, at), piece, out.subarray(to)]); break
      case 3: case 4: out = Buffer.from(out); if (at < out.length) out[at] = below(256); break
      case 5: out = Buffer.concat([out.subarray(0, at), out.subarray(at, to), out.subarray(at, to), out.subarray(to)]); break
      case 6: out = out.subarray(0, at); break
    }
  }
  return out
}

/** What a round throws must be a refusal. @returns how many were read to the end */
function rounds (t: Test, count: number, seeds: readonly Buffer[], round: (bytes: Buffer, below: (n: number) => number) => void): { read: number, refused: number } {
  let read = 0; let refused = 0
  for (let n = 0; n < count * TIMES; n++) {
    const below = random(SEED + n)
    const bytes = mutate(seeds[below(seeds.length)] as Buffer, below)
    try {
      round(bytes, below)
      read++
    } catch (error) {
      if (isSoaError(error)) { refused++; continue }
      t.fail(`seed ${SEED + n}: ${(error as Error).stack ?? ''}`, { found: bytes.toString('hex').slice(0, 2000) })
      break
    }
  }
  t.ok(refused > 100, `${read} read, ${refused} refused`)
  return { read, refused }
}

const documents = vectors('nbfx-documents').filter(({ hex }) => hex.length < 4000)
const envelopes = vectors('sized-envelopes').filter(({ nbfxHex, hex }) => nbfxHex !== undefined && hex.length < 4000)

t.test('binary XML: whatever the bytes, they are read or refused; and what is read as records is a document to no other rule', async t => {
  const ignore = { start () {}, text () {}, end () {} }
  rounds(t, 20_000, documents.map(({ hex }) => bytesOf(hex)), bytes => {
    const records = listRecords(bytes, STATIC).length
    readBinary(bytes, ignore)
    if (records === 0 && bytes.length > 0) throw new Error('a document without records')
  })
})

t.test('binary envelopes: what is accepted can be written in every form, and means the same there', async t => {
  const { read } = rounds(t, 3_000, envelopes.map(({ nbfxHex, newStrings, sessionStringsBefore }) => Buffer.concat([tableOf([...sessionStringsBefore ?? [], ...newStrings ?? []]), bytesOf(nbfxHex ?? '')])), bytes => {
    const before = process.memoryUsage().arrayBuffers
    const { envelope } = readBinaryEnvelope(bytes, new ReaderTables(10_000), { limits })
    if (process.memoryUsage().arrayBuffers - before > 50_000_000) throw new Error('took too much memory')
    const infoset = infosetOfBody(envelope)
    // saxes cuts blanks off namespaces.
    if (infoset.some(event => /^ xmlns:[^=]*=(\s|.*\s$)/s.test(event))) return
    const means = JSON.stringify(infoset)
    const again = readBinaryEnvelope(writeBinaryEnvelope(envelope, undefined), undefined, { limits }).envelope
    if (JSON.stringify(infosetOfBody(again)) !== means) throw new Error('another body after writing')
    readFault(envelope)
    const text = withTextBody(envelope) // may be refused: there are characters that text has no way to write
    if (JSON.stringify(infosetOfBody(text)) !== means) throw new Error(`another body as text: ${String(text.body)}`)
    if (JSON.stringify(infosetOfBody(withBinaryBody(text))) !== means) throw new Error('another body as binary again')
    const soap = readEnvelope(writeEnvelope(envelope, { addressing: 'wsa' }), { limits: { maxHeaderBytes: 1_000_000, maxDepth: 1000 } }).envelope
    // A header may have what no text can say, and says U+FFFD then.
    if (soap.action !== envelope.action && !soap.action.includes('\ufffd')) throw new Error(`another action: ${soap.action}`)
    if (JSON.stringify(infosetOfBody(soap)) !== means) throw new Error('another body in a text envelope')
  })
  t.ok(read > 50)
})

t.test('framing: whatever the bytes and the cuts, they are frames or refused, and no cut changes which', async t => {
  const opened = Buffer.concat([preamble({ via: 'net.tcp://h/1', contentType: MSBINSESSION1 }), PREAMBLE_END])
  const streams = vectors('conversations').filter(({ hex }) => hex.length < 4000).flatMap(({ hex, serverHex }) => [bytesOf(hex), Buffer.concat([opened, bytesOf(serverHex ?? '').subarray(1)])])
  const frames = (chunks: Buffer[]): string => {
    const decoder = new FrameDecoder({ of: 'client', maxMessageSize: MAX })
    const seen: string[] = []
    try {
      for (const chunk of chunks) {
        decoder.push(chunk)
        for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) seen.push(frame.kind === 'envelope' ? frame.bytes.toString('hex') : JSON.stringify(frame))
        if (decoder.state === 'upgrading') { const rest = decoder.takeRest(); decoder.upgraded(); decoder.push(rest) }
      }
    } catch (error) {
      if (!isSoaError(error, 'badFrame')) throw error
      seen.push(error.message)
    }
    return seen.join('\n')
  }
  for (let n = 0; n < 3_000 * TIMES; n++) {
    const below = random(SEED + n)
    const bytes = mutate(streams[below(streams.length)] as Buffer, below)
    const whole = frames([bytes])
    if (whole.includes('upgradeRequest')) continue // what follows it is read by another hand
    const chunks: Buffer[] = []
    for (let at = 0; at < bytes.length;) { const size = 1 + below(40); chunks.push(bytes.subarray(at, at + size)); at += size }
    if (frames(chunks) !== whole) { t.fail(`seed ${SEED + n}: cuts change what is read`, { found: bytes.toString('hex'), wanted: whole }); break }
  }
  t.pass()
})
