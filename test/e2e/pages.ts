/** Pages of docs/ as somebody would follow them: files are saved under the names that they begin with, commands run as they stand. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asset } from '../../core/assets.ts'

const HEAD = 'http://127.0.0.1:8080'

/** Fenced blocks that name their file in a comment of their first two lines (`# calls.py`, `// first.mjs`, `<!-- Stats.wsdl -->`). */
export function filesOf (page: string): Map<string, string> {
  const files = new Map<string, string>()
  for (const [, text = ''] of page.matchAll(/^```\w+\n([^]*?)^```$/gm)) {
    const name = /^(?:#!.*\n)?(?:#|\/\/|<!--) ([\w.-]+\.\w+)(?: -->)?\n/.exec(text)?.[1]
    if (name !== undefined) files.set(name, text)
  }
  return files
}

/** The indented blocks, as one script. */
export const commandsOf = (page: string): string =>
  page.replace(/^```[^]*?^```$/gm, '').split('\n').filter(line => line.startsWith('    ') || line === '').map(line => line.slice(4)).join('\n')

/**
 * Follows a page against a head of the test's, in a folder of its own where `soa`, `soa-broker/client` and the tools of the clone are those of the tree that the test was built from.
 * Resolves with what the commands printed; rejects, with what they said on stderr, at the first one that fails.
 */
export async function follow (path: string, head: string): Promise<string> {
  const page = readFileSync(asset(path), 'utf8').replaceAll(HEAD, head)
  const dir = mkdtempSync(join(tmpdir(), 'soa-page-'))
  try {
    for (const [name, text] of filesOf(page)) writeFileSync(join(dir, name), text)
    const own = (folder: string, files: Record<string, string>): void => {
      mkdirSync(join(dir, folder), { recursive: true })
      for (const [name, text] of Object.entries(files)) {
        writeFileSync(join(dir, folder, name), text)
        chmodSync(join(dir, folder, name), 0o755)
      }
    }
    // As `npm init -y` leaves it.
    own('.', { 'package.json': '{ "name": "page", "version": "1.0.0" }' })
    own('bin', { soa: `#!/bin/sh\nexec ${process.execPath} ${fileURLToPath(new URL('../../cli/entry.js', import.meta.url))} "$@"\n` })
    own('node_modules/soa-broker', {
      'package.json': '{ "name": "soa-broker", "type": "module", "exports": { "./client": "./client.js" } }',
      'client.js': `export * from ${JSON.stringify(new URL('../../client/index.js', import.meta.url).href)}\n`
    })
    own('node_modules/soap', { 'package.json': '{ "name": "soap", "type": "module", "exports": "./index.js" }', 'index.js': `export { default } from ${JSON.stringify(import.meta.resolve('soap'))}\n` })
    const tools = [join(dir, 'bin'), asset('node_modules/.bin'), '/usr/bin', '/bin', join(process.execPath, '..'), process.env.PATH ?? '']
    const shell = spawn('/bin/bash', ['-e', '-o', 'pipefail', '-c', commandsOf(page)], { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PATH: tools.join(':'), SOA_HEAD: head } })
    let out = ''
    let err = ''
    shell.stdout.setEncoding('utf8').on('data', (text: string) => { out += text })
    shell.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
    const [code] = await once(shell, 'close') as [number]
    if (code !== 0) throw new Error(`${path}: a command failed with ${code}\n${err}\n${out}`)
    return out
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
