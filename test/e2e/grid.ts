import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { SessionInfo } from '../../client/index.ts'
import { asset } from '../../core/assets.ts'
import { eventually } from './cluster.ts'
import { isAlive, proc, processes, type Proc } from './processes.ts'

/** A process of the grid, as its ready line tells it. */
export interface GridProcess {
  readonly child: ChildProcess
  readonly pid: number
  /** `http://127.0.0.1:PORT` of a head. */
  readonly http: string
  readonly netTcp: string
}

/** Heads and nodes on a Redis that the test has started, each head with a run folder and a machine's name of its own; nothing is left when the test ends. */
export class Grid {
  readonly dir = mkdtempSync(join(tmpdir(), 'soa-grid-'))
  readonly #redis: string
  readonly #children: ChildProcess[] = []
  #log = ''

  constructor (t: Test, redisUrl: string) {
    this.#redis = redisUrl
    t.teardown(() => this.#end())
    t.teardown(() => { if (!t.passing()) t.comment(this.#log.slice(-6000)) })
  }

  /** The last lines that its processes have logged. */
  get log (): string { return this.#log }

  async head (machine: string, flags: readonly string[] = []): Promise<GridProcess> {
    return await this.#start('head', ['--machine', machine, '--run-dir', join(this.dir, machine), '--http', '127.0.0.1:0', '--net-tcp', '127.0.0.1:0', '--session-launcher-port', '0', '--broker-launcher-port', '0', ...flags])
  }

  async node (id: string, cores: number, flags: readonly string[] = []): Promise<GridProcess> {
    return await this.#start('node', ['--node-id', id, '--cores', String(cores), '--run-dir', join(this.dir, id), ...flags])
  }

  /** Registers a service by its file below the package, as a user does. */
  async register (head: GridProcess, file = 'examples/services/CcpEchoSvc/CcpEchoSvc.config'): Promise<void> {
    const child = spawn(process.execPath, [entry, 'service', 'add', asset(file), '--head', head.http], { stdio: ['ignore', 'ignore', 'inherit'] })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`soa service add ended with ${String(code)}`)
  }

  async session (head: GridProcess, id: string): Promise<SessionInfo> {
    const answer = await fetch(`${head.http}/api/v1/sessions/${id}`)
    if (!answer.ok) throw new Error(`GET sessions/${id}: ${answer.status} ${await answer.text()}`)
    return await answer.json() as SessionInfo
  }

  async #start (command: string, flags: readonly string[]): Promise<GridProcess> {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SOA_')))
    const child = spawn(process.execPath, [entry, command, '--redis', this.#redis, ...flags], { stdio: ['ignore', 'pipe', 'pipe'], env })
    this.#children.push(child)
    child.stderr.setEncoding('utf8').on('data', (text: string) => { this.#log = (this.#log + text).slice(-400_000) })
    const ended = once(child, 'exit').then(([code, signal]) => { throw new Error(`soa ${command} ended with ${String(code ?? signal)}:\n${this.#log.slice(-4000)}`) })
    ended.catch(() => {})
    const line = await Promise.race([once(createInterface({ input: child.stdout }), 'line').then(([text]) => String(text)), ended])
    const { http = '', netTcp = '' } = JSON.parse(line) as { http?: string, netTcp?: string }
    return { child, pid: child.pid ?? 0, http, netTcp }
  }

  /** Everything that was started in this grid's folder, workers and hosts among it. */
  #mine (): Proc[] {
    return processes().filter(one => one.pid !== process.pid && (one.environment.includes(this.dir) || one.commandLine.includes(this.dir)))
  }

  async #end (): Promise<void> {
    for (const one of this.#mine()) try { process.kill(one.pid, 'SIGCONT') } catch { /* gone meanwhile */ }
    for (const child of this.#children.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    for (const one of this.#mine()) if (proc(one.pid) !== undefined) process.kill(one.pid, 'SIGKILL') // workers of heads that were killed
    await eventually('nothing of the grid runs', () => !this.#mine().some(isAlive), 10_000)
    rmSync(this.dir, { recursive: true, force: true })
  }
}

const entry = fileURLToPath(new URL('../../cli/entry.js', import.meta.url))
