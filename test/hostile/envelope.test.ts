import { readFileSync } from 'node:fs'
import { XmlDocument, XmlParseError } from 'libxml2-wasm'
import t from 'tap'
import { asset } from '../../core/assets.ts'
import { isSoaError } from '../../core/errors.ts'
import { SOAP11, SOAP12, WSA, type Reading } from '../../wire/soap/envelope.ts'
import { readFault } from '../../wire/soap/fault-body.ts'
import { readRetryOperationError, readSessionFault, toFault } from '../../wire/soap/fault.ts'
import { userDataInner, userDataText } from '../../wire/soap/hpc-headers.ts'
import { readEnvelope } from '../../wire/soap/read.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'

const limits = { maxHeaderBytes: 65_536, maxDepth: 128 }

/** The same numbers in each run, so that a failure can be looked at. */
function random (seed: number): (below: number) => number {
  let state = seed >>> 0
  return below => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}

const seeds = [
  readFileSync(asset('test/wire/seed-generate-request.xml')),
  Buffer.from(`<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="${SOAP11}" xmlns:p="urn:p"><s:Header><HPCServer2008_Broker_UserDataNS xmlns="http://www.microsoft.com/hpc"><p:a b="&lt;">ü<![CDATA[]]]]></p:a></HPCServer2008_Broker_UserDataNS>` +
    '<x xmlns="urn:x" s:mustUnderstand="1"/><!-- - --></s:Header><s:Body p:q="1"><p:m xmlns:i="urn:i" i:type=\'p:T\'><n/><?pi?>&#x20AC;</p:m></s:Body></s:Envelope>'),
  writeEnvelope(toFault(new TypeError(), { soap: 11 }), { addressing: 'wsa' }),
  Buffer.from(`<e:Envelope xmlns:e="${SOAP12}" xmlns:a="${WSA}"><e:Header><a:ReplyTo><a:Address>http://x/</a:Address></a:ReplyTo></e:Header><e:Body><e:Fault><e:Code><e:Value>e:Sender</e:Value></e:Code>` +
    '<e:Reason><e:Text xml:lang="en">x</e:Text></e:Reason><e:Detail><SessionFault xmlns="http://hpc.microsoft.com/session/"><Code>1</Code></SessionFault></e:Detail></e:Fault></e:Body></e:Envelope>'),
]
const PIECES = ['<', '>', '/', '&', ';', '"', "'", '=', ' ', ':', '\0', '\x01', '<!--', '-->', '<![CDATA[', ']]>', '<?', '?>', '<!DOCTYPE x [<!ENTITY e "e">]>', '&e;', '&#0;', '&#x10FFFF;', ' xmlns=""', ' xmlns:s="urn:s"',
  ' xmlns:p="urn:p"', 's:', 'p:', '<x>', '</x>', '<s:Body>', '</s:Body>', '</s:Envelope>', '\ufeff', '\uffff', '\r\n', '<a:b>'].map(piece => Buffer.from(piece))

function mutate (bytes: Buffer, below: (n: number) => number): Buffer {
  let out = bytes
  for (let n = below(4); n >= 0; n--) {
    const at = below(out.length + 1)
    const to = Math.min(out.length, at + below(20))
    const piece = PIECES[below(PIECES.length)] as Buffer
    switch (below(6)) {
      case 0: out = Buffer.concat([out.subarray(0, at), piece, out.subarray(at)]); break
      case 1: out = Buffer.concat([out.subarray(0, at), out.subarray(to)]); break
      case 2: out = Buffer.concat([out.subarray(0, at), piece, out.subarray(to)]); break
      case 3: out = Buffer.from(out); if (at < out.length) out[at] = below(256); break
      case 4: out = Buffer.concat([out.subarray(0, at), out.subarray(at, to), out.subarray(at, to), out.subarray(to)]); break
      case 5: out = out.subarray(0, at); break
    }
  }
  return out
}

/** What a strict reader that we did not write says. Its complaint about the form of a namespace's URI is no question of well-formedness. */
function foreignAccepts (bytes: Uint8Array): boolean {
  try {
    XmlDocument.fromBuffer(bytes).dispose()
    return true
  } catch (error) {
    return error instanceof XmlParseError && error.details.every(({ message }) => /is not (a valid URI|absolute)/.test(message))
  }
}

/** undefined: refused as it should be. Anything else that is thrown fails the test. */
function readOrRefuse (bytes: Buffer): Reading | undefined {
  try {
    return readEnvelope(bytes, { limits })
  } catch (error) {
    if (isSoaError(error, 'badEnvelope', 'overLimit', 'versionMismatch')) return undefined
    throw error
  }
}

t.test('whatever the bytes, reading gives an envelope or one of three refusals; what it accepts is XML to a strict reader, and so is all that is made of it', async t => {
  const below = random(20260726)
  let accepted = 0
  for (let round = 0; round < 12_000; round++) {
    const bytes = mutate(seeds[round % seeds.length] as Buffer, below)
    const show = `round ${round}: ${bytes.toString('latin1')}`
    let reading: Reading | undefined
    try {
      reading = readOrRefuse(bytes)
    } catch (error) {
      t.fail(`${show} threw ${(error as Error).stack}`)
      return
    }
    if (reading === undefined) continue
    accepted++
    if (!foreignAccepts(bytes)) { t.fail(`${show} was accepted`); return }
    const { envelope } = reading
    for (const piece of [...envelope.otherHeaders, ...envelope.userData === undefined ? [] : [envelope.userData]]) if (!foreignAccepts(piece)) { t.fail(`${show} made the header ${Buffer.from(piece).toString()}`); return }
    if (envelope.userData !== undefined) { userDataText(envelope.userData); userDataInner(envelope.userData) }
    for (const soap of [11, 12] as const) {
      let written: Buffer
      try {
        written = writeEnvelope(envelope, { soap, addressing: round % 2 === 0 ? 'wsa' : 'none' })
        readSessionFault(reading)
        readRetryOperationError(reading)
        readFault(envelope)
      } catch (error) {
        if (isSoaError(error, 'badEnvelope') && reading.isFault) continue // a Fault element that is no fault
        t.fail(`${show} could not be written: ${(error as Error).stack}`)
        return
      }
      if (!foreignAccepts(written)) { t.fail(`${show} was written as ${written.toString()}`); return }
    }
  }
  t.ok(accepted > 500, `enough mutants were XML still (${accepted})`)
  t.notOk(foreignAccepts(Buffer.from('<a><p:b/></a>')), 'the other reader is strict indeed')
})

t.test('every cut of every message is refused', async t => {
  for (const bytes of seeds) {
    const whole = bytes.subarray(0, bytes.lastIndexOf('>') + 1)
    for (let cut = 0; cut < whole.length; cut++) if (readOrRefuse(whole.subarray(0, cut)) !== undefined) t.fail(`cut at ${cut} was accepted`)
  }
  t.pass('none was accepted')
})

t.test('what makes other readers slow or large is refused or read in one pass', async t => {
  const body = (inner: string): Buffer => Buffer.from(`<s:Envelope xmlns:s="${SOAP12}"><s:Body>${inner}</s:Body></s:Envelope>`)
  const many = (n: number, piece: (i: number) => string): string => Array.from({ length: n }, (_, i) => piece(i)).join('')
  const cases: Array<[string, Buffer, boolean]> = [
    ['a billion laughs', Buffer.from(`<!DOCTYPE l [<!ENTITY a "ha">${many(20, i => `<!ENTITY b${i} "&a;&a;&a;">`)}]><s:Envelope xmlns:s="${SOAP12}"><s:Body>&b19;</s:Body></s:Envelope>`), false],
    ['an external entity', Buffer.from(`<!DOCTYPE l SYSTEM "file:///etc/passwd"><s:Envelope xmlns:s="${SOAP12}"><s:Body/></s:Envelope>`), false],
    ['a million open elements', body('<a>'.repeat(1_000_000)), false],
    ['a hundred thousand attributes', body(`<a ${many(100_000, i => `b${i}="" `)}/>`), false],
    ['a hundred thousand declarations', body(`<a ${many(100_000, i => `xmlns:b${i}="u" `)}/>`), false],
    ['a million opening comments', body('<!--'.repeat(1_000_000)), false],
    ['a million ampersands', body('&'.repeat(1_000_000)), false],
    ['a thousand prefixes that are searched a hundred thousand times', body(`<a xmlns:p="u" ${many(1000, i => `xmlns:b${i}="u" `)}>${'<p:a/>'.repeat(100_000)}</a>`), true],
    ['a name of a megabyte', body(`<${'a'.repeat(1_000_000)}/>`), true],
    ['a thousand attributes a thousand times', body(`<a ${many(1000, i => `b${i}="" `)}/>`.repeat(100)), true],
  ]
  for (const [name, bytes, fine] of cases) t.equal(readOrRefuse(bytes) !== undefined, fine, name)
})
