import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import type { Test } from 'tap'
import { asset } from '../../core/assets.ts'
import { sleep, systemClock } from '../../core/clock.ts'
import type { SessionInfo } from '../../client/index.ts'
import { familyOf, isAlive, proc, processes, type Proc } from './processes.ts'

export type Role = 'redis' | 'head' | 'node' | 'worker' | 'host'

/** How each process of a grid is known among the family of `soa up`, by its command line. Service hosts are found by the session that they serve. */
const COMMAND: Readonly<Record<'redis' | 'head' | 'node', RegExp>> = { redis: /redis-server/, head: /entry\.js head\b/, node: /entry\.js node\b/ }

/** What is waited for here comes within seconds; on a machine with much else to do, later. */
const DEADLINE_MS = 60_000
/** Between two looks at a counter. */
const LOOK_MS = 5

interface ReadyLine { ready: boolean, http: string, netTcp: string | null, sessionLauncher: string | null, redis: string, pids: Record<string, number> }

export interface ClusterOptions {
  /** Slots of the node; default 4. */
  readonly cores?: number
  /** Folder of registration files below the package; default `examples/services`. */
  readonly services?: string
  /** More flags of `soa up`. */
  readonly flags?: readonly string[]
}

/** Waits until `look` gives something; fails the test's promise with `what` after a minute. */
export async function eventually<T> (what: string, look: () => T | undefined | false | Promise<T | undefined | false>, deadlineMs = DEADLINE_MS): Promise<T> {
  for (const until = Date.now() + deadlineMs; ;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (Date.now() > until) throw new Error(`not within ${deadlineMs} ms: ${what}`)
    await sleep(systemClock, LOOK_MS)
  }
}

/** A whole grid on this machine: `soa up` from the compiled tree that the test lies in, with a data folder and ports of its own. */
export class Cluster {
  readonly dataDir: string
  /** URL of the head; the same after each restart. */
  head = ''
  /** `net.tcp://127.0.0.1:PORT`, all of net.tcp on this one port; the same after each restart. */
  netTcp = ''
  redisSocket = ''
  readonly #options: ClusterOptions
  #up: ChildProcess | undefined
  #log = ''
  /** Everything that was ever seen running, so that at the end none of it is left, whoever its parent became. */
  readonly #seen = new Map<string, Proc>()
  readonly #sessions = new Set<string>()

  private constructor (dataDir: string, options: ClusterOptions) {
    this.dataDir = dataDir
    this.#options = options
  }

  /** Starts one that the test's end stops; the end also fails the test when a process, a socket or a lock is left. */
  static async start (t: Test, options: ClusterOptions = {}): Promise<Cluster> {
    const cluster = new Cluster(mkdtempSync(join(tmpdir(), 'soa-e2e-')), options)
    t.teardown(async () => {
      const left = await cluster.#end()
      if (left.length > 0) throw new Error(`left behind: ${left.join('; ')}`)
    })
    await cluster.up()
    return cluster
  }

  get upPid (): number { return this.#up?.pid ?? 0 }

  /** Starts `soa up`, for the first time or again on the same data folder and port. Resolves when clients can connect. */
  async up (): Promise<void> {
    const entry = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))
    const { cores = 4, services = 'examples/services', flags = [] } = this.#options
    const http = this.head === '' ? '127.0.0.1:0' : new URL(this.head).host
    const netTcp = this.netTcp === '' ? '127.0.0.1:0' : this.netTcp.replace('net.tcp://', '')
    const child = spawn(process.execPath, [entry, 'up', '--http', http, '--net-tcp', netTcp, '--session-launcher-port', '0', '--broker-launcher-port', '0', '--data-dir', this.dataDir, '--cores', String(cores), '--services', asset(services), ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env: withoutSettings(process.env) })
    this.#up = child
    child.stderr.setEncoding('utf8').on('data', (text: string) => { this.#log = (this.#log + text).slice(-200_000) })
    const lines = createInterface({ input: child.stdout })
    const ended = once(child, 'exit').then(([code, signal]) => { throw new Error(`soa up ended with ${String(code ?? signal)}:\n${this.#log.slice(-4000)}`) })
    ended.catch(() => {}) // heard only while we wait for the ready line
    const line = await Promise.race([once(lines, 'line').then(([text]) => String(text)), ended])
    const ready = JSON.parse(line) as ReadyLine
    if (!ready.ready) throw new Error(`no ready line: ${line}`)
    this.head = ready.http
    this.netTcp = ready.netTcp ?? ''
    this.redisSocket = ready.redis
    this.look()
  }

  /** The last lines that the grid's processes have logged. */
  get log (): string { return this.#log }

  /** Notes what runs now. */
  look (): Proc[] {
    const all = processes()
    const mine = new Map(familyOf(this.upPid, all).map(one => [one.pid, one]))
    for (const one of all) {
      const isMine = one.environment.includes(this.dataDir) || one.commandLine.includes(this.dataDir) || [...this.#sessions].some(id => one.environment.includes(`CCP_JOBID=${id}\0`))
      if (isMine && one.pid !== process.pid) for (const member of familyOf(one.pid, all)) mine.set(member.pid, member)
    }
    for (const one of mine.values()) this.#seen.set(`${one.pid} ${one.startTime}`, one)
    return [...mine.values()]
  }

  /** The process in this role now; of a session's worker or service hosts, the first. Waits for one that is being started again. */
  async pid (role: Role, session?: string): Promise<number> {
    return await eventually(`a ${role} runs`, async () => {
      this.look()
      if (role === 'worker' || role === 'host') {
        const info = await this.session(session ?? '').catch(() => undefined)
        const pid = role === 'worker' ? info?.brokerPid : info?.tasks.find(task => task.state === 'Running' && task.pid !== undefined)?.pid
        return pid !== undefined && pid !== null && proc(pid) ? pid : undefined
      }
      return familyOf(this.upPid).find(one => COMMAND[role].test(one.commandLine) && !one.commandLine.startsWith('setpriv') && !one.commandLine.startsWith('/bin/sh'))?.pid
    })
  }

  /** kill -9 of the process in this role. Resolves to its number once it is gone. */
  async kill (role: Role, session?: string): Promise<number> {
    const pid = await this.pid(role, session)
    return await killNow(pid)
  }

  /** kill -9 of `soa up` itself; resolves when it and all that must die with it are gone. */
  async killUp (): Promise<void> {
    const family = familyOf(this.upPid)
    await killNow(this.upPid)
    const tied = family.filter(one => /redis-server|entry\.js (head|node)\b/.test(one.commandLine))
    await eventually('head, node and redis-server have died with soa up', () => tied.every(one => !isAlive(one)))
  }

  /** The session object, from REST. */
  async session (id: string): Promise<SessionInfo> {
    this.#sessions.add(id)
    const answer = await fetch(`${this.head}/api/v1/sessions/${id}`)
    if (!answer.ok) throw new Error(`GET sessions/${id}: ${answer.status} ${await answer.text()}`)
    return await answer.json() as SessionInfo
  }

  /** All keys in the grid's Redis. */
  async keys (): Promise<string[]> {
    const redis = new Redis({ path: this.redisSocket, lazyConnect: true, retryStrategy: () => null })
    await redis.connect()
    try {
      return (await redis.keys('*')).sort()
    } finally {
      redis.disconnect()
    }
  }

  /** Sockets in the run folder. */
  sockets (): string[] { return readdirSync(join(this.dataDir, 'run')).filter(name => !name.endsWith('.pid')).sort() }

  /** SIGTERM, and what is left when it has ended. */
  async #end (): Promise<string[]> {
    this.look()
    const left: string[] = []
    const up = this.#up
    if (up?.pid !== undefined && up.exitCode === null && up.signalCode === null) {
      up.kill('SIGTERM')
      const [code] = await once(up, 'exit')
      if (code !== 0) left.push(`soa up ended with ${String(code)}: ${this.#log.slice(-2000)}`)
    }
    this.look()
    // Killed children of a killed parent may take a moment to be gone; a broker worker that lost its head gives up by itself only after half a minute.
    await eventually('nothing of the grid runs', () => ![...this.#seen.values()].some(isAlive), 10_000).catch(() => {})
    for (const one of this.#seen.values()) {
      if (!isAlive(one)) continue
      left.push(`process ${one.pid}: ${one.commandLine}`)
      process.kill(one.pid, 'SIGKILL')
    }
    const run = join(this.dataDir, 'run')
    try { left.push(...readdirSync(run, { withFileTypes: true }).filter(entry => entry.isSocket()).map(entry => `socket ${join(run, entry.name)}`)) } catch { /* the folder itself is gone, which is fine */ }
    rmSync(this.dataDir, { recursive: true, force: true })
    return left
  }
}

async function killNow (pid: number): Promise<number> {
  const victim = proc(pid)
  if (!victim) throw new Error(`process ${pid} is not there to be killed`)
  process.kill(pid, 'SIGKILL')
  await eventually(`process ${pid} is gone`, () => !isAlive(victim))
  return pid
}

/** A developer's own SOA_ variables must not reach a grid under test. */
function withoutSettings (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('SOA_')))
}
