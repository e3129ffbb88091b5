import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asset } from '../../core/assets.ts'
import { systemClock } from '../../core/clock.ts'
import { SoaError, isSoaError } from '../../core/errors.ts'
import { Lifetime } from '../../core/lifetime.ts'
import type { Logger } from '../../core/log.ts'
import { addressIn, machineName, refuseOpenAddress } from '../../config/addresses.ts'
import { findServiceFiles, loadServiceFile } from '../../config/load-services.ts'
import type { AllSettings } from '../../config/settings.ts'
import { checkDurable } from '../../store/redis-check.ts'
import { RedisAllocations } from '../../store/redis-allocations.ts'
import { RedisDemandBoard, RedisPlacement } from '../../store/redis-placement.ts'
import { RedisHeadDirectory } from '../../store/redis-heads.ts'
import { RedisSessionPools } from '../../store/redis-pools.ts'
import { RedisServiceRegistry } from '../../store/redis-services.ts'
import { RedisSessionStore, RedisWorkerDirectory } from '../../store/redis-sessions.ts'
import { RedisMessageStore, type Level } from '../../store/redis-store.ts'
import { forgetUsage, probeWrites } from '../../store/redis-usage.ts'
import { RedisTimers } from '../../store/redis-timers.ts'
import { closeRedis, connectionNumber, openRedis } from '../../store/redis.ts'
import { baseUrls } from '../../transport/http/base-url.ts'
import { forward } from '../../transport/http/forward.ts'
import { CLOCKS, serveWebSockets, soapRequestListener } from '../../transport/http/listener.ts'
import type { WebSocketDoor } from '../../transport/http/web-socket.ts'
import { answeringEndpoints } from '../../transport/answering.ts'
import { peerListener } from '../../transport/peer.ts'
import { relayListener } from '../../transport/relay.ts'
import { tlsFrom } from '../../transport/tcp/tls.ts'
import { addresses, type ListeningPorts } from './addresses.ts'
import { checkService } from '../check-service.ts'
import { Chores } from './chores.ts'
import { FarWorkers } from './far-workers.ts'
import { FrontDoor } from './front-door.ts'
import { healthRoutes } from './health.ts'
import { metricsRoute } from './metrics.ts'
import { netTcpDoor } from './net-tcp-door.ts'
import { Placement } from './placement.ts'
import { Membership } from './membership.ts'
import { restServer } from './rest.ts'
import { SessionLauncher } from './session-launcher.ts'
import { SessionPools } from './session-pools.ts'
import { SessionRaising } from './session-raising.ts'
import { RETENTION, SessionSweep } from './session-sweep.ts'
import { launchers } from './soap/launchers.ts'
import { Turns } from './turns.ts'
import { WorkerPool } from './worker-pool.ts'
import { startWorker } from './worker-process.ts'

export interface HeadOptions {
  /** Everything that the settings table has, read and checked. */
  settings: AllSettings
  redisUrl: string
  /** First part of every key in Redis. */
  prefix: string
  /** Sockets: this head's and its workers'. One head for each run folder; a head that is started again finds the workers of the last one there. */
  runDir: string
  /** Port 0 picks a free one. */
  http: { host: string, port: number }
  /** Undefined: net.tcp is not served. The launchers' ports are beside the brokers' on the same host; undefined: they are only there. */
  netTcp?: { host: string, port: number, sessionLauncherPort?: number | undefined, brokerLauncherPort?: number | undefined } | undefined
  /** Registration files, or folders of them, that are registered before anybody is let in. */
  services?: readonly string[] | undefined
  log: Logger
  /** The environment that workers get, and that paths of registration files are expanded with. */
  env: NodeJS.ProcessEnv
  /** Program of a broker worker; default: ours. */
  workerProgram?: string | undefined
}

export interface RunningHead {
  /** `http://127.0.0.1:8080` */
  readonly http: string
  /** `net.tcp://127.0.0.1:9091`; undefined: not served. */
  readonly netTcp?: string | undefined
  /** `net.tcp://127.0.0.1:9090/SessionLauncher` */
  readonly sessionLauncher?: string | undefined
  /** Takes no more, has the workers suspend what they serve, and ends. Workers of a head that is killed instead go on, and are found by the next one. */
  close (): Promise<void>
}

/** Path of a Unix socket on Linux: 108 bytes with the zero at the end. */
const SOCKET_PATH_BYTES = 107
/** Longest wait for workers to suspend their sessions; `soa up` gives the head longer than this. */
const DRAIN_MS = 15_000
/** Calls that are in hand when the head stops get this long before their connections are cut. */
const RELAY_GRACE_MS = 1000
/** Longest wait for a broker, for whoever creates or calls a session ([broker-behaviour] 1.5). */
const WORKER_READY_MS = 60_000
const SWEEP_LATE_MS = 5000
/** An allocated session that is not created within this time is forgotten: HPC Pack's client gives a create 5 min in all ([broker-behaviour] 1.8). */
const ALLOCATION_MS = 600_000

/** The head. The only file of this room that opens things and says `new` for others. Refuses to start on a Redis that would lose what is promised. */
export async function headMain (options: HeadOptions): Promise<RunningHead> {
  const { settings, redisUrl, prefix, runDir, http, netTcp, env, log } = options
  refuseOpenAddress(http.host, settings.insecure)
  if (netTcp !== undefined) refuseOpenAddress(netTcp.host, settings.insecure)
  tlsFrom(settings) // refuses what the workers could not use
  const baseUrl = baseUrls(settings)
  const life = new Lifetime()
  try {
    return await open(options, life)
  } catch (error) {
    await life.close().catch(err => log.warn({ err }, 'not everything closed after a failed start'))
    throw error
  }

  async function open ({ services: registrations = [], workerProgram }: HeadOptions, life: Lifetime): Promise<RunningHead> {
    const clock = systemClock
    const room = (name: string): Logger => log.child({ room: name })
    const headSocket = await prepareRunDir(runDir)
    const timeoutMs = settings.storeTimeoutMs
    const redis = life.own(await openRedis(redisUrl, { log, timeoutMs, name: 'soa head' }), closeRedis)
    await checkDurable(redis, settings.durability as Level, settings.replicas)
    const bullRedis = life.own(await openRedis(redisUrl, { log, timeoutMs, kind: 'bullmq', name: 'soa head jobs' }), closeRedis)
    const stored = { redis, prefix, log, timeoutMs, clock }
    const sessions = new RedisSessionStore(stored)
    const directory = new RedisWorkerDirectory(stored)
    const allocations = new RedisAllocations(stored, { keptMs: ALLOCATION_MS, most: settings.maxSessions })
    const services = new RedisServiceRegistry(stored)
    const demand = new RedisDemandBoard(stored)
    const placementStore = new RedisPlacement(stored)
    const timers = new RedisTimers(stored)
    const heads = new RedisHeadDirectory(stored)
    const pools = new SessionPools({ pools: new RedisSessionPools(stored), sessions, allocations })
    const machine = machineName(settings.machine, hostname())
    for (const path of registrations) await register(services, path, env, log)

    const placement = new Placement({ store: placementStore, clock, log: room('placement') })
    const turns = new Turns()
    const purgeQueues = async (sessionId: string): Promise<void> => {
      const opened = await RedisMessageStore.open({ ...stored, sessionId, level: 'process', create: false, limits: { timeoutMs } })
        .catch(error => { if (isSoaError(error, 'storeLost')) return undefined; throw error }) // nothing was there
      await (opened === undefined ? forgetUsage(stored, sessionId) : opened.close(false))
    }
    const far: FarWorkers = new FarWorkers({
      heads, directory, machine, runDir, storeConnection: () => connectionNumber(redis), onDeath: (workerId, why) => raising.workerDied(workerId, why), clock, log: room('far workers')
    })
    const pool: WorkerPool = new WorkerPool({
      far,
      headSocket,
      directory,
      start: names => startWorker(workerProgram ?? fileURLToPath(new URL('../worker/main.js', import.meta.url)), { ...names, redisUrl, prefix, runDir, headSocket, settings, logLevel: settings.logLevel }, env),
      head: `${machine}/${process.pid}`,
      machine,
      runDir,
      limits: { ...settings, workerReadyTimeoutMs: WORKER_READY_MS },
      onDeath: (workerId, why, words) => raising.workerDied(workerId, why, words),
      clock,
      log: room('workers')
    })
    const headId = `${machine}-${process.pid}-${randomBytes(2).toString('hex')}`
    const secret = randomBytes(32).toString('hex')
    const startedAt = new Date(clock.now()).toISOString()
    const reachable = { http: '', netTcp: undefined as string | undefined, peer: '' } // known when all listen
    const membership = new Membership({
      heads,
      headId,
      self: () => ({ headId, machine, pid: process.pid, secret, startedAt, ...reachable }),
      sessions: () => pool.ownSessions,
      async wanted (wish) {
        await chores.pause(wish !== undefined)
        if (wish === 'force') await launcher.evict(id => chores.ask('raise', id))
      },
      clock,
      log: room('membership')
    })
    const raising: SessionRaising = new SessionRaising({
      membership, sessions, pool, demand, turns, purgeQueues, clock, raiseLater: sessionId => chores.ask('raise', sessionId), asked: id => chores.clearTimer(RETENTION, id), limits: { raiseTimeoutMs: WORKER_READY_MS }, log: room('sessions'), signal: life.signal
    })
    const launcher = new SessionLauncher({
      nodes: () => placementStore.nodes(), shortage: id => placement.shortage(id), membership, pools, sessions, allocations, services, pool, raising, demand, purgeQueues, turns, defaults: settings, limits: settings, clock, log: room('sessions'), closed: id => chores.clearTimer(RETENTION, id)
    })
    const chores: Chores = new Chores({
      connection: bullRedis,
      prefix,
      placement,
      sinceSweepMs: () => placementStore.sinceSweepMs(),
      timers,
      sessions: { raise: id => raising.raise(id), suspend: id => launcher.suspend(id), purge: async id => { await launcher.close(id) } },
      onTimer: { [RETENTION]: id => sweep.forget(id) },
      clock,
      log: room('chores')
    })
    const sweep = new SessionSweep({ sessions, raising, launcher, timers, setTimer: (...timer) => chores.setTimer(...timer), ...settings, clock, log: room('sessions'), signal: life.signal })

    await life.own(chores, chores => chores.close()).start()
    life.own(pool, pool => pool.close())
    life.own(far, far => far.close())
    await pool.start()
    await far.start()
    log.info(await raising.recover(), 'sessions without a worker looked after')
    void sweep.run()
    // Before the pool is closed: durable sessions at work are let go of by their workers, and marked for the next head.
    life.own(launcher, async launcher => {
      const before = await launcher.served().catch(err => { log.warn({ err }, 'sessions at work could not be listed'); return [] })
      await pool.drain(DRAIN_MS)
      await launcher.leaveForNext(before)
    })

    const door = new FrontDoor({ raising, forward: (req, res, socketPath) => forward(req, res, { socketPath, baseUrl: baseUrl(req) }), limits: settings, log: room('front door') })
    const ports: ListeningPorts = { http: 0, netTcp: 0, brokerLauncher: 0 }
    const told = addresses(settings, ports)
    const soap = launchers({ launcher, raising, sessions, services, settings, addresses: told, clusterName: prefix, log: room('launchers') })
    const channels = answeringEndpoints(soap, room('launchers'))
    let webSockets: WebSocketDoor | undefined
    const app = life.own(await restServer({
      launcher,
      raising,
      heads: membership,
      nodes: placementStore,
      services,
      settings,
      baseUrl,
      netTcpUrl: url => told(url).netTcp,
      now: () => clock.now(),
      version: (JSON.parse(await readFile(asset('package.json'), 'utf8')) as { version: string }).version,
      // By its Unix socket come requests that a worker got and that are for somebody else; all others by the relay.
      server: handle => {
        const { maxReceivingBytes, receiveIdleTimeoutMs, paceGraceMs, gzipFromBytes } = settings
        const ours = soapRequestListener({ route: soap, fallback: handle, baseUrl, maxReceivingBytes, receiveIdleTimeoutMs, paceGraceMs, gzipFromBytes, log: room('launchers') })
        const server = createServer(CLOCKS, (req, res) => { if (!door.take(req, res, req.socket.remoteFamily === undefined)) ours(req, res, false) })
        webSockets = serveWebSockets(server, { route: channels, fallback: (req, socket, head) => door.takeWebSocket(req, socket, head), baseUrl, maxReceivingBytes, log: room('launchers') })
        return server
      },
      beside: app => {
        healthRoutes(app, {
          clock,
          checks: [
            { name: 'redis', run: () => probeWrites(redis).then(() => undefined, (error: Error) => `it takes no writes: ${error.message}`) },
            { name: 'placement', run: async () => { const ms = await placementStore.sinceSweepMs(); return ms > SWEEP_LATE_MS ? `no sweep for ${ms} ms` : undefined } },
            { name: 'workers', run: () => pool.trouble },
            { name: 'draining', run: () => membership.isDraining ? 'this head takes no new sessions (soa heads resume)' : undefined }
          ]
        })
        metricsRoute(app, { sessions, pool, nodes: placementStore, clock, log: room('metrics') })
      },
      log: room('rest')
    }), app => app.close())

    life.own(webSockets, webSockets => webSockets?.close(RELAY_GRACE_MS))
    await app.listen({ path: headSocket })
    // Last, and so closed first: nobody is let in before there is someone to serve them.
    const relay = life.own(await relayListener({
      ...http,
      httpServer: app.server,
      async decide ({ path }) {
        const to = await door.socketOf(path)
        return to === undefined ? { http: true } : { to, isIntroduced: true }
      },
      log: room('relay')
    }), relay => relay.close(RELAY_GRACE_MS))
    ports.http = relay.port
    const listening = `http://${authority(http.host, relay.port)}`
    const { host: peerHost, port: peerPort } = addressIn('peer', settings.peer)
    const peers = life.own(await peerListener({ host: peerHost, port: peerPort, secret, socketOf: (name, kind) => pool.socketOf(name, kind), log: room('peers') }), peers => peers.close())
    // A head on every address does not know which of them clients use; the one that other heads use is one of them.
    const shown = isAnyHost(http.host) && !isAnyHost(peerHost) ? `http://${authority(peerHost, relay.port)}` : listening
    Object.assign(reachable, { http: shown, peer: authority(isAnyHost(peerHost) ? hostname() : peerHost, peers.port) })
    const join = async (): Promise<void> => { life.own(membership, membership => membership.close()); await membership.start() }
    if (netTcp === undefined) {
      await join()
      log.info({ http: listening }, 'head ready')
      return { http: listening, close: () => life.close() }
    }
    const { host, port, sessionLauncherPort = port, brokerLauncherPort = port } = netTcp
    const wanted = [...new Set([port, sessionLauncherPort, brokerLauncherPort])]
    const tcp = life.own(await netTcpDoor({ host, ports: wanted, socketOf: path => door.netTcpSocketOf(path), launchers: channels, settings, log: room('net.tcp') }), tcp => tcp.close())
    const picked = (asked: number): number => tcp.ports[wanted.indexOf(asked)] as number
    Object.assign(ports, { netTcp: picked(port), brokerLauncher: picked(brokerLauncherPort) })
    const brokers = `net.tcp://${authority(host, ports.netTcp)}`
    const sessionLauncher = `net.tcp://${authority(host, picked(sessionLauncherPort))}/SessionLauncher`
    reachable.netTcp = brokers
    await join()
    log.info({ http: listening, netTcp: brokers, sessionLauncher }, 'head ready')
    return { http: listening, netTcp: brokers, sessionLauncher, close: () => life.close() }
  }
}

/** The head's own socket in a folder that only this user can enter. Refuses when another head lives there, and takes over from one that died. */
async function prepareRunDir (runDir: string): Promise<string> {
  await mkdir(runDir, { recursive: true, mode: 0o700 })
  const { uid, mode } = await stat(runDir)
  if (uid !== process.getuid?.()) throw new SoaError('refused', { why: `runDir ${runDir} belongs to another user` })
  if ((mode & 0o077) !== 0) await chmod(runDir, 0o700) // whoever can open a worker's socket can give it orders
  const path = join(runDir, 'head.sock')
  const longest = join(runDir, 'w-0123456789.sock')
  if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES) {
    throw new SoaError('Broker_InvalidConfiguration', { setting: 'runDir', why: `a folder whose sockets' paths have at most ${SOCKET_PATH_BYTES} bytes; ${longest} has ${Buffer.byteLength(longest)}` })
  }
  const isTaken = await new Promise<boolean>(resolve => {
    const socket = connect(path, () => { socket.destroy(); resolve(true) })
    socket.once('error', () => resolve(false))
  })
  if (isTaken) throw new SoaError('refused', { why: `another head runs in runDir ${runDir}` })
  await rm(path, { force: true })
  return path
}

async function register (services: RedisServiceRegistry, path: string, env: NodeJS.ProcessEnv, log: Logger): Promise<void> {
  const files = (await stat(path)).isDirectory() ? await findServiceFiles(path) : [path]
  for (const file of files) {
    const service = await loadServiceFile(file, { env, warn: warning => log.warn({ file, warning }, 'service registration') })
    // What the file itself has to say was told when it was loaded.
    for (const warning of checkService(service, env).contractWarnings) log.warn({ file, warning }, 'service registration')
    await services.put(service)
    log.info({ service: service.name, version: service.version, file }, 'service registered')
  }
}

const isAnyHost = (host: string): boolean => host === '' || host === '0.0.0.0' || host === '::'

/** As it stands in a URL; an address that means all of them is of no use to a caller on this machine. */
function authority (host: string, port: number): string {
  const shown = isAnyHost(host) ? '127.0.0.1' : host
  return shown.includes(':') && !shown.startsWith('[') ? `[${shown}]:${port}` : `${shown}:${port}`
}
