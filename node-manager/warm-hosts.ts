import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { HostProcess } from './host-process.ts'

/** As much of a host process as the pool has to do with. */
export type WarmHost = Pick<HostProcess, 'pid' | 'warmed' | 'ended' | 'kill'>

export interface WarmHostsNeeds<H extends WarmHost> {
  /** How many are kept; 0: none. */
  readonly size: number
  /** Their environment before they are told another one. */
  readonly env: Readonly<Record<string, string>>
  readonly spawn: () => H
  readonly clock: Clock
  readonly log: Logger
}

/** One that dies before it is needed is replaced after this long, doubled for each that dies so in a row. */
const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 30_000
/** So long nobody must have started a host: one that is made for later must not take the processor from one that is waited for. */
const QUIET_MS = 300

/** What a process looks at when it starts, or before it can be told otherwise: a host that wants another value must be started with it. */
const READ_AT_START = /^(?:NODE_|UV_|LD_|LC_|LANG|TZ|MALLOC_|GLIBC_|GCONV_|ICU_|OPENSSL_|SSL_CERT_)/

/**
 * Host processes that are started ahead of need: the runtime and all of the host's own code are loaded, the service is not. A task takes one and tells it
 * what to be (`HostProcess.assign`); when there is none it starts its own, as without the pool.
 */
export class WarmHosts<H extends WarmHost = HostProcess> {
  readonly #needs: WarmHostsNeeds<H>
  readonly #hosts = new Set<H>()
  #starting = 0
  #diedInARow = 0
  #isClosed = false
  #disarm = (): void => {}

  constructor (needs: WarmHostsNeeds<H>) { this.#needs = needs }

  get hosts (): readonly H[] { return [...this.#hosts] }

  start (): void { this.#refill(0) }

  /** A host for this environment; undefined: none is there, or the environment has what only a start can give. One that has loaded most comes first. */
  take (env: Readonly<Record<string, string>>): H | undefined {
    const [host] = this.#hosts
    if (host === undefined || !this.#fits(env)) return undefined
    this.#hosts.delete(host)
    return host
  }

  #fits (env: Readonly<Record<string, string>>): boolean {
    const own = this.#needs.env
    return [...new Set([...Object.keys(env), ...Object.keys(own)])].every(name => !READ_AT_START.test(name) || env[name] === own[name])
  }

  /** A host is being started for a task: no other one is begun meanwhile. The result says that it runs, or does not. */
  hold (): () => void {
    this.#starting++
    this.#disarm()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      if (--this.#starting === 0) this.#refill(QUIET_MS)
    }
  }

  /** Kills them all; resolves when nothing of them runs. */
  async close (): Promise<void> {
    this.#isClosed = true
    this.#disarm()
    const hosts = this.hosts
    for (const host of hosts) host.kill()
    await Promise.all(hosts.map(host => host.ended))
  }

  /** One after the other: the next one when the last has loaded all. */
  #refill (afterMs: number): void {
    const { size, clock } = this.#needs
    this.#disarm()
    if (this.#isClosed || this.#starting > 0 || this.#hosts.size >= size) return
    const pause = this.#diedInARow === 0 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** Math.min(this.#diedInARow - 1, 20), LONGEST_PAUSE_MS)
    this.#disarm = clock.after(Math.max(afterMs, pause), () => { this.#add() }, { unref: true })
  }

  #add (): void {
    const { spawn, log } = this.#needs
    const host = spawn()
    this.#hosts.add(host)
    void host.warmed.then(() => {
      this.#diedInARow = 0
      this.#refill(0)
    })
    void host.ended.then(({ code, signal, stderr, error }) => {
      if (!this.#hosts.delete(host) || this.#isClosed) return // a task has it, and looks after it
      this.#diedInARow++
      log.warn({ pid: host.pid, code, signal, stderr, err: error, inARow: this.#diedInARow }, 'a warm host ended before it was needed')
      this.#refill(0)
    })
  }
}
