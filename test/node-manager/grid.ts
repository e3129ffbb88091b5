import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { sleep, systemClock as clock } from '../../core/clock.ts'
import { silent as log } from '../../core/log.ts'
import { Placement } from '../../broker/head/placement.ts'
import type { Demand, TaskInfo } from '../../store/placement-store.ts'
import { RedisDemandBoard, RedisPlacement, RedisTaskEvents } from '../../store/redis-placement.ts'
import { RedisServiceRegistry } from '../../store/redis-services.ts'
import { closeRedis, openRedis, type Redis } from '../../store/redis.ts'
import { startRedis, type RedisServer } from '../redis-server.ts'

const NODE_MAIN = fileURLToPath(new URL('../../node-manager/main.js', import.meta.url))

export interface Node { readonly id: string, readonly child: ChildProcess, readonly pid: number, readonly runDir: string, exited: Promise<number | null>, errors: () => string }

/** A grid for tests: a Redis, a head that makes passes, node managers as processes. Everything is gone when the test ends. */
export interface Grid {
  readonly server: RedisServer
  readonly redis: Redis
  readonly store: RedisPlacement
  readonly board: RedisDemandBoard
  readonly services: RedisServiceRegistry
  readonly dir: string
  /** Registers a service whose host is this shell script. */
  script (service: string, text: string, attributes?: string): Promise<void>
  node (id: string, cores?: number, env?: Record<string, string>): Promise<Node>
  demand (sessionId: string, service: string, more?: Partial<Demand>): Promise<void>
  /** Follows the session from now on until a task of it fits. */
  until (sessionId: string, fits: (task: TaskInfo) => boolean, cursor?: string): Promise<TaskInfo>
  tasks (sessionId: string): Promise<TaskInfo[]>
}

/** A host in the shell: a child of its own, then a listener. It writes its environment to $DUMP if that is set. */
export const LISTENER = `#!/bin/sh
sleep 1000 &
[ -z "$DUMP" ] || env > "$DUMP"
exec "$NODE" -e 'const u = new URL(process.env.SOA_LISTEN_URL); require("node:http").createServer((q, s) => s.end(process.env.CCP_TASKINSTANCEID)).listen(u.port, u.hostname)'
`

export async function openGrid (t: Test, limits: ConstructorParameters<typeof RedisPlacement>[0]['limits'] = {}): Promise<Grid> {
  const dir = await mkdtemp(join(tmpdir(), 'soa-grid-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const server = await startRedis(t)
  const redis = await openRedis(server.url, { log, timeoutMs: 5000 })
  const blocking = await openRedis(server.url, { log, kind: 'blocking' })
  const needs = { redis, prefix: 'grid', log, timeoutMs: 10_000 }
  const store = new RedisPlacement({ ...needs, limits })
  const events = new RedisTaskEvents({ ...needs, blocking })
  const services = new RedisServiceRegistry(needs)
  const board = new RedisDemandBoard(needs)
  const stop = new AbortController()
  const placement = new Placement({ store, clock, log })
  const head = (async () => {
    while (!stop.signal.aborted) {
      await placement.pass('sweep').catch(() => { /* Redis is away: on purpose, in some tests */ })
      await sleep(clock, 50, stop.signal).catch(() => {})
    }
  })()
  t.teardown(async () => { stop.abort(); await head; await events.close(); await closeRedis(blocking); await closeRedis(redis) })
  const follow = async (sessionId: string, fits: (task: TaskInfo) => boolean, cursor: string): Promise<TaskInfo> => {
    for await (const { tasks } of events.follow(sessionId, cursor, stop.signal)) {
      const found = tasks.find(fits)
      if (found !== undefined) return found
    }
    throw new Error('the test is over')
  }
  return {
    server,
    redis,
    store,
    board,
    services,
    dir,
    async script (service, text, attributes = '') {
      const path = join(dir, `${service}.sh`)
      await writeFile(path, text)
      await chmod(path, 0o700)
      const config = `<configuration><microsoft.Hpc.Session.ServiceRegistration><service assembly="" ${attributes}><environmentVariables>
        <add name="NODE" value="${process.execPath}"/><add name="FROM_SERVICE" value="yes"/></environmentVariables></service>
        <host hostType="Customize" exeFileName="${path}"/></microsoft.Hpc.Session.ServiceRegistration></configuration>`
      await services.put({ name: service, config, file: join(dir, `${service}.config`), documents: {}, addedAt: new Date().toISOString() })
    },
    async node (id, cores = 2, env = {}) {
      const child = spawn(process.execPath, [NODE_MAIN], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          ...env, PATH: process.env['PATH'], HOME: '/', SOA_REDIS: server.url, SOA_REDIS_PREFIX: 'grid', SOA_NODE_ID: id, SOA_CORES: String(cores), SOA_RUN_DIR: dir, SOA_LOG_LEVEL: 'info', REDIS_PASSWORD: 'hunter2'
        }
      })
      let said = ''
      child.stderr.on('data', (chunk: Buffer) => { said = (said + chunk.toString()).slice(-20_000) })
      const exited = once(child, 'exit').then(([code]) => code as number | null)
      t.teardown(async () => { child.kill('SIGKILL'); child.kill('SIGCONT'); await exited })
      const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), exited.then(() => { throw new Error(said) })]) as [string]
      const ready = JSON.parse(line) as { ready: boolean, node: string }
      t.match(ready, { ready: true, node: id })
      return { id, child, pid: child.pid ?? -1, runDir: join(dir, `node-${child.pid}`), exited, errors: () => said }
    },
    async demand (sessionId, service, more = {}) {
      await board.put({
        sessionId, service, target: 1, min: 1, priority: 2000, createdAt: '2026-01-01T00:00:00.000Z', coresPerUnit: 1, environment: {}, exclude: [], labels: {}, cancelGraceMs: 1000, ...more
      })
    },
    until: async (sessionId, fits, cursor = '0-0') => await follow(sessionId, fits, cursor),
    tasks: async sessionId => (await events.snapshot(sessionId)).tasks
  }
}

/** Pids of living processes that run for this session, hosts and what they started. */
export async function processesOf (sessionId: string): Promise<number[]> {
  const found: number[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const env = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (env.split('\0').includes(`CCP_JOBID=${sessionId}`)) found.push(Number(pid))
  }
  return found
}

/** Resolves when it holds; the test's own time limit bounds it. */
export async function eventually (holds: () => Promise<boolean> | boolean): Promise<void> {
  while (!await holds()) await sleep(clock, 20)
}
