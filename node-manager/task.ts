import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sleep, type Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import { HOST_EXITS, exitCodeText } from '../core/host-exits.ts'
import { machine, type Machine } from '../core/machine.ts'
import type { PlacedTask } from '../store/redis-placement-scripts.ts'
import { accepting } from '../transport/free-port.ts'
import type { Guardian } from './guardian.ts'
import { HostProcess, type HostExit } from './host-process.ts'
import { NodeUnfit } from './preparations.ts'
import { hpcControllerPort, hpcPort, type Ports } from './port.ts'
import type { TaskRecipe } from './recipe.ts'
import { TASK } from './task.states.ts'
import type { WarmHosts } from './warm-hosts.ts'

export interface TaskNeeds {
  /** How it is started; a refusal becomes the reason of its failure. */
  readonly recipe: (unwanted: AbortSignal) => Promise<TaskRecipe>
  readonly guardian: Guardian
  readonly ports: Ports
  readonly warm: Pick<WarmHosts, 'take' | 'hold'>
  /** Address that hosts listen on and brokers dial. */
  readonly host: string
  readonly runDir: string
  readonly clock: Clock
  readonly log: Logger
  /** Its report is another one now. */
  readonly changed: () => void
}

/** `address` is what brokers call; `listen` the same as the host is told it. */
interface Address { readonly port: number, readonly address: string, readonly listen: string, readonly controller: string }

/** A port can be taken between our look and the host's bind: another one then, this often. */
const PORT_TRIES = 3
const SAYS_IN_USE = /EADDRINUSE|address already in use/i

/** One task of this node: starts its host, sees it accept, ends it when it is not wanted any more, and always knows what to report. */
export class Task {
  readonly #needs: TaskNeeds
  readonly #machine: Machine<typeof TASK>
  /** Aborted as soon as nobody waits for its port any more. */
  readonly #unwanted = new AbortController()
  #report: PlacedTask
  #host: HostProcess | undefined
  #why: string | undefined
  #cancelGrace = (): void => {}
  #release = (): void => {}
  #isOurHost = false
  #ended: Promise<void> = Promise.resolve()

  constructor (placed: PlacedTask, needs: TaskNeeds) {
    this.#needs = needs
    this.#report = placed
    this.#machine = machine(TASK, 'Dispatching', (from, event, to) => {
      this.#report = { ...this.#report, state: to, at: new Date(needs.clock.now()).toISOString() }
      const facts = { taskId: placed.id, sessionId: placed.sessionId, pid: this.#host?.pid, from, event, to }
      if (to === 'Failed') needs.log.warn({ ...facts, exit: this.#report.exit }, 'task failed')
      else needs.log.info(facts, 'task')
    })
  }

  /** A new object whenever there is something new to say. */
  get report (): PlacedTask { return this.#report }
  get isOver (): boolean { return Object.keys(TASK[this.#machine.state]).length === 0 }
  /** Resolves when nothing of it runs any more. */
  get ended (): Promise<void> { return this.#ended }

  start (): void {
    this.#ended = this.#held().then(exit => this.#end(exit), (error: unknown) => {
      if (error instanceof NodeUnfit) {
        this.#why ??= error.message
        this.#end({ ...error.exit }, true)
        return
      }
      const failed = error instanceof Error ? error : new Error(String(error))
      this.#end({ code: null, signal: null, stderr: '', error: failed })
    })
  }

  /** Not wanted any more: SIGTERM now, SIGKILL to the whole group after the grace. */
  cancel (): void {
    if (!this.#machine.fire('cancel')) return
    const { clock } = this.#needs
    this.#needs.changed()
    this.#unwanted.abort(new Error('canceled'))
    this.#host?.terminate()
    this.#cancelGrace = clock.after(this.#report.cancelGraceMs, () => this.#host?.kill())
  }

  /** At once, without grace. */
  kill (why: string): void {
    if (this.isOver) return
    this.#why ??= why
    this.#unwanted.abort(new Error(why))
    this.#host?.kill()
  }

  /** As long as the task starts, no warm host is made. */
  async #held (): Promise<HostExit> {
    const release = this.#release = this.#needs.warm.hold()
    return await this.#run().finally(release)
  }

  async #run (): Promise<HostExit> {
    const unwanted = this.#unwanted.signal
    const recipe = await this.#needs.recipe(unwanted).catch(error => { if (unwanted.aborted) return undefined; throw error })
    if (recipe === undefined) return { code: null, signal: null, stderr: '' }
    for (let tries = 1; ; tries++) {
      const exit = await this.#try(recipe)
      const inUse = this.#machine.state === 'Dispatching' && !this.#unwanted.signal.aborted && (exit.code === HOST_EXITS.addressInUse.code || SAYS_IN_USE.test(exit.stderr))
      if (!inUse || recipe.addressing === 'hpc' || tries >= PORT_TRIES) return exit
      this.#needs.log.warn({ taskId: this.#report.id, tries }, 'the host says that its port is in use; it gets another one')
    }
  }

  async #try (recipe: TaskRecipe): Promise<HostExit> {
    const { ports, warm } = this.#needs
    const at = recipe.addressing === 'hpc' ? this.#hpcAddress(recipe) : this.#freeAddress(await ports.take(), recipe)
    this.#isOurHost = recipe.spec !== undefined
    const spec = recipe.spec === undefined ? undefined : await this.#writeSpec({ ...recipe.spec, listenUrl: at.listen, controllerUrl: at.controller })
    try {
      const command = { ...recipe, env: { ...recipe.env, SOA_LISTEN_URL: at.listen, ...(spec === undefined ? {} : { SOA_HOST_SPEC: spec }) } }
      const ready = spec === undefined ? undefined : warm.take(recipe.env)
      const exit = await this.#runHost(command, at, spec, ready)
      // Its spec is still there: it died before it was told anything, and what it died of is not this service's.
      if (ready === undefined || spec === undefined || this.#unwanted.signal.aborted || !existsSync(spec)) return exit
      this.#needs.log.warn({ taskId: this.#report.id, ...exit }, 'a warm host died before it took its task; a fresh one is started')
      return await this.#runHost(command, at, spec, undefined)
    } finally {
      if (recipe.addressing !== 'hpc') ports.giveBack(at.port)
      if (spec !== undefined) await rm(spec, { force: true })
    }
  }

  /** One process, from its start, or from the moment that a warm one gets this task, to its end. */
  async #runHost (recipe: TaskRecipe, at: Address, spec: string | undefined, ready: HostProcess | undefined): Promise<HostExit> {
    const { guardian, clock } = this.#needs
    const log = this.#needs.log.child({ taskId: this.#report.id, sessionId: this.#report.sessionId })
    if (this.#unwanted.signal.aborted) {
      ready?.kill()
      return { code: null, signal: null, stderr: '' }
    }
    ready?.assign(recipe, log)
    const process = this.#host = ready ?? new HostProcess(recipe, { guardian, clock, log })
    void this.#watchPort(process, at.port, recipe.initializationTimeoutMs, () => this.#accepted(at, spec))
    return await process.ended
  }

  /** HPC Pack's own, with the controller's port beside it ([broker-behaviour] 7.3). */
  #hpcAddress ({ scheme, spec }: TaskRecipe): Address {
    const { firstCoreIndex } = this.#report
    const [port, controllerPort] = [hpcPort(firstCoreIndex), hpcControllerPort(firstCoreIndex)]
    return this.#address(port, controllerPort, this.#hpcPath, scheme, spec !== undefined)
  }

  /** One port for both. Our own host has HPC Pack's paths, and so has whoever speaks net.tcp; any other program has the root, which is what it need not care about. */
  #freeAddress (port: number, { scheme, spec }: TaskRecipe): Address {
    return this.#address(port, port, spec === undefined && scheme === 'http' ? '' : this.#hpcPath, scheme, spec !== undefined)
  }

  /** Our own host speaks HTTP on the same port too, and its controller is called that way: HTTP says that a one-way call has arrived. */
  #address (port: number, controllerPort: number, path: string, scheme: TaskRecipe['scheme'], isOurs: boolean): Address {
    const at = (by: string, port: number, path: string): string => `${by}://${this.#needs.host}:${port}${path}`
    const plain = isOurs ? 'http' : scheme
    return { port, address: at(scheme, port, path || '/'), listen: at(plain, port, path || '/'), controller: at(plain, controllerPort, `${path}/controller`) }
  }

  get #hpcPath (): string { return `/${this.#report.sessionId}/${this.#report.id}/_defaultEndpoint` }

  /** Ready is when the port accepts; if it does not in time, the host is killed. */
  async #watchPort (process: HostProcess, port: number, timeoutMs: number, accepted: () => void): Promise<void> {
    const { host, clock } = this.#needs
    const over = new AbortController()
    const stop = AbortSignal.any([over.signal, this.#unwanted.signal])
    void process.ended.then(() => over.abort())
    const late = sleep(clock, timeoutMs, stop).then(() => 'late' as const)
    const found = await Promise.race([late, accepting(host, port, clock, stop).then(() => 'accepts' as const)])
      .catch(() => 'over' as const) // the host ended or is not wanted: whoever ended it says so
    late.catch(() => { /* as above */ })
    over.abort()
    if (found === 'accepts') accepted()
    if (found === 'late') this.kill(`did not accept connections within ${timeoutMs} ms (serviceInitializationTimeout)`)
  }

  #accepted ({ address, controller }: Address, spec: string | undefined): void {
    this.#release()
    if (this.#machine.state !== 'Dispatching') return
    this.#report = { ...this.#report, address, controller, pid: this.#host?.pid }
    this.#machine.fire('accepted')
    this.#needs.changed()
    // Read by now: what it holds need not lie about while the host runs.
    if (spec !== undefined) rm(spec, { force: true }).catch(err => this.#needs.log.warn({ err }, 'host spec not removed'))
  }

  #end (exit: HostExit, isNodeUnfit = false): void {
    this.#cancelGrace()
    const isReady = this.#machine.state !== 'Dispatching'
    const why = this.#why ?? reason(exit, isReady, this.#isOurHost)
    this.#report = { ...this.#report, pid: this.#host?.pid, exit: { code: exit.code, signal: exit.signal, stderr: exit.stderr, why, ...(isNodeUnfit ? { isNodeUnfit } : {}) } }
    this.#machine.fire(exit.code === 0 && this.#why === undefined ? 'endedWell' : 'ended')
    this.#needs.changed()
  }

  async #writeSpec (spec: object): Promise<string> {
    const { runDir } = this.#needs
    await mkdir(runDir, { recursive: true, mode: 0o700 })
    const path = join(runDir, `host-${this.#report.id}.json`)
    await writeFile(path, JSON.stringify(spec), { mode: 0o600 })
    return path
  }
}

function reason ({ code, signal, error }: HostExit, isReady: boolean, isOurs: boolean): string {
  const when = isReady ? '' : ' before it accepted connections'
  if (error !== undefined) return `could not be started: ${error.message}`
  if (signal !== null) return `ended by ${signal}${when}`
  return code === null ? `ended${when}` : `${exitCodeText(code, isOurs)}${when}`
}
