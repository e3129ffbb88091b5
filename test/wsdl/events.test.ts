/** The codec speaks events: whatever says them can be read (text, binary XML, a recording), and whatever takes them can be written to. */
import t from 'tap'
import { XmlWriter } from '../../wire/xml/text-writer.ts'
import { readText } from '../../wire/xml/text.ts'
import type { XmlHandler, XmlStart } from '../../wire/xml/events.ts'
import { BodyReader } from '../../wsdl/schema/reader.ts'
import { writeElement, writeElementTo } from '../../wsdl/schema/writer.ts'
import { cases, difference, load, toValue } from './cases.ts'

type Event = { kind: 'start', element: XmlStart, scope: ReadonlyMap<string, string> } | { kind: 'text', value: string } | { kind: 'end' }

/** What a source says, with the prefixes in scope of each start, as a binary reader would know them. */
function record (body: string): Event[] {
  const events: Event[] = []
  const scopes: Array<Map<string, string>> = [new Map([['xml', 'http://www.w3.org/XML/1998/namespace']])]
  readText(body, {
    start (element) {
      const scope = new Map([...scopes[scopes.length - 1] as Map<string, string>, ...element.declarations])
      scopes.push(scope)
      events.push({ kind: 'start', element, scope })
    },
    text (value) { events.push({ kind: 'text', value }) },
    end () { scopes.pop(); events.push({ kind: 'end' }) }
  }, { fragment: true })
  return events
}

function replay (events: readonly Event[], handler: XmlHandler, pieces: (text: string) => string[]): void {
  for (const event of events) {
    if (event.kind === 'start') handler.start(event.element, prefix => event.scope.get(prefix) ?? (prefix === '' ? '' : undefined))
    else if (event.kind === 'text') for (const piece of pieces(event.value)) handler.text(piece)
    else handler.end()
  }
}

const CUTS: Array<[what: string, pieces: (text: string) => string[]]> = [
  ['in one piece', text => [text]], ['character by character', text => [...text]], ['with empty pieces', text => ['', text, '']],
  // Binary XML sends base64 as bytes in records of any length, each of which becomes text of its own.
  ['in threes', text => text.match(/[^]{1,3}/g) ?? []]
]

t.test('reader: a body is the same value from a recording as from text, however its texts are cut', async t => {
  const all = cases().filter(one => (one.messages[0]?.body.length ?? 0) < 20_000)
  t.ok(all.length > 80)
  for (const { name, wsdl, values, messages } of all) {
    const { schema } = load(wsdl, 'flat')
    for (const [what, pieces] of CUTS) {
      const reader = new BodyReader(schema)
      replay(record(messages[0]?.body as string), reader, pieces)
      const wrong = difference(values as null, reader.result?.value)
      if (wrong !== undefined) t.fail(`${name} ${what}: ${wrong}`)
    }
  }
})

/** A sink of another kind than text: it keeps calls, and markup as events, as a binary writer would. */
class Calls {
  readonly #inner = new XmlWriter()
  readonly calls: string[] = []
  start (uri: string, local: string): this { this.calls.push(`start ${uri} ${local}`); this.#inner.start(uri, local); return this }
  use (uri: string): this { this.#inner.use(uri); return this }
  attribute (uri: string, local: string, value: string): this { this.calls.push(`attribute ${uri} ${local} ${value}`); this.#inner.attribute(uri, local, value); return this }
  qname (name: string): string { return this.#inner.qname(name) }
  text (value: string): this { this.calls.push(`text ${value}`); this.#inner.text(value); return this }
  raw (xml: string): this { this.calls.push(`raw ${xml}`); this.#inner.raw(xml); return this }
  end (): this { this.calls.push('end'); this.#inner.end(); return this }
  toString (): string { return String(this.#inner) }
}

t.test('writer: writes to any sink, and says there what the text says', async t => {
  for (const { name, wsdl, operation, isReply, values } of cases()) {
    if (name.includes('200k')) continue
    const { schema, operations } = load(wsdl, 'split')
    const op = operations.find(one => one.name === operation)
    const element = (isReply ? op?.outputElement : op?.inputElement) as string
    const sink = new Calls()
    writeElementTo(sink, schema, element, toValue(values as null))
    if (String(sink) !== writeElement(schema, element, toValue(values as null))) t.fail(`${name}: another text`)
    // Every element that the text has was started, and in the same order.
    const started: string[] = []
    readText(String(sink), { start: ({ uri, local }) => { started.push(`start ${uri} ${local}`) }, text () {}, end () {} })
    t.strictSame(sink.calls.filter(call => call.startsWith('start')), started, name)
  }
})
