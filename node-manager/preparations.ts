import { sleep, type Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import { machine, type Machine } from '../core/machine.ts'
import type { NodeNews } from '../store/redis-placement-node.ts'
import type { HostCommand, HostExit, HostProcess } from './host-process.ts'
import { PREPARATION } from './preparation.states.ts'

/** What a service's registration wants to be done on a node before the first and after the last task of a session there; empty commands: nothing. */
export interface NodeCommands {
  readonly prepare: string
  readonly release: string
  readonly timeoutMs: number
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** The node could not be prepared: no host of this session can start here. */
export class NodeUnfit extends Error {
  override readonly name = 'NodeUnfit'
  readonly exit: Pick<HostExit, 'code' | 'signal' | 'stderr'>

  constructor (why: string, { code, signal, stderr }: HostExit) {
    super(why)
    this.exit = { code, signal, stderr }
  }
}

interface Needs {
  readonly run: (command: HostCommand) => Pick<HostProcess, 'ended' | 'terminate' | 'kill'>
  readonly clock: Clock
  readonly log: Logger
  /** There is news for the table, or a session is done with here. */
  readonly changed: () => void
}

interface Preparation {
  readonly sessionId: string
  readonly commands: NodeCommands
  readonly life: Machine<typeof PREPARATION>
  /** Tasks that wait for it to be prepared. */
  waiting: number
  /** Ends what runs for it now. */
  readonly stop: AbortController
  /** Of what runs for it now; rejects only with NodeUnfit. */
  done: Promise<void>
}

/** Between SIGTERM and SIGKILL for a command that is late or not wanted any more. */
const KILL_AFTER_MS = 2000
/** A node that leaves does not wait longer than this for its sessions' releases. */
const LEAVE_MS = 10_000

/**
 * prepareNodeCommandLine and releaseNodeCommandLine: each once per session on this node ([broker-behaviour] 6.2). The first task waits for the one, with all
 * that come beside it; the other runs when the session is over, or the node drained, and its last task here has ended. This memory is the node manager's own:
 * one that is killed releases nothing, and the next one prepares again.
 */
export class Preparations {
  readonly #needs: Needs
  readonly #all = new Map<string, Preparation>()
  #news: NodeNews | undefined

  constructor (needs: Needs) { this.#needs = needs }

  /** Sessions that something was done for here. */
  get sessions (): string[] { return [...this.#all.keys()] }
  get news (): NodeNews | undefined { return this.#news }

  /**
   * Resolves when the node is prepared for the session.
   * @param signal the task is not wanted any more; the command goes on as long as another task waits for it
   * @throws NodeUnfit; the signal's reason
   */
  async prepare (sessionId: string, commands: NodeCommands, signal: AbortSignal): Promise<void> {
    if (commands.prepare === '' && commands.release === '') return
    signal.throwIfAborted()
    let found = this.#all.get(sessionId)
    while (found?.life.state === 'Releasing') {
      await unless(signal, found.done)
      found = this.#all.get(sessionId)
    }
    found ??= this.#begin(sessionId, commands)
    if (found.life.state !== 'Preparing') return
    found.waiting++
    try {
      await unless(signal, found.done)
    } finally {
      if (--found.waiting === 0 && found.life.fire('unwanted')) found.stop.abort()
    }
  }

  #begin (sessionId: string, commands: NodeCommands): Preparation {
    const { log } = this.#needs
    const life = machine(PREPARATION, 'Preparing', (from, event, to) => {
      log.info({ sessionId, from, event, to }, 'node preparation')
      if (to === 'Gone' && this.#all.get(sessionId) === begun) this.#all.delete(sessionId)
    })
    const begun: Preparation = { sessionId, commands, life, waiting: 0, stop: new AbortController(), done: Promise.resolve() }
    this.#all.set(sessionId, begun)
    begun.done = this.#run(commands.prepare, begun).then(exit => {
      const why = failure('prepareNodeCommandLine', exit, commands.timeoutMs)
      if (why === undefined) { life.fire('prepared'); return }
      if (life.fire('failed')) log.warn({ sessionId, why, stderr: exit.stderr }, 'node not prepared')
      throw new NodeUnfit(why, exit)
    })
    begun.done.catch(() => { /* told to those who wait; there may be none left */ })
    return begun
  }

  /** @param over sessions that want nothing any more @param busy sessions that have tasks here */
  settle (over: readonly string[], isDraining: boolean, busy: ReadonlySet<string>): void {
    for (const sessionId of isDraining ? this.sessions : over) {
      const found = this.#all.get(sessionId)
      if (found !== undefined && !busy.has(sessionId)) this.#release(found)
    }
  }

  #release (found: Preparation): void {
    const { log, clock, changed } = this.#needs
    const { sessionId, commands, life } = found
    if (!life.fire('over')) return
    found.done = this.#run(commands.release, found).then(exit => {
      const why = failure('releaseNodeCommandLine', exit, commands.timeoutMs)
      if (why !== undefined) {
        log.warn({ sessionId, why, stderr: exit.stderr }, 'node not released')
        this.#news = { releaseFailure: { sessionId, at: new Date(clock.now()).toISOString(), why, stderr: exit.stderr } }
      }
      life.fire('released')
      changed()
    })
  }

  /** No task runs here any more: what was prepared is released, for a moment at most. */
  async close (): Promise<void> {
    for (const found of this.#all.values()) this.#release(found)
    const late = new AbortController()
    const limit = sleep(this.#needs.clock, LEAVE_MS, late.signal).then(() => this.kill(), () => undefined)
    await Promise.race([limit, this.#quiet()])
    late.abort()
    await this.#quiet()
  }

  /** Ends what runs for sessions, and releases nothing. */
  kill (): void { for (const { stop } of this.#all.values()) stop.abort() }

  async #quiet (): Promise<void> { await Promise.allSettled([...this.#all.values()].map(({ done }) => done)) }

  /** A command by the shell, in a process group of its own that dies with this process. Without a command all is well at once. */
  async #run (command: string, { sessionId, commands: { env, cwd, timeoutMs }, stop }: Preparation): Promise<HostExit & { isLate?: boolean }> {
    if (command === '') return { code: 0, signal: null, stderr: '' }
    const { run, clock, log } = this.#needs
    log.info({ sessionId, command }, 'node command')
    const process = run({ command: '/bin/sh', args: ['-c', command], env, cwd, stderrFile: '' })
    let isLate = false
    let disarm = (): void => {}
    const end = (): void => { process.terminate(); disarm = clock.after(KILL_AFTER_MS, () => process.kill()) }
    const cancel = clock.after(timeoutMs, () => { isLate = true; end() })
    stop.signal.addEventListener('abort', end, { once: true })
    try {
      return { ...await process.ended, isLate }
    } finally {
      cancel()
      disarm()
      stop.signal.removeEventListener('abort', end)
    }
  }
}

/** The promise, or a rejection with the signal's reason when it aborts first. */
async function unless (signal: AbortSignal, promise: Promise<void>): Promise<void> {
  let gone = (): void => {}
  const aborted = new Promise<never>((_resolve, reject) => { gone = () => reject(signal.reason as Error) })
  signal.addEventListener('abort', gone, { once: true })
  try {
    await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', gone)
  }
}

/** Why a command is taken for failed; undefined: it is not. */
function failure (name: string, { code, signal, error, isLate }: HostExit & { isLate?: boolean }, timeoutMs: number): string | undefined {
  if (isLate === true) return `${name} did not end within ${timeoutMs} ms (nodeCommandTimeoutMs)`
  if (error !== undefined) return `${name} could not be started: ${error.message}`
  if (signal !== null) return `${name} ended by ${signal}`
  return code === 0 ? undefined : `${name} ended with exit code ${String(code)}`
}
