import { existsSync } from 'node:fs'
import { basename, extname, resolve } from 'node:path'
import { checkService } from '../broker/check-service.ts'
import { loadServiceFile } from '../config/load-services.ts'
import { nameOfFile } from '../config/service-registration.ts'
import { SETTINGS } from '../config/settings.ts'
import { isSoaError } from '../core/errors.ts'
import { didYouMean } from '../core/near-names.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { filesHere } from './files-here.ts'
import type { Io } from './io.ts'
import type { CheckedModule } from './module-check-main.ts'
import { checkModule } from './module-check.ts'

/** What `soa service check` says of one file; printed as it is with --json. */
export interface RegistrationCheck {
  readonly file: string
  readonly name: string
  readonly version: string | null
  readonly ok: boolean
  /** Why it cannot be served; empty: it can. `refused`: it needs what is not supported here, or no service here can do it. */
  readonly problems: ReadonlyArray<{ readonly kind: 'file' | 'refused' | 'module', readonly why: string }>
  readonly warnings: readonly string[]
  readonly hostType: string | null
  readonly wsdlFile: string | null
  readonly contract: string | null
  readonly operations: ReadonlyArray<{ readonly name: string, readonly oneWay: boolean, readonly faults: readonly string[] }>
  /** Loaded, not loaded because that was not asked for or cannot be done here, or an executable. */
  readonly module: 'loaded' | 'notLoaded' | 'executable'
}

/** Reads all that a head and a node would read, without either. Never rejects: what is wrong is in `problems`. */
export async function checkRegistration (path: string, io: Io, options: { loadsModule: boolean }): Promise<RegistrationCheck> {
  const file = resolve(path)
  const { name, version = null } = nameOfFile(file)
  const warnings: string[] = []
  const problems: Array<RegistrationCheck['problems'][number]> = []
  const base = { file, name, version, hostType: null, wsdlFile: null, contract: null, operations: [], module: 'notLoaded' as const }
  const done = (more: Partial<RegistrationCheck> = {}): RegistrationCheck => ({ ...base, ...more, ok: problems.length === 0, problems, warnings: [...new Set(warnings)] })
  if (!isRegistration(file)) {
    problems.push({ kind: 'file', why: `a registration file is wanted, NAME.config or NAME_VERSION.config${besideIt(file)}` })
    return done()
  }
  try {
    const loaded = await loadServiceFile(file, { env: io.env, warn: warning => warnings.push(warning) })
    const { registration, contract, contractWarnings } = checkService(loaded, io.env)
    const { host, service, broker, customBroker } = registration
    const here = filesHere(registration, io)
    warnings.push(...contractWarnings, ...here.warnings)
    problems.push(...here.lacking.map(({ kind, why }) => ({ kind, why })))
    const about = {
      hostType: host.hostType,
      wsdlFile: loaded.wsdlFile ?? null,
      contract: contract?.contract ?? null,
      operations: (contract?.operations ?? []).map(({ name, oneWay, faults }) => ({ name, oneWay, faults: faults.map(fault => fault.name) }))
    }
    const load = async (what: CheckedModule, timeoutMs: number, variables: Readonly<Record<string, string>> = {}): Promise<string | undefined> => {
      const why = await checkModule(what, { timeoutMs, signal: io.signal, env: { ...io.env, ...variables }, err: line => io.err(line) })
      if (why !== undefined) problems.push({ kind: 'module', why })
      return why
    }
    if (customBroker !== undefined && customBroker.class !== '' && options.loadsModule) await load({ kind: 'broker', module: customBroker.class }, SETTINGS.hookTimeoutMs.default)
    if (host.hostType === 'Customize') return done({ ...about, module: 'executable' })
    if (!options.loadsModule || here.lacking.some(({ kind }) => kind === 'module')) return done(about)
    const what = { kind: 'service', module: service.assembly, type: service.type, documents: loaded.documents, wsdlFile: loaded.wsdlFile as string, contract: service.contract } as const
    const why = await load(what, broker.serviceInitializationTimeout ?? service.serviceInitializationTimeout, service.environmentVariables)
    return done({ ...about, module: why === undefined ? 'loaded' : 'notLoaded' })
  } catch (error) {
    if (!isSoaError(error)) throw error
    problems.push({ kind: isSoaError(error.cause, 'badContract', 'badXml', 'refused') ? 'refused' : 'file', why: isSoaError(error, 'ConfigFile_Invalid') && error.context[0] === file ? error.context[1] ?? error.message : error.message })
    return done()
  }
}

const isRegistration = (file: string): boolean => /\.config$/i.test(file)

/** Of a service's WSDL or module, the registration file beside it may have been meant. */
function besideIt (file: string): string {
  const beside = `${file.slice(0, file.length - extname(file).length)}.config`
  return existsSync(beside) ? didYouMean([basename(beside)]) : ''
}

/** 5 when all that is wrong is a refusal, else 1. */
export function exitCodeOf (checks: readonly RegistrationCheck[]): ExitCode {
  const problems = checks.flatMap(check => check.problems)
  if (problems.length === 0) return EXIT.ok
  return problems.every(({ kind }) => kind === 'refused') ? EXIT.refused : EXIT.failed
}

export function linesOf ({ file, name, version, problems, warnings, contract, operations, module, hostType }: RegistrationCheck): string[] {
  const title = version === null ? name : `${name} ${version}`
  const how = module === 'loaded' ? 'its module loads' : module === 'executable' ? 'an executable' : 'its module was not loaded'
  const said = contract === null ? hostType === null ? '' : ', no contract' : `, ${contract} with ${operations.length} operation${operations.length === 1 ? '' : 's'}`
  return [
    problems.length === 0 ? `${file}: ${title} can be added (${how}${said})` : isRegistration(file) ? `${file}: ${title} cannot be served` : `${file} is no registration file`,
    ...problems.map(({ kind, why }) => `  ${kind === 'refused' ? 'refused' : 'wrong'}: ${why}`),
    ...warnings.map(warning => `  warning: ${warning}`)
  ]
}
