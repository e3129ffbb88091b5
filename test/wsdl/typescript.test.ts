import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { asset } from '../../core/assets.ts'
import { loadWsdl } from '../../wsdl/document.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { typescriptOf } from '../../wsdl/typescript.ts'
import { cases, documents } from './cases.ts'

const library = join(asset('node_modules/typescript/lib'), 'lib.es2023.d.ts')

/** What the compiler has against each of these texts, in words; one run for all, because a run is what costs. */
function complaints (texts: Readonly<Record<string, string>>): Record<string, string[]> {
  const options: ts.CompilerOptions = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, types: [] }
  const host = ts.createCompilerHost(options)
  const readSource = host.getSourceFile.bind(host)
  const files = new Map(Object.entries(texts).map(([name, text]) => [`/${name}.ts`, text]))
  host.getSourceFile = (name, version) => files.has(name) ? ts.createSourceFile(name, files.get(name) as string, version) : readSource(name, version)
  host.getDefaultLibFileName = () => library
  host.fileExists = name => files.has(name) || ts.sys.fileExists(name)
  const found: Record<string, string[]> = Object.fromEntries(Object.keys(texts).map(name => [name, []]))
  for (const { file, messageText } of ts.getPreEmitDiagnostics(ts.createProgram([...files.keys()], options, host))) {
    (found[file?.fileName.slice(1, -3) ?? ''] ??= []).push(ts.flattenDiagnosticMessageText(messageText, ' '))
  }
  return found
}

const pricer = 'examples/services/OptionPricer/OptionPricer.wsdl'
const printed = typescriptOf(loadWsdl({ [pricer]: readFileSync(asset(pricer), 'utf8') }, pricer), pricer)

t.test('types: a contract is an interface with args and result of each operation', async t => {
  t.equal(printed, `// Made from ${pricer} by "soa service types": change that, not this file.

export interface IOptionPricer {
  Price: {
    args: {
      spot: number
      strike: number
      rate: number
      volatility: number
      years: number
      isCall: boolean
      paths?: number
      seed: number
    }
    result: {
      PriceResult?: Quote | null
    }
  }
}

/** {urn:soa-broker:option-pricer}Quote */
export interface Quote {
  instance: string | null
  price: number
  standardError: number
  taskId: string | null
}
`)
})

t.test('types: the compiler takes right values and refuses a misspelt member', async t => {
  const args = (text: string): string => `${printed}\nexport const args: IOptionPricer['Price']['args'] = ${text}\n`
  t.match(complaints({
    right: args('{ spot: 1, strike: 1, rate: 0, volatility: 0.2, years: 1, isCall: true, seed: 7 }'),
    wrong: args('{ spot: 1, strike: 1, rate: 0, volatility: 0.2, years: 1, isCal: true, seed: 7 }')
  }), { right: { length: 0 }, wrong: [/isCal/] })
})

/** A value as source text. */
function literal (value: unknown): string {
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Date) return `new Date(${JSON.stringify(value.toISOString())})`
  if (value instanceof Uint8Array) return `new Uint8Array([${[...value].join(', ')}])`
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value === 'object' && value !== null) return `{ ${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${literal(one)}`).join(', ')} }`
  return typeof value === 'number' ? String(value) : value === undefined ? 'undefined' : JSON.stringify(value)
}

t.test('types: what is printed for a contract is what its messages are read to, split and flat the same', async t => {
  const texts: Record<string, string> = {}
  for (const name of readdirSync(asset('test/wsdl/vectors/wsdl'))) {
    const wsdl = loadWsdl(documents(name), 'split.wsdl')
    const split = typescriptOf(wsdl, name)
    if (documents(name).has('flat.wsdl')) t.equal(typescriptOf(loadWsdl(documents(name), 'flat.wsdl'), name), split, `${name}: split and flat`)
    const values = cases().filter(one => one.wsdl === name && !one.name.includes('200k')).map(({ operation, isReply, messages }, i) => {
      const { value } = readBody(wsdl.schema, messages[0]?.body as string, []) ?? {}
      return `export const v${i}: ${wsdl.operations.find(op => op.name === operation)?.portType}['${operation}']['${isReply ? 'result' : 'args'}'] = ${literal(value)}`
    })
    texts[name] = [split, ...values].join('\n')
  }
  t.ok(Object.values(texts).join('').split('export const').length > 60, 'there are values to try')
  for (const [name, said] of Object.entries(complaints(texts))) t.same(said, [], name)
})

t.test('types: words, lists, unions, families and order are typed as they are read', async t => {
  const schema = `<xs:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <xs:simpleType name="Status"><xs:restriction base="xs:string"><xs:enumeration value="New"/><xs:enumeration value="It's"/></xs:restriction></xs:simpleType>
    <xs:complexType name="Shape" abstract="true"><xs:sequence><xs:element name="id" type="xs:int"/></xs:sequence></xs:complexType>
    <xs:complexType name="Circle"><xs:complexContent><xs:extension base="t:Shape"><xs:sequence><xs:element name="r" type="xs:double"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
    <xs:element name="a"><xs:complexType><xs:sequence>
      <xs:element name="status" type="t:Status"/><xs:element name="flags"><xs:simpleType><xs:list itemType="t:Status"/></xs:simpleType></xs:element>
      <xs:element name="either"><xs:simpleType><xs:union memberTypes="xs:int t:Status"/></xs:simpleType></xs:element><xs:element name="shape" type="t:Shape"/>
      <xs:element name="many"><xs:complexType><xs:choice maxOccurs="unbounded"><xs:element name="x" type="xs:int"/><xs:element name="y" type="xs:int"/></xs:choice></xs:complexType></xs:element>
    </xs:sequence></xs:complexType></xs:element></xs:schema>`
  const wsdl = `<w:definitions targetNamespace="urn:t" xmlns:t="urn:t" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"><w:types>${schema}</w:types><w:message name="m"><w:part name="p" element="t:a"/></w:message><w:portType name="P"><w:operation name="Op"><w:input message="t:m"/></w:operation></w:portType></w:definitions>`
  const loaded = loadWsdl({ w: wsdl }, 'w')
  const body = '<a xmlns="urn:t" xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><status>It\'s</status><flags>New</flags><either>New</either><shape i:type="Circle"><id>1</id><r>2</r></shape><many><y>1</y><x>2</x></many></a>'
  const text = typescriptOf(loaded, 'w')
  const args = (value: string): string => `${text}\nexport const v: P['Op']['args'] = ${value}`
  const value = literal(readBody(loaded.schema, body, [])?.value)
  t.match(value, '"$order": ["y", "x"]')
  const spoiled: Array<[from: string, to: string]> = [['"It\'s"', '"Its"'], ['["New"]', '["Other"]'], ['"either": "New"', '"either": true'], ['"{urn:t}Circle"', '"{urn:t}Square"'], ['"r": 2', '"q": 2'], ['["y", "x"]', '["z"]']]
  for (const [from] of spoiled) t.ok(value.includes(from), from)
  const said = complaints({ right: args(value), ...Object.fromEntries(spoiled.map(([from, to], i) => [i, args(value.replace(from, to))])) })
  t.same(said.right, [])
  for (const [i, [, to]] of spoiled.entries()) t.not(said[i]?.length, 0, `${to} is refused`)
})
