import t from 'tap'
import { readBody } from '../../wsdl/schema/reader.ts'
import { writeElement } from '../../wsdl/schema/writer.ts'
import { cases, difference, forms, judge, load, toValue } from './cases.ts'

const all = cases()
const names = [...new Set(all.map(c => c.wsdl))]

for (const name of names) {
  const mine = all.filter(c => c.wsdl === name)
  for (const form of forms) {
    t.test(`${name}, ${form}: zeep's messages are read to their values, and values are written as libxml2 and we ourselves read them`, async t => {
      const xsd = judge(name)
      t.teardown(() => xsd.close())
      const wsdl = load(name, form)
      for (const { name: label, operation, isReply, values, messages } of mine) {
        const op = wsdl.operations.find(o => o.name === operation)
        if (!op) { t.fail(`${label}: no operation`); continue }
        const element = (isReply ? op.outputElement : op.inputElement) as string
        t.ok(messages.length === (isReply ? 1 : 2), `${label}: has its messages`)
        for (const { file, body } of messages) {
          const read = readBody(wsdl.schema, body, [])
          t.equal(read?.name, element, `${file}: element`)
          t.equal(difference(values as null, read?.value), undefined, `${file}: value`)
        }
        const written = writeElement(wsdl.schema, element, toValue(values as null))
        t.equal(xsd.check(written), undefined, `${label}: valid for libxml2`)
        t.equal(difference(values as null, readBody(wsdl.schema, written, [])?.value), undefined, `${label}: reads back`)
        // What was read can be written again, and is the same then.
        t.equal(writeElement(wsdl.schema, element, readBody(wsdl.schema, written, [])?.value), written, `${label}: writes the same again`)
      }
    })
  }
}

t.test('judge: refuses a body that is not valid, so that a pass means something', async t => {
  const xsd = judge('calc')
  t.teardown(() => xsd.close())
  t.equal(xsd.check('<Add xmlns="http://tempuri.org/"><a>1</a><b>2</b></Add>'), undefined)
  t.match(xsd.check('<Add xmlns="http://tempuri.org/"><b>1</b><a>2</a></Add>'), /not expected/)
  t.match(xsd.check('<Add xmlns="http://tempuri.org/"><a>x</a></Add>'), /not a valid value/)
})
