import { createServer } from 'node:net'
import { sleep, type Clock } from '../core/clock.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import { environmentName, flagName } from '../config/settings.ts'
import { hostAndPort, type ListenAddress } from './options.ts'

/** How often and how long an address is asked for: what listened there may be just ending (`soa up` that was killed takes its head along). */
const TRIES = 40
const PAUSE_MS = 25

/** Why nobody can listen on HOST:PORT now; undefined: it is free. Port 0 always is. */
export function whyTaken (http: string): Promise<Error | undefined> {
  const { host, port } = hostAndPort(http)
  return new Promise(resolve => {
    const server = createServer().once('error', resolve).listen(port, host.replace(/[[\]]/g, ''), () => server.close(() => resolve(undefined)))
  })
}

const say = (setting: ListenAddress['setting'], more: string): string => `${setting.endsWith('Port') ? 'port' : 'address'} with ${flagName(setting)} or ${environmentName(setting)} (${more})`
const ANOTHER: Readonly<Record<ListenAddress['setting'], string>> = {
  http: say('http', 'port 0 picks a free one'),
  netTcp: say('netTcp', 'port 0 picks a free one, off serves no net.tcp'),
  sessionLauncherPort: say('sessionLauncherPort', '0: none of its own'),
  brokerLauncherPort: say('brokerLauncherPort', '0: none of its own')
}

/** Before anything is started: that the address can be listened on. Rejects with one line and `failed` when it is still taken after a second. */
export async function needFreeAddress ({ address, setting }: ListenAddress, clock: Clock, signal: AbortSignal): Promise<void> {
  if (hostAndPort(address, setting).port === 0) return
  for (let tried = 1; ; tried++) {
    const why = await whyTaken(address) as NodeJS.ErrnoException | undefined
    if (why === undefined) return
    const isTaken = why.code === 'EADDRINUSE'
    if (!isTaken || tried === TRIES) {
      throw new CommandFailed(EXIT.failed, `cannot listen on ${address}: ${isTaken ? 'another process listens there; end it' : why.message}, or choose another ${ANOTHER[setting]}`, { cause: why })
    }
    await sleep(clock, PAUSE_MS, signal)
  }
}
