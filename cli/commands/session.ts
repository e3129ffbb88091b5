import type { Command } from 'commander'
import type { SessionView } from '../../broker/contract.ts'
import { HeadApi } from '../head-api.ts'
import { hostEnds } from '../host-ends.ts'
import { facts, print, table, type Io } from '../io.ts'
import { addSettings, nameAndValue, sessionSettingsHelp } from '../options.ts'
import { forEach } from './each.ts'
import { wholeNumber } from './numbers.ts'

/** The session object of surface.md, as far as people are shown it. */
type Session = Omit<SessionView, 'brokerPid' | 'counters'> & {
  waitsFor?: { why: string },
  service: string,
  version?: string,
  durable: boolean,
  why?: string,
  group?: string,
  labels?: Record<string, string>,
  exclude?: string[],
  minUnits?: number,
  maxUnits?: number,
  priority?: number,
  coresPerUnit?: number,
  unitType?: string,
  canPreempt?: boolean,
  endpoints: { http: string, netTcp: string | null }
  /** Null while nobody serves it. */
  brokerPid: number | null,
  counters: SessionView['counters'] | null
}
interface CreateFlags {
  serviceVersion?: string
  durable?: boolean
  pool?: boolean
  shared?: boolean
  minUnits?: number
  maxUnits?: number
  priority?: number
  group?: string
  label?: Record<string, string>
  exclude?: string[]
  coresPerUnit?: number
  unitType?: string
  /** False when --no-preempt was given. */
  preempt: boolean
  set?: Record<string, string>
}
interface Target { head?: string, json?: boolean }

const id = (sessionId: string): string => `sessions/${encodeURIComponent(sessionId)}`

export function sessionCommands (program: Command, io: Io): void {
  const session = program.command('session').description('start, look at and end sessions')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
  const command = (spec: string, says: string, examples: string[]): Command =>
    addSettings(session.command(spec).description(says), 'client').option('--json', 'one JSON document').addHelpText('after', `\nExamples:\n${examples.map(line => `  ${line}`).join('\n')}`)

  command('create <service>', 'start a session on a service and print it', ['soa session create CcpEchoSvc', 'soa session create OptionPricer --durable --max-units 8 --set sessionIdleTimeout=60000 --json'])
    .option('--service-version <VERSION>', 'version of the service; default: the unversioned one, else the highest')
    .option('--durable', 'requests and responses are kept in Redis and survive client, broker, head and node')
    .option('--pool', 'one of the service\'s pool of sessions: an existing one when there are as many as its registration allows (maxSessionPoolSize)')
    .option('--shared', 'others use it too: a client that lets go of it does not close it')
    .option('--min-units <N>', 'service instances without which it does not start', wholeNumber)
    .option('--max-units <N>', 'most service instances', wholeNumber)
    .option('--priority <N>', '0 to 4000, higher goes first; default 2000', wholeNumber)
    .option('--group <GROUP>', 'node group; several with commas between them: nodes that are in all of them')
    .option('--label <name=value>', 'label that a node must have; may be given again', nameAndValue)
    .option('--exclude <NODE>', 'node that is not to be used; may be given again', (node: string, before: string[] = []) => [...before, node])
    .option('--cores-per-unit <N>', 'cores of each service instance; default 1', wholeNumber)
    .option('--unit-type <TYPE>', 'what a service instance gets: core, socket or node')
    .option('--no-preempt', 'no other session takes its service instances')
    .option('--set <name=value>', 'a session setting; may be given again', nameAndValue)
    .addHelpText('after', () => sessionSettingsHelp('Session settings (--set)').join('\n'))
    .action(async (service: string, options: Target & CreateFlags) => {
      const { serviceVersion: version, durable, pool, shared, minUnits, maxUnits, priority, group, label: labels, exclude, coresPerUnit, unitType, preempt, set = {} } = options
      // Numbers as numbers: what they must be is the head's to say, which knows the defaults.
      const settings = Object.fromEntries(Object.entries(set).map(([name, value]) => [name, /^-?\d{1,15}$/.test(value) ? Number(value) : value]))
      const created = await api(options).call('POST', 'sessions', { service, version, durable, pool, shared, minUnits, maxUnits, priority, group, labels, exclude, coresPerUnit, unitType, canPreempt: preempt ? undefined : false, settings }) as Session
      print(io, options.json, created, () => describe(created))
    })

  command('list', 'sessions, oldest first', ['soa session list', 'soa session list --state Running --service CcpEchoSvc'])
    .option('--state <STATE>', 'Starting, Running, Suspended, Finished, Failed or Canceled')
    .option('--service <SERVICE>', 'of this service only')
    .option('--limit <N>', 'most sessions to print', wholeNumber, 1000)
    .action(async (options: Target & { state?: string, service?: string, limit: number }) => {
      const found = await pages(api(options), options)
      print(io, options.json, found, () => [
        ...table(['SESSION', 'SERVICE', 'KIND', 'STATE', 'REQUESTS', 'DONE', 'FAULTS'], found.items.map(item => [item.sessionId, item.service, item.durable ? 'durable' : 'interactive', item.state, item.counters?.total ?? 0, item.counters?.processed ?? 0, item.counters?.faulted ?? 0])),
        ...(found.next === undefined ? [] : [`… more than ${options.limit}: --limit`])
      ])
    })

  command('show <session>', 'one session: state, endpoints, clients and tasks', ['soa session show 1730412'])
    .action(async (sessionId: string, options: Target) => {
      const found = await api(options).call('GET', id(sessionId)) as Session
      print(io, options.json, found, () => describe(found))
    })

  command('cancel <sessions...>', 'stop the work; stored responses stay readable', ['soa session cancel 1730412', 'soa session cancel 1730412 1730413'])
    .action(async (sessionIds: string[], options: Target) => {
      await forEach(io, options.json, 'sessionId', sessionIds, async sessionId => {
        const left = await api(options).call('POST', `${id(sessionId)}/cancel`) as Session
        return { value: left, lines: () => sessionIds.length === 1 ? describe(left) : [`session ${sessionId} is ${left.state}`] }
      })
    })

  command('close <sessions...>', 'end sessions and destroy what they stored', ['soa session close 1730412', 'soa session close 1730412 1730413 --json'])
    .action(async (sessionIds: string[], options: Target) => {
      await forEach(io, options.json, 'sessionId', sessionIds, async sessionId => {
        const wasHere = await api(options).remove(id(sessionId))
        return { value: { sessionId, closed: true, wasHere }, lines: () => [wasHere ? `session ${sessionId} is closed` : `session ${sessionId} is not here (closed before, or never was)`] }
      })
    })
}

async function pages (api: HeadApi, query: { state?: string, service?: string, limit: number }): Promise<{ items: Session[], next?: string | undefined }> {
  const items: Session[] = []
  let cursor: string | undefined
  do {
    const parameters = new URLSearchParams({ limit: String(Math.min(1000, query.limit - items.length)) })
    for (const [name, value] of Object.entries({ state: query.state, service: query.service, cursor })) if (value !== undefined) parameters.set(name, value)
    const page = await api.call('GET', `sessions?${parameters}`) as { items: Session[], next?: string | null }
    items.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor !== undefined && items.length < query.limit)
  return cursor === undefined ? { items } : { items, next: cursor }
}

function describe (session: Session): string[] {
  const { counters, endpoints, tasks = [], clients = [] } = session
  return [
    ...facts([
      ['session', session.sessionId],
      ['service', session.version === undefined ? session.service : `${session.service} ${session.version}`],
      ['kind', session.durable ? 'durable' : 'interactive'],
      ['state', session.why === undefined ? session.state : `${session.state}: ${session.why}`],
      ['asks for', wishes(session)],
      ['waits for', session.waitsFor?.why],
      ['http', endpoints.http],
      ['net.tcp', endpoints.netTcp],
      ['broker pid', session.brokerPid],
      ['requests', counters === null ? null : `${counters.total}, ${counters.processed} done (${counters.faulted} faults), ${counters.processing} in work, ${Math.max(0, counters.outstanding - counters.processing)} waiting`],
      ['responses', counters === null ? null : `${counters.processed}, ${counters.replyFetched} fetched; ${counters.callDurationMs} ms a call, ${counters.callsPerSecond} a second`],
      ['sent again', counters === null || counters.reemitted === 0 ? null : `${counters.reemitted} to a second instance; ${counters.duplicates} responses came late`],
      ['purged', counters === null || counters.purgedTotal === 0 ? null : `${counters.purgedTotal}, ${counters.purgedProcessed} of them done (${counters.purgedFaulted} faults)`],
      ['refused', counters === null || counters.refused === 0 ? null : counters.refused],
      ['dead letters', counters === null || counters.deadLettered === 0 ? null : `${counters.deadLettered} so far${counters.replaying === 0 ? '' : `, ${counters.replaying} run again`}; soa dead-letter list ${session.sessionId} shows those that are left`]
    ]),
    ...(clients.length === 0 ? [] : ['', ...table(['CLIENT', 'STATE', 'REQUESTS', 'DONE', 'FAULTS'], clients.map(client => [client.clientId === '' ? '(default)' : visible(client.clientId), client.state, client.total, client.processed, client.faulted]))]),
    ...hostEnds(session),
    ...(tasks.length === 0 ? [] : ['', ...table(['TASK', 'NODE', 'PID', 'STATE', 'CORES'], tasks.map(task => [task.id, task.node, task.pid ?? '', task.state, task.capacity]))])
  ]
}

/** What nodes and units it asked for; null: nothing. */
function wishes ({ minUnits, maxUnits, priority, group, labels = {}, exclude = [], coresPerUnit, unitType, canPreempt }: Session): string | null {
  const said = [
    ...(minUnits === undefined && maxUnits === undefined ? [] : [`${minUnits ?? 1} to ${maxUnits ?? 'all'} units`]),
    ...(priority === undefined || priority === 2000 ? [] : [`priority ${priority}`]),
    ...(group === undefined ? [] : [`group ${group}`]),
    ...Object.entries(labels).map(([name, value]) => `${name}=${value}`),
    ...(exclude.length === 0 ? [] : [`not on ${exclude.join(', ')}`]),
    ...(coresPerUnit === undefined ? [] : [`${coresPerUnit} cores each`]),
    ...(unitType === undefined ? [] : [`units of a ${unitType}`]),
    ...(canPreempt === false ? ['no preemption'] : [])
  ]
  return said.length === 0 ? null : said.join('; ')
}

/** A client id may have any kind of blank in it ([wire-contract] 1.3), line ends among them, which a table is no place for. */
const visible = (id: string): string => id.replace(/[^ -~]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
