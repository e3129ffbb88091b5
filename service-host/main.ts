/**
 * The process of one service task: loads the user's module, then listens, so that "the port accepts" means ready. Ends by SIGTERM (or SIGINT) in good order.
 *
 * Exit 0: ended as asked. 1: could not start (the reason is on stderr), or the grace was over before the calls were. 254: the address is in use (HPC Pack: -2).
 */
import { systemClock } from '../core/clock.ts'
import { isSoaError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { listenHttp, type HttpListener } from '../transport/http/listener.ts'
import { loadWsdl, operationsOf } from '../wsdl/document.ts'
import { readHostSpec, type HostSpec } from './host-spec.ts'
import { ServiceHost } from './host.ts'
import { Invoker } from './invoker.ts'
import { describe } from './description.ts'
import { lazyLog } from './service-context.ts'
import { loadService } from './service-loader.ts'

const MOST_WAITING_CALLS = 1000
const ADDRESS_IN_USE = 254
/** Replies that are on their way when the last call is done get so long to leave. */
const REPLIES_MS = 1000

async function start (spec: HostSpec, log: ReturnType<typeof lazyLog>): Promise<{ host: ServiceHost, listener: HttpListener }> {
  const wsdl = loadWsdl(spec.documents, spec.wsdlFile)
  const operations = operationsOf(wsdl, spec.contract)
  const methods = await loadService(spec.module, wsdl, operations)
  const cores = Number(process.env.CCP_NUMCPUS)
  const url = new URL(spec.listenUrl)
  const host = new ServiceHost({
    invoker: new Invoker({
      schema: wsdl.schema, operations, methods, taskId: spec.taskId, maxDepth: spec.maxDepth, includeExceptionDetailInFaults: spec.includeExceptionDetailInFaults, log
    }),
    sessionId: spec.sessionId,
    taskId: spec.taskId,
    maxConcurrentCalls: spec.maxConcurrentCalls > 0 ? spec.maxConcurrentCalls : Number.isInteger(cores) && cores > 0 ? cores : 1,
    maxWaitingCalls: MOST_WAITING_CALLS,
    limits: { maxMessageSize: spec.maxMessageSize, maxHeaderBytes: spec.maxHeaderBytes, maxDepth: spec.maxDepth },
    cancelGraceMs: spec.cancelGraceMs,
    log,
    clock: systemClock,
    get: describe(spec)
  })
  const { endpoint } = host
  const listener = await listenHttp({
    route: path => path === url.pathname ? endpoint : undefined,
    listen: { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 80) },
    log: log as unknown as Logger // only its lines are written
  })
  return { host, listener }
}

function refuse (error: unknown): number {
  const why = isSoaError(error) ? error.message : (error as Error).message
  process.stderr.write(`service host: ${why}\n`)
  return (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? ADDRESS_IN_USE : 1
}

/** Until the host serves, being told to end is the end. Set before listening: whoever sees the port open may send SIGTERM at once. */
let end = (): void => process.exit(0)
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => end())

try {
  const spec = readHostSpec(process.env.SOA_HOST_SPEC)
  delete process.env.SOA_HOST_SPEC
  const log = lazyLog('service-host', spec.logLevel)
  // A service that forgot an await has not lost its other calls by it.
  process.on('unhandledRejection', error => log.error({ err: error }, 'a promise of the service was rejected and nobody waited for it'))
  const { host, listener } = await start(spec, log)
  end = () => {
    end = () => {} // asked once is enough
    void host.exit().then(async isClean => {
      await listener.close(isClean ? REPLIES_MS : 0)
      await log.flushed()
      process.exit(isClean ? 0 : 1)
    })
  }
} catch (error) {
  process.exitCode = refuse(error)
  // A module that could not be loaded whole may have left a timer or a socket behind, which must not keep the process.
  setImmediate(() => process.exit())
}
