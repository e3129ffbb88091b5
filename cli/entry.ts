import { main } from './main.ts'

/** The process `soa`: the only file of the command line that reads the environment and ends the process. */
const stop = new AbortController()
const hurry = new AbortController()
/** One Ctrl-C comes twice where npm or `timeout` passes on what the terminal has sent already: only what comes later is said again. */
const ECHO_MS = 500
let first = 0
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => {
    if (!stop.signal.aborted) first = Date.now()
    else if (Date.now() - first < ECHO_MS) return
    ;(stop.signal.aborted ? hurry : stop).abort(name)
  })
}
// `soa settings | head -1` closes our stdout: that is an end, not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => { if (error.code !== 'EPIPE') throw error })

process.exitCode = await main(process.argv.slice(2), {
  env: process.env,
  signal: stop.signal,
  hurry: hurry.signal,
  out: text => { process.stdout.write(`${text}\n`) },
  err: text => { process.stderr.write(`${text}\n`) }
})

// Something may still be open (BullMQ waits for a Redis that is away for ever); what was to be closed is closed, so nobody waits for it.
process.stdout.write('', () => process.exit())
