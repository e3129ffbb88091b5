/** The user's module → one function per operation. Everything that is missing or wrong is found here, before the host listens. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { SoaError } from '../core/errors.ts'
import type { HostExitName } from '../core/host-exits.ts'
import { knowOwnPackage } from '../core/own-package.ts'
import type { WsdlDocument, WsdlOperation } from '../wsdl/document.ts'
import type { ServiceContext } from './service-context.ts'

export type Method = (args: unknown, context: ServiceContext) => unknown

/** The module cannot be served; `exit` is the status that says so. */
export class ServiceUnusable extends SoaError<'Service_InitializeFailed'> {
  readonly exit: HostExitName

  constructor (exit: HostExitName, why: string, cause?: unknown) {
    super('Service_InitializeFailed', { why }, { cause })
    this.exit = exit
  }
}

type Methods = Record<string, unknown>
const isObject = (value: unknown): value is Methods => (typeof value === 'object' && value !== null) || typeof value === 'function'
/** A class (has methods, must be made) as opposed to an object. */
const isClass = (value: unknown): value is new () => unknown => typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))

/** Methods by name, those of classes included, but not what every object has. */
function methodOf (object: unknown, name: string): ((...args: unknown[]) => unknown) | undefined {
  if (!isObject(object) || name === 'constructor' || (name in Object.prototype && !Object.hasOwn(object, name))) return undefined
  const method = object[name]
  return typeof method === 'function' ? method.bind(object) as (...args: unknown[]) => unknown : undefined
}

/**
 * Loads `file` (absolute). Its default export (else the module itself) is a class or object with a method `(args, context) => result` for each operation,
 * or node-soap's `{ Service: { Port: { Operation (args, callback, headers) } } }`. `type`: the export that a registration file asks for, if there is one of
 * that name (behind the last dot). Throws ServiceUnusable that says what is missing.
 */
export async function loadService (file: string, wsdl: Pick<WsdlDocument, 'services'>, operations: readonly WsdlOperation[], type = ''): Promise<ReadonlyMap<string, Method>> {
  let service: unknown
  try {
    await knowOwnPackage(file, 'soa-broker/service', new URL('index.js', import.meta.url))
    const module = await import(pathToFileURL(file).href) as Record<string, unknown>
    const named = type.slice(type.lastIndexOf('.') + 1)
    service = (named !== '' && Object.hasOwn(module, named) ? module[named] : module.default) ?? module
    if (isClass(service)) service = new service() // eslint-disable-line new-cap
  } catch (error) {
    if (!existsSync(file)) throw new ServiceUnusable('moduleMissing', `assembly ${file} is not there`, error)
    throw new ServiceUnusable('moduleBroken', `module ${file} cannot be loaded: ${whereOf(file, error)}`, error)
  }
  if (!isObject(service)) throw new ServiceUnusable('contractUnmet', `module ${file} exports neither a class nor an object, but ${service === null ? 'null' : typeof service}`)

  const methods = new Map<string, Method>()
  const missing: string[] = []
  for (const { name, portType } of operations) {
    const own = methodOf(service, name)
    const foreign = own ? undefined : nodeSoapMethod(service as Methods, wsdl, portType, name)
    if (own) methods.set(name, (args, context) => own(args, context))
    else if (foreign) methods.set(name, foreign)
    else missing.push(name)
  }
  if (missing.length > 0) throw new ServiceUnusable('contractUnmet', `module ${file} has no method ${missing.join(', ')}, which the contract ${operations[0]?.portType ?? ''} asks for`)
  return methods
}

/** node-soap's shape. Its methods answer by a callback (`(result)` or `(error, result)`), by a promise, or by returning a value. */
function nodeSoapMethod (module: Methods, wsdl: Pick<WsdlDocument, 'services'>, portType: string, operation: string): Method | undefined {
  for (const service of wsdl.services) {
    const ports = Object.hasOwn(module, service.name) ? module[service.name] : undefined
    for (const port of isObject(ports) ? service.ports.filter(p => p.portType === portType && Object.hasOwn(ports, p.name)) : []) {
      const method = methodOf((ports as Methods)[port.name], operation)
      if (!method) continue
      return (args, context) => new Promise((resolve, reject) => {
        const done = (error: unknown, result?: unknown): void => {
          if (isObject(error) && (error instanceof Error || Object.hasOwn(error, 'Fault'))) reject(error)
          else if (result === undefined) resolve(error) // the older form, with the result alone
          else if (error) reject(error)
          else resolve(result)
        }
        const returned = method(args, done, context.headers)
        if (returned instanceof Promise || (isObject(returned) && typeof returned.then === 'function')) (returned as Promise<unknown>).then(resolve, reject)
        else if (returned !== undefined) resolve(returned)
      })
    }
  }
  return undefined
}

/** The error as text. Of a syntax error Node tells the place only to whoever lets it end the process, so it is asked once more. */
function whereOf (file: string, error: unknown): string {
  if (error instanceof SyntaxError) {
    const { stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: 10_000, env: {} })
    const told = stderr.split('\n    at ')[0]?.trim()
    if (told !== undefined && told.includes('SyntaxError')) return told
  }
  if (!(error instanceof Error)) return String(error)
  // A package that is not there: the frames are the loader's, and tell nobody anything.
  return (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND' ? `${error.name}: ${error.message}` : error.stack ?? String(error)
}
