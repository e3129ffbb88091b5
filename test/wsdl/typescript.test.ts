import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import { asset } from '../../core/assets.ts'
import { loadWsdl } from '../../wsdl/document.ts'
import { typescriptOf } from '../../wsdl/typescript.ts'
import { documents } from './cases.ts'

const library = join(asset('node_modules/typescript/lib'), 'lib.es2023.d.ts')

/** What the compiler has against `text`, in words. */
function complaints (text: string): string[] {
  const options: ts.CompilerOptions = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, types: [] }
  const host = ts.createCompilerHost(options)
  const readSource = host.getSourceFile.bind(host)
  host.getSourceFile = (name, version) => name === '/types.ts' ? ts.createSourceFile(name, text, version) : readSource(name, version)
  host.getDefaultLibFileName = () => library
  host.fileExists = name => name === '/types.ts' || ts.sys.fileExists(name)
  return ts.getPreEmitDiagnostics(ts.createProgram(['/types.ts'], options, host)).map(one => ts.flattenDiagnosticMessageText(one.messageText, ' '))
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
  t.same(complaints(args('{ spot: 1, strike: 1, rate: 0, volatility: 0.2, years: 1, isCall: true, seed: 7 }')), [])
  t.match(complaints(args('{ spot: 1, strike: 1, rate: 0, volatility: 0.2, years: 1, isCal: true, seed: 7 }')), [/isCal/])
})

for (const name of readdirSync(asset('test/wsdl/vectors/wsdl'))) {
  t.test(`types: what is printed for the contract ${name} compiles, split and flat the same`, async t => {
    const [split, flat] = ['split.wsdl', 'flat.wsdl'].filter(file => documents(name).has(file)).map(file => typescriptOf(loadWsdl(documents(name), file), name))
    t.same(complaints(split ?? ''), [])
    if (flat !== undefined) t.equal(flat, split)
  })
}
