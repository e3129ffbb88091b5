/**
 * Loaded into processes under test by `--import=…/heap-probe.js?dir=DIR` in NODE_OPTIONS. SIGUSR2 has them collect their garbage and write what is left,
 * in bytes, to DIR/<pid>.json. Does nothing else.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { collectGarbage } from '../garbage.ts'

const dir = new URL(import.meta.url).searchParams.get('dir') ?? '.'

process.on('SIGUSR2', () => {
  collectGarbage()
  const { heapUsed, external, rss } = process.memoryUsage()
  const path = join(dir, `${process.pid}.json`)
  writeFileSync(`${path}.new`, JSON.stringify({ bytes: heapUsed + external, rss }))
  renameSync(`${path}.new`, path)
})
