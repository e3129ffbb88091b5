import type { Command } from 'commander'
import { HeadApi } from '../head-api.ts'
import { print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'

/** `soa node list` (surface.md): id, pid, cores, busy, tasks, heartbeat age. */
interface NodeView {
  id: string
  pid?: number
  cores: number
  busy: number
  tasks: number | unknown[]
  heartbeatAgeMs?: number
  state?: string
  groups?: string[]
  labels?: Record<string, string>
  releaseFailure?: ReleaseFailure
}
interface ReleaseFailure { sessionId: string, at: string, why: string, stderr: string }
interface Target { head?: string, json?: boolean }

export function nodeCommands (program: Command, io: Io): void {
  const node = addSettings(program.command('node').description('run a node manager on this machine; with a subcommand: look at nodes'), 'node')
    .addHelpText('after', '\nExamples:\n  soa node --redis redis://grid.example:6379 --cores 8\n  soa node list')
    .action(async (flags: Record<string, unknown>) => { await (await import('../run-node.ts')).runNode(io, flags) })
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)

  addSettings(node.command('list').description('nodes: cores, what is busy, tasks, age of the last heartbeat'), 'client')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExample:\n  soa node list --json')
    .action(async (options: Target) => {
      const found = await api(options).call('GET', 'nodes') as { items: NodeView[] }
      print(io, options.json, found, () => describe(found.items))
    })
  for (const [verb, says] of [['drain', 'give the node no new tasks; calls in hand there finish, however long they take, then its service hosts leave, and its state is Drained'], ['resume', 'give a drained node tasks again']] as const) {
    addSettings(node.command(`${verb} <node>`).description(says), 'client')
      .option('--json', 'one JSON document')
      .addHelpText('after', `\nExample:\n  soa node ${verb} n1`)
      .action(async (id: string, options: Target) => {
        const left = await api(options).call('POST', `nodes/${encodeURIComponent(id)}/${verb}`) as NodeView | undefined
        print(io, options.json, left ?? { id, [verb === 'drain' ? 'drained' : 'resumed']: true }, () => left?.cores === undefined ? [`node ${id}: ${verb} is done`] : describe([left]))
      })
  }
}

function describe (nodes: readonly NodeView[]): string[] {
  const rows = nodes.map(({ id, state = '', pid = '', cores, busy, tasks, heartbeatAgeMs, groups = [], labels = {} }) => [
    id, state, pid, cores, busy, Array.isArray(tasks) ? tasks.length : tasks, heartbeatAgeMs === undefined ? '' : `${(heartbeatAgeMs / 1000).toFixed(1)} s ago`,
    groups.join(','), Object.entries(labels).map(([name, value]) => `${name}=${value}`).join(',')
  ])
  return [...table(['NODE', 'STATE', 'PID', 'CORES', 'BUSY', 'TASKS', 'LAST BEAT', 'GROUPS', 'LABELS'], rows), ...nodes.flatMap(releaseFailure)]
}

function releaseFailure ({ id, releaseFailure: failed }: NodeView): string[] {
  if (failed === undefined) return []
  return ['', `${id} was not released of session ${failed.sessionId}, ${failed.at}: ${failed.why}`, ...failed.stderr.trimEnd().split('\n').map(line => `  ${line}`)]
}
