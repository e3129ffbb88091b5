import type { Command } from 'commander'
import { HeadApi } from '../head-api.ts'
import { print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

/** `soa heads list`: as `GET /api/v1/heads` gives them. */
interface HeadView { id: string, state: string, machine: string, pid: number, sessions: number, http: string, netTcp?: string, startedAt: string }
interface Target { head?: string, json?: boolean, force?: boolean }

/** `soa head` runs one; `soa heads` looks at all of them. */
export function headsCommands (program: Command, io: Io): void {
  const heads = program.command('heads').description('look at the heads of the cluster, take one out of service and back')
    .addHelpText('after', '\nExamples:\n  soa heads list\n  soa heads drain grid1-4711-a0b1')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
  const describe = (all: HeadView[]): string[] => table(['HEAD', 'STATE', 'MACHINE', 'PID', 'SESSIONS', 'HTTP', 'NET.TCP', 'SINCE'],
    all.map(one => [one.id, one.state, one.machine, one.pid, one.sessions, one.http, one.netTcp ?? '', one.startedAt]))

  addSettings(heads.command('list').description('heads that live: state, machine, sessions of their workers, where they listen'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa heads list --json')
    .action(async (options: Target) => {
      const found = await api(options).call('GET', 'heads') as { items: HeadView[] }
      print(io, options.json, found, () => describe(found.items))
    })
  const change = async (id: string, verb: 'drain' | 'resume', options: Target, body?: object): Promise<void> => {
    const head = await api(options).call('POST', `heads/${encodeURIComponent(id)}/${verb}`, body) as HeadView
    print(io, options.json, head, () => describe([head]))
  }
  addSettings(heads.command('drain <id>').description('no new sessions there; those that run go on until they end, then its state is Drained'), 'client')
    .option('--force', 'suspend what runs too: durable sessions are raised by another head, interactive ones end')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExamples:\n  soa heads drain grid1-4711-a0b1\n  soa heads drain grid1-4711-a0b1 --force')
    .action((id: string, options: Target) => change(id, 'drain', options, { force: options.force === true }))
  addSettings(heads.command('resume <id>').description('new sessions there again'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa heads resume grid1-4711-a0b1')
    .action((id: string, options: Target) => change(id, 'resume', options))
}
