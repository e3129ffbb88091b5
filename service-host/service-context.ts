/** What a service is told about the call that it serves. */
import type { Logger } from '../core/log.ts'

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
  readonly sessionId: string
  readonly taskId: string
  /** Called once when the host is told to end, while calls in progress may still run; waited for, up to the grace period. The same function twice counts once. */
  onExiting (handler: () => unknown): void
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
