#!/usr/bin/env node
// Brings node_modules and dist/ up to date, and does nothing when they are. Only node: builtins: it runs before anything is installed.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const LEAST_NODE = [20, 19]
const SOURCES = ['core', 'config', 'wire', 'wsdl', 'transport', 'store', 'broker', 'service-host', 'node-manager', 'client', 'cli', 'web', 'test', 'bench', 'examples']

const say = text => process.stderr.write(`${text}\n`)

/** Ends the process with 3 (something missing on this machine) when Node is too old. */
export function needNode () {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])) return
  say(`Node ${process.versions.node} is too old: soa-broker needs ${LEAST_NODE.join('.')} or newer (https://nodejs.org)`)
  process.exit(3)
}

/** Installs and compiles what is not up to date. Ends the process with the failing step's code, after its output. */
export function build () {
  install()
  compile()
}

const timeOf = path => existsSync(path) ? statSync(path).mtimeMs : 0

function install () {
  const installed = timeOf(join(root, 'node_modules/.package-lock.json'))
  if (installed >= timeOf(join(root, 'package-lock.json')) && installed > 0) return
  step('installing packages (npm ci)', 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--include=dev'])
}

function compile () {
  const stamp = join(root, 'dist/.built')
  const sources = SOURCES.flatMap(folder => files(join(root, folder)))
  const newest = Math.max(...[...sources, join(root, 'tsconfig.json'), join(root, 'package-lock.json')].map(timeOf))
  // Names too: a file that was removed leaves no newer time behind, and its old output would still be run as a test.
  const names = sources.map(path => relative(root, path)).sort().join('\n')
  const isSame = existsSync(stamp) && readFileSync(stamp, 'utf8') === names
  if (isSame && timeOf(stamp) >= newest) return
  if (!isSame) rmSync(join(root, 'dist'), { recursive: true, force: true })
  const began = Date.now() / 1000
  step('compiling (tsc)', process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--incremental', '--tsBuildInfoFile', 'dist/.tsbuildinfo'])
  writeFileSync(stamp, names)
  say(`compiled in ${(Date.now() / 1000 - began).toFixed(1)} s`)
}

function files (folder) {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile() && /\.(ts|json)$/.test(entry.name))
    .map(entry => join(entry.parentPath ?? entry.path, entry.name))
    .filter(path => !/\/(?:obj|out|bin)\//.test(relative(root, path))) // dotnet build leaves JSON there
}

function step (what, command, args) {
  say(`${what} …`)
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status === 0) return
  say(`${what} failed${error === undefined ? '' : `: ${error.message}`}`)
  process.exit(status ?? 1)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  needNode()
  build()
}
