/**
 * Every element and attribute of HPC Pack's service registration file ([broker-behaviour] 6), and those that are ours: what each does here, or why it does
 * nothing. `parseRegistration` warns by this table, docs/services.md is printed from it, and a test walks every row.
 */
import { settingOf, type SessionSettingName } from './settings.ts'

export const REGISTRATION = 'microsoft.Hpc.Session.ServiceRegistration'
export const BROKER = 'microsoft.Hpc.Broker'
export const SESSION = 'microsoft.Hpc.Session'
export const SERVICE_MODEL = 'system.serviceModel'

export interface RegistrationRow {
  /** `used`: it does what `says` says. `warned`: it has no effect, for the reason that `says` gives, and whoever loads the file is told. `silent`: the same without a word. */
  readonly does: 'used' | 'warned' | 'silent'
  /** Values, in words; empty for an element. */
  readonly takes: string
  /** What holds when it is not there; empty: nothing. */
  readonly default: string
  readonly says: string
  /** No part of HPC Pack's file. */
  readonly isOurs: boolean
}

type Rows = Readonly<Record<string, RegistrationRow>>

const used = (takes: string, fallback: string, says: string): RegistrationRow => ({ does: 'used', takes, default: fallback, says, isOurs: false })
const ours = (takes: string, fallback: string, says: string): RegistrationRow => ({ ...used(takes, fallback, says), isOurs: true })
const warned = (says: string, takes = ''): RegistrationRow => ({ does: 'warned', takes, default: '', says, isOurs: false })
const silent = (says: string): RegistrationRow => ({ does: 'silent', takes: '', default: '', says, isOurs: false })

const setting = (name: SessionSettingName): RegistrationRow => {
  const { default: fallback, unit } = settingOf(name)
  return used(unit, String(fallback), 'the session setting of this name')
}
const settings = (...names: SessionSettingName[]): Rows => Object.fromEntries(names.map(name => [`@${name}`, setting(name)]))

const VARIABLE = { '@name': used('text', '', 'name of the variable; given twice, the later one counts'), '@value': used('text', '', 'its value') }

/** By the element's path, then by `@attribute` or child. */
export const REGISTRATION_TABLE: Readonly<Record<string, Rows>> = {
  configuration: {
    configSections: silent('.NET\'s own index of the sections below'),
    [REGISTRATION]: used('', '', 'must be there'),
    [BROKER]: used('', '', ''),
    [SESSION]: used('', '', ''),
    [SERVICE_MODEL]: used('', '', 'only bindings that HPC Pack looks up by name'),
    'system.diagnostics': warned('trace listeners belong to .NET; a service writes to context.logger or stderr'),
    startup: warned('it belongs to .NET'),
    runtime: warned('it belongs to .NET'),
    appSettings: warned('it belongs to .NET; give a service its settings in environmentVariables'),
    connectionStrings: warned('it belongs to .NET; give a service its settings in environmentVariables')
  },
  [REGISTRATION]: { service: used('', '', 'must be there'), host: used('', '', '') },
  [`${REGISTRATION}/service`]: {
    '@assembly': used('path', '', 'the service\'s module (.js or .mjs); with hostType="Customize" what the executable makes of it. Relative to the file; %NAME% and $NAME are expanded with the node\'s environment. A .dll needs an executable that loads it'),
    '@contract': used('text', 'the only portType', 'portType of the WSDL, or a .NET interface\'s full name that ends in it'),
    '@type': used('text', 'the default export', 'name of the module\'s export that is the service (of a .NET name the part behind the last dot); when the module has no such export, its default export'),
    '@wsdl': ours('path', 'beside the file or the module', 'the WSDL: relative to the file, expanded like assembly. Not given: the file\'s, the service\'s or the module\'s name with .wsdl'),
    '@lenient': ours('true, false', 'false', 'requests: elements and attributes that the contract does not have are skipped, as WCF does, instead of refused. Wrong values and members in the wrong place are refused all the same'),
    '@includeExceptionDetailInFaults': used('true, false', 'false', 'faults of a service that throws carry message and stack'),
    '@maxConcurrentCalls': used('calls', '0', 'calls at a time in one service instance; 0: cores of its task'),
    '@serviceInitializationTimeout': setting('serviceInitializationTimeout'),
    '@serviceHostIdleTimeout': setting('serviceHostIdleTimeout'),
    '@serviceHangTimeout': setting('serviceHangTimeout'),
    '@enableMessageLevelPreemption': used('true, false', 'true', 'calls in progress are finished when a task is taken away; false: they are given up and tried elsewhere'),
    '@stdError': used('path', '', 'file for the host\'s stderr; relative to the file'),
    '@maxMessageSize': used('bytes', 'the setting maxMessageSize', 'largest SOAP message; 0 or less: not said. HPC Pack\'s default is 65536'),
    '@architecture': warned('a host is this machine\'s own Node, or your executable', 'X86, X64'),
    '@maxSessionPoolSize': used('sessions', '1', 'sessions that are open at most for all who ask for one of the pool (UseSessionPool, REST: pool); interactive and durable ones apart'),
    '@prepareNodeCommandLine': used('command', '', 'run by /bin/sh on a node before the first task of a session there, in the service\'s folder and environment; any other end than 0, or none within nodeCommandTimeoutMs, keeps the node out for this session'),
    '@releaseNodeCommandLine': used('command', '', 'run likewise when the session is over, or the node drained, and its last task there has ended; nothing waits for it, and its failures are logged and shown with the node'),
    '@soaDiagTraceLevel': warned('there is no trace of .NET; the setting logLevel says what is logged', 'text'),
    environmentVariables: used('', '', 'variables of the service host')
  },
  [`${REGISTRATION}/service/environmentVariables`]: { add: used('', '', 'one variable') },
  [`${REGISTRATION}/service/environmentVariables/add`]: VARIABLE,
  [`${REGISTRATION}/host`]: {
    '@hostType': used('Standard, Customize, None', 'Standard', 'Standard: our host loads the module. Customize: exeFileName is started, and listens where SOA_LISTEN_URL says. None counts as Standard'),
    '@exeFileName': used('path', '', 'Customize: the executable. With a slash relative to the file, without one looked for on PATH'),
    '@arguments': ours('text', '', 'Customize: its arguments, split at blanks; "…" holds blanks together'),
    '@addressing': ours('free, hpc', 'free', 'port of the host: a free one, or HPC Pack\'s (9100 + number of the task\'s first core)'),
    '@scheme': ours('http, net.tcp', 'http', 'Customize: what the program speaks; with net.tcp at the path of HPC Pack\'s hosts, /job/task/_defaultEndpoint')
  },
  [BROKER]: { monitor: used('', '', 'any session setting may stand here'), services: warned('where brokers listen is said when the head is started (soa head --http)'), loadBalancing: used('', '', 'any session setting may stand here'), customBroker: used('', '', 'a custom broker: a class, or a program') },
  [`${BROKER}/monitor`]: {
    ...settings('clientIdleTimeout', 'clientConnectionTimeout', 'sessionIdleTimeout', 'messageThrottleStartThreshold', 'messageThrottleStopThreshold', 'allocationAdjustInterval', 'clientBrokerHeartbeatInterval', 'clientBrokerHeartbeatRetryCount'),
    '@loadSamplingInterval': warned('counters are counted as things happen, not sampled', 'ms'),
    '@statusUpdateInterval': warned('counters can be read at any time', 'ms'),
    '@allocationGrowLoadRatioThreshold': warned('no version of HPC Pack since 2008 reads it either', 'percent'),
    '@allocationShrinkLoadRatioThreshold': warned('no version of HPC Pack since 2008 reads it either', 'percent')
  },
  [`${BROKER}/services`]: { brokerServiceAddresses: warned('as services') },
  [`${BROKER}/services/brokerServiceAddresses`]: { add: warned('as services') },
  [`${BROKER}/services/brokerServiceAddresses/add`]: { '@baseAddress': warned('as services; the file is refused if it is no URI', 'URI') },
  [`${BROKER}/loadBalancing`]: {
    ...settings('messageResendLimit', 'multiEmissionDelayTime', 'serviceOperationTimeout', 'endpointNotFoundRetryPeriod', 'serviceRequestPrefetchCount', 'dispatcherCapacityInGrowShrink'),
    '@endpointNotFoundRetryCountLimit': warned('HPC Pack does not use it either', 'tries'),
    '@maxConnectionCountPerAzureProxy': warned('there are no Azure proxies', 'connections')
  },
  [`${BROKER}/customBroker`]: {
    '@class': ours('path', '', 'module (.js or .mjs) whose default export is the class of the custom broker; it lies on the machines of heads. Relative to the file, expanded like assembly'),
    '@executive': used('path', '', 'a program, one per session, started by the broker; with a slash relative to the file, without one looked for on PATH'),
    '@arguments': ours('text', '', 'its arguments, split at blanks; "…" holds blanks together'),
    environmentVariables: used('', '', 'variables of the program')
  },
  [`${BROKER}/customBroker/environmentVariables`]: { add: used('', '', 'one variable') },
  [`${BROKER}/customBroker/environmentVariables/add`]: VARIABLE,
  [SESSION]: { debugMode: warned('a session always has tasks of its own; to try a service by hand start its host and call it') },
  [`${SESSION}/debugMode`]: { '@enabled': warned('as debugMode', 'true, false'), eprList: warned('as debugMode') },
  [`${SERVICE_MODEL}/bindings/*/binding`]: {
    '@name': used('text', '', 'bindings that HPC Pack looks up by name (Microsoft.Hpc.BackEndBinding, Microsoft.Hpc.UnsecureHttpBrokerBinding, …) are read, others belong to .NET'),
    '@maxReceivedMessageSize': used('bytes', '', 'largest SOAP message, where service says no maxMessageSize; of several bindings the largest'),
    '@closeTimeout': warned('connections are closed at once'),
    '@openTimeout': warned('the settings serviceInitializationTimeout and serviceOperationTimeout say how long is waited'),
    '@sendTimeout': warned('the setting serviceOperationTimeout says how long is waited'),
    '@receiveTimeout': warned('the settings clientIdleTimeout and sessionIdleTimeout say how long is waited'),
    '@maxBufferSize': warned('maxMessageSize is the only limit on size'),
    '@maxBufferPoolSize': warned('there is no pool of buffers'),
    '@maxConnections': warned('connections have no limit of their own'),
    '@listenBacklog': warned('the system\'s is used'),
    '@portSharingEnabled': warned('all sessions share one port'),
    '@transferMode': warned('messages are taken whole'),
    '@messageEncoding': warned('each message is answered as it came; MTOM is refused'),
    '@textEncoding': warned('each message is answered as it came'),
    readerQuotas: used('', '', ''),
    security: warned('what secures connections is said when the head is started'),
    reliableSession: warned('reliable messaging is not served')
  },
  [`${SERVICE_MODEL}/bindings/*/binding/readerQuotas`]: {
    '@maxDepth': used('levels', '', 'deepest nesting of elements (setting maxDepth), where monitor and loadBalancing do not say it; of several bindings the largest'),
    '@maxStringContentLength': warned('maxMessageSize is the only limit on size'),
    '@maxArrayLength': warned('maxMessageSize is the only limit on size'),
    '@maxBytesPerRead': warned('maxHeaderBytes is the limit that counts'),
    '@maxNameTableCharCount': warned('there is no table of names')
  }
}

/** Names under which HPC Pack looks bindings up ([broker-behaviour] 6.9). */
export const NAMED_BINDINGS: ReadonlySet<string> = new Set([
  'SecureNetTcpBrokerBinding', 'UnsecureNetTcpBrokerBinding', 'InternalSecureNetTcpBrokerBinding', 'AadNetTcpBrokerBinding', 'SecureHttpBrokerBinding', 'UnsecureHttpBrokerBinding',
  'SecureNetHttpsBrokerBinding', 'UnsecureNetHttpBrokerBinding', 'SecureCustomBrokerBinding', 'UnsecureCustomBrokerBinding', 'BackEndBinding'
].map(name => `Microsoft.Hpc.${name}`))

/** Bindings of any kind share their rows; items of a list too. */
const rowsOf = (path: string): Rows => REGISTRATION_TABLE[path.replace(/\[\d+\]/g, '').replace(/^(system\.serviceModel\/bindings)\/[^/]+/, '$1/*')] ?? {}

/** The row of a place: `at` is `@attribute` or a child; undefined: nobody knows it. */
export function registrationRow (path: string, at: string): RegistrationRow | undefined {
  const rows = rowsOf(path)
  return Object.hasOwn(rows, at) ? rows[at] : undefined
}

export const rowNames = (path: string): string[] => Object.keys(rowsOf(path))
