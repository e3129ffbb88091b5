import { basename, dirname, resolve } from 'node:path'
import { SaxesParser } from 'saxes'
import { Parser } from 'xml2js'
import { isSoaError, SoaError } from '../core/errors.ts'
import { settingValue } from './read-settings.ts'
import { atMost, readBindings } from './registration-bindings.ts'
import { Section, type Element } from './registration-section.ts'
import { BROKER, REGISTRATION, SERVICE_MODEL, SESSION } from './registration-table.ts'
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
    /** Name of the module's export, or a .NET class that ends in it; empty: the default export. */
    readonly type: string
    /** Our attribute: absolute path. */
    readonly wsdl?: string | undefined
    /** Our attribute: requests may have elements and attributes that the contract does not have. */
    readonly lenient: boolean
    readonly includeExceptionDetailInFaults: boolean
    /** 0: cores of the task. */
    readonly maxConcurrentCalls: number
    readonly maxSessionPoolSize: number
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
    readonly environmentVariables: Readonly<Record<string, string>>
    /** Shell commands that a node runs before the first and after the last task of a session there; empty: none. */
    readonly prepareNodeCommandLine: string
    readonly releaseNodeCommandLine: string
  }
  readonly host: {
    readonly hostType: 'Standard' | 'Customize'
    /** Customize only. With a slash: absolute path; without: found on the node's PATH. */
    readonly exeFileName: string
    /** Ours: split at blanks, "…" holds blanks together. */
    readonly arguments: readonly string[]
    /** Ours: `free` = a free port in SOA_LISTEN_URL, `hpc` = HPC Pack's port, 9100 + first core. */
    readonly addressing: 'free' | 'hpc'
    /** Ours, Customize only: what the program speaks. */
    readonly scheme: 'http' | 'net.tcp'
  }
  /** Session settings that the file sets (monitor, loadBalancing, and sizes and timeouts of service): the middle layer of `sessionSettings`. */
  readonly broker: Partial<Settings>
  /** One of `class` and `executive` is empty. */
  readonly customBroker?: {
    /** Ours: absolute path of a module whose default export is a custom broker class (broker/custom-broker.ts). */
    readonly class: string
    /** HPC Pack's: a program, one per session. With a slash: absolute path; without: found on the head's PATH. */
    readonly executive: string
    /** Ours: of the program. */
    readonly arguments: readonly string[]
    readonly environmentVariables: Readonly<Record<string, string>>
  } | undefined
  readonly warnings: readonly string[]
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Registration files of the field have 3 to 10 KB. */
const MAX_REGISTRATION_BYTES = 1_048_576

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
  const refuse = (why: string, cause?: unknown): never => { throw new SoaError('ConfigFile_Invalid', { file, why }, { cause }) }
  try {
    return parse(xml, file, env, refuse)
  } catch (error) {
    // A setting that is out of range does not know in which file it stands.
    return isSoaError(error, 'Broker_InvalidConfiguration') ? refuse(error.context.join(': '), error) : raise(error)
  }
}

const raise = (error: unknown): never => { throw error }

function parse (xml: string, file: string, env: Environment, refuse: (why: string, cause?: unknown) => never): ServiceRegistration {
  if (Buffer.byteLength(xml) > MAX_REGISTRATION_BYTES) refuse(`the file has ${Buffer.byteLength(xml)} bytes, the limit is ${MAX_REGISTRATION_BYTES}`)
  checkXml(xml, refuse)
  const warnings: string[] = []
  const open = (element: Element | undefined, path: string): Section => new Section({ element, path, warnings, refuse, expand: (text, at) => expand(text, env, name => warnings.push(`${at}: environment variable ${name} is not set here`)) })
  const root = open(parseXml(xml, refuse), 'configuration')

  const registration = open(root.take(REGISTRATION), REGISTRATION)
  const host = readHost(open(registration.take('host'), `${REGISTRATION}/host`), file, warnings, refuse)
  const service = open(registration.take('service'), `${REGISTRATION}/service`)
  if (service.isAbsent) refuse(`it has no ${REGISTRATION}/service`)
  const read = readService(service, file, warnings)
  const broker = open(root.take(BROKER), BROKER)
  const settings: Record<string, number | string | boolean> = { ...read.settings }
  for (const name of ['monitor', 'loadBalancing']) readSettingsOf(broker.child(name), warnings, settings)
  for (const address of broker.child('services').child('brokerServiceAddresses').children('add')) checkAddress(address)
  const custom = broker.child('customBroker')
  const customBroker = custom.isAbsent ? undefined : readCustomBroker(custom, file, refuse)
  broker.idle('services')
  const limits = readBindings(open(root.take(SERVICE_MODEL), SERVICE_MODEL), warnings)
  const session = open(root.take(SESSION), SESSION)
  for (const section of [root, registration, service, broker, session]) section.finish()

  if (host.hostType === 'Standard') {
    if (read.service.assembly === '') refuse(`${REGISTRATION}/service/@assembly is missing: the path of the service's .js or .mjs module`)
    if (/\.(dll|exe)$/i.test(read.service.assembly)) {
      // A file in good order, of a service that no host of ours can run.
      const why = `assembly ${read.service.assembly} is a .NET program, which the standard host cannot load; serve it with the .NET host sample, examples/dotnet-host: host hostType="Customize" exeFileName="dotnet" arguments="…/dotnet-host.dll"`
      refuse(why, new SoaError('refused', { why }))
    }
  }
  return { ...nameOfFile(file), file, service: read.service, host, broker: { ...limits, ...settings } as Partial<Settings>, customBroker, warnings }
}

function readService (service: Section, file: string, warnings: string[]): { service: ServiceRegistration['service'], settings: Record<string, number> } {
  const wsdl = service.expanded('wsdl')
  const maxMessageSize = service.integer('maxMessageSize', 0, -(2 ** 31))
  const serviceInitializationTimeout = service.integer('serviceInitializationTimeout', SETTINGS.serviceInitializationTimeout.default, 1)
  const settings: Record<string, number> = {}
  if (maxMessageSize > 0) settings.maxMessageSize = settingValue('maxMessageSize', atMost('maxMessageSize', maxMessageSize, `${REGISTRATION}/service/@maxMessageSize`, warnings), `${REGISTRATION}/service/@maxMessageSize`) as number
  if (service.has('serviceInitializationTimeout')) settings.serviceInitializationTimeout = serviceInitializationTimeout
  for (const name of ['serviceHostIdleTimeout', 'serviceHangTimeout'] as const) if (service.has(name)) settings[name] = service.integer(name, SETTINGS[name].default, -1)
  return {
    settings,
    service: {
      assembly: beside(file, service.expanded('assembly')),
      contract: service.text('contract'),
      type: service.text('type'),
      wsdl: wsdl === '' ? undefined : beside(file, wsdl),
      lenient: service.boolean('lenient', false),
      includeExceptionDetailInFaults: service.boolean('includeExceptionDetailInFaults', false),
      maxConcurrentCalls: service.integer('maxConcurrentCalls', 0, 0),
      maxSessionPoolSize: service.integer('maxSessionPoolSize', 1, 1),
      serviceInitializationTimeout,
      serviceHostIdleTimeout: service.integer('serviceHostIdleTimeout', 3_600_000, -1),
      serviceHangTimeout: service.integer('serviceHangTimeout', -1, -1),
      enableMessageLevelPreemption: service.boolean('enableMessageLevelPreemption', true),
      stdError: beside(file, service.expanded('stdError')),
      maxMessageSize: settings.maxMessageSize,
      environmentVariables: readEnvironment(service, service.refuse),
      prepareNodeCommandLine: service.text('prepareNodeCommandLine').trim(),
      releaseNodeCommandLine: service.text('releaseNodeCommandLine').trim()
    }
  }
}

function readHost (host: Section, file: string, warnings: string[], refuse: (why: string) => never): ServiceRegistration['host'] {
  const hostType = host.oneOf('hostType', ['Standard', 'Customize', 'None'], 'Standard')
  if (hostType === 'None') warnings.push(`${host.path}/@hostType: None counts as Standard here`)
  const exeFileName = host.expanded('exeFileName')
  if (exeFileName !== '' && hostType !== 'Customize') warnings.push(`${host.path}/@exeFileName: has no effect without hostType="Customize"`)
  const read = {
    hostType: hostType === 'Customize' ? 'Customize' as const : 'Standard' as const,
    // A name without a slash is a program of the machine (python3): looked for on PATH, as a shell does.
    exeFileName: exeFileName.includes('/') ? beside(file, exeFileName) : exeFileName,
    arguments: splitArguments(host.expanded('arguments')),
    addressing: host.oneOf('addressing', ['free', 'hpc'], 'free'),
    scheme: host.oneOf('scheme', ['http', 'net.tcp'], 'http')
  }
  host.finish()
  if (hostType === 'Customize' && exeFileName === '') refuse(`${REGISTRATION}/host has hostType="Customize" and no exeFileName`)
  return read
}

function readCustomBroker (custom: Section, file: string, refuse: (why: string) => never): NonNullable<ServiceRegistration['customBroker']> {
  const executive = custom.expanded('executive')
  const module = custom.expanded('class')
  if (executive !== '' && module !== '') refuse(`${custom.path} has class and executive; a session has one custom broker`)
  if (executive === '' && module === '') refuse(`${custom.path} has neither class, the module of a custom broker, nor executive, a program`)
  const read = {
    class: beside(file, module),
    executive: executive.includes('/') ? beside(file, executive) : executive,
    arguments: splitArguments(custom.expanded('arguments')),
    environmentVariables: readEnvironment(custom, refuse)
  }
  custom.finish()
  return read
}

/** Split at blanks; "…" holds blanks together. */
const splitArguments = (text: string): string[] => [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

/** Any session setting may stand in monitor or loadBalancing: HPC Pack's under its name, ours too. */
function readSettingsOf (section: Section, warnings: string[], into: Record<string, number | string | boolean>): void {
  for (const name of settingNames('session')) {
    const at = `${section.path}/@${name}`
    const said = section.text(name).trim()
    if (section.has(name)) into[name] = settingValue(name, name === 'maxMessageSize' && /^\d{1,15}$/.test(said) ? atMost(name, Number(said), at, warnings) : said, at)
  }
  section.finish()
}

/** HPC Pack refuses an address that is none, although it may then not use it. */
function checkAddress (add: Section): void {
  const said = add.text('baseAddress').trim()
  if (!URL.canParse(said)) throw new SoaError('Broker_InvalidConfiguration', { setting: `${add.path}/@baseAddress`, why: `a URI, not ${JSON.stringify(said.slice(0, 100))}` })
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

/** Well-formed, each attribute once, no DTD: xml2js takes more than that, and the first of two attributes without a word. */
function checkXml (xml: string, refuse: (why: string) => never): void {
  const parser = new SaxesParser({ xmlns: false })
  parser.on('doctype', () => refuse('it has a document type declaration, which is refused: entities could name other files'))
  parser.on('error', error => refuse(`it is no well-formed XML: line ${error.message.replace(/^(\d+):(\d+): /, '$1, column $2: ')}`))
  parser.write(xml).close()
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
