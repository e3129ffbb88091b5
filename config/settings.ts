/**
 * The one list of settings: types, defaults, environment names, `--help`, `soa settings` and docs/settings.md all come from it.
 *
 * scope: `process` settings belong to a process and come from its flags, environment (SOA_…) or file; `session` settings have a default there and can
 * be overridden by the service's registration file and then by the session itself (`--set name=value`), in this order.
 */
export type Unit = 'ms' | 'tries' | 'messages' | 'bytes' | 'levels' | 'sessions' | 'workers' | 'hosts' | 'cores' | 'port' | 'text' | 'flag' | 'units' | 'replicas'

/** The commands that start or call something; a process setting says which of them read it. */
export type Reader = 'up' | 'head' | 'node' | 'client'

export interface Setting {
  readonly default: number | string | boolean
  readonly unit: Unit
  readonly scope: 'process' | 'session'
  /** Lowest value allowed (numbers only; default 0). -1 where HPC Pack says "off" or "infinite". */
  readonly min?: number
  readonly max?: number
  /** Allowed words (text only). */
  readonly oneOf?: readonly string[]
  /** Process settings only: the commands that read it, and so have a flag for it. */
  readonly by?: readonly Reader[]
  readonly says: string
}

export const SETTINGS = {
  // Sessions, HPC Pack's names and defaults ([broker-behaviour] 6.2, 6.4, 6.6)
  clientIdleTimeout: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'a client without traffic for this long is let go of (HPC Pack default)' },
  clientConnectionTimeout: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'no client at all for this long after the start: the session ends; a durable one that has requests is suspended (HPC Pack default)' },
  sessionIdleTimeout: { default: 300_000, unit: 'ms', scope: 'session', says: 'no client for this long: an interactive session ends, a durable one is suspended (HPC Pack default)' },
  messageThrottleStartThreshold: { default: 4096, unit: 'messages', scope: 'session', min: 1, says: 'interactive: requests and unread responses above which reading pauses (HPC Pack default)' },
  messageThrottleStopThreshold: { default: 3072, unit: 'messages', scope: 'session', says: 'below which reading goes on (HPC Pack default)' },
  messageResendLimit: { default: 3, unit: 'tries', scope: 'session', says: 'tries after the first, then a RetryOperationError fault is stored (HPC Pack default)' },
  multiEmissionDelayTime: { default: -1, unit: 'ms', scope: 'session', min: -1, says: 'a request that has no answer after this long is sent to another service instance too, and the first response counts; -1, or messageResendLimit 0: never (HPC Pack default)' },
  serviceOperationTimeout: { default: 86_400_000, unit: 'ms', scope: 'session', min: 1, says: 'longest time of one call at a service instance (HPC Pack default: 24 h)' },
  serviceRequestPrefetchCount: { default: 1, unit: 'messages', scope: 'session', max: 1000, says: 'calls that wait at a service instance per call it executes (HPC Pack default)' },
  serviceInitializationTimeout: { default: 60_000, unit: 'ms', scope: 'session', min: 1, says: 'a service host must accept connections within this time (HPC Pack default)' },
  serviceHostIdleTimeout: { default: 3_600_000, unit: 'ms', scope: 'session', min: -1, says: 'a service host without a call for this long, after its first one, ends; -1: never (HPC Pack default: 1 h)' },
  serviceHangTimeout: { default: -1, unit: 'ms', scope: 'session', min: -1, says: 'a service host whose calls in hand make no progress for this long is ended, and they are tried again; -1: never (HPC Pack default)' },
  endpointNotFoundRetryPeriod: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'a service instance that cannot be reached is left alone for this long (HPC Pack default)' },
  clientBrokerHeartbeatInterval: { default: 20_000, unit: 'ms', scope: 'session', min: 1, max: 2_147_483_647, says: 'how often HPC Pack clients are told to ask whether their broker is there (HPC Pack default)' },
  clientBrokerHeartbeatRetryCount: { default: 3, unit: 'tries', scope: 'session', max: 2_147_483_647, says: 'times in a row without an answer after which they give it up (HPC Pack default)' },
  maxMessageSize: { default: 4_194_304, unit: 'bytes', scope: 'session', min: 512, max: 1_073_741_824, says: 'largest SOAP message, headers and body; see docs/adr for why not 64 KiB' },
  // Sessions, ours
  maxHeaderBytes: { default: 65_536, unit: 'bytes', scope: 'session', min: 1024, says: 'largest SOAP header block' },
  maxDepth: { default: 128, unit: 'levels', scope: 'session', min: 8, max: 1000, says: 'deepest nesting of elements in a body' },
  taskCancelGracePeriod: { default: 15_000, unit: 'ms', scope: 'session', says: 'time between SIGTERM and SIGKILL for a service host (HPC Pack default: 15 s)' },
  maxRequestCacheBytes: { default: 67_108_864, unit: 'bytes', scope: 'session', says: 'waiting requests of a durable session kept in memory; the others are read from the store when their turn comes' },
  unitIdleTimeoutMs: { default: 10_000, unit: 'ms', scope: 'session', says: 'service instances beyond those that minUnits asks for leave when the session has had no work for this long' },
  minWarm: { default: 0, unit: 'units', scope: 'session', max: 1_000_000, says: 'service instances that a session without work keeps, beside those that minUnits asks for; the first request after a pause then waits for no host' },
  allocationAdjustInterval: { default: 5000, unit: 'ms', scope: 'session', min: -1, says: 'time between two looks at whether instances may leave while others work; under 3000 counts as 3000, -1: never. More are asked for as soon as requests wait (HPC Pack default)' },
  automaticShrinkEnabled: { default: true, unit: 'flag', scope: 'session', says: 'instances may leave while others work (HPC Pack default)' },
  dispatcherCapacityInGrowShrink: { default: 0, unit: 'messages', scope: 'session', says: 'calls at a time that are reckoned for one instance when it is worked out how many are needed; 0: those that it really takes (HPC Pack default)' },
  growByPreemption: { default: true, unit: 'flag', scope: 'session', says: 'the session takes what sessions of lower priority have beyond their minimum as soon as it needs it; false: only for its own minimum (HPC Pack default: false)' },
  nodeCommandTimeoutMs: { default: 120_000, unit: 'ms', scope: 'session', min: 1, says: 'prepareNodeCommandLine and releaseNodeCommandLine must end within this time' },
  taskFateTimeoutMs: { default: 5000, unit: 'ms', scope: 'session', says: 'a broken connection is judged when it is known how the task ended, at the latest after this long' },
  maxUncountedTries: { default: 10, unit: 'tries', scope: 'session', says: 'times that a request may lose its service instance without that being held against it (node lost, task canceled or preempted, not its turn yet when the host died) before it is given up; 0: no limit' },
  maxDeadLetters: { default: 1000, unit: 'messages', scope: 'session', max: 10_000, says: 'requests that were given up and are kept with their tries, to be looked at and run again; the oldest go. 0: none are kept' },
  traceMessages: { default: 10_000, unit: 'messages', scope: 'session', max: 1_000_000, says: 'latest messages of which a session\'s broker knows the way for `soa trace`, about 350 bytes each; 0: none, and no times are stored' },
  hookTimeoutMs: { default: 30_000, unit: 'ms', scope: 'session', min: 100, says: 'a hook of a custom broker that has not returned after this long ends its session' },
  maxStateBytes: { default: 1_048_576, unit: 'bytes', scope: 'session', says: 'names and values of a custom broker\'s durable map, as JSON' },
  maxSessionBytes: { default: 0, unit: 'bytes', scope: 'session', says: 'stored requests and responses of one session above which new requests are refused with StorageSpaceNotSufficient; 0: no limit of its own' },
  // Processes: where they listen, what they call, what they keep
  head: { default: 'http://127.0.0.1:8080', unit: 'text', scope: 'process', by: ['client'], says: 'the head that a command or a client talks to; of several, with commas between them, the first that answers' },
  http: { default: '127.0.0.1:8080', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'address and port of SOAP over HTTP, REST and WSDL; port 0 picks a free one' },
  netTcp: { default: '127.0.0.1:9091', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'address and port of SOAP over net.tcp: brokers, and the launchers too; port 0 picks a free one; off: none (HPC Pack default: 9091)' },
  sessionLauncherPort: { default: 9090, unit: 'port', scope: 'process', by: ['up', 'head'], max: 65_535, says: 'port of the session launcher on the host of netTcp, which HPC Pack clients cannot be told; 0: none of its own (HPC Pack default)' },
  brokerLauncherPort: { default: 9087, unit: 'port', scope: 'process', by: ['up', 'head'], max: 65_535, says: 'port of the broker launcher on the host of netTcp; 0: none of its own (HPC Pack default)' },
  tlsCertificate: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'PEM file of the certificate for net.tcp with TLS (NetTcpBinding, security mode Transport), its chain behind it; empty: no TLS' },
  tlsKey: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'PEM file of its private key; empty: in the same file' },
  tlsClientCa: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'PEM file of the authorities whose client certificates are asked for; empty: clients show none' },
  tlsRequired: { default: false, unit: 'flag', scope: 'process', by: ['up', 'head'], says: 'refuse net.tcp without TLS' },
  machine: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'name of this machine among heads, which tells them whose workers they reach by themselves; empty: the host name' },
  peer: { default: '127.0.0.1:0', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'address and port where heads of other machines reach the workers of this one; callers prove that they know what is in Redis; port 0 picks a free one' },
  advertise: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'HOST[:PORT], or a URL, that clients are told to call; empty: the host that the caller used' },
  trustedProxies: { default: '', unit: 'text', scope: 'process', by: ['up', 'head'], says: 'proxies whose Forwarded and X-Forwarded-Proto, -Host, -Port and -Prefix are believed: addresses and networks (10.0.0.0/8), separated by commas; loopback: those of this machine; empty: nobody' },
  insecure: { default: false, unit: 'flag', scope: 'process', by: ['up', 'head', 'node'], says: 'allow an address other than loopback although nobody is asked who they are' },
  redis: { default: '', unit: 'text', scope: 'process', by: ['up', 'head', 'node'], says: 'redis://, rediss://, sentinel://host:port,host:port/masterName or the path of a Unix socket; empty: `soa up` runs a Redis of its own' },
  redisPrefix: { default: 'soa', unit: 'text', scope: 'process', by: ['up', 'head', 'node'], says: 'first part of every key in Redis; one for each cluster that shares a Redis' },
  dataDir: { default: '', unit: 'text', scope: 'process', by: ['up'], says: 'what `soa up` keeps; empty: $XDG_STATE_HOME/soa-broker, else ~/.local/state/soa-broker' },
  runDir: { default: '', unit: 'text', scope: 'process', by: ['up', 'head', 'node'], says: 'sockets and lock files; empty: $XDG_RUNTIME_DIR/soa-broker, else a folder of this user in the temporary folder' },
  logLevel: { default: 'info', unit: 'text', scope: 'process', by: ['up', 'head', 'node'], oneOf: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], says: 'least grave log line that is written to stderr' },
  durability: { default: 'disk', unit: 'text', scope: 'process', by: ['up', 'head'], oneOf: ['process', 'disk', 'replicas'], says: 'what an answered Flush or EndRequests of a durable session is safe against: kill -9 of all but Redis; also kill -9 of Redis and power loss; also loss of the primary Redis' },
  replicas: { default: 1, unit: 'replicas', scope: 'process', by: ['up', 'head'], min: 1, max: 16, says: 'durability replicas: so many replicas of Redis have whatever was acknowledged; with fewer than all of them, one that lags may be made the primary' },
  maxStoreBytes: { default: 0, unit: 'bytes', scope: 'process', by: ['up', 'head'], says: 'requests and responses of all durable sessions together, above which new requests are refused with StorageSpaceNotSufficient; 0: 80 % of the maxmemory of Redis, by what it uses, or no limit where it has none' },
  storeTimeoutMs: { default: 30_000, unit: 'ms', scope: 'process', by: ['up', 'head', 'node'], min: 100, says: 'Redis away for longer than this: the call that needs it is refused with StorageServiceNotAvailble' },
  maxSessions: { default: 1000, unit: 'sessions', scope: 'process', by: ['up', 'head'], min: 1, max: 100_000, says: 'sessions open at once; one more is refused with Broker_TooManyBrokerRunning' },
  workerPoolSize: { default: 1, unit: 'workers', scope: 'process', by: ['up', 'head'], max: 64, says: 'broker workers started ahead of need (HPC Pack: BrokerPoolSize, default)' },
  sessionsPerWorker: { default: 8, unit: 'sessions', scope: 'process', by: ['up', 'head'], min: 1, max: 1000, says: 'sessions that one broker worker serves before another is taken' },
  workerClaimTimeoutMs: { default: 30_000, unit: 'ms', scope: 'process', by: ['up', 'head'], min: 1000, says: 'a broker worker that no head has claimed for this long suspends its sessions and exits' },
  endedRetentionMs: { default: 3_600_000, unit: 'ms', scope: 'process', by: ['up', 'head'], says: 'a session that ended by itself, and an interactive one that failed, is still listed for this long, then forgotten' },
  durableRetentionMs: { default: 432_000_000, unit: 'ms', scope: 'process', by: ['up', 'head'], says: 'a durable session that is suspended, failed or canceled, and that nobody asks for, keeps what is stored for this long, then it is closed; 0: until somebody closes it (HPC Pack: TtlCompletedJobs, 5 days)' },
  maxReceivingBytes: { default: 268_435_456, unit: 'bytes', scope: 'process', by: ['up', 'head'], min: 65_536, says: 'bodies of SOAP requests on their way in at once, in each head and each broker worker; senders of more wait, and one message may go beyond it' },
  receiveIdleTimeoutMs: { default: 120_000, unit: 'ms', scope: 'process', by: ['up', 'head'], min: 10, max: 86_400_000, says: 'a body of which no byte comes for this long is given up' },
  paceGraceMs: { default: 5000, unit: 'ms', scope: 'process', by: ['up', 'head'], max: 86_400_000, says: 'a body may be slower than 240 bytes a second for this long' },
  gzipFromBytes: { default: 8192, unit: 'bytes', scope: 'process', by: ['up', 'head'], says: 'SOAP replies of this size on are packed for callers that accept gzip; 0: none' },
  cores: { default: 0, unit: 'cores', scope: 'process', by: ['up', 'node'], max: 4096, says: 'slots that a node offers; may be more than the machine has; 0: what the machine has' },
  warmHosts: { default: 1, unit: 'hosts', scope: 'process', by: ['up', 'node'], max: 64, says: 'service hosts that a node starts ahead of need, without a service, so that a task starts faster; 0: none' },
  nodeId: { default: '', unit: 'text', scope: 'process', by: ['up', 'node'], says: 'name of the node, its own in the grid and kept across restarts; empty: the host name' },
  hostAddress: { default: '127.0.0.1', unit: 'text', scope: 'process', by: ['up', 'node'], says: 'address or name of this machine that its service hosts listen on and brokers call; with brokers on other machines one that they reach, and --insecure' },
  groups: { default: '', unit: 'text', scope: 'process', by: ['up', 'node'], says: 'node groups that the node belongs to, separated by commas' },
  labels: { default: '', unit: 'text', scope: 'process', by: ['up', 'node'], says: 'labels of the node for placement: name=value, separated by commas' },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS
type Scoped<S extends Setting['scope']> = { [K in SettingName]: (typeof SETTINGS)[K]['scope'] extends S ? K : never }[SettingName]
export type SessionSettingName = Scoped<'session'>
export type ProcessSettingName = Scoped<'process'>
type ValueOf<K extends SettingName> = (typeof SETTINGS)[K]['default'] extends number ? number : (typeof SETTINGS)[K]['default'] extends boolean ? boolean : string

/** What one session runs with. */
export type Settings = { readonly [K in SessionSettingName]: ValueOf<K> }
/** What one process runs with. */
export type ProcessSettings = { readonly [K in ProcessSettingName]: ValueOf<K> }
/** All of them, with the values that hold when nobody says anything. */
export type AllSettings = Settings & ProcessSettings

/** The table's row as data, without its literal types. */
export const settingOf = (name: SettingName): Setting => SETTINGS[name]
export const settingNames = (scope?: Setting['scope']): SettingName[] => (Object.keys(SETTINGS) as SettingName[]).filter(name => scope === undefined || SETTINGS[name].scope === scope)
/** Process settings that a command reads, in the table's order. */
export const settingsRead = (by: Reader): ProcessSettingName[] => settingNames('process').filter(name => settingOf(name).by?.includes(by)) as ProcessSettingName[]

/** `sessionIdleTimeout` → `SOA_SESSION_IDLE_TIMEOUT`. */
export const environmentName = (name: SettingName): string => `SOA_${name.replace(/[A-Z]/g, '_$&').toUpperCase()}`
/** `dataDir` → `--data-dir`. */
export const flagName = (name: SettingName): string => `--${name.replace(/[A-Z]/g, '-$&').toLowerCase()}`

/** A session's settings without the process's own, which lie below them and name the store: what a custom broker may see. */
export const ofSession = (settings: Settings): Settings => Object.fromEntries(settingNames('session').map(name => [name, settings[name as keyof Settings]])) as unknown as Settings
