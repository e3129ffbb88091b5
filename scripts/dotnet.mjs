#!/usr/bin/env node
// Builds the .NET host, its sample service and the .NET client of the tests, when they are not up to date. Only node: builtins.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './build.mjs'
import { onPath } from './machine.mjs'

const SOLUTION = join(root, 'test/interop/dotnet/all.slnx')
const FOLDERS = ['examples/dotnet-host', 'examples/services', 'test/interop/dotnet']
const DOCS = join(root, 'docs/dotnet.md')
/** Where the programs of DOCS are written out, and built with the others. */
const WRITTEN = join(root, 'test/interop/dotnet/obj/docs')
const STAMP = join(root, 'test/interop/dotnet/obj/.built')
const LEAST_MAJOR = 10
// No server of the compiler or of MSBuild stays behind, nobody is told of the build.
const QUIET = ['-p:UseSharedCompilation=false', '--disable-build-servers', '-nodeReuse:false', '-p:RunAnalyzers=false', '-v:quiet', '-nologo']
const env = { ...process.env, DOTNET_CLI_TELEMETRY_OPTOUT: '1', DOTNET_NOLOGO: '1', DOTNET_CLI_UI_LANGUAGE: 'en' }

/**
 * @returns {{ state: 'built' } | { state: 'missing', why: string } | { state: 'failed', why: string }} `missing`: this machine cannot build it, which is no
 * fault of the sources.
 */
export function buildDotnet () {
  if (onPath('dotnet') === undefined) return { state: 'missing', why: `dotnet is not installed (the .NET SDK, ${LEAST_MAJOR}.0 or newer)` }
  const version = dotnet(['--version']).stdout.trim()
  if (!(Number.parseInt(version) >= LEAST_MAJOR)) return { state: 'missing', why: `the .NET SDK is ${version || 'not there'}, ${LEAST_MAJOR}.0 or newer is needed` }
  if (isUpToDate()) return { state: 'built' }
  process.stderr.write('building .NET programs (dotnet build) …\n')
  const began = Date.now()
  writePrograms()
  const restored = dotnet(['restore', SOLUTION, '--disable-build-servers', '-v:quiet'])
  if (restored.status !== 0) return { state: 'missing', why: `packages of NuGet cannot be had: ${firstError(restored)}` }
  const built = dotnet(['build', SOLUTION, '--no-restore', ...QUIET])
  if (built.status !== 0) return { state: 'failed', why: built.stdout || built.stderr }
  writeFileSync(STAMP, sources().join('\n'))
  process.stderr.write(`built in ${((Date.now() - began) / 1000).toFixed(1)} s\n`)
  return { state: 'built' }
}

/** Each block of DOCS under a line with nothing but a file's name in it. */
function writePrograms () {
  for (const [, file, text] of readFileSync(DOCS, 'utf8').matchAll(/^`([\w./-]+)`\n\n```\w*\n([^]*?)^```$/gm)) {
    mkdirSync(dirname(join(WRITTEN, file)), { recursive: true })
    writeFileSync(join(WRITTEN, file), text.replaceAll('/opt/soa-broker', root))
  }
}

const dotnet = args => spawnSync('dotnet', args, { cwd: root, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 600_000 })

const firstError = ({ stdout, stderr }) => `${stdout}\n${stderr}`.split('\n').find(line => /error/i.test(line))?.replace(/^.*?(?=error)/, '').replace(/ \[.*\]$/, '') ?? 'dotnet restore failed'

function isUpToDate () {
  if (!existsSync(STAMP)) return false
  const built = statSync(STAMP).mtimeMs
  return existsSync(join(root, 'examples/dotnet-host/out/dotnet-host.dll')) && sources().every(path => statSync(join(root, path)).mtimeMs < built)
}

const sources = () => [relative(root, DOCS), ...FOLDERS.flatMap(folder => readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
  .filter(entry => entry.isFile() && /\.(cs|csproj|slnx)$/.test(entry.name))
  .map(entry => relative(root, join(entry.parentPath ?? entry.path, entry.name)))
  .filter(path => !/\/(obj|bin|out)\//.test(path)))].sort()

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { state, why } = buildDotnet()
  if (state !== 'built') console.error(why)
  process.exitCode = state === 'built' ? 0 : state === 'missing' ? 3 : 1
}
