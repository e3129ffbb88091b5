#!/usr/bin/env node
// `npm test` and `npm run test:long`: sets the machine up as far as it may, builds, lints, and runs every test that this machine can run. Only node: builtins.
//   npm test -- store planner     only the files with one of these words in their path
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { build, needNode, root } from './build.mjs'
import { buildDotnet } from './dotnet.mjs'
import { canInstall, haveRedis, haveZeep } from './machine.mjs'

const TAP = join(root, 'node_modules/tap/dist/esm/run.mjs')
const args = process.argv.slice(2)
const isLong = args.includes('--long')
const words = args.filter(arg => !arg.startsWith('--'))
const skipped = []
/** Of a file that failed: not the checks that passed. */
const isTelling = line => !/^\s+(ok \d+|\d+\.\.\d+|# time=)/.test(line)
let passed = 0
let failed = 0

needNode()
if (!haveRedis()) {
  console.error('redis-server is missing, and nearly every test needs it; install it with: sudo apt-get install redis-server')
  process.exit(3)
}
if (!haveZeep()) skipped.push(`what needs zeep: /usr/bin/python3 does not have it${canInstall() ? '' : ' (sudo apt-get install python3-zeep)'}`)
build()
if (!isLong && (words.length === 0 || words.some(word => 'interop/dotnet'.includes(word) || word.includes('dotnet')))) dotnet()
if (!isLong && words.length === 0) lint()
tapPlugins()
await runTests()

for (const line of skipped) console.log(`skipped: ${line}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1

function lint () {
  const eslint = join(root, 'node_modules/eslint/bin/eslint.js')
  const { status } = spawnSync(process.execPath, [eslint, '.'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  count(status === 0 ? 1 : 0, status === 0 ? 0 : 1)
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'}  lint`)
}

/** SOA_REQUIRE=dotnet: a machine that cannot build it has failed. */
function dotnet () {
  const { state, why } = buildDotnet()
  if (state === 'built') return
  const isNeeded = state === 'failed' || (process.env.SOA_REQUIRE ?? '').split(',').includes('dotnet')
  if (!isNeeded) {
    skipped.push(`.NET's own clients and the .NET host: ${why}`)
    return
  }
  console.log(`${why}\nFAILED  build of the .NET programs`)
  count(0, 1)
}

/** tap makes itself anew for the plugins of .taprc, after it has begun: its first run after npm ci would load the TypeScript compiler into every process of a test. */
function tapPlugins () {
  const stamp = join(root, 'node_modules/.tap-built')
  const timeOf = path => existsSync(path) ? statSync(path).mtimeMs : 0
  if (timeOf(stamp) > Math.max(timeOf(join(root, 'node_modules/.package-lock.json')), timeOf(join(root, '.taprc')))) return
  const { status } = spawnSync(process.execPath, [TAP, 'build'], { cwd: root, stdio: ['ignore', 2, 2] })
  if (status === 0) writeFileSync(stamp, '')
  else count(0, 1)
}

function count (more, worse) {
  passed += more
  failed += worse
}

function testFiles () {
  const folder = join(root, 'dist/test')
  const wanted = isLong ? /\.long\.js$/ : /\.test\.js$/
  return (existsSync(folder) ? readdirSync(folder, { recursive: true }) : [])
    .filter(path => wanted.test(path) && (words.length === 0 || words.some(word => path.includes(word))))
    .map(path => join('dist/test', path))
    .sort()
}

/** tap prints one top-level line for each file, what the file said before it, and the counts at the end. */
async function runTests () {
  const files = testFiles()
  if (files.length === 0) {
    console.log(`no ${isLong ? 'long ' : ''}test file${words.length === 0 ? '' : ` with ${words.join(' or ')} in its path`}`)
    return
  }
  const tap = spawn(process.execPath, [TAP, '--reporter=tap', ...(isLong ? ['--jobs=1', '--timeout=900'] : ['--timeout=150']), ...files], {
    cwd: root, stdio: ['ignore', 'pipe', 'inherit']
  })
  const ended = new Promise(resolve => tap.once('close', code => resolve(code)))
  let said = []
  let counts
  for await (const line of createInterface({ input: tap.stdout })) {
    const skip = /^\s+ok \d+ - (.*?) # SKIP ?(.*)$/.exec(line)
    if (skip !== null) skipped.push(skip[2] === '' ? skip[1] : `${skip[1]}: ${skip[2]}`)
    const file = /^(not )?ok \d+ - (.+?)(?: # (?:time=([\d.]+)m?s|(SKIP.*)).*)?$/.exec(line)
    counts = /^# \{ total: (\d+), pass: (\d+)(?:, fail: (\d+))?/.exec(line) ?? counts
    if (file === null) {
      said.push(line)
      continue
    }
    const name = relative('dist', file[2] ?? '').replace(/\.js$/, '.ts')
    if (file[1] !== undefined) console.log(said.filter(isTelling).join('\n'))
    console.log(`${file[1] === undefined ? 'ok    ' : 'FAILED'}  ${name}${file[3] === undefined ? '' : `  ${(Number(file[3]) / 1000).toFixed(1)} s`}`)
    said = []
  }
  const code = await ended
  if (counts === undefined) {
    console.log(said.join('\n'))
    count(0, 1)
  } else {
    const bad = Number(counts[3] ?? 0)
    count(Number(counts[2]), bad === 0 && code !== 0 ? 1 : bad)
  }
}
