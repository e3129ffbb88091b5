import { headMain } from '../broker/head/main.ts'
import { makeLog } from '../core/log.ts'
import { redactRedisUrl } from '../store/redis.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import { runFolder } from './folders.ts'
import { aborted, type Io } from './io.ts'
import { listenAddress, processSettings, settingsAsEnvironment } from './options.ts'

/** `soa head`: prints the ready line, and ends in order when told to. */
export async function runHead (io: Io, flags: Readonly<Record<string, unknown>>): Promise<void> {
  const settings = processSettings(io, flags)
  if (settings.redis === '') throw new CommandFailed(EXIT.usage, 'a head needs a Redis, the one that its nodes use: --redis redis://HOST:6379, or SOA_REDIS. For one machine, "soa up" runs one of its own')
  const runDir = runFolder(settings, io)
  const head = await headMain({
    settings,
    redisUrl: settings.redis,
    prefix: settings.redisPrefix,
    runDir,
    http: listenAddress(settings),
    log: makeLog('head', settings.logLevel),
    env: settingsAsEnvironment(io.env, { ...settings, runDir })
  })
  io.out(JSON.stringify({ ready: true, http: head.http, netTcp: null, redis: redactRedisUrl(settings.redis), pid: process.pid }))
  await aborted(io.signal)
  await Promise.race([head.close(), aborted(io.hurry)])
}
