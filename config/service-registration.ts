import { basename, dirname, resolve } from 'node:path'
import { Parser } from 'xml2js'
import { SoaError } from '../core/errors.ts'
import { settingValue } from './read-settings.ts'
import { Section, type Element } from './registration-section.ts'
import { SETTINGS, settingNames, type Settings } from './settings.ts'

/** HPC Pack's service registration file ([broker-behaviour] 6) as far as it means something here; what does not is in `warnings`, by path. */
export interface ServiceRegistration {
  readonly name: string
  readonly version?: string | undefined
  readonly file: string
  readonly service: {
    /** Absolute path of the module (Standard) or what the executable makes of it (Customize); empty: none given. */
    readonly assembly: string
    /** portType; empty: the only one of the WSDL. */
    readonly contract: string
    readonly type: string
    /** Our attribute: absolute path. */
    readonly wsdl?: string | undefined
    readonly includeExceptionDetailInFaults: boolean
    /** 0: cores of the task. */
    readonly maxConcurrentCalls: number
    readonly serviceInitializationTimeout: number
    /** ms without a call after the first one; then the host exits 0. -1: never. */
    readonly serviceHostIdleTimeout: number
    /** ms that one call may make no progress; then the host exits. -1: never. */
    readonly serviceHangTimeout: number
    readonly enableMessageLevelPreemption: boolean
    /** File that the host's stderr is written to; empty: the node manager's log. */
    readonly stdError: string
    /** Undefined: not said, or HPC Pack's "leave it alone" (0 or less). */
    readonly maxMessageSize?: number | undefined
    readonly prepareNodeCommandLine: string
    readonly releaseNodeCommandLine: string
    readonly environmentVariables: Readonly<Record<string, string>>
  }
  readonly host: {
    readonly hostType: 'Standard' | 'Customize'
    /** Customize only. With a slash: absolute path; without: found on the node's PATH. */
    readonly exeFileName: string
    /** Ours: split at blanks, "…" holds blanks together. */
    readonly arguments: readonly string[]
    /** Ours: `free` = a free port in SOA_LISTEN_URL, `hpc` = HPC Pack's port, 9100 + first core. */
    readonly addressing: 'free' | 'hpc'
  }
  /** Session settings that the file sets (monitor, loadBalancing, and maxMessageSize and serviceInitializationTimeout of service): the middle layer of `sessionSettings`. */
  readonly broker: Partial<Settings>
  readonly customBroker?: { readonly executive: string, readonly environmentVariables: Readonly<Record<string, string>> } | undefined
  readonly warnings: readonly string[]
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Registration files of the field have 3 to 10 KB. */
const MAX_REGISTRATION_BYTES = 1_048_576

const REGISTRATION = 'microsoft.Hpc.Session.ServiceRegistration'
const BROKER = 'microsoft.Hpc.Broker'
// Read by HPC Pack and without effect here: warned about as such, so that nobody tunes a number that nothing reads.
const IDLE_IN_SERVICE = ['architecture', 'maxSessionPoolSize', 'soaDiagTraceLevel']
const IDLE_IN_MONITOR = ['loadSamplingInterval', 'allocationAdjustInterval', 'statusUpdateInterval', 'clientBrokerHeartbeatInterval', 'clientBrokerHeartbeatRetryCount',
  'allocationGrowLoadRatioThreshold', 'allocationShrinkLoadRatioThreshold']
const IDLE_IN_LOAD_BALANCING = ['multiEmissionDelayTime', 'endpointNotFoundRetryCountLimit', 'maxConnectionCountPerAzureProxy', 'dispatcherCapacityInGrowShrink']
const IDLE_OF_DOTNET = ['system.serviceModel', 'system.diagnostics', 'startup', 'runtime', 'appSettings']

/**
 * `<service>.config` or `<service>_<version>.config`: split at the last `_` when a version follows (two to four numbers). HPC Pack splits at every `_` and so
 * finds no version of a service with `_` in its name; 0.0 is no version there either.
 */
export function nameOfFile (file: string): { name: string, version?: string | undefined } {
  const base = basename(file).replace(/\.config$/i, '')
  const versioned = /^(.+)_(\d+(?:\.\d+){1,3})$/.exec(base)
  return versioned?.[1] === undefined || versioned[2] === '0.0' ? { name: base } : { name: versioned[1], version: versioned[2] }
}

/**
 * Reads a registration file's text. Names and relative paths come from `file`, `%NAME%`, `$NAME` and `${NAME}` in paths from `env`; a variable that is not
 * set there stays as written and is warned about (the file may be meant for another machine). Refuses what is no XML, has a DTD, or has a value of the wrong
 * type with `ConfigFile_Invalid`, and a broker setting out of range with `Broker_InvalidConfiguration`.
 */
export function parseRegistration (xml: string, file: string, env: Environment = {}): ServiceRegistration {
  const refuse = (why: string): never => { throw new SoaError('ConfigFile_Invalid', { file, why }) }
  if (Buffer.byteLength(xml) > MAX_REGISTRATION_BYTES) refuse(`the file has ${Buffer.byteLength(xml)} bytes, the limit is ${MAX_REGISTRATION_BYTES}`)
  if (hasDtd(xml)) refuse('it has a document type declaration, which is refused: entities could name other files')
  const warnings: string[] = []
  const open = (element: Element | undefined, path: string): Section => new Section({ element, path, warnings, refuse, expand: (text, at) => expand(text, env, name => warnings.push(`${at}: environment variable ${name} is not set here`)) })
  const root = open(parseXml(xml, refuse), 'configuration')
  for (const idle of IDLE_OF_DOTNET) if (root.takeAll(idle).length > 0) warnings.push(`configuration/${idle}: belongs to .NET and has no effect here`)
  root.takeAll('configSections') // .NET's own index of the sections below: nothing in it is ours to read

  const registration = open(root.take(REGISTRATION), REGISTRATION)
  const host = readHost(open(registration.take('host'), `${REGISTRATION}/host`), file, refuse)
  const service = open(registration.take('service'), `${REGISTRATION}/service`)
  if (service.isAbsent) refuse(`it has no ${REGISTRATION}/service`)
  const read = readService(service, file)
  const broker = open(root.take(BROKER), BROKER)
  const settings: Record<string, number> = { ...read.settings }
  readSettingsOf(open(broker.take('monitor'), `${BROKER}/monitor`), IDLE_IN_MONITOR, settings)
  readSettingsOf(open(broker.take('loadBalancing'), `${BROKER}/loadBalancing`), IDLE_IN_LOAD_BALANCING, settings)
  if (broker.take('services') !== undefined) warnings.push(`${BROKER}/services: has no effect here: the head says where it listens (soa head --http)`)
  const custom = open(broker.take('customBroker'), `${BROKER}/customBroker`)
  const customBroker = custom.isAbsent ? undefined : { executive: beside(file, custom.expanded('executive')), environmentVariables: readEnvironment(custom, refuse) }
  const session = open(root.take('microsoft.Hpc.Session'), 'microsoft.Hpc.Session')
  if (session.take('debugMode') !== undefined) warnings.push('microsoft.Hpc.Session/debugMode: has no effect here')
  for (const section of [root, registration, service, broker, custom, session]) section.finish()

  if (host.hostType === 'Standard') {
    if (read.service.assembly === '') refuse(`${REGISTRATION}/service/@assembly is missing: the path of the service's .js or .mjs module`)
    if (/\.(dll|exe)$/i.test(read.service.assembly)) {
      refuse(`assembly ${read.service.assembly} is a .NET program, which the standard host cannot load; start it with host hostType="Customize" exeFileName="…", as the .NET host sample does`)
    }
  }
  return { ...nameOfFile(file), file, service: read.service, host, broker: settings as Partial<Settings>, customBroker, warnings }
}

function readService (service: Section, file: string): { service: ServiceRegistration['service'], settings: Record<string, number> } {
  const wsdl = service.expanded('wsdl')
  const maxMessageSize = service.integer('maxMessageSize', 0, -(2 ** 31))
  const serviceInitializationTimeout = service.integer('serviceInitializationTimeout', SETTINGS.serviceInitializationTimeout.default, 1)
  const settings: Record<string, number> = {}
  if (maxMessageSize > 0) settings.maxMessageSize = settingValue('maxMessageSize', maxMessageSize, `${REGISTRATION}/service/@maxMessageSize`) as number
  if (service.has('serviceInitializationTimeout')) settings.serviceInitializationTimeout = serviceInitializationTimeout
  for (const name of ['serviceHostIdleTimeout', 'serviceHangTimeout'] as const) if (service.has(name)) settings[name] = service.integer(name, SETTINGS[name].default, -1)
  service.ignore(IDLE_IN_SERVICE)
  return {
    settings,
    service: {
      assembly: beside(file, service.expanded('assembly')),
      contract: service.text('contract'),
      type: service.text('type'),
      wsdl: wsdl === '' ? undefined : beside(file, wsdl),
      includeExceptionDetailInFaults: service.boolean('includeExceptionDetailInFaults', false),
      maxConcurrentCalls: service.integer('maxConcurrentCalls', 0, 0),
      serviceInitializationTimeout,
      serviceHostIdleTimeout: service.integer('serviceHostIdleTimeout', 3_600_000, -1),
      serviceHangTimeout: service.integer('serviceHangTimeout', -1, -1),
      enableMessageLevelPreemption: service.boolean('enableMessageLevelPreemption', true),
      stdError: beside(file, service.expanded('stdError')),
      maxMessageSize: settings.maxMessageSize,
      prepareNodeCommandLine: service.text('prepareNodeCommandLine'),
      releaseNodeCommandLine: service.text('releaseNodeCommandLine'),
      environmentVariables: readEnvironment(service, service.refuse)
    }
  }
}

function readHost (host: Section, file: string, refuse: (why: string) => never): ServiceRegistration['host'] {
  const hostType = host.oneOf('hostType', ['Standard', 'Customize', 'None'], 'Standard')
  const exeFileName = host.expanded('exeFileName')
  const read = {
    hostType: hostType === 'Customize' ? 'Customize' as const : 'Standard' as const,
    // A name without a slash is a program of the machine (python3): looked for on PATH, as a shell does.
    exeFileName: exeFileName.includes('/') ? beside(file, exeFileName) : exeFileName,
    arguments: [...host.expanded('arguments').matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? ''),
    addressing: host.oneOf('addressing', ['free', 'hpc'], 'free')
  }
  host.finish()
  if (hostType === 'Customize' && exeFileName === '') refuse(`${REGISTRATION}/host has hostType="Customize" and no exeFileName`)
  return read
}

/** Any session setting may stand in monitor or loadBalancing: HPC Pack's under its name, ours too. */
function readSettingsOf (section: Section, idle: readonly string[], into: Record<string, number>): void {
  for (const name of settingNames('session')) {
    const said = section.text(name).trim()
    if (section.has(name)) into[name] = settingValue(name, said, `${section.path}/@${name}`) as number
  }
  section.ignore(idle)
  section.finish()
}

function readEnvironment (parent: Section, refuse: (why: string) => never): Record<string, string> {
  const variables = new Map<string, string>()
  const section = parent.child('environmentVariables')
  for (const add of section.children('add')) {
    const name = add.text('name')
    if (!/^[^=\0]{1,1024}$/.test(name)) refuse(`${add.path}/@name: the name of an environment variable, not ${JSON.stringify(name.slice(0, 100))}`)
    variables.set(name, add.text('value')) // a name given twice: the later one, as .NET's collection does
    add.finish()
  }
  section.finish()
  return Object.fromEntries(variables)
}

const beside = (file: string, path: string): string => path === '' ? '' : resolve(dirname(file), path.replaceAll('\\', '/'))

function expand (text: string, env: Environment, missing: (name: string) => void): string {
  return text.replace(/%([A-Za-z_]\w*)%|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)/g, (whole: string, ...names: Array<string | undefined>) => {
    const name = names.slice(0, 3).find(found => found !== undefined) ?? ''
    const value = env[name]
    if (value === undefined) missing(name)
    return value ?? whole
  })
}

/** A `<!DOCTYPE` outside comments and CDATA. One pass: the file is a stranger's. */
function hasDtd (xml: string): boolean {
  for (let at = xml.indexOf('<!'); at !== -1; at = xml.indexOf('<!', at + 2)) {
    const end = xml.startsWith('<!--', at) ? '-->' : xml.startsWith('<![CDATA[', at) ? ']]>' : undefined
    if (end === undefined) return true
    at = xml.indexOf(end, at)
    if (at === -1) return false // never closed: the parser says so
  }
  return false
}

function parseXml (xml: string, refuse: (why: string) => never): Element {
  let failed: Error | null = null
  let parsed: unknown
  // Not asynchronous: the callback has run when parseString returns. It may run twice after an error: the first one counts.
  new Parser({ async: false, explicitArray: true, emptyTag: () => ({}) }).parseString(xml, (error: Error | null, result: unknown) => {
    failed ??= error
    parsed ??= result
  })
  if (failed !== null) refuse(`it is no well-formed XML: ${(failed as Error).message.replace(/\s*\n\s*/g, ', ')}`)
  const root = (parsed as { configuration?: Element | string } | undefined)?.configuration // the root alone is no array
  return typeof root === 'string' ? {} : root ?? refuse('its root element is not <configuration>')
}
