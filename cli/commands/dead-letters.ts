import type { Command } from 'commander'
import type { DeadLetterPage, DeadLetterView, WholeDeadLetter } from '../../broker/contract.ts'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { HeadApi } from '../head-api.ts'
import { facts, oneLine, print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'
import { forEach, type Done } from './each.ts'
import { wholeNumber } from './numbers.ts'

interface Target { head?: string, json?: boolean }
interface Which { all?: boolean, client?: string }

const at = (sessionId: string, letter?: string): string => `sessions/${encodeURIComponent(sessionId)}/dead-letters${letter === undefined ? '' : `/${encodeURIComponent(letter)}`}`

/** The most that a head gives at a time. */
const PAGE = 1000

/** As a shell takes it for one word. */
const word = (text: string): string => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** `soa dead-letter`: requests that ran out of tries, kept with their payload and the history of their tries. */
export function deadLetterCommands (program: Command, io: Io): void {
  const letters = program.command('dead-letter').description('requests that were given up: list, show, run again, remove')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
  const command = (spec: string, says: string, examples: string[]): Command =>
    addSettings(letters.command(spec).description(says), 'client').option('--json', 'one JSON document').addHelpText('after', `\nExamples:\n${examples.map(line => `  ${line}`).join('\n')}`)

  const each = async (options: Target & Which, sessionId: string, ids: readonly string[], act: (id: string) => Promise<Done>): Promise<void> => {
    if (ids.length === 0 && options.json !== true) io.out(`session ${sessionId} has no dead letters${options.client === undefined ? '' : ' of this client'}`)
    else await forEach(io, options.json, 'id', ids, act, { isList: options.all === true })
  }

  command('list <session>', 'requests of a session that were given up, in the order in which it happened', ['soa dead-letter list 1730412', 'soa dead-letter list 1730412 --client risk --json'])
    .option('--client <CLIENT>', 'of this client only')
    .option('--limit <N>', 'most to print', wholeNumber, 1000)
    .action(async (sessionId: string, options: Target & { client?: string, limit: number }) => {
      const found = await pages(api(options), sessionId, options)
      print(io, options.json, found, () => [
        ...table(['ID', 'CLIENT', 'MESSAGE', 'USER DATA', 'STATE', 'TRIES', 'GIVEN UP', 'WHY'], found.items.map(letter => [letter.id, letter.clientId === '' ? '(default)' : oneLine(letter.clientId, 40), letter.messageId, oneLine(letter.userData, 40), letter.state, letter.tries.length, letter.at, oneLine(letter.why, 80)])),
        ...(found.next === undefined ? [] : [`… more than ${options.limit}: --limit`]),
        ...(found.dropped === 0 ? [] : [`${found.dropped} older ones were dropped (maxDeadLetters)`])
      ])
    })

  command('show <session> <id>', 'one of them, with its request', ['soa dead-letter show 1730412 7'])
    .action(async (sessionId: string, id: string, options: Target) => {
      const found = await api(options).call('GET', at(sessionId, id)) as WholeDeadLetter
      print(io, options.json, found, () => [
        ...describe(found),
        '',
        ...table(['TASK', 'NODE', 'AT', 'OUTCOME', 'WHY'], found.tries.map(({ taskId, node, at, outcome, why }) => [taskId, node, at, outcome, oneLine(why, 100)])),
        '',
        found.envelope
      ])
    })

  command('replay <session> [ids...]', 'run them again with fresh tries; their responses take the place of their faults', ['soa dead-letter replay 1730412 7', 'soa dead-letter replay 1730412 7 8 9', 'soa dead-letter replay 1730412 --all'])
    .option('--all', 'all that the session has when the command starts')
    .option('--client <CLIENT>', 'with --all: of this client only')
    .action(async (sessionId: string, said: string[], options: Target & Which) => {
      const ids = await idsOf(api(options), sessionId, said, options)
      await each(options, sessionId, ids, async id => {
        const letter = await api(options).call('POST', `${at(sessionId, id)}/replay`) as DeadLetterView
        const outcome = `its outcome: soa trace ${word(sessionId)} ${word(letter.messageId)}${options.head === undefined ? '' : ` --head ${word(options.head)}`}`
        return { value: letter, lines: () => ids.length === 1 && options.all !== true ? [...describe(letter), '', outcome] : [`dead letter ${letter.id} runs again; ${outcome}`] }
      })
    })

  command('remove <session> [ids...]', 'remove them; their faults stay', ['soa dead-letter remove 1730412 7', 'soa dead-letter remove 1730412 --all --client risk'])
    .option('--all', 'all that the session has when the command starts')
    .option('--client <CLIENT>', 'with --all: of this client only')
    .action(async (sessionId: string, said: string[], options: Target & Which) => {
      await each(options, sessionId, await idsOf(api(options), sessionId, said, options), async id => {
        await api(options).call('DELETE', at(sessionId, id))
        return { value: { sessionId, id, removed: true }, lines: () => [`dead letter ${id} of session ${sessionId} is removed`] }
      })
    })
}

/** Those that were named, or with --all those that are listed. All ids are read before the first letter is touched: what is given up meanwhile, or fails once more, is not meant. */
async function idsOf (api: HeadApi, sessionId: string, said: readonly string[], { all = false, client }: Which): Promise<readonly string[]> {
  if (all ? said.length > 0 : said.length === 0) throw new CommandFailed(EXIT.usage, all ? 'ids or --all, not both' : 'ids are expected, or --all')
  if (!all && client !== undefined) throw new CommandFailed(EXIT.usage, '--client goes with --all')
  if (!all) return said
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const page = await api.call('GET', `${at(sessionId)}?${new URLSearchParams({ limit: String(PAGE), ...(client === undefined ? {} : { client }), ...(cursor === undefined ? {} : { cursor }) })}`) as DeadLetterPage
    // Not the letters themselves: with their tries and causes they may be thousands of KB.
    ids.push(...page.items.map(letter => letter.id))
    cursor = page.next
  } while (cursor !== undefined)
  return ids
}

async function pages (api: HeadApi, sessionId: string, { client, limit }: { client?: string, limit: number }): Promise<DeadLetterPage> {
  const items: DeadLetterView[] = []
  let cursor: string | undefined
  for (;;) {
    const query = new URLSearchParams({ limit: String(Math.max(1, Math.min(PAGE, limit - items.length))), ...(client === undefined ? {} : { client }), ...(cursor === undefined ? {} : { cursor }) })
    const page = await api.call('GET', `${at(sessionId)}?${query}`) as DeadLetterPage
    items.push(...page.items)
    cursor = page.next
    if (cursor === undefined || items.length >= limit) return { ...page, items }
  }
}

function describe (letter: DeadLetterView): string[] {
  return facts([
    ['dead letter', letter.id],
    ['session', letter.sessionId],
    ['client', letter.clientId === '' ? '(default)' : oneLine(letter.clientId, 200)],
    ['message', letter.messageId],
    ['action', letter.action],
    ['user data', oneLine(letter.userData, 200)],
    ['state', letter.state],
    ['given up', letter.at],
    ['why', oneLine(letter.why, 1000)]
  ])
}
