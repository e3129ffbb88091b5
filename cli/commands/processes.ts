import type { Command } from 'commander'
import type { Io } from '../io.ts'
import { addSettings } from '../options.ts'

export function processCommands (program: Command, io: Io): void {
  addSettings(program.command('up').description('everything on this machine: redis-server, head and node, supervised'), 'up')
    .option('--services <DIR>', 'register every *.config below this folder at the start; may be given again', (folder: string, before: string[] = []) => [...before, folder])
    .addHelpText('after', `
Keeps its data in --data-dir (default $XDG_STATE_HOME/soa-broker, else ~/.local/state/soa-broker): started
again there it carries on, even after kill -9. Ctrl-C ends it in order, a second Ctrl-C at once. The first line on
stdout is a JSON object, once clients can connect.

Examples:
  soa up --services examples/services
  soa up --http 127.0.0.1:0 --data-dir /srv/soa --cores 4`)
    .action(async (flags: Record<string, unknown>) => { await (await import('../up/up.ts')).up(io, flags) })

  addSettings(program.command('head').description('session launcher, planner, HTTP front door and REST'), 'head')
    .addHelpText('after', `
The first line on stdout is a JSON object, once clients can connect.

Example:
  soa head --redis redis://grid.example:6379 --http 127.0.0.1:8080`)
    .action(async (flags: Record<string, unknown>) => { await (await import('../run-head.ts')).runHead(io, flags) })
}
