import { pathToFileURL } from 'node:url'
import { knowOwnPackage } from '../../core/own-package.ts'
import { SoaError } from '../../core/errors.ts'
import { HOOKS, type CustomBroker } from '../custom-broker.ts'

/** A custom broker that can be given to a session. */
export interface LoadedBroker {
  /** Of the class, for people. */
  readonly name: string
  readonly broker: CustomBroker
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
    throw refuse(`it cannot be loaded: ${error instanceof Error ? error.stack ?? error.message : String(error)}`, error)
  }
  if (typeof made !== 'object' || made === null) throw refuse('its default export is neither a class nor an object')
  const broker = made as CustomBroker
  const hooks = HOOKS.filter(hook => broker[hook] !== undefined)
  const wrong = hooks.find(hook => typeof broker[hook] !== 'function')
  if (wrong !== undefined) throw refuse(`${wrong} is no method`)
  if (hooks.length === 0) throw refuse(`it has none of the hooks ${HOOKS.join(', ')}`)
  return { name: isClass(exported) ? exported.name || 'default' : 'default', broker }
}
