import { rangeOf } from '../config/read-settings.ts'
import { environmentName, flagName, settingNames, settingOf } from '../config/settings.ts'
import { FAULTS, type FaultName, type FaultRow } from '../core/errors.ts'

export interface SettingLine { name: string, default: number | string | boolean, unit: string, scope: string, range: string, environment: string, by: readonly string[], says: string }
export interface FaultLine { name: string, code?: number, hex?: string, blame: string, text: string, context: readonly string[] }

/** The table of settings as rows, for `soa settings` and docs/settings.md. */
export function settingRows (): SettingLine[] {
  return settingNames().map(name => {
    const setting = settingOf(name)
    return { name, default: setting.default, unit: setting.unit, scope: setting.scope, range: rangeOf(setting), environment: environmentName(name), by: setting.by ?? [], says: setting.says }
  })
}

/** The table of faults as rows, for `soa faults` and docs/faults.md. `text` has the context's names where the values go. */
export function faultRows (): FaultLine[] {
  return Object.entries(FAULTS).map(([name, row]: [string, FaultRow]) => ({
    name: name as FaultName,
    ...(row.code === undefined ? {} : { code: row.code, hex: `0x${row.code.toString(16).padStart(8, '0')}` }),
    blame: row.blame,
    text: row.text.replace(/\{(\d)\}/g, (_, i) => `{${row.context[Number(i)] ?? '?'}}`),
    context: row.context
  }))
}

const cell = (text: string): string => text.replaceAll('|', '\\|')
const markdownTable = (heads: string[], rows: string[][]): string => [heads, heads.map(() => '---'), ...rows].map(row => `| ${row.map(cell).join(' | ')} |`).join('\n')

export function settingsMarkdown (): string {
  const rows = settingRows()
  const value = (row: SettingLine): string => row.default === '' ? 'empty' : `\`${String(row.default)}\``
  const process = rows.filter(row => row.scope === 'process')
  const session = rows.filter(row => row.scope === 'session')
  return `# Settings

Printed by \`soa settings --markdown\` from config/settings.ts; a test compares them.

A flag wins over the environment, the environment over the file (\`--config FILE\` or \`SOA_CONFIG\`: a JSON object of names and values), the file over the
default. A value that does not fit is refused with its name, unit, range and what was seen.

## Of a process

${markdownTable(['setting', 'flag', 'environment', 'read by', 'default', 'values', 'what it does'], process.map(row => [row.name, `\`${flagName(row.name as never)}\``, `\`${row.environment}\``, row.by.map(by => by === 'client' ? 'commands that call a head' : `\`soa ${by}\``).join(', '), value(row), row.range, row.says]))}

## Of a session

The process has a default (\`--set name=value\` or the environment), the service's registration file may set another (in \`monitor\` or \`loadBalancing\`; maxMessageSize,
serviceInitializationTimeout, serviceHostIdleTimeout and serviceHangTimeout in \`service\`), and so may the session itself (\`soa session create … --set name=value\`, \`settings\` in REST).

${markdownTable(['setting', 'environment', 'default', 'values', 'what it does'], session.map(row => [row.name, `\`${row.environment}\``, value(row), row.range, row.says]))}
`
}

export function faultsMarkdown (): string {
  const rows = faultRows()
  return `# Faults

Printed by \`soa faults --markdown\` from core/errors.ts; a test compares them.

Names and numbers with a code are HPC Pack's: they travel as SessionFault (the number in the detail, the name as subcode) and to REST callers as \`code\` and
\`name\`. Those without one are answered by a fault code of SOAP's own, by an HTTP status, or by the command line. What stands in braces is the fault's context.

${markdownTable(['name', 'code', 'number', 'blame', 'text'], rows.map(row => [row.name, row.hex === undefined ? '' : `\`${row.hex}\``, row.code === undefined ? '' : String(row.code), row.blame, row.text]))}
`
}
