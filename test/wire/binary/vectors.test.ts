import t from 'tap'
import { readBinary, type BinaryOptions } from '../../../wire/xml/binary/read.ts'
import { NO_STRINGS, ReaderTables, STATIC, type Strings } from '../../../wire/xml/binary/tables.ts'
import { qname, type XmlHandler } from '../../../wire/xml/events.ts'
import { readText } from '../../../wire/xml/text.ts'
import { bytesOf, vectors, type Vector } from '../net-tcp-vectors.ts'

// The local times in the vectors were shown there.
process.env.TZ = 'America/New_York'

/** What a document means, whatever it is written in: names, attributes by name, text joined, declarations (a value may hold a QName). */
export function hear (): { events: string[], handler: XmlHandler } {
  const events: string[] = []
  return {
    events,
    handler: {
      start ({ uri, local, attributes, declarations }) {
        events.push(`<${qname(uri, local)}`, ...attributes.map(a => ` ${qname(a.uri, a.local)}=${a.value}`).sort(), ...declarations.map(([prefix, uri]) => ` xmlns:${prefix}=${uri}`).sort())
      },
      text (value) {
        const last = events.at(-1)
        if (value === '') return
        if (last?.startsWith('"') === true) events[events.length - 1] = last + value
        else events.push(`"${value}`)
      },
      end () { events.push('>') }
    }
  }
}
const ofText = (xml: string): string[] => { const { events, handler } = hear(); readText(xml, handler, { fragment: true }); return events }
const ofBinary = (bytes: Uint8Array, options?: BinaryOptions): string[] => { const { events, handler } = hear(); readBinary(bytes, handler, options); return events }

/** A table of these strings. */
export function session (strings: readonly string[] = [], maxBytes = 100_000): ReaderTables {
  const table = new ReaderTables(maxBytes)
  const size = (n: number): Buffer => Buffer.of(...n < 128 ? [n] : n < 16384 ? [n & 0x7f | 0x80, n >> 7] : [n & 0x7f | 0x80, n >> 7 & 0x7f | 0x80, n >> 14])
  const entries = Buffer.concat(strings.flatMap(text => [size(Buffer.byteLength(text)), Buffer.from(text)]))
  table.load(Buffer.concat([size(entries.length), entries]))
  return table
}
const stringsOf = (vector: Vector): Strings => vector.sessionStrings ? session(vector.sessionStrings) : vector.staticDictionary === false ? NO_STRINGS : STATIC

// .NET Framework writes some floating point numbers with other digits than .NET does; and what it reads from a list of bytes is the name of a type.
const OTHERWISE: Readonly<Record<string, RegExp>> = { 'nbfx-rd-list-bytes': /AQID/, 'nbfx-rd-utf8-control': new RegExp('"\u0001') }

t.test('binary XML: every document is what Microsoft\'s reader says, or is refused where that refuses', async t => {
  const all = vectors('nbfx-documents')
  t.equal(all.length, 196)
  let refused = 0
  for (const vector of all) {
    const bytes = bytesOf(vector.hex)
    const read = (): string[] => ofBinary(bytes, { strings: stringsOf(vector) })
    if (vector.readerError !== undefined || vector.xmlError !== undefined) {
      t.throws(read, { name: 'SoaError', fault: 'badXml' }, `${vector.name}: ${vector.readerError ?? vector.xmlError ?? ''}`)
      refused++
      continue
    }
    const otherwise = OTHERWISE[vector.name]
    if (otherwise !== undefined) t.match(read().join('\n'), otherwise, vector.name)
    else t.same(read(), ofText(vector.xml ?? ''), vector.name)
  }
  t.equal(refused, 35)
})
