import { headMain } from '../broker/head/main.ts'
import { refuseOpenAddress } from '../config/addresses.ts'
import { systemClock, within, type Clock } from '../core/clock.ts'
import { makeLog } from '../core/log.ts'
import { redactRedisUrl } from '../store/redis.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import { runFolder } from './folders.ts'
import { needFreeAddress } from './free-address.ts'
import { aborted, type Io } from './io.ts'
import { hostAndPort, listenAddress, listenAddresses, netTcpAddress, processSettings, settingsAsEnvironment } from './options.ts'

/** Longest orderly end: above what a head gives its workers to let go of their sessions (15 s) and below the time after which `soa up` kills it. A Redis that is away would keep it much longer. */
const CLOSE_MS = 18_000

/** `soa head`: prints the ready line, and ends in order when told to. */
export async function runHead (io: Io, flags: Readonly<Record<string, unknown>>): Promise<void> {
  const settings = processSettings(io, flags)
  if (settings.redis === '') throw new CommandFailed(EXIT.usage, 'a head needs a Redis, the one that its nodes use: --redis redis://HOST:6379, or SOA_REDIS. For one machine, "soa up" runs one of its own')
  for (const address of listenAddresses(settings)) {
    refuseOpenAddress(hostAndPort(address.address, address.setting).host, settings.insecure)
    await needFreeAddress(address, systemClock, io.signal)
  }
  const runDir = runFolder(settings, io)
  const log = makeLog('head', settings.logLevel)
  const head = await headMain({
    settings,
    redisUrl: settings.redis,
    prefix: settings.redisPrefix,
    runDir,
    http: listenAddress(settings),
    netTcp: netTcpAddress(settings),
    log,
    env: settingsAsEnvironment(io.env, { ...settings, runDir })
  })
  io.out(JSON.stringify({ ready: true, http: head.http, netTcp: head.netTcp ?? null, sessionLauncher: head.sessionLauncher ?? null, redis: redactRedisUrl(settings.redis), pid: process.pid }))
  await aborted(io.signal)
  await endWithin(() => head.close(), { clock: systemClock, log, hurry: io.hurry })
}

/** Closes, for 18 s at most or until the user is in a hurry: durable sessions are safe in Redis whichever way the process ends. Rejects with `failed` when the time is over. */
export async function endWithin (close: () => Promise<void>, { clock, log, hurry }: { clock: Clock, log: { error (facts: object, text: string): void }, hurry: AbortSignal }): Promise<void> {
  const done = new AbortController()
  try {
    await within(clock, CLOSE_MS, Promise.race([close(), aborted(hurry, done.signal)]), () => new CommandFailed(EXIT.failed, `the head did not close within ${CLOSE_MS} ms; ended as it stood`))
  } catch (err) {
    log.error({ err, closeMs: CLOSE_MS }, 'head did not close in order')
    throw err
  } finally {
    done.abort()
  }
}
