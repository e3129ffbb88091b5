import { Redis, type RedisOptions } from 'ioredis'
import { SoaError } from '../core/errors.ts'
import { systemClock, type Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'

export type { Redis } from 'ioredis'

/**
 * What a connection is for; ioredis's knobs differ:
 *
 * | kind | in flight when the connection breaks | while it is away | for |
 * | --- | --- | --- | --- |
 * | `commands` | rejected at once | rejected at once | stores: they know what may be run again, and check first (redis-call.ts) |
 * | `blocking` | rejected at once | rejected at once | XREAD BLOCK and the like: as above, but no answer is not a dead link |
 * | `bullmq` | sent again | queued | BullMQ, which asks for `maxRetriesPerRequest: null` and settles its own doubles |
 *
 * ioredis's own sending again is off but for BullMQ: a broker that does not know whether its write landed must look before it writes.
 * (With it off, ioredis leaves a command that was in flight unsettled for ever unless `maxRetriesPerRequest` is 0.)
 */
export type RedisKind = 'commands' | 'blocking' | 'bullmq'

export interface OpenRedis {
  readonly log: Logger
  /** Ends the waiting for the first connection; the connection itself is ended by `closeRedis`. */
  readonly signal?: AbortSignal | undefined
  /** Default `commands`. */
  readonly kind?: RedisKind | undefined
  /** storeTimeoutMs: longest wait for the first connection and for any answer. Default 30 s. */
  readonly timeoutMs?: number | undefined
  /** CLIENT SETNAME, for people who look at CLIENT LIST. */
  readonly name?: string | undefined
  readonly clock?: Clock | undefined
}

// `replyMapping` decides the type of the class and stays at its default.
type Options = Omit<RedisOptions, 'replyMapping'>

/** Longest pause between two tries to connect: Redis back after an outage is noticed within this. */
const RETRY_CAP_MS = 1000
const CLOSE_GRACE_MS = 2000

/**
 * Connects and resolves once Redis is ready (data loaded). Refuses with StorageServiceNotAvailble after `timeoutMs`, or the signal's reason.
 *
 * @param url `redis://[user:password@]host:port[/db]`, `rediss://…` (TLS), `unix:///path/redis.sock[?db=1]`,
 *   `unix://user:password@localhost/path/redis.sock` or the plain path; or `sentinel://[user:password@]host:port,host:port/masterName[?db=1]`: the primary that the
 *   Sentinels name, now and after each fail-over. `sentinelUser` and `sentinelPassword` behind the ? are for the Sentinels, user and password for Redis
 */
export async function openRedis (url: string, { log, signal, kind = 'commands', timeoutMs = 30_000, name, clock = systemClock }: OpenRedis): Promise<Redis> {
  signal?.throwIfAborted()
  const redis = new Redis({ ...parseRedisUrl(url), ...knobs(kind, timeoutMs), ...(name === undefined ? {} : { connectionName: name }) })
  // Every call that waits for the connection listens to it, and hundreds may wait at once.
  redis.setMaxListeners(0)
  const where = redactRedisUrl(url)
  let lastError: Error | undefined
  let isDown = false
  redis.on('error', (err: Error) => {
    // One line for each outage, not one for each try.
    if (!isDown) log.warn({ redis: where, err }, 'redis connection failed')
    else log.debug({ redis: where, err }, 'redis connection failed again')
    isDown = true
    lastError = err
  })
  redis.on('ready', () => {
    if (isDown) log.info({ redis: where }, 'redis connection is back')
    isDown = false
  })
  redis.on('close', () => {
    if (!isDown && redis.status !== 'end') log.warn({ redis: where }, 'redis connection closed')
    isDown = true
  })
  try {
    await waitReady(redis, timeoutMs, clock, signal)
  } catch (error) {
    redis.disconnect()
    if (signal?.aborted) throw signal.reason
    throw new SoaError('StorageServiceNotAvailble', { why: `${where} did not become ready within ${timeoutMs} ms${lastError === undefined ? '' : `: ${lastError.message}`}` }, { cause: error })
  }
  return redis
}

/** Ends a connection: what was sent is answered first if it can be. Never rejects and never waits longer than about 2 s. */
export async function closeRedis (redis: Redis): Promise<void> {
  if (redis.status === 'end') return
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => { timer = setTimeout(resolve, CLOSE_GRACE_MS) })
  const ended = new Promise<void>(resolve => redis.once('end', resolve))
  // A QUIT that fails found the connection broken: what matters is that it is closed, and the next lines see to that.
  if (redis.status === 'ready') await Promise.race([redis.quit().then(() => {}, () => {}), late])
  redis.disconnect()
  await Promise.race([ended, late])
  clearTimeout(timer)
}

const generations = new WeakMap<Redis, { count: number }>()

/** How often this connection has been lost since it was first asked about: whoever remembers another number must look before it writes. */
export function connectionNumber (redis: Redis): number {
  let generation = generations.get(redis)
  if (generation === undefined) {
    const made = generation = { count: 0 }
    generations.set(redis, made)
    redis.on('close', () => { made.count++ })
  }
  return generation.count
}

/** Resolves when the connection is ready; rejects after `ms`, when it was closed here, or with the signal's reason. */
export function waitReady (redis: Redis, ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (redis.status === 'ready') { resolve(); return }
    if (redis.status === 'end') { reject(new Error('the connection was closed by this process')); return }
    const done = (settle: () => void): void => {
      cancel()
      redis.off('ready', ready)
      redis.off('end', end)
      signal?.removeEventListener('abort', abort)
      settle()
    }
    const ready = (): void => done(resolve)
    const end = (): void => done(() => reject(new Error('the connection was closed by this process')))
    const abort = (): void => done(() => reject(signal?.reason as Error))
    const cancel = clock.after(ms, () => done(() => reject(new Error(`not ready within ${ms} ms`))))
    redis.once('ready', ready)
    redis.once('end', end)
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
  })
}

export function parseRedisUrl (url: string): Options {
  const bad = (why: string): SoaError => new SoaError('Broker_InvalidConfiguration', { setting: 'redis', why: `${redactRedisUrl(url)}: ${why}` })
  if (url.startsWith('/')) return { path: url }
  if (/^sentinel:/i.test(url)) return parseSentinelUrl(url, bad)
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw bad('is neither redis://host:port, rediss://host:port, sentinel://host:port,host:port/masterName, unix:///path nor the path of a socket')
  }
  const login = {
    ...(parsed.username === '' ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === '' ? {} : { password: decodeURIComponent(parsed.password) })
  }
  const database = (text: string): { db?: number } => {
    if (text === '') return {}
    if (!/^\d{1,5}$/.test(text)) throw bad(`"${text}" is no database number`)
    return { db: Number(text) }
  }
  switch (parsed.protocol) {
    case 'unix:':
      // A URL with a login needs a host; this is the only one that a socket can be on.
      if (parsed.host !== '' && parsed.host !== 'localhost') throw bad('a socket\'s path is absolute: unix:///path, or unix://user:password@localhost/path')
      return { path: decodeURIComponent(parsed.pathname), ...login, ...database(parsed.searchParams.get('db') ?? '') }
    case 'redis:': case 'rediss:':
      return {
        host: parsed.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
        port: Number(parsed.port || 6379),
        ...login,
        ...database(parsed.pathname.replace(/^\//, '')),
        ...(parsed.protocol === 'rediss:' ? { tls: { servername: parsed.hostname } } : {})
      }
    default: throw bad(`the scheme ${parsed.protocol} is not known; redis:, rediss:, sentinel: and unix: are`)
  }
}

function parseSentinelUrl (url: string, bad: (why: string) => SoaError): Options {
  const [, user, password, hosts = '', name = '', query = ''] = /^sentinel:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?([^/?]*)\/?([^/?]*)(?:\?(.*))?$/i.exec(url) ?? []
  if (hosts === '' || name === '') throw bad('sentinel://host:port,host:port/masterName is expected')
  const sentinels = hosts.split(',').map(each => {
    const [whole, ipv6, host, port = '26379'] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/i.exec(each) ?? []
    if (whole === undefined || Number(port) > 65_535) throw bad(`"${each}" is no host:port of a Sentinel`)
    return { host: ipv6 ?? host ?? '', port: Number(port) }
  })
  const asked = new URLSearchParams(query)
  const db = asked.get('db') ?? '0'
  if (!/^\d{1,5}$/.test(db)) throw bad(`"${db}" is no database number`)
  for (const key of asked.keys()) if (!['db', 'sentinelUser', 'sentinelPassword'].includes(key)) throw bad(`${key} is not known here; db, sentinelUser and sentinelPassword are`)
  const [sentinelUsername, sentinelPassword] = [asked.get('sentinelUser'), asked.get('sentinelPassword')]
  return {
    sentinels,
    name: decodeURIComponent(name),
    role: 'master',
    db: Number(db),
    ...(user === undefined || user === '' ? {} : { username: decodeURIComponent(user) }),
    ...(password === undefined || password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(sentinelUsername === null ? {} : { sentinelUsername }),
    ...(sentinelPassword === null ? {} : { sentinelPassword }),
    sentinelRetryStrategy: times => Math.min(50 * times, RETRY_CAP_MS),
    // A primary that is cut off, not dead, keeps its connections: the Sentinels say when another one has taken over.
    failoverDetector: true
  }
}

/** The URL without its passwords, for logs and faults. */
export const redactRedisUrl = (url: string): string => url.replace(/^([a-z]+:\/\/[^@/]*?:)[^@/]*@/i, '$1***@').replace(/([?&]sentinelPassword=)[^&]*/i, '$1***')

function knobs (kind: RedisKind, timeoutMs: number): Options {
  const common: Options = {
    retryStrategy: times => Math.min(50 * 2 ** Math.min(times - 1, 10), RETRY_CAP_MS),
    connectTimeout: Math.min(10_000, timeoutMs),
    keepAlive: 10_000,
    enableReadyCheck: true
  }
  switch (kind) {
    case 'bullmq': return { ...common, maxRetriesPerRequest: null, enableOfflineQueue: true, autoResendUnfulfilledCommands: true }
    case 'blocking': return { ...common, maxRetriesPerRequest: 0, enableOfflineQueue: false, autoResendUnfulfilledCommands: false }
    case 'commands': return {
      ...common,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      commandTimeout: timeoutMs,
      // No byte for this long while something was asked: the link is dead although nobody said so, and a new one is tried within the time limit.
      socketTimeout: Math.max(1000, Math.floor(timeoutMs / 3))
    }
  }
}
