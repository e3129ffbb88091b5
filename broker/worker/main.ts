import { rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hostname } from 'node:os'
import { systemClock, within } from '../../core/clock.ts'
import { isSoaError } from '../../core/errors.ts'
import { Lifetime } from '../../core/lifetime.ts'
import { makeLog } from '../../core/log.ts'
import { machineName } from '../../config/addresses.ts'
import type { AllSettings } from '../../config/settings.ts'
import { MemoryMessageStore } from '../../store/memory-store.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'
import { RedisDemandBoard } from '../../store/redis-placement-demand.ts'
import { RedisTaskEvents } from '../../store/redis-placement-events.ts'
import { RedisServiceRegistry } from '../../store/redis-services.ts'
import { RedisSessionStore, RedisWorkerDirectory } from '../../store/redis-sessions.ts'
import { RedisMessageStore, type Level } from '../../store/redis-store.ts'
import { StoreUsage } from '../../store/redis-usage.ts'
import { baseUrls } from '../../transport/http/base-url.ts'
import { forward } from '../../transport/http/forward.ts'
import { listenHttp } from '../../transport/http/listener.ts'
import type { DuplexEndpoint, SoapEndpoint } from '../../transport/channel.ts'
import { listenTcp } from '../../transport/tcp/listener.ts'
import { tlsFrom } from '../../transport/tcp/tls.ts'
import { lastWordsFile } from '../contract.ts'
import { callHost } from './call-host.ts'
import { controlServer, type WorkerDesk } from './control.ts'
import { controller } from './controller.ts'
import { openCustomBroker } from './custom-opening.ts'
import { duplexEndpoints, type DuplexEndpoints } from './duplex.ts'
import { frontEnd } from './front-end.ts'
import { Lease } from './lease.ts'
import { WorkerSessions, refusalOf } from './sessions.ts'

/** What the head starts a worker with: JSON in SOA_WORKER_SPEC. */
interface WorkerSpec {
  workerId: string
  socket: string
  netTcp: string
  control: string
  redisUrl: string
  prefix: string
  headSocket: string
  /** Of the process, and what sessions run with when neither their service nor they themselves say otherwise. */
  settings: AllSettings
  logLevel: string
}

/** A worker stays in the directory this long after its last beat. */
const LEASE_MS = 15_000
const BEAT_MS = 3000
/** Other brokers serve what this worker served. */
const EXIT_DISOWNED = 4
/** Longest time for handing sessions over when the worker stops. */
const STOP_MS = 20_000

/** The broker worker. The only file of this room that reads the environment, opens things, and says `new` for others. */
export async function workerMain (env: Record<string, string | undefined>): Promise<void> {
  const spec = JSON.parse(env.SOA_WORKER_SPEC ?? '{}') as WorkerSpec
  const { workerId, settings, prefix } = spec
  const log = makeLog('worker', spec.logLevel).child({ workerId })
  const clock = systemClock
  const life = new Lifetime()
  const timeoutMs = settings.storeTimeoutMs
  const redis = life.own(await openRedis(spec.redisUrl, { log, timeoutMs, name: `worker ${workerId}` }), closeRedis)
  const blocking = life.own(await openRedis(spec.redisUrl, { log, timeoutMs, kind: 'blocking', name: `worker ${workerId} events` }), closeRedis)
  const events = life.own(new RedisTaskEvents({ redis, blocking, prefix, log, clock }), events => events.close())
  const directory = new RedisWorkerDirectory({ redis, prefix, log, timeoutMs, clock })
  const usage = life.own(new StoreUsage({ redis, prefix, log, timeoutMs, clock, maxStoreBytes: settings.maxStoreBytes }), usage => usage.close())
  const records = new RedisSessionStore({ redis, prefix, log, timeoutMs, clock })
  const sessions = new WorkerSessions({
    workerId,
    defaults: settings,
    async openStore (record, { maxSessionBytes, maxDeadLetters }) {
      if (!record.durable) return new MemoryMessageStore({ maxSessionBytes, maxDeadLetters })
      const { sessionId } = record
      const opened = { redis, prefix, sessionId, level: settings.durability as Level, replicas: settings.replicas, log, limits: { maxSessionBytes, maxDeadLetters, timeoutMs }, quota: usage, clock }
      const store = await RedisMessageStore.open({ ...opened, create: record.state === 'Starting' }).catch(async error => {
        // The id was this session's alone from the first moment, so what lies there was made by a worker that died while it started this very session.
        if (!isSoaError(error, 'Broker_SessionIdAlreadyExists')) throw error
        return await RedisMessageStore.open({ ...opened, create: false })
      })
      await usage.add(sessionId).catch(err => log.warn({ err: err as Error }, 'what the store keeps is not known yet'))
      return store
    },
    sessions: records,
    refused: () => held.refused(),
    services: new RedisServiceRegistry({ redis, prefix, log, timeoutMs, clock }),
    board: new RedisDemandBoard({ redis, prefix, log, timeoutMs, clock }),
    events,
    closed: id => { usage.drop(id).catch(err => log.debug({ err: err as Error }, 'what an ended session keeps was not looked at')) },
    connect: callHost,
    openCustom: (registration, session, settings) => openCustomBroker(registration, { session, settings, lastWordsFile: lastWordsFile(spec.control), env, clock, log }),
    env,
    clock,
    log,
  })

  let held: Pick<Lease, 'refused' | 'end'> = { refused () {}, end () {} } // until there is one
  let end = (): void => {}
  const ended = new Promise<void>(resolve => { end = resolve })
  let stopping: Promise<void> | undefined
  /** `isLoss`: nobody asked for it. */
  const stop = (why: string, isLoss = false): void => {
    if (stopping !== undefined) return
    held.end()
    log.info({ why, sessions: sessions.ids.length }, 'worker stops')
    // Without a Redis nothing can be handed over in order, and need not be: what was acknowledged is kept, and the record says who has it no more.
    stopping = within(clock, STOP_MS, sessions.suspendAll(isLoss ? why : undefined).then(() => directory.remove(workerId)), () => new Error(`not done within ${STOP_MS} ms`))
      .catch(error => log.error({ err: error as Error }, 'worker did not stop in order'))
      .finally(end)
  }
  let disarmClaim = (): void => {}
  /** Of the head that claimed last: the one that started this worker may be gone. */
  let { headSocket } = spec
  const claimed = (): void => {
    disarmClaim()
    disarmClaim = clock.after(settings.workerClaimTimeoutMs, () => stop(`no head has claimed this worker for ${settings.workerClaimTimeoutMs} ms (workerClaimTimeoutMs)`, true))
  }

  const desk: WorkerDesk = {
    status: () => ({ workerId, pid: process.pid, sessions: sessions.ids, rssBytes: process.memoryUsage.rss(), isAlone: sessions.isAlone, figures: sessions.figures.view() }),
    claim (_head, socket = headSocket) { headSocket = socket; claimed() },
    session: id => sessions.get(id),
    open: record => sessions.open(record).catch(error => { throw refusalOf(error) }),
    close: (id, ending) => sessions.close(id, ending),
    stop: () => stop('a head asked for it'),
  }

  const endpoints = new WeakMap<object, { front: SoapEndpoint, control: SoapEndpoint }>()
  const route = (path: string): SoapEndpoint | undefined => {
    const [, id, isController] = /^\/(\d+)\/(?:Net)?Http(\/Controller)?\/?$/i.exec(path) ?? []
    const session = id === undefined ? undefined : sessions.get(id)
    if (session === undefined) return undefined
    let pair = endpoints.get(session)
    if (pair === undefined) endpoints.set(session, pair = { front: frontEnd(session), control: controller(session) })
    return isController === undefined ? pair.front : pair.control
  }
  const baseUrl = baseUrls(settings)
  // A connection is relayed to this worker for life; a request on it for somebody else goes back to the head.
  const fallback = (req: IncomingMessage, res: ServerResponse): void => {
    const id = /^\/(\d+)\//.exec(req.url ?? '')?.[1]
    // Of a session that is here, only the two paths above are anything. Sent back to the head it would come again, round and round.
    if (id !== undefined && sessions.get(id) !== undefined) { res.writeHead(404, { 'content-type': 'text/plain; charset=utf-8' }).end(`nothing is at ${(req.url ?? '').slice(0, 200)}; session ${id} is at /${id}/Http, its controller at /${id}/Http/Controller, both also with NetHttp\n`); return }
    void forward(req, res, { socketPath: headSocket, baseUrl: baseUrl(req) })
  }
  const channels = new WeakMap<object, DuplexEndpoints>()
  /** What stands behind a path of channels, `/{id}/NetTcp…` or `/{id}/NetHttp…`. */
  const channelAt = (pattern: RegExp) => (path: string): DuplexEndpoint | undefined => {
    const [, id, part = ''] = pattern.exec(path) ?? []
    const session = id === undefined ? undefined : sessions.get(id)
    if (session === undefined) return undefined
    let endpoints = channels.get(session)
    if (endpoints === undefined) channels.set(session, endpoints = duplexEndpoints(session, log))
    return { '': endpoints.front, controller: endpoints.control, getresponse: endpoints.responses }[part.toLowerCase()]
  }
  const webSockets = { route: channelAt(/^\/(\d+)\/NetHttp(?:\/(Controller|GetResponse))?\/?$/i) }
  const { maxReceivingBytes, receiveIdleTimeoutMs, paceGraceMs, gzipFromBytes } = settings
  const soap = life.own(await listenHttp({
    listen: { path: spec.socket }, takesIntroductions: true, route, fallback, webSockets, baseUrl, maxReceivingBytes, receiveIdleTimeoutMs, paceGraceMs, gzipFromBytes, log
  }), soap => soap.close(2000))
  const routeVia = channelAt(/^\/(\d+)\/NetTcp(?:\/(Controller|GetResponse))?\/?$/i)
  life.own(await listenTcp({ listen: { path: spec.netTcp }, route: routeVia, tls: tlsFrom(settings), maxReceivingBytes, log }), listener => listener.close(2000))
  const control = controlServer(desk, log)
  await new Promise<void>((resolve, reject) => { control.once('error', reject); control.listen(spec.control, resolve) })
  life.own(control, control => new Promise(resolve => { control.closeAllConnections(); control.close(resolve) }))

  const { socket, netTcp, control: orders } = spec
  const record = { workerId, pid: process.pid, socket, netTcp, control: orders, machine: machineName(settings.machine, hostname()), startedAt: new Date(clock.now()).toISOString() }
  const sockets = [spec.socket, spec.netTcp, spec.control]
  const lease = held = life.own(new Lease({
    beat: () => directory.beat(record, LEASE_MS),
    served: () => sessions.ids,
    isMine: async id => (await records.get(id))?.worker === workerId,
    letGo: id => sessions.letGo(id),
    disowned (why) {
      log.error({ why }, 'worker was given up and ends')
      for (const path of sockets) rmSync(path, { force: true })
      process.exit(EXIT_DISOWNED) // which closes every connection: who is on one finds the session's new broker
    },
    leaseMs: LEASE_MS,
    beatMs: BEAT_MS,
    clock,
    log,
  }), lease => lease.end())
  await lease.start()
  claimed()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop(name))
  log.info({ socket: spec.socket, address: soap.address }, 'worker ready')
  await ended
  disarmClaim()
  await life.close()
  for (const path of sockets) rmSync(path, { force: true })
}

process.on('unhandledRejection', error => { process.stderr.write(`unhandled rejection in worker: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`); process.exit(70) })
workerMain(process.env).then(() => process.exit(0), error => {
  process.stderr.write(`broker worker: ${error instanceof Error ? error.stack ?? error.message : String(error)}\n`)
  process.exit(1)
})
