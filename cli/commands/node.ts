import type { Command } from 'commander'
import { HeadApi } from '../head-api.ts'
import { print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

/** `soa node list` (surface.md): id, pid, cores, busy, tasks, heartbeat age. */
interface NodeView { id: string, pid?: number, cores: number, busy: number, tasks: number | unknown[], heartbeatAgeMs?: number, state?: string }
interface Target { head?: string, json?: boolean }

export function nodeCommands (program: Command, io: Io): void {
  const node = addSettings(program.command('node').description('run a node manager on this machine; with a subcommand: look at nodes'), 'node')
    .addHelpText('after', '\nExamples:\n  soa node --redis redis://grid.example:6379 --cores 8\n  soa node list')
    .action(async (flags: Record<string, unknown>) => { await (await import('../run-node.ts')).runNode(io, flags) })
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
  const describe = (nodes: NodeView[]): string[] => table(['NODE', 'STATE', 'PID', 'CORES', 'BUSY', 'TASKS', 'LAST BEAT'],
    nodes.map(one => [one.id, one.state ?? '', one.pid ?? '', one.cores, one.busy, Array.isArray(one.tasks) ? one.tasks.length : one.tasks, one.heartbeatAgeMs === undefined ? '' : `${(one.heartbeatAgeMs / 1000).toFixed(1)} s ago`]))

  addSettings(node.command('list').description('nodes: cores, what is busy, tasks, age of the last heartbeat'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa node list --json')
    .action(async (options: Target) => {
      const found = await api(options).call('GET', 'nodes') as { items: NodeView[] }
      print(io, options.json, found, () => describe(found.items))
    })
  for (const [verb, says] of [['drain', 'give the node no new tasks; those that run end in their own time'], ['resume', 'give a drained node tasks again']] as const) {
    addSettings(node.command(`${verb} <node>`).description(says), 'client')
      .option('--json', 'one JSON document')
      .addHelpText('after', `\nExample:\n  soa node ${verb} n1`)
      .action(async (id: string, options: Target) => {
        const left = await api(options).call('POST', `nodes/${encodeURIComponent(id)}/${verb}`) as NodeView | undefined
        print(io, options.json, left ?? { id, [verb === 'drain' ? 'drained' : 'resumed']: true }, () => left?.cores === undefined ? [`node ${id}: ${verb} is done`] : describe([left]))
      })
  }
}
