/** Services for clients of other makes: one per WSDL of the vectors, which knows its cases, and one behind a host that is not ours. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { packageRoot } from '../../core/assets.ts'
import { documents } from '../wsdl/cases.ts'

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
