import type { Command } from 'commander'
import { EXIT, CommandFailed } from '../exit-codes.ts'
import { print, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

export function doctorCommand (program: Command, io: Io): void {
  addSettings(program.command('doctor').description('look at this machine: what is missing, what is not as it should be, how to mend it'), 'client')
    .option('--redis <URL>', 'a Redis to look at [SOA_REDIS]')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa doctor')
    .action(async (options: { head?: string, redis?: string, json?: boolean }) => {
      const { examine } = await import('../doctor.ts')
      const checks = await examine(io, options)
      print(io, options.json, { ok: checks.every(check => check.state !== 'failed'), checks }, () => checks.flatMap(check => [
        `${check.state.padEnd(6)}  ${check.what}: ${check.found}`,
        ...(check.mend === undefined ? [] : [`        ${check.mend}`])
      ]))
      if (checks.some(check => check.state === 'failed')) throw new CommandFailed(checks.some(check => check.isMissing) ? EXIT.missingHere : EXIT.failed, '')
    })
}
