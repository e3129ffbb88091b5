import { Command, CommanderError } from 'commander'
import { deadLetterCommands } from './commands/dead-letters.ts'
import { headsCommands } from './commands/heads.ts'
import { nodeCommands } from './commands/node.ts'
import { doctorCommand } from './commands/doctor.ts'
import { processCommands } from './commands/processes.ts'
import { serviceCommands } from './commands/service.ts'
import { sessionCommands } from './commands/session.ts'
import { settingsCommands } from './commands/settings.ts'
import { traceCommand } from './commands/trace.ts'
import { wireCommands } from './commands/wire.ts'
import { EXIT, explain } from './exit-codes.ts'
import type { Io } from './io.ts'
import { version } from './version.ts'

/** The command line. Commands only describe themselves here; what they run is imported when they run, so that `--help` and small calls start at once. */
export function program (io: Io): Command {
  const program = new Command('soa')
    .description('soa-broker: durable SOAP sessions on a compute grid')
    .version(version())
    .showHelpAfterError('(--help shows what there is)')
    .exitOverride()
    .configureOutput({ writeOut: text => io.out(text.trimEnd()), writeErr: text => io.err(text.trimEnd()) })
    .configureHelp({ helpWidth: 120, showGlobalOptions: false })
    .addHelpText('after', `
Examples:
  soa up                                                 everything on this machine
  soa service add examples/services/CcpEchoSvc/CcpEchoSvc.config    register a service
  soa session create CcpEchoSvc --durable                start a session
  soa session list

Exit codes: 0 ok, 1 failed, 2 usage, 3 something missing on this machine, 4 not found, 5 refused.`)
  for (const add of [processCommands, serviceCommands, sessionCommands, traceCommand, deadLetterCommands, nodeCommands, headsCommands, settingsCommands, wireCommands, doctorCommand]) add(program, io)
  inherit(program)
  return program
}

// commander copies these to a subcommand when it is made from its parent, but not to one made before they were set; once for all is simpler.
function inherit (command: Command): void {
  for (const sub of command.commands) { sub.copyInheritedSettings(command); inherit(sub) }
}

/** Runs one command line (without node and script). Never rejects: errors become a line on stderr and the exit code. */
export async function main (argv: readonly string[], io: Io): Promise<number> {
  try {
    await program(io).parseAsync(argv, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage // it has said why
    const { exitCode, line } = explain(error)
    if (line !== '') io.err(`soa: ${line}`)
    return exitCode
  }
}
