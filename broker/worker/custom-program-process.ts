import { spawn, type ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { sleep, within, type Clock } from '../../core/clock.ts'
import { lineLog } from '../../core/line-log.ts'
import type { Logger } from '../../core/log.ts'
import { Tail } from '../../core/tail.ts'
import { tied } from '../../core/tied-program.ts'

export interface ProgramCommand {
  readonly command: string
  readonly args: readonly string[]
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

export interface ProgramExit {
  /** `exit code 3`, `signal SIGSEGV`, or why it never was. */
  readonly how: string
  readonly isClean: boolean
}

/** A program that prints without end is read in breaths: about 64 KiB each of these. */
const BREATH_MS = 10
const LARGE_CHUNK = 16_384
/** What it wrote before it answered may lie in the pipe still: read until nothing came for a while, in all not longer than ten of them. */
const QUIET_MS = 20
/** Its pipes close when the last process that it left behind is gone. */
const PIPES_CLOSE_MS = 1000
/**
 * The parent-death signal reaches the program alone. So a shell beside it waits for a line: when there comes none, this process is gone, however it died, and whatever
 * the program has started goes too.
 */
const GUARD = 'trap "" HUP INT TERM QUIT; read -r _ || kill -s KILL -- "-$1"'

/** One run of a custom broker's program: leader of its own process group, which is gone when the program ends, and when this process does. */
export class ProgramProcess {
  readonly ended: Promise<ProgramExit>
  readonly #child: ChildProcess
  readonly #guard: ChildProcess | undefined
  readonly #clock: Clock
  readonly #stderr = new Tail()
  readonly #stdout = new Tail()
  #bytesRead = 0
  #isOver = false

  constructor ({ command, args, env, cwd }: ProgramCommand, { clock, log }: { clock: Clock, log: Logger }) {
    this.#clock = clock
    const start = tied(command, args)
    this.#child = spawn(start.command, start.args, { env, cwd, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#guard = this.#child.pid === undefined ? undefined : guardOf(this.#child.pid)
    const say = lineLog({ clock, log, who: 'custom broker' })
    this.#read(this.#child.stdout, chunk => { say(chunk); this.#stdout.keep(chunk) })
    this.#read(this.#child.stderr, chunk => { say(chunk); this.#stderr.keep(chunk) })
    this.ended = this.#end()
  }

  get pid (): number | undefined { return this.#child.pid }

  /** What it wrote last to stderr; to stdout, if it wrote nothing there. */
  get lastLines (): string { return (this.#stderr.text === '' ? this.#stdout.text : this.#stderr.text).trim() }

  /** Resolves when what it has written until now is in `lastLines`, unless it writes on and on. */
  async caughtUp (): Promise<void> {
    for (let looks = 0, seen = -1; looks < 10 && seen !== this.#bytesRead && !this.#isOver; looks++) {
      seen = this.#bytesRead
      await sleep(this.#clock, QUIET_MS)
    }
  }

  /** SIGTERM to the group, and SIGKILL after `graceMs`. Resolves when it has ended. */
  async stop (graceMs: number): Promise<ProgramExit> {
    this.#signal(graceMs > 0 ? 'SIGTERM' : 'SIGKILL')
    const kill = graceMs > 0 ? this.#clock.after(graceMs, () => { this.#signal('SIGKILL') }) : () => {}
    try { return await this.ended } finally { kill() }
  }

  #signal (signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined || this.#isOver) return
    try {
      process.kill(-pid, signal)
    } catch (error) {
      // ESRCH: all gone. EPERM: nothing of ours is left in it.
      if (!['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
  }

  async #end (): Promise<ProgramExit> {
    const child = this.#child
    const closed = new Promise<void>(resolve => { child.once('close', () => resolve()) })
    const exit = await new Promise<ProgramExit>(resolve => {
      child.once('exit', (code, signal) => resolve({ how: signal === null ? `exit code ${code}` : `signal ${signal}`, isClean: code === 0 }))
      child.once('error', error => resolve({ how: error.message, isClean: false }))
    })
    if (child.pid !== undefined) {
      this.#signal('SIGKILL') // what it left behind
      this.#guard?.stdin?.end('over\n')
      // Its last words may still be in the pipes.
      for (const stream of [child.stdout, child.stderr]) stream?.resume()
      await within(this.#clock, PIPES_CLOSE_MS, closed, () => new Error('a process of another group has them open')).catch(() => {})
    }
    this.#isOver = true
    for (const stream of child.stdio) stream?.destroy()
    return exit
  }

  #read (stream: Readable | null, take: (chunk: Buffer) => void): void {
    if (stream === null) return
    stream.on('error', () => { /* it is gone: `ended` says so */ })
    stream.on('data', (chunk: Buffer) => {
      take(chunk)
      this.#bytesRead += chunk.length
      if (chunk.length < LARGE_CHUNK) return
      stream.pause()
      void sleep(this.#clock, BREATH_MS).then(() => { if (!stream.destroyed) stream.resume() })
    })
  }
}

function guardOf (pid: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', String(pid)], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env: {}, cwd: '/' })
  guard.stdin?.on('error', () => { /* it was killed: the parent-death signal is left */ })
  guard.on('error', () => { /* likewise: no process could be made */ })
  guard.unref()
  return guard
}
