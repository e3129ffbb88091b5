import { spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createWriteStream, readdirSync, readFileSync, type WriteStream } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { sleep, type Clock } from '../core/clock.ts'
import { lineLog } from '../core/line-log.ts'
import type { Logger } from '../core/log.ts'
import { Tail } from '../core/tail.ts'
import { tied } from '../core/tied-program.ts'
import type { Guardian } from './guardian.ts'

export interface HostExit {
  readonly code: number | null
  readonly signal: string | null
  /** The last lines that it wrote there; of stdout, if it wrote nothing there. */
  readonly stderr: string
  /** The process never was. */
  readonly error?: Error | undefined
}

export interface HostCommand {
  readonly command: string
  readonly args: readonly string[]
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** A copy of its stderr is appended to this file; empty: its lines go to the node manager's log. */
  readonly stderrFile: string
  /** It waits to be told its environment and folder (`assign`), by a pipe at descriptor 3. */
  readonly isWarm?: boolean | undefined
}

interface HostNeeds { readonly guardian: Guardian, readonly clock: Clock, readonly log: Logger }

/** A host that prints without end is read in breaths: about 64 KiB each of these, so that it costs the node manager next to nothing. */
const BREATH_MS = 10
const LARGE_CHUNK = 16_384
/** Longest wait for a killed group to be gone: what hangs in the kernel is left to it. */
const GROUP_GONE_MS = 2000
/** Dead processes wait for whoever is their parent now, which may take its time; from here on it is looked whether only such are left. */
const ZOMBIES_ONLY_MS = 10

/** One service host: leader of its own session and process group, killed when this process dies. Nothing of its group outlives `ended`. */
export class HostProcess {
  readonly ended: Promise<HostExit>
  /** Warm hosts: resolves when all but the service is loaded. */
  readonly warmed: Promise<void>
  readonly #child: ChildProcess
  readonly #needs: HostNeeds
  readonly #stderr = new Tail()
  readonly #stdout = new Tail()
  /** In the environment of the host and of whatever it starts. */
  readonly #mark = `SOA_HOST_ID=${randomUUID()}`
  /** Where its stderr goes beside the tail: a warm host's has no owner yet. */
  #say: ((chunk: Buffer) => void) | undefined
  #copy: WriteStream | undefined
  #isOver = false

  constructor (host: HostCommand, needs: HostNeeds) {
    this.#needs = needs
    const { command, args } = tied(host.command, host.args)
    this.#child = spawn(command, args, { env: { ...host.env, SOA_HOST_ID: this.#id }, cwd: host.cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe', ...host.isWarm === true ? ['pipe' as const] : []] })
    if (this.#child.pid !== undefined) needs.guardian.add(this.#child.pid, this.#mark)
    this.#sendStderr(host.stderrFile, needs.log)
    this.#read(this.#child.stdout, chunk => { this.#stdout.keep(chunk) })
    this.#read(this.#child.stderr, chunk => {
      this.#copy?.write(chunk)
      this.#say?.(chunk)
      this.#stderr.keep(chunk)
    })
    this.#child.stderr?.once('close', () => this.#copy?.end())
    const line = this.#child.stdio[3]
    this.warmed = line instanceof Socket ? new Promise(resolve => { line.once('data', () => resolve()).on('error', () => { /* it is gone: `ended` says so */ }) }) : Promise.resolve()
    this.ended = this.#end()
  }

  /** What a warm host waits for. Afterwards it is as if it had been started with these. */
  assign (host: Pick<HostCommand, 'env' | 'cwd' | 'stderrFile'>, log: Logger): void {
    const line = this.#child.stdio[3]
    if (!(line instanceof Socket)) throw new Error('only a warm host can be assigned')
    this.#sendStderr(host.stderrFile, log)
    line.end(`${JSON.stringify({ env: { ...host.env, SOA_HOST_ID: this.#id }, cwd: host.cwd })}\n`)
  }

  get pid (): number | undefined { return this.#child.pid }

  get #id (): string { return this.#mark.slice('SOA_HOST_ID='.length) }

  /** SIGTERM to the whole group. */
  terminate (): void { this.#signal('SIGTERM') }
  /** SIGKILL to the whole group. */
  kill (): void { this.#signal('SIGKILL') }

  #signal (signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child
    if (pid === undefined || this.#isOver) return false
    try {
      return process.kill(-pid, signal)
    } catch (error) {
      // ESRCH: all gone. EPERM: nothing of ours is left in it.
      if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      return false
    }
  }

  async #end (): Promise<HostExit> {
    const child = this.#child
    const closed = new Promise<void>(resolve => { child.once('close', () => resolve()) })
    const { code, signal, error } = await new Promise<{ code: number | null, signal: string | null, error?: Error }>(resolve => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
      child.once('error', error => resolve({ code: null, signal: null, error }))
    })
    if (child.pid !== undefined) {
      this.kill() // children that it left behind
      // Its last words may still be in the pipes; the pipes close when the last one of the group is gone.
      for (const stream of [child.stdout, child.stderr]) stream?.resume()
      const stop = new AbortController()
      await Promise.race([closed, sleep(this.#needs.clock, GROUP_GONE_MS, stop.signal).catch(() => {})])
      stop.abort()
      await this.#groupGone()
      killMarked(this.#mark)
      this.#needs.guardian.remove(child.pid)
    }
    this.#isOver = true
    for (const stream of child.stdio) stream?.destroy()
    return { code, signal, stderr: this.#stderr.text === '' ? this.#stdout.text : this.#stderr.text, error }
  }

  async #groupGone (): Promise<void> {
    for (let waited = 0, step = 2; this.#signal(0); waited += step, step = Math.min(step * 2, 100)) {
      if (waited > ZOMBIES_ONLY_MS && !hasLiving(this.#child.pid)) return
      if (waited > GROUP_GONE_MS) { this.#needs.log.warn({ pid: this.#child.pid }, 'processes of a killed host are still there'); return }
      await sleep(this.#needs.clock, step)
    }
  }

  #sendStderr (file: string, log: Logger): void {
    this.#say = file === '' ? lineLog({ clock: this.#needs.clock, log, who: 'host' }) : undefined
    this.#copy = file === '' ? undefined : createWriteStream(file, { flags: 'a' })
    this.#copy?.on('error', err => log.warn({ err, file }, 'stderr of the host is not kept (stdError)'))
  }

  #read (stream: Readable | null, take: (chunk: Buffer) => void): void {
    if (stream === null) return
    stream.on('error', err => this.#needs.log.debug({ err }, 'output of a host'))
    stream.on('data', (chunk: Buffer) => {
      take(chunk)
      if (chunk.length < LARGE_CHUNK) return
      stream.pause()
      this.#needs.clock.after(BREATH_MS, () => { if (!stream.destroyed) stream.resume() })
    })
  }
}

/** SIGKILL to every process with this in its environment: a child that left the process group (setsid) kept that. */
function killMarked (mark: string): void {
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark)) process.kill(Number(pid), 'SIGKILL')
    } catch { /* gone by now, or somebody else's */ }
  }
}

/** Whether a process group has a member that is not a zombie. */
function hasLiving (group: number | undefined): boolean {
  return readdirSync('/proc').some(pid => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const [state = '', , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return Number(pgrp) === group && state !== 'Z' && state !== 'X'
    } catch {
      return false // it is gone by now
    }
  })
}
