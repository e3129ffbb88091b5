import { machine, type Machine } from '../../core/machine.ts'
import type { CustomBroker, CustomRequest, CustomSession, CustomState, Hook, JobState, TaskNotice } from '../custom-broker.ts'
import { HookFailure } from './custom-hooks.ts'
import { PROGRAM } from './custom-program.states.ts'
import { LinkError } from './custom-program-link.ts'
import { endsSoon, isEarlyExit, lastLines, programText, startProgram, type ProgramNeeds, type Run } from './custom-program-start.ts'
import type { ProgramExit } from './custom-program-process.ts'
import { applied, CallBodies, dispatcherJson, requestJson, responseJson, stateJson } from './custom-program-wire.ts'
import { shown } from './custom-verdict.ts'
import type { CustomNeeds } from './custom-setup.ts'
import { Turns } from './custom-program-turns.ts'

/** HPC Pack's launcher starts a broker that crashed three times again. */
const MOST_RESTARTS = 3
/** Between SIGTERM and SIGKILL, when its session is over. */
const STOP_MS = 5000
const OVER: ReadonlySet<string> = new Set(['Finished', 'Failed', 'Canceled'])

/** A custom broker that is a program: starts it, and resolves to what a session is given, with just the hooks that the program names. docs/custom-broker-programs.md has the contract. */
export async function openProgram (needs: ProgramNeeds): Promise<CustomNeeds> {
  const stop = new AbortController()
  const program = new ProgramBroker(needs, stop, await startProgram(needs, stop.signal))
  return {
    name: program.name,
    broker: program.hooks(),
    ...(program.has('chooseDispatcher') ? { chooseMany: requests => program.chooseMany(requests) } : {}),
    timesItself: true,
    whenFailed: failed => program.whenFailed(failed),
    run: (_, call) => call(),
    close: () => program.close(),
  }
}

/**
 * The program of one session. Whatever a hook decides or keeps is in its answer, so a call whose answer did not come can be made again: a program that crashed is started
 * once more, told what it was told before (the state, the tasks), and asked again.
 */
class ProgramBroker {
  readonly name: string
  readonly #needs: ProgramNeeds
  readonly #stop: AbortController
  readonly #life: Machine<typeof PROGRAM>
  readonly #turns: Turns
  readonly #first: Run['description']
  /** Those that are not over, as they were told of last. */
  readonly #tasks = new Map<string, TaskNotice>()
  readonly #atWork = new Set<Hook>()
  #job: JobState | undefined
  #session: CustomSession | undefined
  #hasBegun = false
  #run: Promise<Run>
  #restarts = 0
  #failure: HookFailure | undefined
  #failed: (error: HookFailure) => void = () => {}
  #closing: Promise<void> | undefined

  constructor (needs: ProgramNeeds, stop: AbortController, run: Run) {
    this.#needs = needs
    this.#stop = stop
    this.#first = run.description
    this.#turns = new Turns(run.description.concurrency)
    this.name = `${run.description.name} (${programText(needs.registration)})`
    this.#life = machine(PROGRAM, 'Starting', (from, event, to) => needs.log.info({ from, event, to, program: this.name }, 'program of the custom broker changed state'))
    this.#run = Promise.resolve(run)
    this.#serves(run)
  }

  has (hook: Hook): boolean { return this.#first.hooks.has(hook) }

  whenFailed (failed: (error: HookFailure) => void): void {
    this.#failed = failed
    if (this.#failure !== undefined) failed(this.#failure)
  }

  hooks (): CustomBroker {
    const all: CustomBroker = {
      onSessionStart: session => this.#begin(session),
      onRequest: async (request, { state }) => await this.#call('onRequest', bodies => ({ request: requestJson(request, bodies) }), state) as never,
      onTaskStateChanged: async tasks => { this.#note(tasks); await this.#call('onTaskStateChanged', () => ({ tasks })) },
      onJobStateChanged: async state => { this.#job = state; await this.#call('onJobStateChanged', () => ({ state })) },
      onResponse: async (request, response, { state }) => await this.#call('onResponse', bodies => ({ request: requestJson(request, bodies), response: responseJson(response, bodies) }), state) as never,
      onGather: async (request, parts, { state }) => await this.#call('onGather', bodies => ({ request: requestJson(request, bodies), parts: parts.map(part => responseJson(part, bodies)) }), state) as never,
      onSessionEnd: async why => { this.#life.fire('sessionEnds'); await this.#call('onSessionEnd', () => ({ why })) },
    }
    return Object.fromEntries(Object.entries(all).filter(([hook]) => hook === 'onSessionStart' || this.has(hook as Hook)))
  }

  async chooseMany (requests: readonly CustomRequest[]): Promise<readonly unknown[]> {
    const choices = await this.#call('chooseDispatcher', () => ({ requests: requests.map(request => requestJson(request)), dispatchers: this.#dispatchers() }))
    if (!Array.isArray(choices)) throw this.#wrong('chooseDispatcher', `gave back ${shown(choices)}; a list of ${requests.length} choices is expected`)
    return choices
  }

  close (): Promise<void> { return (this.#closing ??= this.#close()) }

  async #close (): Promise<void> {
    this.#life.fire('stop')
    this.#failure ??= new HookFailure(`custom broker ${this.name}: its session is over`)
    this.#stop.abort(this.#failure)
    const run = await this.#run.catch(() => undefined) // it ended before
    const exit = await run?.process.stop(STOP_MS)
    await run?.link.close()
    if (exit !== undefined) this.#needs.log.info({ program: this.name, how: exit.how }, 'program of the custom broker has ended')
  }

  async #begin (session: CustomSession): Promise<void> {
    this.#session = session
    session.signal.addEventListener('abort', () => { this.close().catch(error => this.#needs.log.warn({ err: error as Error }, 'custom broker: its program did not end in order')) }, { once: true })
    if (this.has('onSessionStart')) await this.#call('onSessionStart', () => this.#startJson())
    this.#hasBegun = true
  }

  #startJson (): object { return { session: this.#needs.session, state: this.#session === undefined ? {} : stateJson(this.#session.state), dispatchers: this.#dispatchers() } }
  #dispatchers (): object[] { return this.#session?.dispatchers.map(dispatcherJson) ?? [] }

  #note (tasks: readonly TaskNotice[]): void {
    for (const task of tasks) {
      if (OVER.has(task.State)) this.#tasks.delete(task.Id)
      else this.#tasks.set(task.Id, task)
    }
  }

  /**
   * One hook, when its turn comes; its time begins then. Choices and notices go before the others: instances wait for the one, and choices depend on the other.
   * @param state where its changes go: with the request or response of the hook; default: with the next batch
   */
  async #call (hook: Hook, json: (bodies: CallBodies | undefined) => object, state?: CustomState): Promise<unknown> {
    const isUrgent = hook === 'chooseDispatcher' || hook === 'onTaskStateChanged' || hook === 'onJobStateChanged'
    return await this.#turns.run(isUrgent, async () => {
      this.#atWork.add(hook)
      try {
        const answer = await this.#answer(hook, this.#text(hook, json))
        return applied(answer, state ?? (this.#session as CustomSession).state)
      } catch (error) {
        if (error instanceof HookFailure) throw error
        throw this.#wrong(hook, `gave back what is no answer: ${(error as Error).message}`, error)
      } finally {
        this.#atWork.delete(hook)
      }
    })
  }

  #text (hook: Hook, json: (bodies: CallBodies | undefined) => object): string {
    const { settings } = this.#needs.session
    try {
      return JSON.stringify(json(this.#first.bodies.has(hook) ? new CallBodies(16 * settings.maxMessageSize) : undefined))
    } catch (error) {
      throw this.#wrong(hook, (error as Error).message, error)
    }
  }

  async #answer (hook: Hook, text: string): Promise<unknown> {
    const { clock, session: { settings } } = this.#needs
    for (let isAgain = false; ;) {
      const run = await this.#run
      if (this.#failure !== undefined) throw this.#failure
      try {
        return await run.link.call('POST', `/${hook}`, text, settings.hookTimeoutMs)
      } catch (error) {
        if (!(error instanceof LinkError)) throw error
        if (error.kind !== 'lost') await run.process.caughtUp()
        if (error.kind === 'late') throw this.#fail('stuck', `${hook} ${error.message}`, run)
        if (error.kind !== 'lost') throw this.#wrong(hook, error.message, error, run)
        if (await endsSoon(run.process, clock)) {
          // Started again, or given up; unless nobody starts it any more, for its session ends.
          if (await this.#run !== run) continue
          throw this.#wrong(hook, `was not answered: ${(await run.process.ended).how}`, error, run)
        }
        // A connection that had been idle may be closed just when it is used.
        if (isAgain) throw this.#wrong(hook, error.message, error, run)
        isAgain = true
      }
    }
  }

  #serves (run: Run): void {
    this.#life.fire('ready')
    void run.process.ended.then(exit => this.#ended(run, exit))
  }

  #ended (run: Run, { how, isClean }: ProgramExit): void {
    void run.link.close()
    if (this.#life.state !== 'Serving') return
    const during = this.#atWork.size === 0 ? '' : ` during ${[...this.#atWork].join(', ')}`
    if (isClean) this.#run = Promise.reject(this.#fail('left', `its program ended with ${how}${during}, and its session had not ended`, run))
    else if (this.#restarts >= MOST_RESTARTS) this.#run = Promise.reject(this.#fail('tooOften', `its program ended with ${how}${during}, and had been started again ${this.#restarts} times`, run))
    else this.#run = this.#again(`${how}${during}${lastLines(run.process)}`)
    this.#run.catch(() => {}) // whoever asks next is told
  }

  async #again (why: string): Promise<Run> {
    for (;;) {
      this.#life.fire('crashed')
      this.#restarts++
      this.#needs.log.warn({ program: this.name, why, restarts: this.#restarts }, 'program of the custom broker is started again')
      let run: Run | undefined
      try {
        run = await startProgram(this.#needs, this.#stop.signal)
        await this.#introduce(run)
        this.#serves(run)
        return run
      } catch (error) {
        const hasCrashed = isEarlyExit(error) || (run !== undefined && error instanceof LinkError && error.kind === 'lost' && await endsSoon(run.process, this.#needs.clock))
        await run?.link.close()
        await run?.process.stop(0)
        if (this.#failure !== undefined) throw this.#failure
        why = (error as Error).message
        if (!hasCrashed || this.#restarts >= MOST_RESTARTS) throw this.#fail(hasCrashed ? 'tooOften' : 'wrong', `its program was started again ${this.#restarts} times: ${why}`, run, error)
      }
    }
  }

  /** What it was told before, in the order in which it was told. */
  async #introduce ({ link, description }: Run): Promise<void> {
    const session = this.#session
    const missing = [...this.#first.hooks].find(hook => !description.hooks.has(hook))
    if (missing !== undefined) throw new Error(`it no longer has ${missing}`)
    if (session === undefined || !this.#hasBegun) return // the call that is under way comes again
    const { hookTimeoutMs } = this.#needs.session.settings
    const told: Array<[Hook, object | undefined]> = [
      ['onSessionStart', this.#startJson()],
      ['onJobStateChanged', this.#job === undefined ? undefined : { state: this.#job }],
      ['onTaskStateChanged', this.#tasks.size === 0 ? undefined : { tasks: [...this.#tasks.values()] }],
    ]
    for (const [hook, json] of told) if (json !== undefined && this.has(hook)) applied(await link.call('POST', `/${hook}`, JSON.stringify(json), hookTimeoutMs), session.state)
  }

  /** The program is of no use any more. */
  #fail (event: 'left' | 'tooOften' | 'wrong' | 'stuck', what: string, run: Run | undefined, cause?: unknown): HookFailure {
    this.#life.fire(event)
    const failure = this.#failure ??= new HookFailure(`custom broker ${this.name}: ${what}${run === undefined ? '' : lastLines(run.process)}`, { cause })
    this.#failed(failure)
    return failure
  }

  /** One of its answers is wrong; it may still be told that its session ends. */
  #wrong (hook: Hook, what: string, cause?: unknown, run?: Run): HookFailure {
    return new HookFailure(`custom broker ${this.name}: ${hook} ${what}${run === undefined ? '' : lastLines(run.process)}`, { cause })
  }
}
