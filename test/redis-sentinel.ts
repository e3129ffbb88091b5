import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { eventually } from './e2e/cluster.ts'
import { redisServer } from './redis-server.ts'

export interface SentinelGroup {
  /** `sentinel://…/soa` */
  readonly url: string
  /** Port of the primary, as the Sentinels tell it now. */
  primary (): Promise<number>
  /** SIGKILL of the server on this port; resolves when it is gone. */
  kill9 (port: number): Promise<void>
  /** Starts the server on this port again, as whatever the Sentinels make of it. */
  restart (port: number): Promise<void>
  /** Resolves when the primary has so many replicas that are in step. */
  replicas (count: number): Promise<void>
}

const NAME = 'soa'

/** A primary with two replicas and three Sentinels on free ports of this machine, all gone when the test ends. A primary is down after a second. */
export async function startSentinels (t: { teardown: (end: () => unknown) => unknown }): Promise<SentinelGroup> {
  const dir = await mkdtemp(join(tmpdir(), 'soa-sentinel-'))
  const children = new Map<number, ChildProcess>()
  const end = async (port: number): Promise<void> => {
    const child = children.get(port)
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  t.teardown(async () => {
    await Promise.all([...children.keys()].map(end))
    await rm(dir, { recursive: true, force: true })
  })
  const ports = await freePorts(6)
  const [primary = 0, ...others] = ports.slice(0, 3)
  const sentinels = ports.slice(3)
  const server = async (port: number, of?: number): Promise<void> => {
    const folder = join(dir, String(port))
    mkdirSync(folder, { recursive: true })
    children.set(port, await run(['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--min-replicas-to-write', '1', '--min-replicas-max-lag', '5',
      '--repl-diskless-sync-delay', '0', ...(of === undefined ? [] : ['--replicaof', `127.0.0.1 ${of}`])]))
  }
  await server(primary)
  await Promise.all(others.map(port => server(port, primary)))
  for (const port of sentinels) {
    const config = join(dir, `sentinel-${port}.conf`)
    // Sentinels keep what they learn in this file.
    writeFileSync(config, `port ${port}\nbind 127.0.0.1\ndir ${dir}\nsentinel monitor ${NAME} 127.0.0.1 ${primary} 2\nsentinel down-after-milliseconds ${NAME} 1000\nsentinel failover-timeout ${NAME} 5000\nsentinel parallel-syncs ${NAME} 2\n`)
    children.set(port, await run([config, '--sentinel'], /Sentinel ID is/))
  }
  const ask = async <T>(port: number, work: (redis: Redis) => Promise<T>): Promise<T> => {
    const redis = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null })
    redis.on('error', () => {}) // told by connect
    await redis.connect()
    try { return await work(redis) } finally { redis.disconnect() }
  }
  const group: SentinelGroup = {
    url: `sentinel://${sentinels.map(port => `127.0.0.1:${port}`).join(',')}/${NAME}`,
    async primary () { return Number((await ask(sentinels[0] ?? 0, redis => redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[])[1]) },
    kill9: end,
    restart: port => server(port),
    async replicas (count) {
      await eventually(`the primary has ${count} replicas`, async () => {
        const info = await ask(await group.primary(), redis => redis.info('replication')).catch(() => '')
        return (info.match(/^slave\d+:.*state=online/gm)?.length ?? 0) >= count
      })
    }
  }
  await group.replicas(2)
  await eventually('each Sentinel knows the others and both replicas', async () => {
    const known = await Promise.all(sentinels.map(port => ask(port, async redis => {
      const facts = await redis.call('SENTINEL', 'MASTER', NAME) as string[]
      const fact = (name: string): number => Number(facts[facts.indexOf(name) + 1])
      return fact('num-slaves') === 2 && fact('num-other-sentinels') === 2
    }).catch(() => false)))
    return known.every(Boolean)
  })
  return group
}

async function freePorts (count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map(server => once(server, 'listening')))
  const ports = servers.map(server => (server.address() as AddressInfo).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}

async function run (args: readonly string[], isReady = /Ready to accept connections/i): Promise<ChildProcess> {
  const setpriv = '/usr/bin/setpriv' // a test that is killed leaves no server behind
  const command = existsSync(setpriv) ? [setpriv, '--pdeathsig', 'KILL', '--', redisServer ?? ''] : [redisServer ?? '']
  const child = spawn(command[0] ?? '', [...command.slice(1), ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.once('exit', code => reject(new Error(`redis-server ${args.join(' ')} ended with ${code}:\n${said}`)))
    child.stdout.setEncoding('utf8').on('data', (text: string) => { if (said.length < 20_000) said += text; if (isReady.test(said)) resolve() })
  })
  return child
}
