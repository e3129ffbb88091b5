import { accessSync, constants, existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { checkService } from '../broker/check-service.ts'
import { loadServiceFile } from '../config/load-services.ts'
import { nameOfFile } from '../config/service-registration.ts'
import { SETTINGS } from '../config/settings.ts'
import { isSoaError } from '../core/errors.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import type { Io } from './io.ts'
import type { CheckedModule } from './module-check-main.ts'
import { checkModule } from './module-check.ts'
import { onPath } from './on-path.ts'

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
  try {
    const loaded = await loadServiceFile(file, { env: io.env, warn: warning => warnings.push(warning) })
    const { registration: { host, service, broker, customBroker }, contract, contractWarnings } = checkService(loaded, io.env)
    warnings.push(...contractWarnings)
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
    const runs = (where: string, program: string, args: readonly string[], whoNeedsIt: string): void => {
      const why = lacking(program, args, dirname(file))
      if (why !== undefined) problems.push({ kind: 'file', why: `${where} ${why}` })
      else if (!program.includes('/') && onPath(io, program) === undefined) warnings.push(`${where} ${program} is not on the PATH of this machine; ${whoNeedsIt}`)
    }
    if (customBroker !== undefined && customBroker.executive !== '') runs('customBroker/@executive:', customBroker.executive, customBroker.arguments, 'heads need it')
    if (customBroker !== undefined && customBroker.class !== '' && options.loadsModule) await load({ kind: 'broker', module: customBroker.class }, SETTINGS.hookTimeoutMs.default)
    if (host.hostType === 'Customize') {
      runs('host/@exeFileName:', host.exeFileName, host.arguments, 'nodes need it')
      return done({ ...about, module: 'executable' })
    }
    if (!options.loadsModule) return done(about)
    const what = { kind: 'service', module: service.assembly, type: service.type, documents: loaded.documents, wsdlFile: loaded.wsdlFile as string, contract: service.contract } as const
    const why = await load(what, broker.serviceInitializationTimeout ?? service.serviceInitializationTimeout, service.environmentVariables)
    return done({ ...about, module: why === undefined ? 'loaded' : 'notLoaded' })
  } catch (error) {
    if (!isSoaError(error)) throw error
    problems.push({ kind: isSoaError(error.cause, 'badContract', 'badXml', 'refused') ? 'refused' : 'file', why: error.message })
    return done()
  }
}

/** Programs that run the file that their first argument names. */
const INTERPRETERS = /^(?:python[\d.]*|pypy[\d.]*|node|bun|bash|sh|dash|zsh|ruby|perl|php|pwsh|dotnet|mono)$/

/** The file that a program lacks, by its path: itself, where the registration says where it lies, or the script that it is to run. */
function lacking (program: string, args: readonly string[], folder: string): string | undefined {
  if (program.includes('/')) {
    if (!existsSync(program)) return `${program} does not exist`
    if (!isExecutable(program)) return `${program} is no executable (chmod +x)`
  }
  const [script] = args
  // What begins with a dash, or names no file (`dotnet run`, `python3 -m`), only the interpreter understands.
  if (script === undefined || !INTERPRETERS.test(basename(program)) || !/\.\w+$|\//.test(script) || script.startsWith('-')) return undefined
  const path = resolve(folder, script)
  return existsSync(path) ? undefined : `${program} is to run ${path}, which does not exist`
}

function isExecutable (path: string): boolean {
  try { accessSync(path, constants.X_OK); return true } catch { return false }
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
    problems.length === 0 ? `${file}: ${title} can be added (${how}${said})` : `${file}: ${title} cannot be served`,
    ...problems.map(({ kind, why }) => `  ${kind === 'refused' ? 'refused' : 'wrong'}: ${why}`),
    ...warnings.map(warning => `  warning: ${warning}`)
  ]
}
