import { ReaderTables } from '../../../wire/xml/binary/tables.ts'
import { readBinary, type BinaryOptions } from '../../../wire/xml/binary/read.ts'
import { qname, type XmlHandler } from '../../../wire/xml/events.ts'
import { readText, type TextOptions } from '../../../wire/xml/text.ts'
import type { Envelope } from '../../../wire/soap/envelope.ts'

/** What a document means, whatever it is written in: names, attributes by name, text joined, declarations (a value may hold a QName). */
function hear (): { events: string[], handler: XmlHandler } {
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

export function infosetOfText (xml: string | Uint8Array, options: TextOptions = { fragment: true }): string[] {
  const { events, handler } = hear()
  readText(xml, handler, options)
  return events
}

export function infosetOfBinary (bytes: Uint8Array, options?: BinaryOptions): string[] {
  const { events, handler } = hear()
  readBinary(bytes, handler, options)
  return events
}

export function infosetOfBody ({ enc, body, prefixesInScope: scope }: Pick<Envelope, 'enc' | 'body' | 'prefixesInScope'>): string[] {
  return enc === 'utf8' ? infosetOfText(body, { fragment: true, scope }) : infosetOfBinary(body, { fragment: true, scope })
}

/** The tables of a session in which these strings were sent. */
export function session (strings: readonly string[] = [], maxBytes = 100_000): ReaderTables {
  const table = new ReaderTables(maxBytes)
  table.load(tableOf(strings))
  return table
}

export function tableOf (strings: readonly string[]): Buffer {
  const entries = Buffer.concat(strings.flatMap(text => [size(Buffer.byteLength(text)), Buffer.from(text)]))
  return Buffer.concat([size(entries.length), entries])
}

const size = (n: number): Buffer => Buffer.of(...n < 128 ? [n] : n < 16384 ? [n & 0x7f | 0x80, n >> 7] : [n & 0x7f | 0x80, n >> 7 & 0x7f | 0x80, n >> 14])
