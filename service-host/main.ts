/**
 * The process of one service task: loads the user's module, then listens, so that "the port accepts" means ready. Ends by SIGTERM (or SIGINT), by its
 * controller's Exit, or when no call has come for long, in good order. Its statuses are in core/host-exits.ts.
 *
 * Started with `--warm` it loads all but the service, and waits to be told which one (assignment.ts): from then on it is as any other.
 */
import { systemClock } from '../core/clock.ts'
import { isSoaError } from '../core/errors.ts'
import { HOST_EXITS, type HostExitName } from '../core/host-exits.ts'
import type { Logger } from '../core/log.ts'
import type { DuplexEndpoint, SoapEndpoint } from '../transport/channel.ts'
import { answeringEndpoint } from '../transport/answering.ts'
import { listenEither, type EitherListener } from '../transport/either.ts'
import { loadWsdl, operationsOf } from '../wsdl/document.ts'
import { awaitAssignment } from './assignment.ts'
import { hostController } from './controller.ts'
import { describe } from './description.ts'
import { watchFromOutside } from './hang-watchdog.ts'
import { readHostSpec, type HostSpec } from './host-spec.ts'
import { ServiceHost } from './host.ts'
import { Invoker } from './invoker.ts'
import { rehearse } from './rehearsal.ts'
import { lazyLog } from './service-context.ts'
import { loadService, ServiceUnusable } from './service-loader.ts'

const MOST_WAITING_CALLS = 1000
/** Replies that are on their way when the last call is done get so long to leave. */
const REPLIES_MS = 1000

interface Serving { readonly host: ServiceHost, readonly listeners: readonly EitherListener[] }

/** A failure to start with the status that says which. */
class StartFailure extends Error {
  readonly exit: HostExitName
  constructor (exit: HostExitName, cause: unknown) {
    super((cause as Error).message, { cause })
    this.exit = exit
  }
}

/** What `act` throws is a failure of this kind. */
function or<T> (exit: HostExitName, act: () => T): T {
  try { return act() } catch (error) { throw new StartFailure(exit, error) }
}

async function start (spec: HostSpec, log: ReturnType<typeof lazyLog>): Promise<Serving> {
  const { wsdl, operations } = or('contractUnknown', () => {
    const wsdl = loadWsdl(spec.documents, spec.wsdlFile)
    return { wsdl, operations: operationsOf(wsdl, spec.contract) }
  })
  const methods = await loadService(spec.module, wsdl, operations, spec.type)
  const cores = Number(process.env.CCP_NUMCPUS)
  const limits = { maxMessageSize: spec.maxMessageSize, maxHeaderBytes: spec.maxHeaderBytes, maxDepth: spec.maxDepth }
  const watchdog = spec.serviceHangTimeout >= 0 ? watchFromOutside(spec.serviceHangTimeout) : undefined
  const host = new ServiceHost({
    invoker: new Invoker({
      schema: wsdl.schema,
      operations,
      methods,
      taskId: spec.taskId,
      maxDepth: spec.maxDepth,
      maxMessageSize: spec.maxMessageSize,
      includeExceptionDetailInFaults: spec.includeExceptionDetailInFaults,
      isLenient: spec.lenient ?? false,
      log
    }),
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    maxConcurrentCalls: spec.maxConcurrentCalls > 0 ? spec.maxConcurrentCalls : Number.isInteger(cores) && cores > 0 ? cores : 1,
    maxWaitingCalls: MOST_WAITING_CALLS,
    limits,
    cancelGraceMs: spec.cancelGraceMs,
    finishesCalls: spec.finishesCalls,
    idleMs: spec.serviceHostIdleTimeout,
    hangMs: spec.serviceHangTimeout,
    idle () {
      log.info({ serviceHostIdleTimeout: spec.serviceHostIdleTimeout }, 'no call for so long: the host ends')
      end()
    },
    hung (calls) {
      process.stderr.write(`service host: ${calls} made no progress for ${spec.serviceHangTimeout} ms (serviceHangTimeout)\n`)
      process.exit(HOST_EXITS.hung.code)
    },
    stepped: watchdog?.stepped,
    log,
    clock: systemClock,
    get: describe(spec)
  })
  const listeners = await listen(spec, host.endpoint, hostController(limits, () => end()), log)
  return { host, listeners }
}

/**
 * One listener, or two where the controller has a port of its own, as HPC Pack's has. It listens first: who sees the service's port open may call either.
 * Each speaks net.tcp, which the broker uses, and HTTP.
 */
async function listen (spec: HostSpec, service: SoapEndpoint, controller: SoapEndpoint, log: ReturnType<typeof lazyLog>): Promise<EitherListener[]> {
  const [forService, forController] = [new URL(spec.listenUrl), new URL(spec.controllerUrl)]
  const ports = forController.host === forService.host ? [forService] : [forController, forService]
  const listeners: EitherListener[] = []
  for (const at of ports) {
    const route = (path: string): SoapEndpoint | undefined => {
      if (at.host === forService.host && path === forService.pathname) return service
      return at.host === forController.host && path === forController.pathname ? controller : undefined
    }
    try {
      // Of the log only its lines are written.
      const lines = log as unknown as Logger
      const channels = new Map([service, controller].map(endpoint => [endpoint, answeringEndpoint(endpoint, lines)]))
      const routeVia = (path: string): DuplexEndpoint | undefined => channels.get(route(path) as SoapEndpoint)
      listeners.push(await listenEither({
        listen: { host: at.hostname.replace(/^\[|\]$/g, ''), port: Number(at.port || 80) },
        http: { route, log: lines },
        netTcp: { route: routeVia, log: lines, limits: { maxInHand: MOST_WAITING_CALLS } },
      }))
    } catch (error) {
      throw new StartFailure((error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'addressInUse' : 'notListening', error)
    }
  }
  return listeners
}

function refuse (error: unknown): number {
  const why = isSoaError(error) || error instanceof Error ? error.message : String(error)
  process.stderr.write(`service host: ${why}\n`)
  return HOST_EXITS[error instanceof StartFailure || error instanceof ServiceUnusable ? error.exit : 'unexpected'].code
}

/** Until the host serves, being told to end is the end. Set before listening: whoever sees the port open may send SIGTERM at once. */
let end = (): void => process.exit(HOST_EXITS.asAsked.code)
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end())

try {
  const isWarm = process.argv[2] === '--warm'
  if (isWarm) {
    process.argv.splice(2, 1)
    if (await awaitAssignment(() => rehearse(lazyLog('service-host') as unknown as Logger)) === undefined) end()
  }
  const spec = or('badSpec', () => readHostSpec(process.env.SOA_HOST_SPEC))
  delete process.env.SOA_HOST_SPEC
  const log = lazyLog('service-host', spec.logLevel)
  // A service that forgot an await has not lost its other calls by it.
  process.on('unhandledRejection', error => log.error({ err: error }, 'a promise of the service was rejected and nobody waited for it'))
  const { host, listeners } = await start(spec, log)
  end = () => {
    end = () => {} // asked once is enough
    void host.exit().then(async isClean => {
      await Promise.all(listeners.map(listener => listener.close(isClean ? REPLIES_MS : 0)))
      await log.flushed()
      process.exit(HOST_EXITS[isClean ? 'asAsked' : 'callsCut'].code)
    })
  }
} catch (error) {
  process.exitCode = refuse(error)
  // A module that could not be loaded whole may have left a timer or a socket behind, which must not keep the process.
  setImmediate(() => process.exit())
}
