/** Services for clients of other makes: one per WSDL of the vectors, which knows its cases, and one behind a host that is not ours. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { asset, packageRoot } from '../../core/assets.ts'
import { documents } from '../wsdl/cases.ts'
import { DEPOT } from '../wsdl/depot.ts'

export const CASE_WSDLS = ['calc', 'orders', 'shapes', 'telemetry', 'three'] as const

const casesModule = new URL('../wsdl/cases.js', import.meta.url).href
const serviceModule = new URL('../../service-host/index.js', import.meta.url).href

/**
 * A module that answers what the cases say: it compares the values that it gets with those of each case of the operation, and gives the reply of the one
 * that fits. None fits: a fault that says why, so a client that wrote something else hears of it.
 */
const caseModule = (wsdl: string): string => `
import { cases, difference, toValue } from ${JSON.stringify(casesModule)}
import { SoapFault } from ${JSON.stringify(serviceModule)}

const all = cases().filter(one => one.wsdl === ${JSON.stringify(wsdl)})
const answer = name => args => {
  const wrong = []
  for (const request of all.filter(one => one.operation === name && !one.isReply)) {
    const found = difference(request.values, args)
    if (found === undefined) return toValue(all.find(one => one.name === request.name.replace(/req$/, 'rep'))?.values ?? {})
    wrong.push(request.name + ' ' + found)
  }
  throw new SoapFault({ code: 'Sender', reason: 'no case has these values: ' + wrong.join('; ') })
}
export default Object.fromEntries(all.map(one => [one.operation, answer(one.operation)]))
`

export const registration = (service: string, host = '', broker = ''): string => `<configuration>
  <microsoft.Hpc.Session.ServiceRegistration>
    ${service}${host}
  </microsoft.Hpc.Session.ServiceRegistration>
  <microsoft.Hpc.Broker>${broker}</microsoft.Hpc.Broker>
</configuration>`

export interface ServiceFiles {
  /** Files beside `<name>.config`; those that begin with `#!` can be run. */
  readonly [file: string]: string
}

/** A folder of registration files, gone when the test ends; relative to the package, as Cluster wants it. */
export function servicesFolder (t: { teardown (end: () => unknown): void }, services: Readonly<Record<string, ServiceFiles>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'soa-interop-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  for (const [name, files] of Object.entries(services)) {
    mkdirSync(join(dir, name))
    for (const [file, text] of Object.entries(files)) {
      writeFileSync(join(dir, name, file), text)
      if (text.startsWith('#!')) chmodSync(join(dir, name, file), 0o755)
    }
  }
  return relative(packageRoot, dir)
}

/** Each WSDL of the vectors as a service of its name, schemas in files of their own. */
export function caseServices (names: readonly string[] = CASE_WSDLS): Record<string, ServiceFiles> {
  return Object.fromEntries(names.map(name => [name, {
    ...Object.fromEntries(documents(name)),
    'service.mjs': caseModule(name),
    [`${name}.config`]: registration('<service assembly="service.mjs" wsdl="split.wsdl" contract="" maxConcurrentCalls="4"/>')
  }]))
}

/** The rpc/literal service of test/interop/services, in one folder. */
export const depotService = (): Record<string, ServiceFiles> => ({
  depot: { ...DEPOT.documents, 'depot.mjs': readFileSync(asset('test/interop/services/depot.mjs'), 'utf8'), 'depot.config': registration('<service assembly="depot.mjs" contract="IDepot" maxConcurrentCalls="4"/>') }
})

/** Legal names that are a trap somewhere: words of languages, members of every JavaScript object, signs that no identifier may have, letters beyond ASCII. */
export const NASTY_NAMES = ['class', 'from', 'None', 'type', 'constructor', '__proto__', 'toString', 'hasOwnProperty', 'then', 'my-name', 'a.b', '_', 'Größe', '名前'] as const

export const echoWsdl = (name: string, content: string): string => `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:${name}" targetNamespace="urn:${name}" name="${name}">
  <types><xs:schema targetNamespace="urn:${name}" elementFormDefault="qualified">
    <xs:element name="Echo"><xs:complexType><xs:sequence>${content}</xs:sequence></xs:complexType></xs:element>
    <xs:element name="EchoResponse"><xs:complexType><xs:sequence>${content}</xs:sequence></xs:complexType></xs:element>
  </xs:schema></types>
  <message name="Echo"><part name="parameters" element="t:Echo"/></message>
  <message name="EchoResponse"><part name="parameters" element="t:EchoResponse"/></message>
  <portType name="${name}"><operation name="Echo"><input message="t:Echo"/><output message="t:EchoResponse"/></operation></portType>
  <binding name="${name}" type="t:${name}"><soap:binding transport="http://schemas.xmlsoap.org/soap/http" style="document"/>
    <operation name="Echo"><soap:operation soapAction="urn:${name}/Echo"/><input><soap:body use="literal"/></input><output><soap:body use="literal"/></output></operation>
  </binding>
  <service name="${name}"><port name="${name}" binding="t:${name}"><soap:address location="http://localhost/"/></port></service>
</definitions>`

/** Services that give back what they get: `names` with members of nasty names, `raw` with elements that its schema leaves open. */
export function echoServices (): Record<string, ServiceFiles> {
  const files = (name: string, content: string): ServiceFiles => ({
    'echo.mjs': 'export default { Echo: args => args }',
    [`${name}.wsdl`]: echoWsdl(name, content),
    [`${name}.config`]: registration(`<service assembly="echo.mjs" contract="${name}"/>`)
  })
  return {
    names: files('names', NASTY_NAMES.map(name => `<xs:element name="${name}" type="xs:string"/>`).join('')),
    raw: files('raw', '<xs:element name="before" type="xs:int"/><xs:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>')
  }
}
