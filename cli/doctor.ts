import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { AllSettings } from '../config/settings.ts'
import { isSoaError } from '../core/errors.ts'
import { silent } from '../core/log.ts'
import type { Level } from '../store/redis-store.ts'
import { dataPath } from './folders.ts'
import { whyTaken } from './free-address.ts'
import { HeadApi } from './head-api.ts'
import type { Io } from './io.ts'
import { environmentName, flagName } from '../config/settings.ts'
import { hostAndPort, listenAddresses, type ListenAddress } from './options.ts'
import { onPath } from './on-path.ts'

/** `failed`: something will not work; `note`: as it stands, but worth knowing. */
export interface Check { readonly what: string, readonly state: 'ok' | 'note' | 'failed', readonly found: string, readonly mend?: string | undefined, readonly isMissing?: boolean | undefined }

const LEAST_NODE = [20, 19] as const
/** Below this a durable session of some size would fill the disk. */
const LEAST_FREE_BYTES = 1_073_741_824
const REDIS_TIMEOUT_MS = 3000

/**
 * Looks at everything that a broker with these settings needs on this machine. Each check stands for itself: one that fails does not keep the others
 * from being made. `head`: the one to ask; undefined: the one that listens where the settings say.
 */
export async function examine (io: Io, settings: AllSettings, head?: string): Promise<Check[]> {
  const { host, port } = hostAndPort(settings.http)
  const here = port === 0 ? settings.head : `http://${/^(0\.0\.0\.0|\[::\])$/.test(host) ? '127.0.0.1' : host}:${port}`
  const isUp = await headCheck(io, head ?? here)
  return [
    nodeCheck(),
    programCheck(io, 'redis-server', ['--version'], 'apt-get install redis-server (only needed for "soa up" without --redis)'),
    programCheck(io, 'setpriv', ['--version'], 'apt-get install util-linux ("soa up" ties its processes to itself with it)'),
    programCheck(io, 'flock', ['--version'], 'apt-get install util-linux ("soa up" locks its data folder with it)'),
    ...(settings.redis === '' ? [{ what: 'redis', state: 'note' as const, found: 'none named (SOA_REDIS): "soa up" runs one of its own' }] : await redisChecks(settings.redis, settings.durability as Level, settings.replicas)),
    isUp,
    ...await Promise.all(listenAddresses(settings).map(address => portCheck(address, isUp.state === 'ok' && (head ?? here).split(',').some(url => new URL(url.trim()).port === String(port))))),
    await diskCheck(dataPath(settings, io))
  ]
}

function nodeCheck (): Check {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const fits = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])
  return { what: 'node', state: fits ? 'ok' : 'failed', found: process.version, mend: fits ? undefined : `install Node ${LEAST_NODE.join('.')} or newer` }
}

function programCheck (io: Io, name: string, args: string[], mend: string): Check {
  const path = onPath(io, name)
  if (path === undefined) return { what: name, state: 'failed', found: 'not on PATH', mend, isMissing: true }
  const { stdout, status, error } = spawnSync(path, args, { encoding: 'utf8', timeout: 5000 })
  if (status !== 0) return { what: name, state: 'failed', found: `${path} does not run: ${error?.message ?? `exit code ${status}`}`, mend }
  return { what: name, state: 'ok', found: `${path} (${stdout.trim().split('\n')[0]?.slice(0, 60) ?? ''})` }
}

async function redisChecks (url: string, level: Level, replicas: number): Promise<Check[]> {
  const { openRedis, closeRedis } = await import('../store/redis.ts')
  const { checkDurable } = await import('../store/redis-check.ts')
  try {
    const redis = await openRedis(url, { log: silent, timeoutMs: REDIS_TIMEOUT_MS, name: 'soa doctor' })
    try {
      const version = /^redis_version:(.*?)\r?$/m.exec(await redis.info())?.[1] ?? 'unknown'
      const what = 'redis for durable sessions'
      // The question that a head asks before it starts, with its answer: two that differ would help nobody.
      const durable = await checkDurable(redis, level, replicas).then((): Check => ({ what, state: 'ok', found: `keeps them at durability ${level}` }), (error: unknown): Check => {
        if (isSoaError(error)) return { what, state: 'failed', found: error.message }
        throw error
      })
      return [{ what: 'redis', state: 'ok', found: `version ${version}` }, durable]
    } finally {
      await closeRedis(redis)
    }
  } catch (error) {
    return [{ what: 'redis', state: 'failed', found: (error as Error).message, mend: 'start it, or name another with SOA_REDIS or --redis' }]
  }
}

async function headCheck (io: Io, url: string): Promise<Check> {
  try {
    const api = new HeadApi(url, io.signal)
    const { items } = await api.call('GET', 'nodes') as { items: unknown[] }
    return { what: 'head', state: 'ok', found: `${api.url}, ${items.length} ${items.length === 1 ? 'node' : 'nodes'}` }
  } catch (error) {
    return { what: 'head', state: 'note', found: (error as Error).message }
  }
}

async function portCheck ({ address, setting }: ListenAddress, isUp: boolean): Promise<Check> {
  const taken = await whyTaken(address)
  if (taken === undefined) return { what: `address ${address}`, state: 'ok', found: 'free' }
  if (isUp) return { what: `address ${address}`, state: 'ok', found: 'the head has it' }
  return { what: `address ${address}`, state: 'failed', found: taken.message, mend: `end what has it, or choose another with ${flagName(setting)} or ${environmentName(setting)}` }
}

async function diskCheck (dataDir: string): Promise<Check> {
  let there = dataDir
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there) // not made yet: its disk is that of the nearest folder above
  const { bavail, bsize } = await statfs(there)
  const free = bavail * bsize
  const found = `${(free / 2 ** 30).toFixed(1)} GiB free at ${dataDir}`
  return free >= LEAST_FREE_BYTES ? { what: 'disk', state: 'ok', found } : { what: 'disk', state: 'failed', found, mend: 'make room (1 GiB or more), or choose another folder with --data-dir or SOA_DATA_DIR' }
}
