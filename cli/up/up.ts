import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { checkService } from '../../broker/check-service.ts'
import { findServiceFiles, loadServiceFile, type LoadedService } from '../../config/load-services.ts'
import { systemClock, type Clock } from '../../core/clock.ts'
import { makeLog } from '../../core/log.ts'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { needFreeAddress } from '../free-address.ts'
import { dataFolder, leaveRunFolder, runFolder } from '../folders.ts'
import { HeadApi } from '../head-api.ts'
import { aborted, type Io } from '../io.ts'
import { needProgram } from '../on-path.ts'
import { refuseManyAddresses, refuseOpenAddress } from '../../config/addresses.ts'
import { hostAndPort, listenAddresses, processSettings, settingsAsEnvironment } from '../options.ts'
import { putService } from '../put-service.ts'
import type { Child, Program } from './child.ts'
import { takeLock } from './lock.ts'
import { formerRedisIsGone, privateRedis, redisAnswers, redisLogTail, redisProgram } from './redis-server.ts'
import { Supervisor } from './supervisor.ts'

/** What a test wires differently. */
export interface Parts {
  readonly clock: Clock
  readonly program: (role: 'head' | 'node', env: Program['env']) => Program
}

const entry = fileURLToPath(new URL(`../entry${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))
const realParts: Parts = {
  clock: systemClock,
  program: (role, env) => ({ command: process.execPath, args: ['--enable-source-maps', entry, role], env })
}

/** The first line of `soa head` and `soa node`. */
interface Ready { http?: string, netTcp?: string | null, sessionLauncher?: string | null }

const READY_TIMEOUT_MS = 60_000
/** Redis reads its whole file before it answers; 1 GB takes some 10 s. */
const REDIS_READY_TIMEOUT_MS = 600_000
const HEAD_GRACE_MS = 20_000
const REDIS_GRACE_MS = 10_000
/** What a node manager needs beside the grace of its hosts. */
const NODE_EXTRA_MS = 5000

/**
 * Everything on one machine: redis-server (unless one is named), head, node, in this order, each started again when it ends. Prints the ready line once clients can
 * connect. Resolves after Ctrl-C or SIGTERM, when all of it has ended; rejects when something cannot be started or has to be given up, again with all ended.
 */
export async function up (io: Io, flags: Readonly<Record<string, unknown>> & { services?: readonly string[] }, parts: Parts = realParts): Promise<void> {
  const { services: folders = [], ...settingFlags } = flags
  const settings = processSettings(io, settingFlags)
  for (const { address, setting } of listenAddresses(settings)) refuseOpenAddress(hostAndPort(address, setting).host, settings.insecure)
  refuseManyAddresses(settings.hostAddress)
  refuseOpenAddress(settings.hostAddress, settings.insecure)
  if (settings.redis === '' && settings.durability === 'replicas') throw new CommandFailed(EXIT.refused, 'durability replicas needs a Redis with replicas: name it with --redis; the Redis that "soa up" runs has none')
  needProgram(io, 'setpriv', 'install the package util-linux')
  if (settings.redis === '') needProgram(io, 'redis-server', 'install the package redis-server (Debian: apt-get install redis-server), or name a Redis with --redis')
  const log = makeLog('up', settings.logLevel)
  const dataDir = dataFolder(settings, io)
  const lock = takeLock(join(dataDir, 'up.lock'), dataDir)
  const started: Supervisor[] = []
  try {
    // After the lock, which knows better who is there when it is another "soa up" on the same data.
    for (const address of listenAddresses(settings)) await needFreeAddress(address, parts.clock, io.signal)
    const runDir = runFolder(settings, io, join(dataDir, 'run'))
    // A mistake in a registration file ends this before anything runs.
    const services = await loadServices(folders, io)
    const own = settings.redis === '' ? privateRedis(dataDir, runDir) : undefined
    const chosen = { ...settings, dataDir, runDir, redis: own?.socket ?? settings.redis }
    const { clock, program } = parts
    const common = { clock, log, readyTimeoutMs: READY_TIMEOUT_MS }
    const stopped = new AbortController()
    const watching: Array<Promise<void>> = []
    const start = async (supervisor: Supervisor): Promise<{ pid: number, answer: unknown }> => {
      started.push(supervisor)
      const starting = supervisor.start()
      starting.catch(() => {}) // when the user is first, nobody waits for it any more
      const first = await Promise.race([starting, aborted(io.signal, stopped.signal)])
      if (first === undefined) throw new CommandFailed(EXIT.ok, '')
      const watch = supervisor.watch()
      watch.catch(() => {}) // heard below; a rejection may come before that
      watching.push(watch)
      return first
    }
    const pids: Record<string, number> = {}
    try {
      if (own !== undefined) {
        mkdirSync(own.dir, { recursive: true, mode: 0o700 })
        await formerRedisIsGone(own, clock, io.signal)
        pids.redis = (await start(new Supervisor({
          ...common, name: 'redis-server', readyTimeoutMs: REDIS_READY_TIMEOUT_MS, graceMs: REDIS_GRACE_MS, hint: () => redisLogTail(own), // eslint-disable-line @stylistic/object-property-newline
          program: () => redisProgram(own, settings.durability, io.env),
          ready: (_, signal) => redisAnswers(own.socket, clock, signal)
        }))).pid
      }
      let { http, netTcp } = settings
      const head = await start(new Supervisor({
        ...common, name: 'head', graceMs: HEAD_GRACE_MS, ready: readyLine, // eslint-disable-line @stylistic/object-property-newline
        program: () => program('head', settingsAsEnvironment(io.env, { ...chosen, http, netTcp }))
      }))
      const answer = head.answer as Ready
      const url = answer.http ?? `http://${http}`
      // Port 0 became a port: a head that is started again takes the same, or its clients would not find it.
      http = new URL(url).host
      if (typeof answer.netTcp === 'string') netTcp = answer.netTcp.replace(/^net\.tcp:\/\//, '')
      pids.head = head.pid
      const api = new HeadApi(url, io.signal)
      for (const service of services) await putService(api, service)
      if (services.length > 0) log.info({ services: services.map(service => service.name) }, 'services registered')
      pids.node = (await start(new Supervisor({
        ...common, name: 'node', graceMs: settings.taskCancelGracePeriod + NODE_EXTRA_MS, ready: readyLine, // eslint-disable-line @stylistic/object-property-newline
        program: () => program('node', settingsAsEnvironment(io.env, { ...chosen, http }))
      }))).pid
      io.out(JSON.stringify({ ready: true, http: url, netTcp: answer.netTcp ?? null, sessionLauncher: answer.sessionLauncher ?? null, redis: chosen.redis, dataDir, pids }))
      await Promise.race([...watching, aborted(io.signal, stopped.signal)])
    } catch (error) {
      if (!io.signal.aborted) throw error
    } finally {
      stopped.abort()
      // Newest first: the node ends its hosts while the head and Redis can still hear of it. One that fails to stop must not leave the others running.
      for (const supervisor of started.reverse()) await supervisor.stop(io.hurry).catch((err: unknown) => log.error({ child: supervisor.name, err }, 'child did not stop'))
    }
    leaveRunFolder(runDir)
  } finally {
    lock.release()
  }
}

async function readyLine (child: Child): Promise<Ready> {
  const line = await child.firstLine
  try {
    const ready = JSON.parse(line) as Ready & { ready?: boolean }
    if (ready.ready === true) return ready
  } catch { /* said below */ }
  throw new CommandFailed(EXIT.failed, `its first line is not the ready line: ${line.slice(0, 200)}`)
}

async function loadServices (folders: readonly string[], io: Io): Promise<LoadedService[]> {
  const services: LoadedService[] = []
  for (const folder of folders) {
    const files = await findServiceFiles(folder)
    if (files.length === 0) io.err(`${folder}: no registration file (*.config) below it`)
    for (const file of files) {
      const warn = (warning: string): void => io.err(`${file}: ${warning}`)
      const service = await loadServiceFile(file, { env: io.env, warn })
      for (const warning of checkService(service, io.env).contractWarnings) warn(warning)
      services.push(service)
    }
  }
  return services
}
