import type { Command } from 'commander'
import type { DeadLetterPage, DeadLetterView, WholeDeadLetter } from '../../broker/contract.ts'
import { HeadApi } from '../head-api.ts'
import { facts, oneLine, print, table, type Io } from '../io.ts'
import { addSettings } from '../options.ts'
import { forEach } from './each.ts'
import { wholeNumber } from './numbers.ts'

interface Target { head?: string, json?: boolean }

const at = (sessionId: string, letter?: string): string => `sessions/${encodeURIComponent(sessionId)}/dead-letters${letter === undefined ? '' : `/${encodeURIComponent(letter)}`}`

/** As a shell takes it for one word. */
const word = (text: string): string => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** `soa dead-letter`: requests that ran out of tries, kept with their payload and the history of their tries. */
export function deadLetterCommands (program: Command, io: Io): void {
  const letters = program.command('dead-letter').description('requests that were given up: list, show, run again, remove')
  const api = (options: Target): HeadApi => new HeadApi(options.head ?? io.env.SOA_HEAD ?? 'http://127.0.0.1:8080', io.signal)
  const command = (spec: string, says: string, examples: string[]): Command =>
    addSettings(letters.command(spec).description(says), 'client').option('--json', 'one JSON document').addHelpText('after', `\nExamples:\n${examples.map(line => `  ${line}`).join('\n')}`)

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

  command('replay <session> <ids...>', 'run them again with fresh tries; their responses take the place of their faults', ['soa dead-letter replay 1730412 7', 'soa dead-letter replay 1730412 7 8 9'])
    .action(async (sessionId: string, ids: string[], options: Target) => {
      await forEach(io, options.json, 'id', ids, async id => {
        const letter = await api(options).call('POST', `${at(sessionId, id)}/replay`) as DeadLetterView
        const outcome = `its outcome: soa trace ${word(sessionId)} ${word(letter.messageId)}${options.head === undefined ? '' : ` --head ${word(options.head)}`}`
        return { value: letter, lines: () => ids.length === 1 ? [...describe(letter), '', outcome] : [`dead letter ${letter.id} runs again; ${outcome}`] }
      })
    })

  command('remove <session> <ids...>', 'remove them; their faults stay', ['soa dead-letter remove 1730412 7'])
    .action(async (sessionId: string, ids: string[], options: Target) => {
      await forEach(io, options.json, 'id', ids, async id => {
        await api(options).call('DELETE', at(sessionId, id))
        return { value: { sessionId, id, removed: true }, lines: () => [`dead letter ${id} of session ${sessionId} is removed`] }
      })
    })
}

async function pages (api: HeadApi, sessionId: string, { client, limit }: { client?: string, limit: number }): Promise<DeadLetterPage> {
  const items: DeadLetterView[] = []
  let cursor: string | undefined
  for (;;) {
    const query = new URLSearchParams({ limit: String(Math.max(1, Math.min(1000, limit - items.length))), ...(client === undefined ? {} : { client }), ...(cursor === undefined ? {} : { cursor }) })
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
