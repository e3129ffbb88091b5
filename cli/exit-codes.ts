import { isSoaError, type FaultName } from '../core/errors.ts'

/** surface.md, CLI. */
export const EXIT = { ok: 0, failed: 1, usage: 2, missingHere: 3, notFound: 4, refused: 5 } as const
export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** Ends a command with this code and, unless the text is empty, one line on stderr. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly exitCode: number

  constructor (exitCode: number, line: string, options?: ErrorOptions) {
    super(line, options)
    this.exitCode = exitCode
  }
}

const BY_FAULT: Partial<Record<FaultName, ExitCode>> = {
  Broker_InvalidConfiguration: EXIT.usage,
  ConfigFile_Invalid: EXIT.failed,
  InvalidArgument: EXIT.usage,
  Service_NotFound: EXIT.notFound,
  ServiceVersion_NotFound: EXIT.notFound,
  InvalidSessionId: EXIT.notFound,
  missingHere: EXIT.missingHere,
  refused: EXIT.refused
}

/** The exit code and the line of anything thrown. A bug shows its stack: there is nobody else to read it. */
export function explain (error: unknown): { exitCode: number, line: string } {
  if (error instanceof CommandFailed) return { exitCode: error.exitCode, line: error.message }
  // A service that nothing is wrong with, but that needs what is not supported here.
  if (isSoaError(error, 'ConfigFile_Invalid') && isSoaError(error.cause, 'badContract', 'refused')) return { exitCode: EXIT.refused, line: `${error.fault}: ${error.message}` }
  // The file that was named on the command line, not one that it names.
  if (isSoaError(error, 'ConfigFile_Invalid') && error.cause instanceof Error && 'code' in error.cause && error.cause.code === 'ENOENT' && 'path' in error.cause && error.cause.path === error.context[0]) return { exitCode: EXIT.notFound, line: `${error.context[0] ?? ''} does not exist` }
  if (isSoaError(error)) return { exitCode: BY_FAULT[error.fault] ?? EXIT.failed, line: `${error.fault}: ${error.message}` }
  // A failed system call (port taken, folder not writable) says enough in its message; any other throw is a bug.
  if (error instanceof Error && 'syscall' in error) return { exitCode: EXIT.failed, line: error.message }
  return { exitCode: EXIT.failed, line: error instanceof Error ? error.stack ?? error.message : String(error) }
}
