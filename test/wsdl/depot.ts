/** An rpc/literal contract in three files, that of the service `Depot` of test/interop/services, and a judge of its messages that is not ours. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { XmlDocument, XsdValidator, xmlCleanupInputProvider, xmlRegisterInputProvider } from 'libxml2-wasm'
import { fsInputProviders } from 'libxml2-wasm/lib/nodejs.mjs'
import { asset } from '../../core/assets.ts'

const DIR = asset('test/interop/services/depot')

export const DEPOT = { documents: Object.fromEntries(['depot.wsdl', 'data.xsd', 'common.xsd'].map(file => [file, readFileSync(join(DIR, file), 'utf8')])), main: 'depot.wsdl' }

const wrapper = (name: string, ...parts: Array<[name: string, type: string]>): string =>
  `<xs:element name="${name}"><xs:complexType><xs:sequence>${parts.map(([name, type]) => `<xs:element name="${name}" type="${type}"/>`).join('')}</xs:sequence></xs:complexType></xs:element>`

/** What WS-I's Basic Profile says of the bodies, written out by hand as the schema that an rpc contract does not have. */
const BODIES = `<xs:schema targetNamespace="urn:depot" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:d="urn:depot:data" xmlns:c="urn:depot:common">
  <xs:import namespace="urn:depot:data" schemaLocation="data.xsd"/><xs:import namespace="urn:depot:common" schemaLocation="common.xsd"/>
  ${wrapper('add', ['a', 'xs:int'], ['b', 'xs:int'])}${wrapper('addResponse', ['return', 'xs:int'])}
  ${wrapper('place', ['order', 'd:Order'], ['rush', 'xs:boolean'])}${wrapper('placeResponse', ['receipt', 'd:Receipt'], ['total', 'xs:decimal'])}
  ${wrapper('sum', ['values', 'c:IntArray'])}${wrapper('sumResponse', ['return', 'xs:long'])}
  ${wrapper('stock')}${wrapper('stockResponse', ['return', 'd:Stock'])}
  ${wrapper('touch', ['key', 'xs:string'])}${wrapper('touchResponse')}
  ${wrapper('grow', ['shape', 'd:Shape'], ['by', 'xs:double'])}${wrapper('growResponse', ['return', 'd:Shape'])}
  ${wrapper('note', ['line', 'xs:string'], ['level', 'c:Level'])}
</xs:schema>`

/** Says what is wrong with a body; undefined: it is valid. Close it: it holds memory outside of JavaScript's. */
export function judgeDepot (): { check (body: string): string | undefined, close (): void } {
  xmlRegisterInputProvider(fsInputProviders)
  const doc = XmlDocument.fromString(BODIES, { url: join(DIR, 'bodies.xsd') })
  const validator = XsdValidator.fromDoc(doc)
  return {
    check (body) {
      const parsed = XmlDocument.fromString(body)
      try {
        validator.validate(parsed)
        return undefined
      } catch (error) {
        return (error as Error).message
      } finally {
        parsed.dispose()
      }
    },
    close () { validator.dispose(); doc.dispose(); xmlCleanupInputProvider() }
  }
}
