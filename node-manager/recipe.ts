import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SoaError } from '../core/errors.ts'
import type { ServiceRegistration } from '../config/service-registration.ts'
import type { Settings } from '../config/settings.ts'
import type { PlacedTask } from '../store/redis-placement-scripts.ts'
import type { RegisteredService } from '../store/service-registry.ts'
import type { NodeCommands } from './preparations.ts'

/** How one task is started. */
export interface TaskRecipe {
  readonly command: string
  readonly args: readonly string[]
  /** Without SOA_LISTEN_URL and SOA_HOST_SPEC, which each try has its own of. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly stderrFile: string
  /** ms until its port must accept. */
  readonly initializationTimeoutMs: number
  /** `hpc`: HPC Pack's port of the first core; else any free one. */
  readonly addressing: 'free' | 'hpc'
  /** What the host is called by. */
  readonly scheme: 'http' | 'net.tcp'
  /** Only for our own host; without its URLs, as above. */
  readonly spec?: Omit<HostSpec, 'listenUrl' | 'controllerUrl'> | undefined
}

/**
 * What our own service host is told, as JSON in the file that SOA_HOST_SPEC names: mode 0600, in the node's runDir, gone once the host accepts connections.
 * It holds no secret of the broker.
 */
export interface HostSpec {
  readonly sessionId: string
  readonly taskId: string
  /** Where it must listen. */
  readonly listenUrl: string
  /** Where its controller (IHpcServiceHost) must be. */
  readonly controllerUrl: string
  readonly service: string
  /** Absolute path of the service's module. */
  readonly module: string
  /** portType; empty: the only one. */
  readonly contract: string
  /** One of `documents`. */
  readonly wsdlFile: string
  readonly documents: Readonly<Record<string, string>>
  /** 1 or more. */
  readonly maxConcurrentCalls: number
  readonly maxMessageSize: number
  readonly maxHeaderBytes: number
  readonly maxDepth: number
  readonly includeExceptionDetailInFaults: boolean
  readonly type: string
  readonly lenient: boolean
  readonly cancelGraceMs: number
  readonly finishesCalls: boolean
  /** ms; -1: never. */
  readonly serviceHostIdleTimeout: number
  readonly serviceHangTimeout: number
}

export interface RecipeFacts {
  readonly registered: RegisteredService
  readonly registration: ServiceRegistration
  readonly settings: Settings
  readonly task: PlacedTask
  /** The session's own variables. */
  readonly environment: Readonly<Record<string, string>>
  /** The node manager's; five of them are passed on. */
  readonly own: Readonly<Record<string, string | undefined>>
}

/** What is run on the node beside the hosts of a session: in the environment of its hosts, without what belongs to one task. */
export function nodeCommands (facts: RecipeFacts): NodeCommands {
  const { registered, registration: { service }, settings } = facts
  const { CCP_TASKINSTANCEID: _, CCP_TASKSYSTEMID: __, CCP_NUMCPUS: ___, CCP_COREIDS: ____, ...env } = environmentOf(facts)
  const folder = dirname(registered.file)
  // What the service needs may be what the command fetches.
  return { prepare: service.prepareNodeCommandLine, release: service.releaseNodeCommandLine, timeoutMs: settings.nodeCommandTimeoutMs, env, cwd: existsSync(folder) ? folder : '/' }
}

/** All that a host gets of the node manager's environment: a list of what is let through, so that no secret has to be known to be held back. */
const PASSED_ON = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR']
export const OUR_HOST: string = fileURLToPath(new URL('../service-host/main.js', import.meta.url))

/** Refuses with `Service_InitializeFailed` when something that the registration names is not on this machine. */
export function recipe (facts: RecipeFacts): TaskRecipe {
  const { registered, registration: { service, host }, settings, task } = facts
  const common = { env: environmentOf(facts), stderrFile: service.stdError, initializationTimeoutMs: settings.serviceInitializationTimeout, addressing: host.addressing, scheme: host.hostType === 'Customize' ? host.scheme : 'net.tcp' as const }
  if (host.hostType === 'Customize') {
    if (isAbsolute(host.exeFileName)) mustExist(host.exeFileName, 'exeFileName')
    return { ...common, command: host.exeFileName, args: host.arguments, cwd: mustExist(dirname(registered.file), 'the registration file\'s folder') }
  }
  if (registered.wsdlFile === undefined) throw new SoaError('Service_InitializeFailed', { why: `service ${registered.name} has no WSDL; add it beside ${registered.file}` })
  return {
    ...common,
    command: process.execPath,
    args: [OUR_HOST],
    cwd: mustExist(dirname(mustExist(service.assembly, 'assembly')), 'the assembly\'s folder'),
    spec: {
      sessionId: task.sessionId,
      taskId: task.id,
      service: registered.name,
      module: service.assembly,
      contract: service.contract,
      wsdlFile: registered.wsdlFile,
      documents: registered.documents,
      maxConcurrentCalls: service.maxConcurrentCalls || task.capacity,
      maxMessageSize: settings.maxMessageSize,
      maxHeaderBytes: settings.maxHeaderBytes,
      maxDepth: settings.maxDepth,
      includeExceptionDetailInFaults: service.includeExceptionDetailInFaults,
      type: service.type,
      lenient: service.lenient,
      cancelGraceMs: task.cancelGraceMs,
      finishesCalls: service.enableMessageLevelPreemption,
      serviceHostIdleTimeout: settings.serviceHostIdleTimeout,
      serviceHangTimeout: settings.serviceHangTimeout
    }
  }
}

/** [broker-behaviour] 6.11, in its order: later ones win. */
function environmentOf ({ registered, registration: { service }, settings, task, environment, own }: RecipeFacts): Record<string, string> {
  const timeouts: Record<string, string> = {
    CCP_SERVICE_INITIALIZATION_TIMEOUT: String(settings.serviceInitializationTimeout),
    CCP_MESSAGE_LEVEL_PREEMPTION: service.enableMessageLevelPreemption ? 'True' : 'False',
    CCP_CANCEL_TASK_GRACEPERIOD: String(Math.ceil(task.cancelGraceMs / 1000)), // seconds, alone among these
    CCP_SERVICE_CONFIG_FILENAME: registered.file,
    CCP_SERVICE_MAXMESSAGESIZE: String(settings.maxMessageSize),
    CCP_SERVICE_SERVICEOPERATIONTIMEOUT: String(settings.serviceOperationTimeout)
  }
  // Absent means never, here and at HPC Pack's host.
  if (settings.serviceHostIdleTimeout >= 0) timeouts['CCP_SERVICEHOST_TIMEOUT'] = String(settings.serviceHostIdleTimeout)
  if (settings.serviceHangTimeout >= 0) timeouts['CCP_SERVICE_HANG_TIMEOUT'] = String(settings.serviceHangTimeout)
  return {
    ...passedOn(own),
    ...service.environmentVariables,
    ...timeouts,
    ...environment,
    CCP_SERVICENAME: registered.name,
    CCP_JOBID: task.sessionId,
    CCP_TASKINSTANCEID: task.id,
    CCP_TASKSYSTEMID: systemId(task.id),
    CCP_NUMCPUS: String(task.capacity),
    CCP_COREIDS: task.coreIds.join(' ')
  }
}

/** What every host has of the node manager's environment. */
export const passedOn = (own: RecipeFacts['own']): Record<string, string> =>
  Object.fromEntries(PASSED_ON.flatMap(name => own[name] === undefined ? [] : [[name, own[name]]]))

/** HPC Pack's is an int32, and services parse it as one; the task's name here is CCP_TASKINSTANCEID. */
const systemId = (taskId: string): string => String(createHash('sha256').update(taskId).digest().readUInt32BE(0) >>> 1)

function mustExist (path: string, what: string): string {
  if (!existsSync(path)) throw new SoaError('Service_InitializeFailed', { why: `${what} ${path} is not on this node` })
  return path
}
