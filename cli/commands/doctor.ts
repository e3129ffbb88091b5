import type { Command } from 'commander'
import { EXIT, CommandFailed } from '../exit-codes.ts'
import { print, type Io } from '../io.ts'
import { addSettings, processSettings } from '../options.ts'

export function doctorCommand (program: Command, io: Io): void {
  addSettings(program.command('doctor').description('look at this machine: what is missing, what is not as it should be, how to mend it'), 'client')
    .option('--redis <URL>', 'the Redis of the head [SOA_REDIS]')
    .option('--durability <LEVEL>', 'what that Redis has to keep: process, disk, replicas [SOA_DURABILITY, default disk]')
    .option('--http <HOST:PORT>', 'where the head is to listen [SOA_HTTP, default 127.0.0.1:8080]')
    .option('--data-dir <DIR>', 'what "soa up" keeps [SOA_DATA_DIR]')
    .option('--config <FILE>', 'settings as JSON, {"name": value} [SOA_CONFIG]')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExamples:\n  soa doctor\n  soa doctor --redis redis://grid.example:6379 --durability process')
    .action(async ({ json, ...flags }: { head?: string, json?: boolean } & Record<string, unknown>) => {
      const { examine } = await import('../doctor.ts')
      const checks = await examine(io, processSettings(io, flags), flags.head ?? io.env.SOA_HEAD)
      print(io, json, { ok: checks.every(check => check.state !== 'failed'), checks }, () => checks.flatMap(check => [
        `${check.state.padEnd(6)}  ${check.what}: ${check.found}`,
        ...(check.mend === undefined ? [] : [`        ${check.mend}`])
      ]))
      if (checks.some(check => check.state === 'failed')) throw new CommandFailed(checks.some(check => check.isMissing) ? EXIT.missingHere : EXIT.failed, '')
    })
}
