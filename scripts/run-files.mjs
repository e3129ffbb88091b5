// node scripts/run-files.mjs JOBS SECONDS FILE …: runs test files as tap's children, JOBS at a time, and prints their TAP. Not by `tap run`: it puts its coverage and
// mocks into every process that a test starts, which cost a second of processor time for each file, and are not used here. What a test starts is to be what runs.
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const [jobs, seconds, ...files] = process.argv.slice(2)
const cwd = dirname(dirname(fileURLToPath(import.meta.url)))
t.jobs = Number(jobs)
t.setTimeout(0)
for (const file of files) {
  t.spawn(process.execPath, ['--enable-source-maps', file], {
    name: relative(cwd, file), cwd, buffered: t.jobs > 1, timeout: Number(seconds) * 1000, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, TAP_TIMEOUT: seconds }
  })
}
