import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../core/clock.ts'
import { SoaError } from '../core/errors.ts'
import { Lifetime } from '../core/lifetime.ts'
import { makeLog, type Logger } from '../core/log.ts'
import { refuseManyAddresses, refuseOpenAddress } from '../config/addresses.ts'
import { readSettings, sessionSettings } from '../config/read-settings.ts'
import { parseRegistration } from '../config/service-registration.ts'
import type { Settings } from '../config/settings.ts'
import { closeRedis, openRedis, redactRedisUrl } from '../store/redis.ts'
import { PLACEMENT_LIMITS, RedisNodeLink, type NodeRecord } from '../store/redis-placement.ts'
import { RedisServiceRegistry } from '../store/redis-services.ts'
import { RedisSessionStore } from '../store/redis-sessions.ts'
import type { PlacedTask } from '../store/redis-placement-scripts.ts'
import type { Demand } from '../store/placement-store.ts'
import { Guardian, startTime } from './guardian.ts'
import { HostProcess } from './host-process.ts'
import { homeOfPids } from './place.ts'
import { Ports } from './port.ts'
import { Preparations, type NodeCommands } from './preparations.ts'
import { nodeCommands, OUR_HOST, passedOn, recipe, type TaskRecipe } from './recipe.ts'
import { Reconciler } from './reconcile.ts'
import { coresOf, socketsHere, labelsOf, listOf, nodeIdOf } from './resources.ts'
import { Task } from './task.ts'
import { WarmHosts } from './warm-hosts.ts'

export interface NodeManagerOptions {
  readonly redisUrl: string
  readonly prefix: string
  /** Empty: the machine's name. */
  readonly nodeId: string
  /** 0: what the machine has. */
  readonly cores: number
  readonly labels: Readonly<Record<string, string>>
  readonly groups: readonly string[]
  /** Address that hosts listen on and brokers dial; default 127.0.0.1. */
  readonly host?: string | undefined
  /** A folder of its own: made here, and removed when it closes. */
  readonly runDir: string
  readonly log: Logger
  /** Defaults of the session settings. */
  readonly settings: Settings
  /** The environment that a few variables are passed on from, and that paths in registration files are expanded with. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Hosts that are started ahead of need. */
  readonly warmHosts: number
  readonly beatMs?: number | undefined
}

export interface NodeManager {
  readonly id: string
  readonly cores: number
  /** Ends tasks with their grace, says goodbye, closes. */
  close (): Promise<void>
  /** Kills all hosts at once; for the second Ctrl-C. */
  kill (): void
  /** Rejects when it cannot go on by itself (another manager has its name). */
  readonly lost: Promise<never>
}

const BEAT_MS = 1000
/** Under the node's lease (5 s): a call that hangs must not cost the node its life. */
const REDIS_ANSWER_MS = 3000
const REDIS_FIRST_MS = 30_000

export async function runNodeManager (options: NodeManagerOptions): Promise<NodeManager> {
  const { redisUrl, prefix, runDir, settings, env, host = '127.0.0.1', beatMs = BEAT_MS } = options
  const id = nodeIdOf(options.nodeId)
  const record: NodeRecord = {
    id,
    machine: hostname(),
    pid: process.pid,
    cores: coresOf(options.cores),
    sockets: socketsHere(),
    labels: options.labels,
    groups: options.groups,
    instance: randomUUID(),
    startedAt: new Date().toISOString(),
    home: homeOfPids(),
    startTime: startTime(process.pid)
  }
  const log = options.log.child({ node: id })
  const clock = systemClock
  const life = new Lifetime()
  mkdirSync(runDir, { recursive: true, mode: 0o700 })
  life.own(runDir, dir => rmSync(dir, { recursive: true, force: true }))
  try {
    // The first connection may take as long as Redis loads its data; after that an answer has to come within a beat or two.
    const first = await openRedis(redisUrl, { log, timeoutMs: REDIS_FIRST_MS, name: `node ${id}` })
    await closeRedis(first)
    const redis = life.own(await openRedis(redisUrl, { log, timeoutMs: REDIS_ANSWER_MS, name: `node ${id}` }), closeRedis)
    const subscriber = life.own(await openRedis(redisUrl, { log, kind: 'blocking', name: `node ${id} wake` }), closeRedis)
    const guardian = life.own(new Guardian({ clock, log }), guardian => guardian.close())
    guardian.start()

    let giveUp: (why: Error) => void = () => {}
    const lost = new Promise<never>((_resolve, reject) => { giveUp = reject })
    lost.catch(() => { /* whoever awaits `lost` is told; nobody may */ })
    const link = new RedisNodeLink({ redis, prefix })
    const needs = { redis, prefix, log, timeoutMs: REDIS_FIRST_MS, clock }
    const recipes = new Recipes({ services: new RedisServiceRegistry(needs), sessions: new RedisSessionStore(needs), settings, env, log })
    const ports = new Ports(host)
    const preparations: Preparations = new Preparations({ run: command => new HostProcess(command, { guardian, clock, log }), clock, log, changed: () => reconciler.wake() })
    const warm = life.own(warmHosts(options.warmHosts, env, { guardian, clock, log }), warm => warm.close())
    const makeTask = (placed: PlacedTask, demand: Demand, changed: () => void): Task => {
      const recipe = (unwanted: AbortSignal): Promise<TaskRecipe> => recipes.of(placed, demand, commands => preparations.prepare(placed.sessionId, commands, unwanted))
      return new Task(placed, { recipe, guardian, ports, warm, host, runDir, clock, log, changed })
    }
    const reconciler: Reconciler = new Reconciler({ record, link, makeTask, preparations, clock, log, beatMs, leaseMs: PLACEMENT_LIMITS.nodeLeaseMs, lost: why => giveUp(why) })

    subscriber.on('message', () => reconciler.wake())
    subscriber.on('ready', () => reconciler.wake()) // a wake may have been lost meanwhile
    await subscriber.subscribe(link.wakeChannel(id))
    await reconciler.start()
    warm.start()
    life.own(reconciler, reconciler => reconciler.leave())
    return {
      id,
      cores: record.cores,
      lost,
      close: () => life.close(),
      kill: () => { void reconciler.kill('the node manager was told to stop at once') }
    }
  } catch (error) {
    await life.close().catch(err => log.warn({ err }, 'not closed cleanly'))
    throw error
  }
}

/** Our own host with all that it has before it is told a task: what every host has of this process's environment, and no folder of its own. */
function warmHosts (size: number, env: NodeManagerOptions['env'], needs: ConstructorParameters<typeof HostProcess>[1]): WarmHosts {
  const own = passedOn(env)
  const spawn = (): HostProcess => new HostProcess({ command: process.execPath, args: [OUR_HOST, '--warm'], env: own, cwd: '/', stderrFile: '', isWarm: true }, needs)
  return new WarmHosts({ size, env: own, spawn, clock: needs.clock, log: needs.log })
}

interface RecipesNeeds {
  readonly services: Pick<RedisServiceRegistry, 'get'>
  readonly sessions: Pick<RedisSessionStore, 'get'>
  readonly settings: Settings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
}

/** From a placed task to how it is started: the registration as it is now, the session's own settings over it. */
class Recipes {
  readonly #needs: RecipesNeeds
  /** Paths in registration files are expanded with these: not with ours, which hold the URL of Redis. */
  readonly #expandable: Readonly<Record<string, string | undefined>>

  constructor (needs: RecipesNeeds) {
    this.#needs = needs
    this.#expandable = Object.fromEntries(Object.entries(needs.env).filter(([name]) => !name.startsWith('SOA_')))
  }

  /** @param prepared resolves when what the service wants to be done on the node first has been done */
  async of (task: PlacedTask, demand: Demand, prepared: (commands: NodeCommands) => Promise<void>): Promise<TaskRecipe> {
    const { services, sessions, settings, env } = this.#needs
    const [registered, session] = await Promise.all([services.get(demand.service, demand.version), sessions.get(task.sessionId)])
    const registration = parseRegistration(registered.config, registered.file, this.#expandable)
    const facts = { registered, registration, task, settings: sessionSettings(settings, registration.broker, session?.settings ?? {}), environment: demand.environment, own: env }
    await prepared(nodeCommands(facts))
    return recipe(facts)
  }
}

/** The node manager as a process: settings from the environment (SOA_…), first line of stdout `{"ready":true,"node":…,"redis":…}`. Resolves to its exit code. */
export async function main (env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const settings = readSettings(env, {}, 'process')
  const log = makeLog('node', settings.logLevel)
  if (settings.redis === '') throw new SoaError('Broker_InvalidConfiguration', { setting: 'redis', why: 'a node needs the URL of the Redis that its head uses: --redis or SOA_REDIS' })
  refuseManyAddresses(settings.hostAddress)
  refuseOpenAddress(settings.hostAddress, settings.insecure)
  const manager = await runNodeManager({
    redisUrl: settings.redis,
    prefix: settings.redisPrefix,
    nodeId: settings.nodeId,
    cores: settings.cores,
    labels: labelsOf(settings.labels),
    groups: listOf(settings.groups),
    host: settings.hostAddress,
    runDir: join(settings.runDir || defaultRunDir(env), `node-${process.pid}`),
    log,
    settings: readSettings(env, {}, 'session'),
    warmHosts: settings.warmHosts,
    env
  })
  process.stdout.write(`${JSON.stringify({ ready: true, node: manager.id, redis: redactRedisUrl(settings.redis), pid: process.pid, cores: manager.cores })}\n`)
  const stopped = new Promise<undefined>(resolve => {
    let signals = 0
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (++signals > 1) { log.warn({ signal }, 'told again: hosts are killed now'); manager.kill() }
        resolve(undefined)
      })
    }
  })
  const why = await Promise.race([stopped, manager.lost.catch((error: unknown) => error)])
  await manager.close()
  if (why === undefined) return 0
  log.error({ err: why as Error }, 'node manager gives up')
  return 1
}

const defaultRunDir = (env: Readonly<Record<string, string | undefined>>): string =>
  env['XDG_RUNTIME_DIR'] !== undefined ? join(env['XDG_RUNTIME_DIR'], 'soa-broker') : join(tmpdir(), `soa-broker-${userInfo().uid}`)

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.env).then(code => { process.exitCode = code }, (error: unknown) => {
    process.stderr.write(`soa node: ${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  })
}
