import { accessSync, constants, existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import type { ServiceRegistration } from '../config/service-registration.ts'
import type { Io } from './io.ts'
import { onPath } from './on-path.ts'

/** What a registration file names and this machine does not have, or cannot run; nothing is started to find it. */
export interface FilesHere {
  /** It would fail here: the check's problems, and warnings of who only registers, since nodes and heads may have what is not here. */
  readonly lacking: ReadonlyArray<{ readonly kind: 'file' | 'module', readonly why: string, readonly needed: 'nodes need it' | 'heads need it' }>
  /** It may be somewhere else on purpose. */
  readonly warnings: readonly string[]
}

export function filesHere ({ file, host, service, customBroker }: Pick<ServiceRegistration, 'file' | 'host' | 'service' | 'customBroker'>, io: Io): FilesHere {
  const lacking: Array<FilesHere['lacking'][number]> = []
  const warnings: string[] = []
  const runs = (where: string, program: string, args: readonly string[], needed: FilesHere['lacking'][number]['needed']): void => {
    const why = lackingOf(program, args, dirname(file))
    if (why !== undefined) lacking.push({ kind: 'file', why: `${where} ${why}`, needed })
    else if (!program.includes('/') && onPath(io, program) === undefined) warnings.push(`${where} ${program} is not on the PATH of this machine; ${needed}`)
  }
  if (customBroker !== undefined && customBroker.executive !== '') runs('customBroker/@executive:', customBroker.executive, customBroker.arguments, 'heads need it')
  if (host.hostType === 'Customize') runs('host/@exeFileName:', host.exeFileName, host.arguments, 'nodes need it')
  // In the words of the service host, which would find no more.
  else if (!existsSync(service.assembly)) lacking.push({ kind: 'module', why: `assembly ${service.assembly} is not there`, needed: 'nodes need it' })
  return { lacking, warnings }
}

/** The same for who only registers: it may be right on another machine. */
export function warningsOf ({ lacking, warnings }: FilesHere): string[] {
  return [...lacking.map(({ why, needed }) => `${why} on this machine; ${needed}`), ...warnings]
}

/** Programs that run the file that their first argument names. */
const INTERPRETERS = /^(?:python[\d.]*|pypy[\d.]*|node|bun|bash|sh|dash|zsh|ruby|perl|php|pwsh|dotnet|mono)$/

/** The file that a program lacks, by its path: itself, where the registration says where it lies, or the script that it is to run. */
function lackingOf (program: string, args: readonly string[], folder: string): string | undefined {
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
