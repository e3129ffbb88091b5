/**
 * The one list of settings: types, defaults, environment names, `--help`, `soa settings` and docs/settings.md all come from it.
 *
 * scope: `process` settings belong to a process and come from its flags, environment (SOA_…) or file; `session` settings have a default there and can
 * be overridden by the service's registration file and then by the session itself (`--set name=value`), in this order.
 */
export type Unit = 'ms' | 'tries' | 'messages' | 'bytes' | 'levels' | 'sessions' | 'workers' | 'cores' | 'port' | 'text' | 'flag' | 'units'

export interface Setting {
  readonly default: number | string | boolean
  readonly unit: Unit
  readonly scope: 'process' | 'session'
  /** Lowest value allowed (numbers only; default 0). -1 where HPC Pack says "off" or "infinite". */
  readonly min?: number
  readonly max?: number
  /** Allowed words (text only). */
  readonly oneOf?: readonly string[]
  readonly says: string
}

export const SETTINGS = {
  // Sessions, HPC Pack's names and defaults ([broker-behaviour] 6.2, 6.4, 6.6)
  clientIdleTimeout: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'a client without traffic for this long is let go of (HPC Pack default)' },
  clientConnectionTimeout: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'no client at all for this long after the start: the session ends, a durable one is suspended (HPC Pack default)' },
  sessionIdleTimeout: { default: 300_000, unit: 'ms', scope: 'session', says: 'no client for this long: an interactive session ends, a durable one is suspended (HPC Pack default)' },
  messageThrottleStartThreshold: { default: 4096, unit: 'messages', scope: 'session', min: 1, says: 'interactive: requests and unread responses above which reading pauses (HPC Pack default)' },
  messageThrottleStopThreshold: { default: 3072, unit: 'messages', scope: 'session', says: 'below which reading goes on (HPC Pack default)' },
  messageResendLimit: { default: 3, unit: 'tries', scope: 'session', says: 'tries after the first, then a RetryOperationError fault is stored (HPC Pack default)' },
  serviceOperationTimeout: { default: 86_400_000, unit: 'ms', scope: 'session', min: 1, says: 'longest time of one call at a service instance (HPC Pack default: 24 h)' },
  serviceRequestPrefetchCount: { default: 1, unit: 'messages', scope: 'session', max: 1000, says: 'calls that wait at a service instance per call it executes (HPC Pack default)' },
  serviceInitializationTimeout: { default: 60_000, unit: 'ms', scope: 'session', min: 1, says: 'a service host must accept connections within this time (HPC Pack default)' },
  endpointNotFoundRetryPeriod: { default: 300_000, unit: 'ms', scope: 'session', min: 1, says: 'a service instance that cannot be reached is left alone for this long (HPC Pack default)' },
  maxMessageSize: { default: 4_194_304, unit: 'bytes', scope: 'session', min: 1024, max: 1_073_741_824, says: 'largest SOAP message, headers and body; see docs/adr for why not 64 KiB' },
  // Sessions, ours
  maxHeaderBytes: { default: 65_536, unit: 'bytes', scope: 'session', min: 1024, says: 'largest SOAP header block' },
  maxDepth: { default: 128, unit: 'levels', scope: 'session', min: 8, max: 1000, says: 'deepest nesting of elements in a body' },
  taskCancelGracePeriod: { default: 15_000, unit: 'ms', scope: 'session', says: 'time between SIGTERM and SIGKILL for a service host (HPC Pack default: 15 s)' },
  hookTimeoutMs: { default: 30_000, unit: 'ms', scope: 'session', min: 1, says: 'longest time of one asynchronous hook of a custom broker' },
  maxRequestCacheBytes: { default: 67_108_864, unit: 'bytes', scope: 'session', says: 'waiting requests of a durable session kept in memory; the others are read from the store when their turn comes' },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS
export type Settings = { readonly [K in SettingName]: (typeof SETTINGS)[K]['default'] extends number ? number : (typeof SETTINGS)[K]['default'] extends boolean ? boolean : string }
