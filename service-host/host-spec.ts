/** What a node manager tells a service host, in a file of its own: an environment variable would be inherited by whatever the service starts. */
import { readFileSync, rmSync } from 'node:fs'
import type { LogLevel } from './service-context.ts'

export interface HostSpec {
  readonly sessionId: string
  readonly taskId: string
  /** Where to listen: `http://127.0.0.1:45123/…`, any path. */
  readonly listenUrl: string
  /** Where IHpcServiceHost is served; may have a port of its own. */
  readonly controllerUrl: string
  /** Name of the registered service. */
  readonly service: string
  /** Absolute path of the user's module. */
  readonly module: string
  /** portType; empty: the only one of the WSDL. */
  readonly contract: string
  readonly wsdlFile: string
  /** Path → text of the WSDL and all that it imports. */
  readonly documents: Readonly<Record<string, string>>
  /** Calls at a time; 0: cores of the task (CCP_NUMCPUS). */
  readonly maxConcurrentCalls: number
  /** Bytes. */
  readonly maxMessageSize: number
  /** Bytes. */
  readonly maxHeaderBytes: number
  /** Levels of elements in a body. */
  readonly maxDepth: number
  readonly includeExceptionDetailInFaults: boolean
  /** Name of the module's export that is the service; absent or empty: its default export. */
  readonly type?: string
  /** Requests may have elements and attributes that the contract does not have: they are skipped. */
  readonly lenient?: boolean
  /** From SIGTERM to the end, ms: for calls in progress and onExiting together. */
  readonly cancelGraceMs: number
  /** enableMessageLevelPreemption: calls in progress are finished when it ends. */
  readonly finishesCalls: boolean
  /** ms without a call after the first one; -1: never. */
  readonly serviceHostIdleTimeout: number
  /** ms that calls in hand may make no progress; -1: never. */
  readonly serviceHangTimeout: number
  /** Default `info`. */
  readonly logLevel?: LogLevel
}

const FIELDS: Readonly<Record<Exclude<keyof HostSpec, 'logLevel' | 'type' | 'lenient'>, 'string' | 'number' | 'boolean' | 'object'>> = {
  sessionId: 'string',
  taskId: 'string',
  listenUrl: 'string',
  controllerUrl: 'string',
  service: 'string',
  module: 'string',
  contract: 'string',
  wsdlFile: 'string',
  documents: 'object',
  maxConcurrentCalls: 'number',
  maxMessageSize: 'number',
  maxHeaderBytes: 'number',
  maxDepth: 'number',
  includeExceptionDetailInFaults: 'boolean',
  cancelGraceMs: 'number',
  finishesCalls: 'boolean',
  serviceHostIdleTimeout: 'number',
  serviceHangTimeout: 'number'
}
/** -1 says "never" there. */
const FROM_MINUS_1 = ['serviceHostIdleTimeout', 'serviceHangTimeout']

/** Reads and deletes the file. Throws an Error with one readable line. */
export function readHostSpec (path: string | undefined): HostSpec {
  if (path === undefined || path === '') throw new Error('SOA_HOST_SPEC is not set: it names the JSON file in which the node manager says what to host')
  let text: string
  try {
    text = readFileSync(path, 'utf8')
    rmSync(path)
  } catch (error) {
    throw new Error(`SOA_HOST_SPEC ${path}: ${(error as Error).message}`, { cause: error })
  }
  let spec: unknown
  try {
    spec = JSON.parse(text)
  } catch (error) {
    throw new Error(`SOA_HOST_SPEC ${path} is no JSON: ${(error as Error).message}`, { cause: error })
  }
  const given = (spec ?? {}) as Record<string, unknown>
  for (const [field, type] of Object.entries(FIELDS)) {
    const value = given[field]
    const kind: string = value === null ? 'null' : typeof value
    const least = FROM_MINUS_1.includes(field) ? -1 : 0
    if (kind !== type || (type === 'number' && !(Number.isFinite(value) && (value as number) >= least))) {
      throw new Error(`SOA_HOST_SPEC ${path}: ${field} is ${value === undefined ? 'missing' : JSON.stringify(value)}, it must be ${type === 'number' ? `a number from ${least}` : `a ${type}`}`)
    }
  }
  for (const field of ['listenUrl', 'controllerUrl']) {
    const url = given[field] as string
    if (!URL.canParse(url) || new URL(url).protocol !== 'http:') throw new Error(`SOA_HOST_SPEC ${path}: ${field} is ${JSON.stringify(url)}, it must be an http:// URL`)
  }
  return spec as HostSpec
}
