import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Clock } from '../../core/clock.ts'

/** What to run. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Ended { readonly code: number | null, readonly signal: string | null }

export const endedText = ({ code, signal }: Ended): string => signal === null ? `exit code ${code}` : `signal ${signal}`

/**
 * Arguments for a program that dies with its parent. `setpriv --pdeathsig` has the kernel send SIGKILL when the parent is gone, even by kill -9; a parent that
 * died before the kernel was told is seen by comparing the parent's number afterwards. A program that makes new sessions is not followed: broker
 * workers, which the head starts to outlive it, are not touched.
 */
export function tied (program: Program, parentPid: number): Program {
  const script = '[ "$PPID" = "$1" ] || exit 70; shift; exec "$@"'
  return { ...program, command: 'setpriv', args: ['--pdeathsig', 'KILL', '/bin/sh', '-c', script, 'sh', String(parentPid), program.command, ...program.args] }
}

/** One process of `soa up`, in a process group of its own: Ctrl-C in the terminal reaches `soa up` alone, which stops them in order. */
export class Child {
  readonly pid: number
  /** Never rejects. */
  readonly ended: Promise<Ended>
  /** The first line on stdout, by the convention of `soa head` and `soa node` a JSON object; never resolves if it says nothing. */
  readonly firstLine: Promise<string>
  readonly #process: ChildProcess

  private constructor (process: ChildProcess, pid: number, forward: (line: string) => void) {
    this.#process = process
    this.pid = pid
    this.ended = new Promise(resolve => process.once('exit', (code, signal) => resolve({ code, signal })))
    this.firstLine = new Promise(resolve => {
      if (process.stdout === null) return
      let isFirst = true
      createInterface({ input: process.stdout }).on('line', line => {
        if (isFirst) { isFirst = false; resolve(line) } else forward(line)
      })
    })
  }

  /** Resolves once the process exists; rejects when the program cannot be started. stderr is ours; lines on stdout after the first go to `forward`. */
  static start (program: Program, forward: (line: string) => void): Promise<Child> {
    const { command, args, pid } = { pid: process.pid, ...tied(program, process.pid) }
    const child = spawn(command, args, { detached: true, stdio: ['ignore', 'pipe', 2], env: program.env as NodeJS.ProcessEnv })
    return new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('spawn', () => { child.off('error', reject); child.on('error', () => {}); resolve(new Child(child, child.pid ?? pid, forward)) })
    })
  }

  /** SIGTERM to the group, and SIGKILL after `graceMs` or when `hurry` aborts. Resolves when the process has ended. */
  async stop (clock: Clock, graceMs: number, hurry: AbortSignal): Promise<Ended> {
    this.#signal('SIGTERM')
    const kill = (): void => this.#signal('SIGKILL')
    const cancel = clock.after(graceMs, kill)
    if (hurry.aborted) kill()
    hurry.addEventListener('abort', kill, { once: true })
    try {
      return await this.ended
    } finally {
      cancel()
      hurry.removeEventListener('abort', kill)
      this.#signal('SIGKILL') // whatever of its group is left
    }
  }

  /** At once, the group and all. */
  kill (): void { this.#signal('SIGKILL') }

  #signal (name: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, name)
    } catch {
      // ESRCH: the group is gone, which is what was wanted; or it does not exist yet. Never both: a second SIGTERM means "at once".
      if (this.#process.exitCode === null && this.#process.signalCode === null) this.#process.kill(name)
    }
  }
}
