import { pathToFileURL } from 'node:url'
import { nearNames } from '../../core/near-names.ts'
import { knowOwnPackage } from '../../core/own-package.ts'
import { SoaError } from '../../core/errors.ts'
import { HOOKS, type CustomBroker } from '../custom-broker.ts'

/** A custom broker that can be given to a session. */
export interface LoadedBroker {
  /** Of the class, for people. */
  readonly name: string
  readonly broker: CustomBroker
  /** Its methods that look like hooks and are none. */
  readonly strangers: readonly string[]
}

const isClass = (value: unknown): value is new () => CustomBroker => typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))

/** The module's default export, a class or an object with hooks. Refuses what has none, by name of the file. @param file absolute */
export async function loadCustomBroker (file: string): Promise<LoadedBroker> {
  const refuse = (why: string, cause?: unknown): SoaError => new SoaError('Broker_InvalidConfiguration', { setting: 'customBroker/@class', why: `${file}: ${why}` }, { cause })
  let exported: unknown
  let made: unknown
  try {
    await knowOwnPackage(file, 'soa-broker/broker', new URL('../custom-broker.js', import.meta.url))
    exported = (await import(pathToFileURL(file).href) as { default?: unknown }).default
    made = isClass(exported) ? new exported() : exported // eslint-disable-line new-cap
  } catch (error) {
    throw refuse(`it cannot be loaded: ${whereOf(file, error)}`, error)
  }
  if (exported === undefined) throw refuse('it has no default export; the class of the broker is expected there (export default class …)')
  if (typeof made !== 'object' || made === null) throw refuse('its default export is neither a class nor an object')
  const broker = made as CustomBroker
  const hooks = HOOKS.filter(hook => broker[hook] !== undefined)
  const wrong = hooks.find(hook => typeof broker[hook] !== 'function')
  if (wrong !== undefined) throw refuse(`${wrong} is no method`)
  if (hooks.length === 0) throw refuse(`it has none of the hooks ${HOOKS.join(', ')}`)
  return { name: isClass(exported) ? exported.name || 'default' : 'default', broker, strangers: strangersOf(made) }
}

/** Near enough to a hook's name that its author may have meant one. */
function strangersOf (broker: object): string[] {
  const names = new Set<string>()
  for (let at: object | null = broker; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at) as object | null) for (const name of Object.getOwnPropertyNames(at)) names.add(name)
  const known: readonly string[] = HOOKS
  return [...names].filter(name => !known.includes(name) && nearNames(name, known).length > 0)
}

/** The error as text, and where in the module it is: frames of Node's loader tell nobody anything. */
function whereOf (file: string, error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (/\.tsx?$/.test(file)) return 'it is TypeScript; compile it, and name the .js or .mjs that comes of it'
  const frame = error.stack?.split('\n').find(line => line.includes(file))?.trim()
  return `${error.name}: ${error.message.split('\n')[0]?.replace(/ imported from data:\S*/, '') ?? ''}${frame === undefined ? '' : ` (${frame})`}`
}
