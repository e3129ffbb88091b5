import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { XmlDocument, XsdValidator, xmlCleanupInputProvider, xmlRegisterInputProvider } from 'libxml2-wasm'
import { fsInputProviders } from 'libxml2-wasm/lib/nodejs.mjs'
import t, { type Test } from 'tap'
import { brokerInitializationResult, sessionInfo } from '../../broker/head/soap/answers.ts'
import { SETTINGS, type AllSettings } from '../../config/settings.ts'
import { CONTRACT_WSDL, contractDocuments } from '../../wsdl/contract-wsdl.ts'
import { BROKER_CONTROLLER, BROKER_LAUNCHER, SERVICE_HOST, SESSION_LAUNCHER, type Contract, type Field, type Operation } from '../../wsdl/contracts.ts'
import type { DataType } from '../../wsdl/data-contracts.ts'
import { loadWsdl } from '../../wsdl/document.ts'
import { writePulledPage } from '../../wsdl/pulled-page.ts'
import { encodeReply, encodeRequest, type Value, type Values } from '../../wsdl/shapes.ts'

const contracts: Contract[] = [SESSION_LAUNCHER, BROKER_LAUNCHER, BROKER_CONTROLLER]

/** What libxml2 says of a body, by the schemas of a contract; undefined: it is valid. */
function judge (t: Pick<Test, 'teardown'>, contract: Contract): (body: Buffer | string) => string | undefined {
  const dir = mkdtempSync(join(tmpdir(), 'soa-xsd-'))
  const documents = contractDocuments(contract)
  for (const [name, text] of Object.entries(documents)) writeFileSync(join(dir, name), text)
  const imports = /<xs:schema[^]*?<\/xs:schema>/.exec(documents[CONTRACT_WSDL] ?? '')?.[0].replace('<xs:schema', '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"') ?? ''
  xmlRegisterInputProvider(fsInputProviders)
  const doc = XmlDocument.fromString(imports, { url: join(dir, 'all.xsd') })
  const validator = XsdValidator.fromDoc(doc)
  t.teardown(() => { validator.dispose(); doc.dispose(); xmlCleanupInputProvider(); rmSync(dir, { recursive: true }) })
  return body => {
    const parsed = XmlDocument.fromString(body.toString())
    try { validator.validate(parsed) } catch (error) { return (error as Error).message } finally { parsed.dispose() }
    return undefined
  }
}

function whole (type: DataType): Value {
  if (typeof type === 'string') return { int: -7, 'int?': 2 ** 31 - 1, long: 2 ** 40, boolean: true, 'boolean?': false, base64: 'AAEC', string: 'a & <b>' }[type]
  if (type.kind === 'enum') return type.isFlags === true ? type.values.slice(1, 3).join(' ') : type.values.at(-1)
  if (type.kind === 'list') return [whole(type.of), whole(type.of), ...type.of === 'string' ? [undefined] : []]
  if (type.kind === 'dictionary') return { k: 'v', none: undefined }
  return Object.fromEntries(type.members.map(([name, of]) => [name, whole(of)]))
}

const ADDRESSES = { http: 'http://grid.example', netTcp: 'net.tcp://grid.example:9091', brokerLauncher: undefined }

/** Everything nil that may be. */
function sparse (type: DataType): Value {
  if (typeof type === 'string') return ['int', 'long', 'boolean'].includes(type) ? whole(type) : undefined
  return type.kind === 'enum' ? whole(type) : undefined
}
/** Data contracts are there, with nil members. */
const hollow = (type: DataType): Value => typeof type !== 'string' && type.kind === 'contract' ? Object.fromEntries(type.members.map(([name, of]) => [name, sparse(of)])) : sparse(type)

t.test('contract wsdl: names, elements, actions and faults are those of the rows', async t => {
  for (const contract of contracts) {
    const wsdl = loadWsdl(contractDocuments(contract), CONTRACT_WSDL)
    t.equal(wsdl.targetNamespace, contract.namespace)
    t.strictSame(wsdl.portTypes, [contract.name])
    const rows = Object.values<Operation>(contract.operations)
    t.strictSame(wsdl.operations.map(({ name, action, replyAction, inputElement, outputElement, oneWay }) => [name, action, replyAction, inputElement, outputElement, oneWay]),
      rows.map(({ name, namespace, action, replyAction }) => [name, action, replyAction, `{${namespace}}${name}`, `{${namespace}}${name}Response`, false]))
    for (const { faults } of wsdl.operations) t.strictSame(faults, [{ name: 'SessionFaultFault', element: '{http://hpc.microsoft.com/session/}SessionFault', action: 'http://hpc.microsoft.com/session/SessionFault' }])
  }
  t.match(loadWsdl(contractDocuments(SERVICE_HOST), CONTRACT_WSDL).operations, [{ name: 'Exit', oneWay: true, action: 'http://hpc.microsoft.com/hpcservicehost/exit', faults: [] }])
})

t.test('contract wsdl: all that is read and written by the rows is valid by the schemas, nil where it may be', async t => {
  for (const contract of contracts) {
    const check = judge(t, contract)
    for (const operation of Object.values<Operation>(contract.operations)) {
      const values = (fields: readonly Field[], of: (type: DataType) => Value): Values => Object.fromEntries(fields.filter(([, type]) => type !== 'xml').map(([name, type]) => [name, of(type as DataType)]))
      for (const of of [whole, sparse, hollow]) {
        t.equal(check(encodeRequest(operation, values(operation.input, of))), undefined, `${operation.name} ${of.name}`)
        if (operation.output.every(([, type]) => type !== 'xml')) t.equal(check(encodeReply(operation, values(operation.output, of))), undefined, `${operation.name}Response ${of.name}`)
      }
    }
  }
})

t.test('contract wsdl: the answers of our endpoints are valid, and what is none is not', async t => {
  const settings = Object.fromEntries(Object.entries(SETTINGS).map(([name, { default: value }]) => [name, value])) as unknown as AllSettings
  const record = { sessionId: '7', service: 'Echo', version: '1.0', durable: true, priority: 0, settings: {}, environment: {}, state: 'Running', createdAt: '' } as const
  const sessions = judge(t, SESSION_LAUNCHER)
  const info = encodeReply(SESSION_LAUNCHER.operations.GetInfo, { GetInfoResult: sessionInfo(record, settings, ADDRESSES, 'http://', false) }).toString()
  t.equal(sessions(info), undefined)
  for (const [what, wrong] of [['an unknown state', info.replace('>Running<', '>Resting<')], ['a text for a number', info.replace('>20000<', '>many<')], ['another order', info.replace(/(<\w+:Durable>.*?<\/\w+:Durable>)(<\w+:Id>.*?<\/\w+:Id>)/, '$2$1')], ['another namespace', info.replace('"http://hpc.microsoft.com/SessionLauncher"', '"http://hpc.microsoft.com/SessionLauncher/"')]] as const) {
    t.not(wrong, info)
    t.ok(sessions(wrong), what)
  }
  t.equal(judge(t, BROKER_LAUNCHER)(encodeReply(BROKER_LAUNCHER.operations.Create, { CreateResult: brokerInitializationResult('7', 'unique', settings, ADDRESSES) })), undefined)
  const page = writePulledPage(true, [Buffer.from('<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><x xmlns="urn:x">1</x></s:Body></s:Envelope>')])
  const pages = judge(t, BROKER_CONTROLLER)
  t.equal(pages(page), undefined)
  t.equal(pages(writePulledPage(false, [])), undefined)
  t.ok(pages(page.toString().replace('<EOM>true</EOM>', '')))
})

t.test('contract wsdl: members keep the order and the nil of HPC Pack\'s contract', async t => {
  const schema = Object.values(contractDocuments(SESSION_LAUNCHER)).find(text => text.includes('name="SessionStartInfoContract"')) ?? ''
  const members = [...(/<xs:complexType name="SessionStartInfoContract">[^]*?<\/xs:complexType>/.exec(schema)?.[0] ?? '').matchAll(/ name="(\w+)"( nillable="true")? type="([\w:]+)"/g)]
  // [wire-contract] 2.2: value types that may be nil are those with a question mark there.
  t.equal(members.length, 53)
  const plain = members.filter(([, , nillable]) => nillable === undefined).map(([, name]) => name)
  t.strictSame(plain, ['AdminJobForHostInDiag', 'IsNoSession', 'Runtime', 'Secure', 'ShareSession', 'TransportScheme', 'UseAad', 'UseInprocessBroker', 'UseSessionPool', 'UseWindowsClientCredential'])
  t.match(members.find(([, name]) => name === 'Certificate'), { 3: 'xs:base64Binary' })
  t.match(schema, 'targetNamespace="http://hpc.microsoft.com/"')
})
