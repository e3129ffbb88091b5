import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Where redis-server is on this machine; undefined: tests that need it are skipped and say so. */
export const redisServer: string | undefined = (process.env['PATH'] ?? '').split(':').concat('/usr/bin', '/usr/local/bin').map(dir => join(dir, 'redis-server')).find(existsSync)

/** A test's options: `t.test(name, { ...needsRedis }, async t => …)`. A copy each: tap writes into them. */
export const needsRedis: { skip: string | false } = { skip: redisServer === undefined ? 'redis-server is not on this machine' : false }

export interface RedisServerOptions {
  /** Default true. */
  readonly appendonly?: boolean
  /** Default `always`, what `soa up` runs. */
  readonly appendfsync?: 'always' | 'everysec' | 'no'
  /** E.g. `32mb`; default none. */
  readonly maxmemory?: string
  /** Default noeviction. */
  readonly policy?: string
  /** More `--name value` pairs. */
  readonly extra?: Readonly<Record<string, string>>
}

export interface RedisServer {
  /** For `openRedis`: `unix://…`. */
  readonly url: string
  readonly path: string
  readonly dir: string
  readonly pid: number
  /** SIGKILL; resolves when it is gone. */
  kill9 (): Promise<void>
  /** Starts it again on the same dir and socket; resolves when it takes connections. */
  restart (): Promise<void>
  /** SIGTERM; resolves when it is gone. */
  stop (): Promise<void>
  /** SIGSTOP and SIGCONT: alive, but answers nothing. */
  freeze (): void
  thaw (): void
}

/** A redis-server of the test's own: a Unix socket in a temporary folder, no port. Process and folder are gone when the test ends. */
export async function startRedis (t: { teardown: (end: () => unknown) => unknown }, options: RedisServerOptions = {}): Promise<RedisServer> {
  if (redisServer === undefined) throw new Error('redis-server is not on this machine')
  const dir = await mkdtemp(join(tmpdir(), 'soa-redis-'))
  const path = join(dir, 'redis.sock')
  const settings: Record<string, string> = {
    port: '0',
    unixsocket: path,
    dir,
    save: '',
    appendonly: options.appendonly === false ? 'no' : 'yes',
    appendfsync: options.appendfsync ?? 'always',
    'maxmemory-policy': options.policy ?? 'noeviction',
    ...(options.maxmemory === undefined ? {} : { maxmemory: options.maxmemory }),
    ...options.extra
  }
  let child = await start(settings).catch(async error => {
    await rm(dir, { recursive: true, force: true })
    throw error
  })
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    await gone
  }
  t.teardown(async () => {
    await end('SIGKILL')
    await rm(dir, { recursive: true, force: true })
  })
  return {
    url: `unix://${path}`,
    path,
    dir,
    get pid () { return child.pid ?? -1 },
    kill9: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    async restart () {
      await end('SIGTERM')
      child = await start(settings)
    },
    freeze: () => { child.kill('SIGSTOP') },
    thaw: () => { child.kill('SIGCONT') }
  }
}

async function start (settings: Record<string, string>): Promise<ChildProcess> {
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  // pdeathsig: a test that is killed leaves no server behind.
  const setpriv = '/usr/bin/setpriv'
  const [command, before]: [string, string[]] = existsSync(setpriv) ? [setpriv, ['--pdeathsig', 'KILL', '--', redisServer ?? '']] : [redisServer ?? '', []]
  const child = spawn(command, [...before, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const said: string[] = []
  const lines = createInterface({ input: child.stdout })
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`redis-server ended with ${code}:\n${said.join('\n')}`)))
    lines.on('line', line => {
      if (said.length < 200) said.push(line)
      if (line.includes('Ready to accept connections') || line.includes('ready to accept connections')) resolve()
    })
  })
  return child
}
