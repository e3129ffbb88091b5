import t from 'tap'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { asset } from '../../core/assets.ts'
import { FAULTS } from '../../core/errors.ts'
import { SETTINGS, environmentName, flagName, settingNames, settingOf, settingsRead, type Reader, type SettingName } from '../../config/settings.ts'
import { MOST_USED } from '../../cli/options.ts'
import { faultsMarkdown, settingsMarkdown } from '../../cli/tables.ts'
import { run } from '../cli/helpers.ts'

const read = (path: string): string => readFileSync(asset(path), 'utf8')
const entry = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))

/** The command line as a process of its own, with this environment and nothing else. */
async function soa (args: string[], env: Record<string, string> = {}): Promise<string> {
  const child = spawn(process.execPath, [entry, ...args], { env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => { out += part })
  const [code] = await once(child, 'close') as [number]
  if (code !== 0) throw new Error(`soa ${args.join(' ')} ended with ${code}`)
  return out
}

t.test('tables: docs/settings.md and docs/faults.md are what the tables say', async t => {
  t.equal(read('docs/settings.md'), settingsMarkdown(), 'npm run docs writes it anew')
  t.equal(read('docs/faults.md'), faultsMarkdown(), 'npm run docs writes it anew')
  t.equal(await soa(['settings', '--markdown']), settingsMarkdown())
})

t.test('tables: every fault and every setting has its row in the docs', async t => {
  for (const name of Object.keys(FAULTS)) t.match(read('docs/faults.md'), `| ${name} |`)
  for (const name of settingNames()) t.match(read('docs/settings.md'), new RegExp(`\\| ${name} \\|.*${environmentName(name)}`))
})

t.test('tables: a process without flags and environment runs with the defaults, and says so', async t => {
  const { items } = JSON.parse(await soa(['settings', '--json'])) as { items: Array<{ name: string, value: unknown, default: unknown, environment: string }> }
  t.strictSame(items.map(({ name }) => name), settingNames())
  for (const { name, value, default: fallback } of items) {
    t.equal(value, SETTINGS[name as keyof typeof SETTINGS].default, `${name} runs with its default`)
    t.equal(fallback, value, `${name} is printed with its default`)
  }
})

t.test('tables: the environment names that are printed are those that are read', async t => {
  const other = (name: keyof typeof SETTINGS): string => {
    const { default: fallback, oneOf, max } = settingOf(name)
    if (oneOf !== undefined) return oneOf.find(word => word !== fallback) ?? ''
    return typeof fallback === 'number' ? String(fallback + 1 > (max ?? Infinity) ? fallback - 1 : fallback + 1) : typeof fallback === 'boolean' ? String(!fallback) : `${fallback}x`
  }
  // The stop follows the start where only that is given, so both are moved here, and stay in order.
  const env = Object.fromEntries(settingNames().map(name => [environmentName(name), other(name)]))
  const { items } = JSON.parse(await soa(['settings', '--json'], env)) as { items: Array<{ name: keyof typeof SETTINGS, value: unknown }> }
  for (const { name, value } of items) t.equal(String(value), other(name), environmentName(name))
})

t.test('tables: --help of a command names the settings that are used most, its variable and its default, and says where all are', async t => {
  for (const name of MOST_USED) t.ok(settingNames().includes(name), `${name} is a setting`)
  const commands: Array<[Reader, string[]]> = [['up', ['up']], ['head', ['head']], ['node', ['node']], ['client', ['session', 'list']]]
  const all = (await run(['settings'])).out
  for (const [by, command] of commands) {
    const { out, code } = await run([...command, '--help'])
    t.equal(code, 0)
    const text = out.replace(/\s+/g, ' ')
    const hidden = settingsRead(by).filter(name => !MOST_USED.includes(name))
    for (const name of settingsRead(by)) {
      const { says, default: fallback } = settingOf(name)
      t.match(all, new RegExp(`^${name} .* ${environmentName(name)} `, 'm'), `soa settings: ${name}`)
      if (hidden.includes(name)) { t.notMatch(text, ` ${flagName(name)} <`, `soa ${command.join(' ')}: ${name} is not in the way`); continue }
      t.ok([flagName(name), says, environmentName(name)].every(part => text.includes(part)), `soa ${command.join(' ')}: ${name}`)
      if (fallback !== '' && fallback !== false) t.match(text, `[${environmentName(name)}, default ${String(fallback)}]`)
    }
    if (hidden.length > 0) t.match(text, `"soa settings" has ${hidden.length} more that are flags of this command too (${hidden[0]}: ${flagName(hidden[0] as SettingName)}).`)
    if (by !== 'client') t.ok(out.split('\n').length < 70, `soa ${command.join(' ')}: ${out.split('\n').length} lines`)
  }
  t.match(await run(['head', '--store-timeout-ms', 'soon', '--redis', '/nowhere']), { code: 2, err: /--store-timeout-ms: a whole number of ms/ }, 'a flag that is not shown is read, and checked, all the same')
  const { out } = await run(['session', 'create', '--help'])
  for (const name of settingNames('session')) {
    if (MOST_USED.includes(name)) t.match(out, new RegExp(`\\b${name} +${String(settingOf(name).default)} `), `${name} with its default`)
    t.match(all, new RegExp(`^${name} .* ${environmentName(name)} `, 'm'), `soa settings: ${name}`)
  }
  t.match(out, `"soa settings" has all ${settingNames('session').length}:`)
})

t.test('tables: every process setting is read by some command', async t => {
  for (const name of settingNames('process')) t.ok((settingOf(name).by ?? []).length > 0, name)
  for (const name of settingNames('session')) t.equal(settingOf(name).by, undefined, name)
})
