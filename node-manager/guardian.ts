import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { asset } from '../core/assets.ts'
import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'

const RESPAWN_MS = 200

/**
 * A small process that kills all hosts when this one is gone (guardian.sh). It has a process group of its own, so that whoever kills ours does not kill it
 * first; when it dies all the same, another one takes its place and is told everything again.
 */
export class Guardian {
  readonly #needs: { readonly clock: Clock, readonly log: Logger }
  readonly #hosts = new Map<number, { readonly start: string, readonly mark: string }>()
  #child: ChildProcess | undefined
  #isClosed = false

  constructor (needs: { readonly clock: Clock, readonly log: Logger }) { this.#needs = needs }

  get pid (): number | undefined { return this.#child?.pid }

  start (): void {
    if (this.#isClosed) return
    const child = spawn('/bin/sh', [asset('node-manager/guardian.sh')], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin' }, cwd: '/' })
    this.#child = child
    child.unref()
    child.stdin?.on('error', () => { /* it is gone: its exit says so */ })
    child.once('error', err => this.#lost(err))
    child.once('exit', () => this.#lost())
    for (const [pid, { start, mark }] of this.#hosts) this.#say(`+ ${pid} ${start} ${mark}`)
  }

  /** `mark`: NAME=VALUE in the environment of the host and of all that it starts, so that what leaves its process group is found too. */
  add (pid: number, mark: string): void {
    const start = startTime(pid)
    if (start === undefined) return // it is gone already
    this.#hosts.set(pid, { start, mark })
    this.#say(`+ ${pid} ${start} ${mark}`)
  }

  /** Its whole process group is gone. */
  remove (pid: number): void {
    if (this.#hosts.delete(pid)) this.#say(`- ${pid}`)
  }

  /** Ends it; hosts that are still listed are killed by it. */
  close (): void {
    this.#isClosed = true
    this.#child?.stdin?.end()
  }

  #say (line: string): void { this.#child?.stdin?.write(`${line}\n`) }

  #lost (err?: Error): void {
    this.#child = undefined
    if (this.#isClosed) return
    this.#needs.log.warn({ err, hosts: this.#hosts.size }, 'guardian is gone, another one is started')
    this.#needs.clock.after(RESPAWN_MS, () => this.start(), { unref: true })
  }
}

/** Field 22 of /proc/<pid>/stat: with the pid it names a process for good. Undefined: no such process. */
export function startTime (pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
