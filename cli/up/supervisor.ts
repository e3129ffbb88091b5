import { sleep, within, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import { CommandFailed, EXIT } from '../exit-codes.ts'
import { Child, endedText, type Ended, type Program } from './child.ts'
import { MOST_IN_WINDOW, isFinal, restartDelay } from './restarts.ts'

export interface Needs {
  readonly name: string
  /** Called for each start: a restarted head listens where the first one did. */
  readonly program: () => Program
  /** Resolves with what the child has to say of itself once it can be used. */
  readonly ready: (child: Child, signal: AbortSignal) => Promise<unknown>
  /** Longest time from start to ready. */
  readonly readyTimeoutMs: number
  /** Longest time from SIGTERM to SIGKILL. */
  readonly graceMs: number
  readonly clock: Clock
  readonly log: Logger
  /** What more there is to say when it does not start or ends, e.g. the end of its log. */
  readonly hint?: (() => string) | undefined
}

/** Keeps one child running: starts it again when it ends, later each time, and gives up when that does not help. */
export class Supervisor {
  readonly #needs: Needs
  readonly #deaths: number[] = []
  readonly #stop = new AbortController()
  #child: Child | undefined
  #running: Promise<void> | undefined

  constructor (needs: Needs) { this.#needs = needs }

  get name (): string { return this.#needs.name }
  get pid (): number | undefined { return this.#child?.pid }

  /** Starts it for the first time. Resolves with its ready answer; rejects when it ends before that: what cannot start once will not start the tenth time. */
  async start (): Promise<{ pid: number, answer: unknown }> {
    const { name, hint } = this.#needs
    const child = await this.#spawn()
    try {
      return { pid: child.pid, answer: await this.#ready(child) }
    } catch (error) {
      const { code, signal } = await child.ended // #ready leaves no child behind that is not ready
      const why = hint === undefined ? '; the lines above say why' : `: ${hint()}`
      throw error instanceof CommandFailed ? error : new CommandFailed(code ?? EXIT.failed, `${name} did not start (${endedText({ code, signal })})${why}`, { cause: error })
    }
  }

  /** Watches the started child and its successors. Resolves after `stop`; rejects when it gives up. */
  watch (): Promise<void> { return (this.#running ??= this.#watch()) }

  async #watch (): Promise<void> {
    const { name, clock, log, hint } = this.#needs
    const stopping = this.#stop.signal
    while (this.#child !== undefined) {
      const child = this.#child
      const ended = await child.ended
      child.kill() // what it left behind in its group
      if (stopping.aborted) return
      this.#deaths.push(clock.now())
      this.#deaths.splice(0, this.#deaths.length - MOST_IN_WINDOW - 1)
      const delayMs = isFinal(ended.code) ? 'give up' : restartDelay(this.#deaths, clock.now())
      const facts = { child: name, pid: child.pid, end: endedText(ended), ...(hint === undefined ? {} : { hint: hint() }) }
      if (delayMs === 'give up') {
        log.error({ ...facts, endsInTheLastMinute: this.#deaths.length }, 'child ended, giving up')
        throw new CommandFailed(EXIT.failed, isFinal(ended.code)
          ? `${name} ended with ${endedText(ended)}, which starting it again would not mend`
          : `${name} ended ${this.#deaths.length} times within a minute, the last time with ${endedText(ended)}: gave up`)
      }
      log.warn({ ...facts, restartInMs: delayMs }, 'child ended, starting it again')
      try {
        await sleep(clock, delayMs, stopping)
      } catch { return } // stopped meanwhile
      const next = await this.#spawn()
      if (stopping.aborted) { next.kill(); await next.ended; return }
      // Not awaited before its end is: one that hangs on its way up is killed by #ready, and that end is what the loop waits for.
      void this.#ready(next).then(() => log.info({ child: name, pid: next.pid }, 'child is back'), (err: unknown) => log.warn({ child: name, pid: next.pid, err }, 'child did not become ready'))
    }
  }

  /** Ends it for good. Resolves when no process of it is left. */
  async stop (hurry: AbortSignal): Promise<Ended | undefined> {
    this.#stop.abort()
    const ended = await this.#child?.stop(this.#needs.clock, this.#needs.graceMs, hurry)
    await this.#running?.catch(() => {}) // whoever watches has heard it
    return ended
  }

  async #spawn (): Promise<Child> {
    const { name, program, log } = this.#needs
    const child = await Child.start(program(), line => log.info({ child: name, line }, 'child printed'))
    log.debug({ child: name, pid: child.pid }, 'child started')
    this.#child = child
    return child
  }

  /** Resolves with the child's ready answer; else the child is ended, and it rejects: with CommandFailed when it was us who ended it. */
  async #ready (child: Child): Promise<unknown> {
    const { name, clock, ready, readyTimeoutMs } = this.#needs
    const over = new AbortController()
    const late = (): Error => new CommandFailed(EXIT.failed, `${name} was not ready within ${readyTimeoutMs} ms`)
    // Its end is one way for the waiting to end: else the timer of a child long gone would keep this process alive.
    const ended = child.ended.then(end => { throw new Error(`ended: ${endedText(end)}`) })
    try {
      return await within(clock, readyTimeoutMs, Promise.race([ready(child, over.signal), ended]), late)
    } catch (error) {
      child.kill()
      throw error
    } finally {
      over.abort()
      ended.catch(() => {}) // it ends one day, and is watched for that
    }
  }
}
