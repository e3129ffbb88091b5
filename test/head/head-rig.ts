import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { headMain, type HeadOptions, type RunningHead } from '../../broker/head/main.ts'
import { readSettings } from '../../config/read-settings.ts'
import { silent } from '../../core/log.ts'
import { startRedis, type RedisServer } from '../redis-server.ts'

export interface Tap { teardown: (end: () => unknown) => unknown }

export interface Ground {
  redis: RedisServer
  /** A folder of this test's own, gone when it ends. */
  dir: string
  /** What the test's heads start with; `flags` are settings. */
  options: (flags?: Record<string, unknown>, more?: Partial<HeadOptions>) => HeadOptions
  /** A head in this process, closed when the test ends. */
  head: (flags?: Record<string, unknown>, more?: Partial<HeadOptions>) => Promise<RunningHead>
}

/** A Redis, a run folder and registered services. The test ends when no worker is left: one that a killed head had just begun to start ends by itself. */
export async function ground (t: Tap): Promise<Ground> {
  const dir = await mkdtemp(join(tmpdir(), 'soa-head-'))
  t.teardown(async () => {
    const left = setTimeout(() => { for (const pid of workersOf(dir)) { process.stderr.write(`worker ${pid} is left and is killed\n`); process.kill(pid, 'SIGKILL'); process.exitCode = 1 } }, 10_000)
    await until(async () => workersOf(dir), workers => workers.length === 0)
    clearTimeout(left)
    await rm(dir, { recursive: true, force: true })
  })
  const redis = await startRedis(t)
  await mkdir(join(dir, 'services'))
  for (const name of ['CcpEchoSvc', 'Deadly']) await writeFile(join(dir, 'services', `${name}.config`), registration)
  const options: Ground['options'] = (flags = {}, more = {}) => ({
    settings: readSettings({}, { workerClaimTimeoutMs: 3000, storeTimeoutMs: 5000, ...flags }),
    redisUrl: redis.url,
    prefix: 'soa',
    runDir: join(dir, 'run'),
    http: { host: '127.0.0.1', port: 0 },
    services: [join(dir, 'services')],
    log: silent,
    env: process.env,
    workerProgram: fileURLToPath(new URL('./fake-worker.js', import.meta.url)),
    ...more
  })
  return {
    redis,
    dir,
    options,
    async head (flags, more) {
      const head = await headMain(options(flags, more))
      t.teardown(() => head.close())
      return head
    }
  }
}

/** A head in a process of its own; resolves once clients can connect. */
export async function headProcess (t: Tap, options: object): Promise<{ http: string, pid: number, kill9: () => Promise<void> }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./head-process.js', import.meta.url))], { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, SOA_TEST_HEAD: JSON.stringify(options) } })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(createInterface({ input: child.stdout }), 'line') as [string]
  const gone = once(child, 'exit')
  return { http: (JSON.parse(line) as { http: string }).http, pid: child.pid ?? 0, async kill9 () { child.kill('SIGKILL'); await gone } }
}

const registration = `<configuration>
  <microsoft.Hpc.Session.ServiceRegistration>
    <service/>
    <host hostType="Customize" exeFileName="/bin/true"/>
  </microsoft.Hpc.Session.ServiceRegistration>
</configuration>`

/** Processes whose worker spec names this folder. */
export function workersOf (dir: string): number[] {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number).filter(pid => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      return environment.includes('SOA_WORKER_SPEC=') && environment.includes(dir)
    } catch {
      return false // gone meanwhile
    }
  })
}

export interface Answer { status: number, body: Record<string, any>, headers: Headers } // eslint-disable-line @typescript-eslint/no-explicit-any -- JSON of an answer, looked at by the test

/** One call of the REST API. */
export async function call (head: { http: string }, method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(`${head.http}${path.startsWith('/') ? path : `/api/v1/${path}`}`, {
    method, ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) as Answer['body'] : { text } }
}

/** Asks until the answer is as wanted; the test's own time limit is the bound. */
export async function until<T> (ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (wanted(answer)) return answer
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
