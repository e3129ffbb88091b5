/** Bytes spoiled by chance (the same every time): whatever comes in, readers answer with one of their own refusals, and never with a bug. */
import t from 'tap'
import { isSoaError, SoaError } from '../../core/errors.ts'
import { loadWsdl } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { httpEndpoint, ServedWsdl } from '../../wsdl/served-wsdl.ts'
import { cases, documents, load } from './cases.ts'

const ROUNDS = Number(process.env.ROUNDS ?? 3000)
const PIECES = ['<', '>', '/', '&', '"', '=', ' ', ':', '\0', '<!--', '<![CDATA[', ']]>', '<!DOCTYPE x>', '&e;', '&#0;', ' xmlns=""', ' i:nil="true"', ' i:type="x"', '__proto__', 'name="constructor"', '\ufeff', '\ud800', 'xs:', 'tns:', 'unbounded', '-1', '{', '}']

function chance (seed: number): (below: number) => number {
  let state = seed >>> 0
  return below => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor(state / 2 ** 32 * below)
  }
}

function spoil (text: string, pick: (below: number) => number): string {
  let out = text
  for (let n = pick(3); n >= 0; n--) {
    const at = pick(out.length + 1)
    const to = Math.min(out.length, at + pick(12))
    const by = [PIECES[pick(PIECES.length)] as string, '', out.slice(pick(out.length), pick(out.length))][pick(3)] as string
    out = out.slice(0, at) + by.slice(0, 200) + out.slice(to)
  }
  return out
}

t.test('bodies: spoiled bytes are read or refused, never a bug', async t => {
  const all = cases().filter(c => (c.messages[0]?.body.length ?? 0) < 5000)
  const schemas = new Map(all.map(c => [c.wsdl, load(c.wsdl, 'flat').schema]))
  const pick = chance(7)
  let refused = 0
  for (let i = 0; i < ROUNDS; i++) {
    const { wsdl, messages } = all[i % all.length] as (typeof all)[number]
    const body = spoil(messages[0]?.body as string, pick)
    try {
      readBody(schemas.get(wsdl) as never, body, [], { isLenient: i % 2 === 0 })
    } catch (error) {
      refused++
      if (!isSoaError(error, 'badBody', 'badXml', 'overLimit')) { t.fail(`${String(error)}: ${body}`); return }
    }
  }
  t.ok(refused > ROUNDS / 3 && refused < ROUNDS, `${refused} of ${ROUNDS} refused`)
})

t.test('contracts: spoiled WSDLs are loaded or refused, never a bug', async t => {
  const names = ['calc', 'orders', 'shapes', 'telemetry', 'three']
  const texts = names.map(name => documents(name).get('flat.wsdl') as string)
  const pick = chance(8)
  let refused = 0
  for (let i = 0; i < ROUNDS / 15; i++) {
    const text = spoil(texts[i % texts.length] as string, pick)
    try {
      loadWsdl({ w: text }, 'w')
      const served = new ServedWsdl({ w: text }, 'w')
      for (const query of ['wsdl', 'singleWsdl']) if (served.answer(query, httpEndpoint('http://x/'))?.status !== 200) throw new SoaError('badContract', { document: 'w', why: query })
    } catch (error) {
      refused++
      if (!isSoaError(error, 'badContract', 'badXml')) { t.fail(`${error instanceof Error ? error.stack : String(error)}`); return }
    }
  }
  t.ok(refused > 0, `${refused} refused`)
})

t.test('bodies: depth and size cost no more than they should', async t => {
  const { schema } = load('shapes', 'flat')
  const deep = '<Grow xmlns="http://tempuri.org/">' + '<shape>'.repeat(100_000)
  try { readBody(schema, deep, []); t.fail('was accepted') } catch (error) { t.ok(isSoaError(error, 'overLimit', 'badBody')) }
  const { schema: orders } = load('orders', 'flat')
  const lines = Array.from({ length: 20_000 }, (_, i) => ({ Price: '1.10', Qty: i, Sku: 's' }))
  const body = `<Place xmlns="http://tempuri.org/"><order xmlns:o="http://schemas.datacontract.org/2004/07/Contoso.Orders"><o:Lines>${lines.map(l => `<o:OrderLine><o:Price>${l.Price}</o:Price><o:Qty>${l.Qty}</o:Qty><o:Sku>s</o:Sku></o:OrderLine>`).join('')}</o:Lines><o:Total>1</o:Total></order></Place>`
  const read = readBody(orders, body, [])?.value as { order: { Lines: { OrderLine: unknown[] } } }
  t.equal(read.order.Lines.OrderLine.length, 20_000)
})
