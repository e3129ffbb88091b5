/**
 * Loaded into processes under test by `--import=…/heap-probe.js?dir=DIR` in NODE_OPTIONS. SIGUSR2 has them collect their garbage and write what is left,
 * in bytes, to DIR/<pid>.json. Does nothing else.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const dir = new URL(import.meta.url).searchParams.get('dir') ?? '.'

process.on('SIGUSR2', () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  gc()
  gc() // what finalizers let go of in the first
  const { heapUsed, external, rss } = process.memoryUsage()
  const path = join(dir, `${process.pid}.json`)
  writeFileSync(`${path}.new`, JSON.stringify({ bytes: heapUsed + external, rss }))
  renameSync(`${path}.new`, path)
})
