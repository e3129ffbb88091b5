import { SoaError } from '../core/errors.ts'
import { didYouMean, nearNames } from '../core/near-names.ts'
import { SETTINGS, environmentName, flagName, settingNames, settingOf, type AllSettings, type ProcessSettings, type Setting, type SettingName, type Settings } from './settings.ts'

type Values = Readonly<Record<string, unknown>>

/** Words for the values that a setting takes: `a whole number of ms, 1 or more`. */
export function rangeOf (setting: Setting): string {
  if (setting.oneOf !== undefined) return `one of ${setting.oneOf.join(', ')}`
  if (typeof setting.default === 'boolean') return 'true or false'
  if (typeof setting.default === 'string') return 'text'
  const { min = 0, max } = setting
  return `a whole number of ${setting.unit}, ${max === undefined ? `${min} or more` : `${min} to ${max}`}`
}

/**
 * One value as the table wants it: numbers may come as text. Refuses with `Broker_InvalidConfiguration`, naming `saidIn` (where the value was given,
 * e.g. `SOA_MAX_DEPTH`), unit, range and the value seen.
 */
export function settingValue (name: SettingName, given: unknown, saidIn: string = name): number | string | boolean {
  const setting = settingOf(name)
  const value = typeof setting.default === 'number' ? numberOf(given) : typeof setting.default === 'boolean' ? flagOf(given) : given
  const fits = typeof value === typeof setting.default &&
    (typeof value !== 'number' || (Number.isSafeInteger(value) && value >= (setting.min ?? 0) && value <= (setting.max ?? Infinity))) &&
    (setting.oneOf === undefined || setting.oneOf.includes(value as string))
  if (fits) return value as number | string | boolean
  throw new SoaError('Broker_InvalidConfiguration', { setting: saidIn, why: `${rangeOf(setting)}, not ${JSON.stringify(given)?.slice(0, 200)}` })
}

// Number('') is 0 and Number(' 1 ') is 1: neither is what somebody wrote on purpose. Digits only, so 1e3 and 0x10 are refused too.
const numberOf = (given: unknown): unknown => typeof given === 'string' && /^-?\d{1,16}$/.test(given) ? Number(given) : given
const flagOf = (given: unknown): unknown => given === 'true' || given === '1' ? true : given === 'false' || given === '0' || given === '' ? false : given

/**
 * A process's settings: flag, then environment, then file, then the table's default. `flags` and `file` are keyed by setting name, flags that were
 * not given are absent or undefined. Pure: the caller hands in its environment. Refuses with `Broker_InvalidConfiguration`.
 */
export function readSettings (env: Readonly<Record<string, string | undefined>>, flags: Values, scope: 'process', file?: Values): ProcessSettings
export function readSettings (env: Readonly<Record<string, string | undefined>>, flags: Values, scope: 'session', file?: Values): Settings
export function readSettings (env: Readonly<Record<string, string | undefined>>, flags: Values, scope?: undefined, file?: Values): AllSettings
export function readSettings (env: Readonly<Record<string, string | undefined>>, flags: Values, scope?: Setting['scope'], file: Values = {}): unknown {
  for (const name of Object.keys(file)) if (!Object.hasOwn(SETTINGS, name)) throw unknown(name, settingNames())
  const given = new Set<string>()
  const read = Object.fromEntries(settingNames(scope).map(name => {
    const variable = environmentName(name)
    const found = flags[name] !== undefined
      ? [flags[name], flagName(name)] as const
      : env[variable] !== undefined ? [env[variable], variable] as const : file[name] !== undefined ? [file[name], `${name} in the settings file`] as const : undefined
    if (found === undefined) return [name, SETTINGS[name].default]
    given.add(name)
    return [name, settingValue(name, ...found)]
  }))
  return scope === 'process' ? read : throttleInOrder(read as unknown as Settings, given.has('messageThrottleStartThreshold') && !given.has('messageThrottleStopThreshold'))
}

/** Variables that start with SOA_ and mean nothing here: a misspelt setting is the likely reason. `others` are names that the caller knows to be of use. */
export function unknownVariables (env: Readonly<Record<string, string | undefined>>, others: readonly string[] = []): string[] {
  const known = new Set([...settingNames().map(environmentName), ...others])
  return Object.keys(env).filter(name => name.startsWith('SOA_') && !known.has(name))
}

/**
 * What one session runs with: the process's defaults, then the service's registration file, then what the session asked for. Unknown names, names of
 * process settings and values out of range are refused with `Broker_InvalidConfiguration`.
 */
export function sessionSettings (defaults: Settings, registration: Values, overrides: Values): Settings {
  let settings: Settings = { ...defaults }
  for (const layer of [registration, overrides]) {
    const said: Record<string, unknown> = {}
    for (const [name, given] of Object.entries(layer)) {
      if (given !== undefined) said[name] = settingValue(sessionSettingName(name), given)
    }
    // A layer that moves only the start takes the stop along, at HPC Pack's 3/4; its own code meant that too ([broker-behaviour] 6.4, quirk).
    settings = throttleInOrder({ ...settings, ...said }, 'messageThrottleStartThreshold' in said && !('messageThrottleStopThreshold' in said))
  }
  return settings
}

function sessionSettingName (name: string): SettingName {
  if (!Object.hasOwn(SETTINGS, name)) throw unknown(name, settingNames('session'))
  if (SETTINGS[name as SettingName].scope !== 'session') throw new SoaError('Broker_InvalidConfiguration', { setting: name, why: 'is a setting of the process, not of a session' })
  return name as SettingName
}

/** @param among what would do in its place */
function unknown (name: string, among: readonly SettingName[]): SoaError {
  const bare = (text: string): string => text.toLowerCase().replace(/ms$/, '')
  const same = among.find(known => bare(known) === bare(name))
  const near = same === undefined ? nearNames(name, among) : [same]
  return new SoaError('Broker_InvalidConfiguration', { setting: name.slice(0, 100), why: `no setting has this name${didYouMean(near) || '; `soa settings` lists them'}` })
}

function throttleInOrder<S extends Settings> (settings: S, followStart: boolean): S {
  const start = settings.messageThrottleStartThreshold
  const stop = followStart ? Math.floor(start * 3 / 4) : settings.messageThrottleStopThreshold
  if (stop >= start) {
    throw new SoaError('Broker_InvalidConfiguration', { setting: 'messageThrottleStopThreshold', why: `must be below messageThrottleStartThreshold (${start} messages), not ${stop}` })
  }
  return { ...settings, messageThrottleStopThreshold: stop }
}
