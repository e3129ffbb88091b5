import { readFileSync } from 'node:fs'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { readSettings, unknownVariables } from '../config/read-settings.ts'
import { environmentName, flagName, settingNames, settingOf, settingsRead, type AllSettings, type ProcessSettings, type Reader, type SettingName } from '../config/settings.ts'
import { didYouMean, nearNames } from '../core/near-names.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import type { Io } from './io.ts'

/** Variables with a meaning that are no settings: what the broker itself hands to its children, and the settings file. */
const OTHER_VARIABLES = ['SOA_CONFIG', 'SOA_WORKER_SPEC', 'SOA_LISTEN_URL']

const WORDS: Partial<Record<string, string>> = { text: 'TEXT', flag: '', port: 'PORT' }
/** Shorter names for what stands in a flag's help. */
const PLACEHOLDERS: Partial<Record<string, string>> = { http: 'HOST:PORT', netTcp: 'HOST:PORT', sessionLauncherPort: 'PORT', brokerLauncherPort: 'PORT', tlsCertificate: 'FILE', tlsKey: 'FILE', tlsClientCa: 'FILE', head: 'URL[,URL…]', redis: 'URL', dataDir: 'DIR', runDir: 'DIR', advertise: 'HOST[:PORT]', trustedProxies: 'NETWORKS' }

/** Settings that most people who set any at all set: in `--help`. Every other one is a flag too, and stands in `soa settings`. */
export const MOST_USED: readonly SettingName[] = [
  'http', 'netTcp', 'redis', 'dataDir', 'advertise', 'insecure', 'durability', 'logLevel', 'maxSessions', 'cores', 'nodeId', 'hostAddress', 'groups', 'labels', 'head',
  'sessionIdleTimeout', 'clientIdleTimeout', 'messageResendLimit', 'serviceOperationTimeout', 'maxMessageSize', 'maxSessionBytes', 'unitIdleTimeoutMs', 'minWarm'
]

/** A flag for each process setting that this command reads. Values are checked with all others by `processSettings`, so that one rule and one sentence serve them all. */
export function addSettings (command: Command, by: Reader): Command {
  for (const name of settingsRead(by)) {
    const setting = settingOf(name)
    const value = PLACEHOLDERS[name] ?? WORDS[setting.unit] ?? 'N'
    const range = setting.oneOf !== undefined ? ` (${setting.oneOf.join(', ')})` : ''
    const fallback = setting.default === '' || setting.default === false ? '' : `, default ${String(setting.default)}`
    command.addOption(new Option(value === '' ? flagName(name) : `${flagName(name)} <${value}>`, `${setting.says}${range} [${environmentName(name)}${fallback}]`).hideHelp(!MOST_USED.includes(name)))
  }
  if (by === 'client') return command
  return command
    .option('--config <FILE>', 'settings as JSON, {"name": value}; flags and environment win [SOA_CONFIG]')
    .option('--set <name=value>', 'default of a session setting; may be given again', nameAndValue)
    .addHelpText('after', () => [
      '',
      moreSettings(settingsRead(by)),
      ...sessionSettingsHelp('Session settings (--set, or in the environment)')
    ].join('\n'))
}

/** What `--help` does not show of these. */
function moreSettings (read: readonly SettingName[]): string {
  const [example, ...others] = read.filter(name => !MOST_USED.includes(name))
  return example === undefined ? '' : `"soa settings" has ${others.length + 1} more that are flags of this command too (${example}: ${flagName(example)}).`
}

/** The most used ones, names and defaults, two beside each other. */
export function sessionSettingsHelp (title: string): string[] {
  const all = settingNames('session')
  const cells = all.filter(name => MOST_USED.includes(name)).map(name => `${name.padEnd(29)} ${String(settingOf(name).default)} ${settingOf(name).unit}`)
  const half = Math.ceil(cells.length / 2)
  const lines = cells.slice(0, half).map((cell, i) => `  ${cell.padEnd(48)}  ${cells[half + i] ?? ''}`.trimEnd())
  return ['', `${title} used most, with defaults; "soa settings" has all ${all.length}:`, ...lines]
}

/** commander's collector for `--set name=value`. */
export function nameAndValue (text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('name=value is expected.')
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}

/** Flags as commander parsed them (camelCase, which are the settings' names), environment and file, as settings; misspelt SOA_ variables get a line on stderr. */
export function processSettings (io: Io, flags: Readonly<Record<string, unknown>>): AllSettings {
  const variables = [...settingNames().map(environmentName), ...OTHER_VARIABLES]
  for (const name of unknownVariables(io.env, OTHER_VARIABLES)) io.err(`${name} is set and means nothing here${didYouMean(nearNames(name, variables)) || '; soa settings lists the names'}`)
  const { set = {}, config = io.env.SOA_CONFIG, ...rest } = flags as { set?: Record<string, unknown>, config?: string }
  const known = new Set<string>(settingNames('session'))
  for (const name of Object.keys(set)) if (!known.has(name)) throw new CommandFailed(EXIT.usage, `--set ${name}: no session setting has this name${didYouMean(nearNames(name, known))}; soa settings lists them`)
  return readSettings(io.env, { ...rest, ...set }, undefined, config === undefined ? {} : settingsFile(config))
}

function settingsFile (path: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>
  } catch (error) {
    throw new CommandFailed(EXIT.usage, `settings file ${path}: ${(error as Error).message}`, { cause: error })
  }
  throw new CommandFailed(EXIT.usage, `settings file ${path}: an object {"name": value} is expected`)
}

/** All settings as environment: how they reach the processes that a process starts, so that a flag counts for each of them. */
export function settingsAsEnvironment (env: Io['env'], settings: AllSettings): Record<string, string | undefined> {
  const { SOA_CONFIG: _isRead, ...others } = env
  return { ...others, ...Object.fromEntries(settingNames().map(name => [environmentName(name), String(settings[name])])) }
}

/** `[::1]:8080` → `::1` and 8080, as Node's listen wants them. */
export const listenAddress = (settings: ProcessSettings): { host: string, port: number } => bare(hostAndPort(settings.http))

const bare = ({ host, port }: { host: string, port: number }): { host: string, port: number } => ({ host: host.replace(/^\[(.*)\]$/, '$1'), port })

/** Where net.tcp is served; undefined: nowhere. */
export function netTcpAddress (settings: ProcessSettings): { host: string, port: number, sessionLauncherPort: number | undefined, brokerLauncherPort: number | undefined } | undefined {
  if (settings.netTcp === 'off') return undefined
  const { sessionLauncherPort, brokerLauncherPort } = settings
  return { ...bare(hostAndPort(settings.netTcp, 'netTcp')), sessionLauncherPort: sessionLauncherPort === 0 ? undefined : sessionLauncherPort, brokerLauncherPort: brokerLauncherPort === 0 ? undefined : brokerLauncherPort }
}

/** HOST:PORT, and the setting that says it. */
export interface ListenAddress { readonly address: string, readonly setting: 'http' | 'netTcp' | 'sessionLauncherPort' | 'brokerLauncherPort' }

/** Every address that a head listens on. */
export function listenAddresses (settings: ProcessSettings): ListenAddress[] {
  const http = { address: settings.http, setting: 'http' } as const
  if (settings.netTcp === 'off') return [http]
  const { host } = hostAndPort(settings.netTcp, 'netTcp')
  const ports = (['sessionLauncherPort', 'brokerLauncherPort'] as const).filter(setting => settings[setting] !== 0)
  return [http, { address: settings.netTcp, setting: 'netTcp' }, ...ports.map(setting => ({ address: `${host}:${settings[setting]}`, setting }))]
}

/** `host:port` taken apart; `[::1]:8080` for IPv6. */
export function hostAndPort (address: string, setting: ListenAddress['setting'] = 'http'): { host: string, port: number } {
  const found = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]/]+):)?(\d{1,5})$/.exec(address)
  const port = Number(found?.[2])
  if (found === null || port > 65535) throw new CommandFailed(EXIT.usage, `${flagName(setting)}: HOST:PORT is expected (127.0.0.1:8080, [::1]:8080, port 0 picks a free one${setting === 'netTcp' ? ', or off' : ''}), not ${JSON.stringify(address)}`)
  return { host: found[1] ?? '127.0.0.1', port }
}
