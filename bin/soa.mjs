#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const entry = new URL('../dist/cli/entry.js', import.meta.url)
const build = fileURLToPath(new URL('../scripts/build.mjs', import.meta.url))
if (!existsSync(entry)) {
  // A clone that was never built; an installed package always has dist/. What the build prints is no answer of ours, so it goes to stderr.
  const built = existsSync(build) ? spawnSync(process.execPath, [build], { stdio: ['ignore', 2, 2] }).status : 1
  if (built !== 0) {
    console.error('soa: not built; run "npm run build"')
    process.exit(3)
  }
}
// `npm run soa` goes to the clone's folder; paths on the command line mean the one that it was typed in.
const { npm_lifecycle_event: script, INIT_CWD: typedIn } = process.env
if (script === 'soa' && typedIn !== undefined && existsSync(typedIn)) process.chdir(typedIn)
await import(entry.href)
