import { pino, destination, type Logger } from 'pino'

export type { Logger } from 'pino'

/**
 * A log for one process: JSON lines on stderr (stdout belongs to the command line's answers). A room gets a child: `log.child({ room: 'dispatcher' })`.
 * `error` wakes somebody, `warn` healed itself, `info` is a change of state, `debug` is per message. Message constant, facts as fields.
 */
export function makeLog (name: string, level = 'info'): Logger {
  return pino({ name, level, base: { name, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, destination({ fd: 2, sync: true }))
}

/** Says nothing: for tests at a room's door. */
export const silent: Logger = pino({ level: 'silent' })
