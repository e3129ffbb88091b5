import type { Command } from 'commander'
import { readSettings } from '../../config/read-settings.ts'
import { HeadApi } from '../head-api.ts'
import { print, table, wrappedTable, type Io } from '../io.ts'

/** Of the table of settings: what a wide terminal shows without breaking lines itself. */
const MOST_COLUMNS = 160

const amount = ({ default: value, unit }: { default: unknown, unit: string }): string => typeof value === 'number' ? `${value} ${unit}` : String(value)

export function settingsCommands (program: Command, io: Io): void {
  program.command('settings').description('every setting: default, unit, environment name, and what it does')
    .option('--json', 'one JSON document')
    .option('--markdown', 'as docs/settings.md')
    .option('--head [URL[,URL…]]', 'what a running head uses (default: SOA_HEAD, else http://127.0.0.1:8080)')
    .addHelpText('after', '\nExamples:\n  soa settings\n  soa settings --head --json')
    .action(async (options: { json?: boolean, markdown?: boolean, head?: string | boolean }) => {
      const { settingRows, settingsMarkdown } = await import('../tables.ts')
      if (options.markdown) return io.out(settingsMarkdown().trimEnd())
      if (options.head !== undefined) {
        const url = typeof options.head === 'string' ? options.head : io.env.SOA_HEAD ?? 'http://127.0.0.1:8080'
        const running = await new HeadApi(url, io.signal).call('GET', 'settings') as { items: Array<{ name: string, value: unknown, default: unknown }> }
        return print(io, options.json, running, () => table(['SETTING', 'RUNS WITH', 'DEFAULT'], running.items.map(one => [one.name, String(one.value), one.value === one.default ? '' : String(one.default)])))
      }
      const here = readSettings(io.env, {}) as unknown as Record<string, unknown>
      const rows = settingRows()
      const isOther = rows.some(row => here[row.name] !== row.default)
      print(io, options.json, { items: rows.map(row => ({ ...row, value: here[row.name] })) }, () => [...wrappedTable(
        ['SETTING', 'DEFAULT', ...(isOther ? ['HERE'] : []), 'SCOPE', 'ENVIRONMENT', 'SAYS'],
        rows.map(row => [row.name, amount(row), ...(isOther ? [here[row.name] === row.default ? '' : String(here[row.name])] : []), row.scope, row.environment, row.says]), MOST_COLUMNS),
      '',
      'Of a process: a flag of the commands that read it (maxSessions: --max-sessions), its variable, or the file of --config.',
      'Of a session: --set name=value, its variable, the file of --config, or the service\'s registration file.'])
    })

  program.command('faults').description('every fault: number, whose fault, what it says')
    .option('--json', 'one JSON document')
    .option('--markdown', 'as docs/faults.md')
    .addHelpText('after', '\nExample:\n  soa faults')
    .action(async (options: { json?: boolean, markdown?: boolean }) => {
      const { faultRows, faultsMarkdown } = await import('../tables.ts')
      if (options.markdown) return io.out(faultsMarkdown().trimEnd())
      const rows = faultRows()
      print(io, options.json, { items: rows }, () => table(['FAULT', 'CODE', 'BLAME', 'TEXT'], rows.map(row => [row.name, row.hex ?? '', row.blame, row.text])))
    })
}
