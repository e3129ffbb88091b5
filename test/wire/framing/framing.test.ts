import t from 'tap'
import { isSoaError } from '../../../core/errors.ts'
import { FrameDecoder, type DecoderOptions, type Frame } from '../../../wire/framing/decoder.ts'
import { END, faultRecord, preamble, PREAMBLE_ACK, PREAMBLE_END, sizedEnvelope, sizedHead, unsizedEnvelope, UPGRADE_RESPONSE, upgradeRequest } from '../../../wire/framing/encoder.ts'
import { FRAMING_FAULTS, framingFault, framingFaultOf, type FramingFault } from '../../../wire/framing/faults.ts'
import { KNOWN_ENCODINGS, MSBIN1, MSBINSESSION1, type Mode } from '../../../wire/framing/records.ts'
import { addGroup, sizeBytes, writeSize } from '../../../wire/framing/size.ts'
import { bytesOf, vectors } from '../net-tcp-vectors.ts'

const MAX = 1_000_000
const decoder = (of: 'client' | 'server', options: Partial<DecoderOptions> = {}): FrameDecoder => new FrameDecoder({ of, maxMessageSize: MAX, ...options })
/** All frames of chunks, on past upgrades as if they had changed nothing; bytes as hex. */
function frames (decoder: FrameDecoder, ...chunks: Buffer[]): object[] {
  const found: object[] = []
  const drain = (): void => {
    for (let frame = decoder.next(); frame !== undefined; frame = decoder.next()) {
      found.push(frame.kind === 'envelope' ? { kind: 'envelope', hex: frame.bytes.toString('hex') } : frame)
      if (frame.kind.startsWith('upgrade')) { const rest = decoder.takeRest(); decoder.upgraded(); decoder.push(rest) }
    }
  }
  for (const chunk of chunks) { decoder.push(chunk); drain() }
  return found
}
function refusal (act: () => unknown): { why: string, fault: FramingFault | undefined } | undefined {
  try { act() } catch (error) {
    if (isSoaError(error, 'badFrame')) return { why: error.message, fault: framingFault(error) }
    throw error
  }
}
const VIA = 'net.tcp://localhost:808/Service'
const opened = Buffer.concat([preamble({ via: VIA, contentType: MSBINSESSION1 }), PREAMBLE_END])

t.test('a size: every length writes and reads, longer forms are read, 2^31 is refused before its sixth byte', async t => {
  for (const [size, hex] of [[0, '00'], [127, '7f'], [128, '8001'], [16383, 'ff7f'], [16384, '808001'], [2 ** 31 - 1, 'ffffffff07']] as const) {
    const bytes = Buffer.alloc(sizeBytes(size))
    t.equal(writeSize(bytes, 0, size), bytes.length)
    t.equal(bytes.toString('hex'), hex)
    t.equal(bytes.reduce((sum, byte, i) => addGroup(sum, byte, i), 0), size)
  }
  t.equal([0x81, 0x80, 0x80, 0x80, 0x00].reduce((sum, byte, i) => addGroup(sum, byte, i), 0), 1)
  t.match(refusal(() => addGroup(0, 0x08, 4)), { why: /2147483647/ })
})

t.test('framing: both sides of every recorded conversation are read in any cut, and the same bytes are written', async t => {
  const all = vectors('conversations')
  t.equal(all.length, 39)
  for (const { name, hex, serverHex, steps } of all) {
    const mode = Number(steps?.find(step => step.record === 'mode')?.hex.slice(2)) as Mode
    for (const [of, side, stream] of [['client', 'client-to-server', hex], ['server', 'server-to-client', serverHex ?? '']] as const) {
      const said = steps?.filter(step => step.direction === side) ?? []
      const bytes = bytesOf(stream)
      const whole = frames(decoder(of, { mode }), bytes)
      const kinds = said.flatMap(({ record }) => record === 'known-encoding' ? ['preamble'] : ['version', 'mode', 'via', 'tcp-fin'].includes(record) ? [] : [record.endsWith('envelope') ? 'envelope' : record.replace(/-(.)/g, (_, c: string) => c.toUpperCase())])
      t.same(whole.map(frame => (frame as Frame).kind), kinds, `${name}, ${side}`)
      t.equal(Buffer.concat(whole.map(frame => written(frame as Frame & { hex: string }, mode))).toString('hex'), stream, `${name}, ${side}: written`)
      if (bytes.length < 20_000) {
        const same = JSON.stringify(whole)
        const cuts = [...bytes.keys()].filter(cut => cut % (bytes.length > 2000 ? 37 : 1) === 0)
        t.same(cuts.filter(cut => JSON.stringify(frames(decoder(of, { mode }), bytes.subarray(0, cut), bytes.subarray(cut))) !== same), [], 'no cut changes it')
        t.same(frames(decoder(of, { mode }), ...[...bytes].map(byte => Buffer.of(byte))), whole, 'byte by byte')
      }
    }
  }
})

function written (frame: Frame & { hex: string }, mode: Mode): Buffer {
  switch (frame.kind) {
    case 'preamble': return preamble(frame)
    case 'envelope': return mode === 2 ? sizedEnvelope(bytesOf(frame.hex)) : unsizedEnvelope(bytesOf(frame.hex))
    case 'upgradeRequest': return upgradeRequest(frame.name)
    case 'fault': return faultRecord(framingFaultOf(frame.uri) as FramingFault)
    default: return { upgradeResponse: UPGRADE_RESPONSE, preambleEnd: PREAMBLE_END, preambleAck: PREAMBLE_ACK, end: END }[frame.kind]
  }
}

t.test('framing: every record assembled by hand is what its vector says, wherever the stream is cut', async t => {
  const before = Buffer.from('0001000102', 'hex')
  const via = Buffer.concat([before, preamble({ via: VIA, contentType: MSBINSESSION1 }).subarray(5, -2)])
  let seen = 0
  for (const { name, hex, expect, direction } of vectors('records')) {
    const [first] = expect ?? []
    const record = String(first?.record)
    // A record needs what comes before it.
    const lead = {
      mode: before.subarray(0, 3),
      via: before,
      'known-encoding': via,
      'extensible-encoding': via,
      'upgrade-request': opened.subarray(0, -1),
      'preamble-end': opened.subarray(0, -1),
      'sized-envelope': opened,
      end: opened,
      'unsized-envelope': Buffer.concat([Buffer.from('0001000101', 'hex'), opened.subarray(5)])
    }[record] ?? Buffer.alloc(0)
    const bytes = bytesOf(hex)
    const read = (...chunks: Buffer[]): unknown => { const d = decoder(direction === 'server-to-client' ? 'server' : 'client'); frames(d, lead); return frames(d, ...chunks) }
    const error = expect?.find(one => one.error !== undefined)
    const mode = Number(first?.mode)
    if (error !== undefined || first?.major === 2 || mode === 4) {
      const said = refusal(() => read(bytes))
      const fault = error?.error === 'UnsupportedMode' || mode === 4 ? 'UnsupportedMode' : first?.major === 2 ? 'UnsupportedVersion' : undefined
      t.match(said, { why: /./, fault }, name)
      for (let cut = 0; cut < bytes.length; cut++) t.same(refusal(() => read(bytes.subarray(0, cut), bytes.subarray(cut))), said)
    } else {
      const whole = read(bytes) as Array<Record<string, unknown>>
      const expected = expect?.flatMap((one): unknown[] => {
        switch (one.record) {
          case 'known-encoding': case 'extensible-encoding': return [{ kind: 'preamble', contentType: one.contentType ?? KNOWN_ENCODINGS[one.encoding as number] }]
          case 'sized-envelope': return [{ kind: 'envelope' }]
          case 'unsized-envelope': return [{ kind: 'envelope', hex: Buffer.from('abcdefgh').toString('hex') }]
          case 'fault': return [{ kind: 'fault', uri: one.fault }]
          case 'upgrade-request': return [{ kind: 'upgradeRequest', name: one.upgrade }]
          case 'end': case 'preamble-end': return [{ kind: String(one.record).replace('-e', 'E') }]
          default: return []
        }
      })
      t.match(whole, expected ?? [], name)
      t.equal(whole.length, expected?.length, name)
      if (first?.size !== undefined) t.equal((whole[0]?.hex as string).length / 2, first.size)
      const same = JSON.stringify(whole)
      t.same([...bytes.keys()].filter(cut => (bytes.length < 300 || cut % 101 === 0) && JSON.stringify(read(bytes.subarray(0, cut), bytes.subarray(cut))) !== same), [], 'no cut changes it')
    }
    seen++
  }
  t.equal(seen, 36)
})

t.test('framing: known encodings are known under their names too, and written as their byte', async t => {
  for (const [byte, contentType] of KNOWN_ENCODINGS.entries()) {
    const long = Buffer.concat([preamble({ via: VIA, contentType: 'x/y' }).subarray(0, -5), Buffer.of(4, contentType.length), Buffer.from(contentType)])
    t.match(frames(decoder('client'), long), [{ kind: 'preamble', contentType, via: VIA, mode: 2, minor: 0 }])
    t.equal(preamble({ via: VIA, contentType }).subarray(-2).toString('hex'), `03${byte.toString(16).padStart(2, '0')}`)
  }
  t.match(frames(decoder('client'), preamble({ via: VIA, contentType: `${MSBINSESSION1}+gzip` })), [{ contentType: `${MSBINSESSION1}+gzip` }])
})

t.test('framing: an envelope that lies in one chunk is not copied; one that comes in pieces takes memory as it comes', async t => {
  const chunk = Buffer.concat([opened, sizedEnvelope(Buffer.alloc(5000, 1)), unsized(3)])
  const d = decoder('client').push(chunk)
  d.next(); d.next()
  const envelope = d.next() as { bytes: Buffer }
  t.equal(envelope.bytes.buffer, chunk.buffer)
  t.equal(envelope.bytes.length, 5000)
  const big = decoder('client', { maxMessageSize: 2 ** 31 - 1 })
  frames(big, opened, sizedHead(2 ** 31 - 1))
  const before = process.memoryUsage().arrayBuffers
  frames(big, Buffer.alloc(100_000))
  t.ok(process.memoryUsage().arrayBuffers - before < 1_000_000, 'a size of 2 GiB reserves nothing')
})
const unsized = (bytes: number): Buffer => Buffer.alloc(bytes, 6)

t.test('framing: limits are said with limit and value, and with the fault that the peer is to be told', async t => {
  const head = Buffer.from('0001000102', 'hex')
  const sized = (code: number, size: number): Buffer => { const record = Buffer.alloc(1 + sizeBytes(size)); record[0] = code; writeSize(record, 1, size); return record }
  const cases: Array<[string, Buffer[], RegExp, FramingFault | undefined]> = [
    ['via', [head, sized(2, 2049)], /via has 2049 bytes, the limit is 2048/, 'ViaTooLong'],
    ['content type', [preamble({ via: VIA, contentType: MSBIN1 }).subarray(0, -2), sized(4, 257)], /content type has 257 bytes, the limit is 256/, 'ContentTypeTooLong'],
    ['upgrade', [opened.subarray(0, -1), sized(9, 257)], /upgrade has 257 bytes/, 'ContentTypeTooLong'],
    ['envelope', [opened, sized(6, MAX + 1)], /1000001 bytes, the limit is 1000000 \(maxMessageSize\)/, 'MaxMessageSizeExceededFault'],
    ['known encoding', [opened.subarray(0, -3), Buffer.of(3, 9)], /known encoding 9/, 'ContentTypeInvalid'],
    ['version', [Buffer.of(0, 2, 0)], /version 2.0/, 'UnsupportedVersion'],
    ['mode', [Buffer.of(0, 1, 0, 1, 3)], /mode 3/, 'UnsupportedMode'],
    ['via that is no text', [head, Buffer.of(2, 1, 0xff)], /via is not UTF-8/, 'EndpointNotFound'],
    ['HTTP', [Buffer.from('GET / HTTP/1.1')], /first byte is 0x47: the peer does not speak net.tcp/, undefined],
    ['order', [head, Buffer.of(3, 8)], /a record knownEncoding \(0x03\) cannot come here \(state moded\)/, undefined],
    ['envelope before the end of the preamble', [opened.subarray(0, -1), Buffer.of(6)], /cannot come here/, undefined],
    ['sized in mode 1', [Buffer.from('0001000101', 'hex'), opened.subarray(5), Buffer.of(6)], /sizedEnvelope .*\(state singleton/, undefined],
    ['server\'s record from a client', [opened, Buffer.of(0x0b)], /preambleAck/, undefined],
  ]
  for (const [what, chunks, why, fault] of cases) {
    const d = decoder('client')
    const said = refusal(() => frames(d, ...chunks))
    t.match(said, { why, fault }, what)
    t.same(refusal(() => d.next()), said, 'and again: nothing behind it can be read')
  }
  t.match(refusal(() => frames(decoder('client'), Buffer.from('0001000101', 'hex'), opened.subarray(5), Buffer.concat([Buffer.of(5), ...Array.from({ length: 11 }, () => Buffer.concat([sized(6, 100_000).subarray(1), Buffer.alloc(100_000)]))]))),
    { why: /at least 1100000 bytes, the limit is 1000000/, fault: 'MaxMessageSizeExceededFault' })
  t.match(refusal(() => frames(decoder('server'), PREAMBLE_ACK, sized(6, MAX + 1))), { fault: undefined }, 'a client sends no faults')
  t.match(refusal(() => frames(decoder('server'), sized(8, 300))), { why: /fault has 300 bytes, the limit is 256/ })
})

t.test('framing: the limit of an endpoint counts from when its via is known', async t => {
  const d = decoder('client', { maxMessageSize: 10 }).push(Buffer.concat([opened, sizedEnvelope(Buffer.alloc(50))]))
  t.match(d.next(), { kind: 'preamble' })
  d.maxMessageSize = 50
  t.match([d.next(), d.next(), d.next()], [{ kind: 'preambleEnd' }, { kind: 'envelope' }, undefined])
  t.ok(d.isBetweenRecords)
  t.notOk(decoder('client').push(Buffer.of(0)).isBetweenRecords)
})

t.test('framing: decoding stands before an upgrade and goes on behind it', async t => {
  const d = decoder('client').push(Buffer.concat([opened.subarray(0, -1), upgradeRequest('application/ssl-tls'), Buffer.from('hello')]))
  t.match([d.next(), d.next(), d.next()], [{ kind: 'preamble' }, { kind: 'upgradeRequest', name: 'application/ssl-tls' }, undefined])
  t.equal(String(d.takeRest()), 'hello')
  d.upgraded()
  t.match(frames(d, PREAMBLE_END, sizedEnvelope(Buffer.from('x'))), [{ kind: 'preambleEnd' }, { kind: 'envelope' }])
  const client = decoder('server').push(UPGRADE_RESPONSE)
  t.match(client.next(), { kind: 'upgradeResponse' })
  client.upgraded()
  t.match(frames(client, PREAMBLE_ACK), [{ kind: 'preambleAck' }])
})

t.test('framing: behind End the connection begins anew', async t => {
  const d = decoder('client')
  t.match(frames(d, opened, END, opened, sizedEnvelope(Buffer.from('x'))).map(frame => (frame as Frame).kind), ['preamble', 'preambleEnd', 'end', 'preamble', 'preambleEnd', 'envelope'])
  const client = decoder('server')
  frames(client, PREAMBLE_ACK, END)
  client.again(1)
  t.match(frames(client, PREAMBLE_ACK, unsizedEnvelope(Buffer.from('x')), END), [{ kind: 'preambleAck' }, { hex: '78' }, { kind: 'end' }])
  t.match(refusal(() => frames(client, END)), { why: /state ended/ })
})

t.test('framing: every fault is written and known again', async t => {
  for (const fault of Object.keys(FRAMING_FAULTS) as FramingFault[]) t.match(frames(decoder('server'), faultRecord(fault)), [{ kind: 'fault', uri: new RegExp(`/framing/faults/${fault}$`) }])
  t.equal(framingFaultOf('urn:x'), undefined)
})
