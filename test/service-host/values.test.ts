/** Values in and out of a service over HTTP: every case of test/wsdl/vectors, and what is said of requests and replies that do not fit. */
import t from 'tap'
import { readBody } from '../../wsdl/schema/reader.ts'
import { cases, difference, forms, judge, load } from '../wsdl/cases.ts'
import { serve } from './serve.ts'

const NS = 'http://tempuri.org/'
const ORDERS = 'http://schemas.datacontract.org/2004/07/Contoso.Orders'
const CASES = new URL('../wsdl/cases.js', import.meta.url).href
const userDataHeader = (text: string): string => `<HPCServer2008_Broker_UserDataNS xmlns="http://www.microsoft.com/hpc">${text}</HPCServer2008_Broker_UserDataNS>`

const all = cases().filter(one => !one.name.includes('200k'))
const bodyOf = (text: string): string => /<(\w+):Body[^>]*>([^]*)<\/\1:Body>/.exec(text)?.[2] ?? ''

for (const name of [...new Set(all.map(one => one.wsdl))]) {
  const mine = all.filter(one => one.wsdl === name)
  // The service compares what it got with the case that UserData names, and answers with that case's reply.
  const code = `import { cases, difference, toValue } from ${JSON.stringify(CASES)}
    const all = new Map(cases().map(one => [one.name, one]))
    const answer = (args, { userData }) => {
      const wrong = difference(all.get(userData + '.req').values, args)
      if (wrong !== undefined) throw Error(wrong)
      return toValue(all.get(userData + '.rep')?.values ?? null) ?? undefined
    }
    export default { ${load(name, 'flat').operations.map(op => `${op.name}: answer`).join(', ')} }`

  for (const form of forms) {
    t.test(`host: ${name}, ${form}: requests of SOAP 1.1 and 1.2 reach the service as their values, and replies are valid for libxml2`, async t => {
      const host = await serve(t, code, { wsdl: name, form, details: true })
      const { schema, operations } = load(name, form)
      const xsd = judge(name)
      t.teardown(() => xsd.close())
      for (const { name: label, operation, messages } of mine.filter(one => !one.isReply)) {
        const op = operations.find(one => one.name === operation)
        const reply = mine.find(one => one.name === label.replace(/req$/, 'rep'))
        for (const [i, soap] of ([11, 12] as const).entries()) {
          const { status, text } = await host.call(soap, op?.action as string, messages[i]?.body as string, userDataHeader(label.replace(/\.req$/, '')))
          if (op?.oneWay) { t.equal(status, 202, `${label} ${soap}`); continue }
          if (status !== 200) { t.fail(`${label} ${soap}: ${text}`); continue }
          const body = bodyOf(text)
          t.equal(xsd.check(body), undefined, `${label} ${soap}: valid`)
          t.equal(difference(reply?.values as null, readBody(schema, body, [])?.value), undefined, `${label} ${soap}: the value`)
        }
      }
    })
  }
}

const PLACE = 'export default { Place ({ order }) { const [first] = order.Lines.OrderLine; if (Object.keys(first).join() !== `Price,Qty,Sku` || order.Lines.OrderLine.length !== 2) throw Error(JSON.stringify(order)); return {} }, Find () {}, Cancel () {}, Keys () {} }'
const order = (lines: string): string => `<Place xmlns="${NS}"><order xmlns:o="${ORDERS}"><o:Lines>${lines}</o:Lines><o:Total>1</o:Total></order></Place>`
const line = (price: string, qty: string, more = ''): string => `<o:OrderLine><o:Price>${price}</o:Price><o:Qty>${qty}</o:Qty><o:Sku>s</o:Sku>${more}</o:OrderLine>`

t.test('host: a request that does not fit is the sender\'s fault, with the path and the reason', async t => {
  const host = await serve(t, PLACE, { wsdl: 'orders' })
  const wrong: Array<[what: string, body: string, says: RegExp]> = [
    ['a value', order(line('1.10', '1') + line('0.1', 'two')), /at \/Place\/order\/Lines\/OrderLine\[2\]\/Qty: (?:"|&quot;)two(?:"|&quot;) is not a valid int/],
    ['an unknown member', order(line('1.10', '1', '<o:New/>')), /at \/Place\/order\/Lines\/OrderLine\[1\]: element \{[^}]*Contoso\.Orders\}New, expected/],
    ['a reference to an object', `<Place xmlns="${NS}"><order z:Ref="i1" xmlns:z="http://schemas.microsoft.com/2003/10/Serialization/"/></Place>`, /at \/Place\/order: z:Ref: object references .* not supported/],
    ['MTOM', `<Place xmlns="${NS}"><order xmlns:o="${ORDERS}"><o:Blob><x:Include href="cid:1" xmlns:x="http://www.w3.org/2004/08/xop/include"/></o:Blob></order></Place>`, /at \/Place\/order\/Blob: xop:Include: .*MTOM/],
  ]
  for (const [what, body, says] of wrong) {
    for (const [soap, code] of [[11, /faultcode>\w+:Client</], [12, /Value>\w+:Sender</]] as const) {
      const { status, text } = await host.call(soap, `${NS}IOrders/Place`, body)
      t.equal(status, 500)
      t.match(text, code, `${what}: SOAP ${soap} blames the sender`)
      t.match(text, says, `${what}: where and why`)
    }
  }
  t.same(host.lines, [], 'a caller\'s mistake is no matter for the log')
})

t.test('host: a lenient service gets what it knows of a newer client\'s request', async t => {
  const host = await serve(t, PLACE, { wsdl: 'orders', lenient: true, details: true })
  const body = order(line('1.10', '1', '<o:New><o:Deep>x</o:Deep></o:New>') + line('0.1', '2')).replace('<o:Total>', '<o:Newer k="v"/><o:Total>')
  t.equal((await host.call(12, `${NS}IOrders/Place`, body)).status, 200)
  t.match((await host.call(12, `${NS}IOrders/Place`, order(line('x', '1')))).text, /OrderLine\[1\]\/Price/, 'wrong values are refused all the same')
  t.match((await host.call(12, `${NS}IOrders/Place`, order('').replace(/<o:Lines><\/o:Lines><o:Total>1<\/o:Total>/, '<o:Total>1</o:Total><o:Lines/>'))).text, /at \/Place\/order: element \{[^}]*\}Lines, expected/, 'and so is a member in the wrong place')
})

t.test('host: a service may be a named export, as the registration file\'s type says', async t => {
  const methods = 'Echo () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Reset () {}, Now () {}'
  const code = `export class Other { Add () { return { AddResult: 7 } } ${methods.replaceAll('},', '}')} }\nexport default { Add: () => ({ AddResult: 1 }), ${methods} }`
  for (const [type, result] of [['Contoso.Other', 7], ['Other', 7], ['Contoso.Missing', 1], ['', 1]] as const) {
    const host = await serve(t, code, { type })
    t.match((await host.call(12, `${NS}ICalc/Add`, `<Add xmlns="${NS}"><a>1</a><b>2</b></Add>`)).text, `AddResult>${result}<`, JSON.stringify(type))
  }
})

t.test('host: a typed fault can be read by the contract that declares it', async t => {
  const host = await serve(t, 'export default { Place () { throw { fault: `OrderFaultFault`, message: `no stock`, detail: { Code: 7, Reasons: { string: [`a`, null] } } } }, Find () {}, Cancel () {}, Keys () {} }', { wsdl: 'orders' })
  const { schema } = load('orders', 'flat')
  const xsd = judge('orders')
  t.teardown(() => xsd.close())
  for (const soap of [11, 12] as const) {
    const { text } = await host.call(soap, `${NS}IOrders/Place`, order(''))
    const detail = (soap === 11 ? /<detail>([^]*)<\/detail>/ : /:Detail>([^]*)<\/\w+:Detail>/).exec(text)?.[1] ?? ''
    t.equal(xsd.check(detail), undefined, `SOAP ${soap}: the detail is valid`)
    t.strictSame(readBody(schema, detail, [])?.value, { Code: 7, Reasons: { string: ['a', null] } })
  }
})

t.test('host: an operation without a result is answered with its empty wrapper', async t => {
  const host = await serve(t, 'export default { Reset () {}, Add () {}, Echo () {}, Big () {}, Sum () {}, Prims () {}, Ping () {}, Now () {} }')
  const { status, text } = await host.call(12, `${NS}ICalc/Reset`, `<Reset xmlns="${NS}"/>`)
  t.equal(status, 200)
  t.match(bodyOf(text), /^<(\w+):ResetResponse xmlns:\1="http:\/\/tempuri\.org\/"\/>$/)
})
