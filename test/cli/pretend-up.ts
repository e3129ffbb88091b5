import { fileURLToPath } from 'node:url'
import { systemClock } from '../../core/clock.ts'
import { explain } from '../../cli/exit-codes.ts'
import { up } from '../../cli/up/up.ts'

/** The process `soa up` with a real Redis, and head and node that only pretend: what is tested is who starts, watches and ends whom. Options as JSON. */
const stop = new AbortController()
const hurry = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => { (stop.signal.aborted ? hurry : stop).abort(name) })
const out = (text: string): void => { process.stdout.write(`${text}\n`) }
const err = (text: string): void => { process.stderr.write(`${text}\n`) }

const pretend = fileURLToPath(new URL('pretend-child.js', import.meta.url))
await up({ env: process.env, signal: stop.signal, hurry: hurry.signal, out, err }, JSON.parse(process.argv[2] ?? '{}') as Record<string, unknown>, {
  clock: systemClock,
  program: (role, env) => ({ command: process.execPath, args: [pretend, role], env })
}).catch((error: unknown) => {
  const { exitCode, line } = explain(error)
  err(`soa: ${line}`)
  process.exitCode = exitCode
})
