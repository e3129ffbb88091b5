/** What a service is told about the call that it serves. */
import type { Logger } from '../core/log.ts'
import { HPC, type Envelope } from '../wire/soap/envelope.ts'
import { readTree, type XmlNode } from '../wire/xml/tree.ts'

export type ServiceLogger = Pick<Logger, 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'>

export interface ServiceContext {
  /** JSON lines on stderr, which the node manager keeps. `logger.info({ rows }, 'read')` or `logger.info('read')`. */
  readonly logger: ServiceLogger
  /** Aborted when the caller is gone, or when the host must end before the call has. */
  readonly signal: AbortSignal
  /** MessageID of the request; undefined: it has none. */
  readonly messageId: string | undefined
  readonly operation: string
  /** Text of the request's UserData header; undefined: it has none. */
  readonly userData: string | undefined
  /** Other SOAP headers of the request by local name, without attributes: text, or an object of children; an array where a name comes again. */
  readonly headers: Readonly<Record<string, unknown>>
  readonly sessionId: string
  readonly taskId: string
  /** Called once when the host is told to end, while calls in progress may still run; waited for, up to the grace period. The same function twice counts once. */
  onExiting (handler: () => unknown): void
}

const HEADER_DEPTH = 100

/** Headers that are neither addressing nor HPC Pack's, as node-soap shows them. */
export function headersOf (envelope: Pick<Envelope, 'otherHeaders'>): Record<string, unknown> {
  return membersOf(envelope.otherHeaders.flatMap(header => readTree(header, { maxDepth: HEADER_DEPTH })).filter(({ uri }) => uri !== HPC))
}

function membersOf (nodes: readonly XmlNode[]): Record<string, unknown> {
  const members = new Map<string, unknown>()
  for (const node of nodes) {
    const value = node.children.length === 0 ? node.text : membersOf(node.children)
    const before = members.get(node.local)
    members.set(node.local, before === undefined ? value : Array.isArray(before) ? [...before as unknown[], value] : [before, value])
  }
  return Object.fromEntries(members)
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LEVELS)[number]

/**
 * A logger that loads pino with the first line: a host that has nothing to say starts without it (measured: 25 to 60 ms of its start).
 * Lines keep their order; `flushed` resolves when all so far are written.
 */
export function lazyLog (name: string, level: LogLevel = 'info'): ServiceLogger & { flushed (): Promise<void> } {
  const from = LEVELS.indexOf(level)
  let log: Logger | undefined
  let loading: Promise<Logger> | undefined
  const load = (): Promise<Logger> => (loading ??= import('../core/log.ts').then(({ makeLog }) => (log = makeLog(name, level))))
  const line = (level: keyof ServiceLogger) => (...args: [unknown, string?]): void => {
    if (LEVELS.indexOf(level) < from) return
    const write = (to: Logger): void => (to[level] as (...args: unknown[]) => void)(...args)
    if (log) write(log)
    else void load().then(write)
  }
  return {
    trace: line('trace'),
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    fatal: line('fatal'),
    flushed: async () => { await loading }
  }
}
