import { main } from '../node-manager/main.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import { runFolder } from './folders.ts'
import type { Io } from './io.ts'
import { processSettings, settingsAsEnvironment } from './options.ts'

/** `soa node`: the node manager prints the ready line, hears the signals, and ends its hosts. */
export async function runNode (io: Io, flags: Readonly<Record<string, unknown>>): Promise<void> {
  const settings = processSettings(io, flags)
  if (settings.redis === '') throw new CommandFailed(EXIT.usage, 'a node needs the Redis that its head uses: --redis redis://HOST:6379, or SOA_REDIS. For one machine, "soa up" runs one of its own')
  const code = await main(settingsAsEnvironment(io.env, { ...settings, runDir: runFolder(settings, io) }))
  if (code !== 0) throw new CommandFailed(code, '')
}
