import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import type { TraceAnswer, TraceLine } from '../../broker/contract.ts'
import { HeadApi } from '../head-api.ts'
import { print, type Io } from '../io.ts'
import { addSettings } from '../options.ts'
import { messageLines, searchLines, sessionLines } from '../trace-lines.ts'
import { wholeNumber } from './numbers.ts'

interface Flags { head?: string, json?: boolean, client?: string, userData?: string, exact?: boolean, state?: string, limit?: number, cursor?: string, watch?: boolean }

const LOOK_EACH_MS = 1000
const WATCHED_AT_A_TIME = 200

/** `soa trace`: what became of a session's messages. */
export function traceCommand (program: Command, io: Io): void {
  addSettings(program.command('trace <session> [message]').description('what became of the messages of a session: one step by step, those that fit a search, or all in short'), 'client')
    .option('--client <CLIENT>', 'of this client only')
    .option('--user-data <TEXT>', 'search: with this text in their user data')
    .option('--exact', 'with --user-data: whose user data is this text')
    .option('--state <STATE>', 'search: received (not flushed), waiting, running, answered or faulted')
    .option('--limit <N>', 'most to print, 1 to 1000; default 100, and 10 a list for the session', wholeNumber)
    .option('--cursor <CURSOR>', 'go on where a search stopped')
    .option('--watch', 'one JSON line for each message that has come further, once a second, until Ctrl-C')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nWAITED: from flushed, or received, to the first dispatch. RAN: its last run, with what it waited in its host (serviceRequestPrefetchCount). IN ALL: from received to the end.\n\nExamples:\n  soa trace 1730412\n  soa trace 1730412 5f0c2a1e\n  soa trace 1730412 --user-data row-17 --exact\n  soa trace 1730412 --client risk --state faulted --json')
    .action(async (sessionId: string, message: string | undefined, options: Flags) => {
      const api = new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
      const { client, userData, exact, state, limit, cursor } = options
      const given = { message, client, userData, exact: exact === true ? 'true' : undefined, state, limit: limit === undefined ? undefined : String(limit), cursor }
      const ask = async (more: Record<string, string> = {}): Promise<TraceAnswer> => {
        const query = new URLSearchParams(more)
        for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, value)
        return await api.call('GET', `sessions/${encodeURIComponent(sessionId)}/trace?${query}`) as TraceAnswer
      }
      if (options.watch === true) { await watch(io, () => ask({ limit: String(WATCHED_AT_A_TIME) })); return }
      const answer = await ask()
      print(io, options.json, answer, () => answer.message !== undefined ? messageLines(answer.message) : answer.items !== undefined ? searchLines(answer) : sessionLines(answer))
    })
}

/** Of what runs faster than it is looked at, the latest are printed. */
async function watch (io: Io, ask: () => Promise<TraceAnswer>): Promise<void> {
  const told = new Map<string, string>()
  while (!io.signal.aborted) {
    const { message, items, latest = [] } = await ask()
    const lines: TraceLine[] = message !== undefined ? [message] : items ?? latest
    for (const line of [...lines].reverse()) {
      const key = `${line.clientId} ${line.seq} ${line.messageId}`
      const way = `${line.state} ${line.tries ?? 0} ${line.isDelivered === true}`
      if (told.get(key) === way) continue
      told.delete(key)
      told.set(key, way)
      io.out(JSON.stringify(line))
    }
    for (const key of told.keys()) { if (told.size <= 10 * WATCHED_AT_A_TIME) break; told.delete(key) }
    await pause(LOOK_EACH_MS, undefined, { signal: io.signal }).catch(() => undefined)
  }
}
