import t from 'tap'
import { listRecords, writeRecords } from '../../../wire/xml/binary/listing.ts'
import { readBinary } from '../../../wire/xml/binary/read.ts'
import { NO_STRINGS, STATIC, type Strings } from '../../../wire/xml/binary/tables.ts'
import { bytesOf, vectors, type Vector } from '../net-tcp-vectors.ts'
import { infosetOfBinary, infosetOfText, session } from './infoset.ts'

// The local times in the vectors were shown there.
process.env.TZ = 'America/New_York'

const stringsOf = (vector: Vector): Strings => vector.sessionStrings ? session(vector.sessionStrings) : vector.staticDictionary === false ? NO_STRINGS : STATIC

// What Microsoft's reader reads from a list of bytes is the name of a type; and saxes takes no U+0001, also when it is written as a reference.
const OTHERWISE: Readonly<Record<string, string>> = { 'nbfx-rd-list-bytes': ' k=AQID', 'nbfx-rd-utf8-control': '"\u0001' }

t.test('binary XML: every document is what Microsoft\'s reader says, or is refused where that refuses', async t => {
  const all = vectors('nbfx-documents')
  t.equal(all.length, 196)
  let refused = 0
  for (const vector of all) {
    const bytes = bytesOf(vector.hex)
    const read = (): string[] => infosetOfBinary(bytes, { strings: stringsOf(vector) })
    if (vector.readerError !== undefined || vector.xmlError !== undefined) {
      t.throws(read, { name: 'SoaError', fault: 'badXml' }, `${vector.name}: ${vector.readerError ?? vector.xmlError ?? ''}`)
      refused++
      continue
    }
    const otherwise = OTHERWISE[vector.name]
    if (otherwise !== undefined) t.ok(read().includes(otherwise), vector.name)
    else t.same(read(), infosetOfText(vector.xml ?? ''), vector.name)
  }
  t.equal(refused, 35)
})

t.test('binary XML: a document that is cut off is refused, wherever it is cut', async t => {
  const ignore = { start () {}, text () {}, end () {} }
  for (const vector of vectors('nbfx-documents')) {
    if (vector.readerError !== undefined || vector.xmlError !== undefined) continue
    const bytes = bytesOf(vector.hex)
    const step = bytes.length > 2000 ? 997 : 1
    const accepted: number[] = []
    for (let cut = 1; cut < bytes.length; cut += step) {
      try {
        readBinary(bytes.subarray(0, cut), ignore, { strings: stringsOf(vector) })
        accepted.push(cut)
      } catch (error) {
        if ((error as { fault?: string }).fault !== 'badXml') throw error
      }
    }
    // Behind a comment there is nothing yet, and that is a document too.
    t.same(accepted, vector.name === 'nbfx-tx-comment-toplevel' ? [5] : [], vector.name)
  }
})

// Sizes that are longer than they need be; numbers that are written shorter; what is cut off or no record.
const NOT_SHORTEST = /^nbfx-rd-mb-/

t.test('binary XML: taken apart into records and written again, every document has the same bytes', async t => {
  let same = 0
  for (const vector of vectors('nbfx-documents')) {
    if (vector.readerError !== undefined || vector.xmlError !== undefined) continue
    const bytes = bytesOf(vector.hex)
    const written = writeRecords(listRecords(bytes, stringsOf(vector)))
    if (NOT_SHORTEST.test(vector.name)) { t.ok(written.length < bytes.length, vector.name); t.same(infosetOfBinary(written), infosetOfBinary(bytes)); continue }
    t.equal(written.toString('hex'), vector.hex, vector.name)
    same++
  }
  for (const { name, nbfxHex, sessionStringsBefore, newStrings } of [...vectors('sized-envelopes'), ...vectors('unsized-envelopes')]) {
    if (nbfxHex === undefined) continue
    t.equal(writeRecords(listRecords(bytesOf(nbfxHex), session([...sessionStringsBefore ?? [], ...newStrings ?? []]))).toString('hex'), nbfxHex, name)
    same++
  }
  t.ok(same > 270, `${same} documents`)
})
