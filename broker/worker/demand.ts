import type { Clock } from '../../core/clock.ts'
import type { Demand, DemandBoard } from '../../store/placement-store.ts'
import { goingNow, idleUnits, type UnitLoad } from './shrink.ts'

/** The session's service instances as their demand sees them (DispatcherPool). */
export interface Units {
  readonly loads: readonly UnitLoad[]
  /** Placed, and not yet running. */
  readonly starting: number
  readonly leaving: readonly string[]
  readonly avoided: readonly string[]
  /** All but so many leave by themselves; resolves when they have been told. */
  leave (keep: number): Promise<void>
  /** The same for these, unless they are busy; resolves to those that go. */
  retire (taskIds: readonly string[]): Promise<string[]>
}

export interface DemandNeeds {
  board: DemandBoard
  /** All of the demand that does not change while the session lives. */
  base: Omit<Demand, 'target' | 'min' | 'leaving' | 'avoid'>
  /** As the session was asked for; undefined: 1, and all that the grid has. */
  minUnits: number | undefined
  maxUnits: number | undefined
  /** Instances that stay although there is no work, as far as maxUnits lets them. */
  minWarm: number
  /** Calls that one instance executes at a time; 0: as many as its task has cores. */
  maxConcurrentCalls: number
  /** dispatcherCapacityInGrowShrink: what is reckoned with instead; 0: nothing else. */
  reckonedCalls: number
  prefetch: number
  /** Instances that were not asked for by minUnits or minWarm leave after this long without work. */
  idleTimeoutMs: number
  /** ms between two looks at whether some could go while others work; -1: none. */
  adjustIntervalMs: number
  /** automaticShrinkEnabled */
  shrinks: boolean
  outstanding: () => number
  units: () => Units
  clock: Clock
  log: { warn (facts: object, message: string): void, info (facts: object, message: string): void }
}

/** HPC Pack starts a session with at most this many service tasks ([broker-behaviour] 5.5). */
const UNITS_AT_START = 16
/** How often the target is looked at, and how often an unchanged one is said again (a flushed store heals by it). */
const LOOK_MS = 1000
const ASSERT_MS = 10_000
/** HPC Pack raises shorter ones to this ([broker-behaviour] 5.1). */
const SHORTEST_ADJUST_MS = 3000

/** Units wanted for `outstanding` requests: enough that each unit is busy, within min and max ([broker-behaviour] 5.2). */
export function unitsFor (outstanding: number, callsPerUnit: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, Math.ceil(outstanding / callsPerUnit)))
}

/**
 * Says how many service instances the session wants: some at the start, more as soon as requests wait, fewer while others can do the work alone, and
 * when there is none at all those of minUnits and minWarm ([broker-behaviour] 5; [adr/0022]).
 */
export class DemandKeeper {
  readonly #needs: DemandNeeds
  #target: number
  #min: number
  #idleSince: number
  #assertedAt = -Infinity
  /** Target of the last demand that was written or is about to be. */
  #asked = 0
  /** Shrinking passes in a row. */
  #shrunk = 0
  /** As of the last measuring: calls of one instance, and how many cannot be reached. Asked for with each request, so not worked out each time. */
  #callsPerUnit = 1
  #blocked = 0
  #isStopped = false
  #stopLooking: () => void = () => {}
  #stopAdjusting: () => void = () => {}
  #writing: Promise<void> = Promise.resolve()

  constructor (needs: DemandNeeds) {
    this.#needs = needs
    this.#min = this.#least
    this.#target = Math.max(this.#least, this.#warm, Math.min(this.#most, UNITS_AT_START))
    this.#idleSince = needs.clock.now()
  }

  get target (): number { return this.#target }

  /** The session was raised for somebody who reads what is stored: no instance is wanted until work comes. */
  startIdle (): void {
    this.#min = this.#needs.minUnits ?? 0
    this.#target = this.#warm
  }

  /** Those without which it does not work. */
  get #least (): number { return Math.max(1, this.#needs.minUnits ?? 1) }
  get #most (): number { return this.#needs.maxUnits ?? Infinity }
  /** Those that an idle session keeps. */
  get #warm (): number { return Math.max(this.#needs.minUnits ?? 0, Math.min(this.#needs.minWarm, this.#most)) }

  /** Writes the first demand; resolves when it is on the board. */
  async start (): Promise<void> {
    this.#asked = this.#target
    this.#measure()
    await this.#needs.board.put(this.#demand())
    this.#assertedAt = this.#needs.clock.now()
    this.#armLook()
    this.#armAdjust()
  }

  #armLook (): void {
    this.#stopLooking = this.#needs.clock.after(LOOK_MS, () => { this.#measure(); this.look(); if (!this.#isStopped) this.#armLook() }, { unref: true })
  }

  #armAdjust (): void {
    const { adjustIntervalMs, clock } = this.#needs
    if (adjustIntervalMs < 0) return
    this.#stopAdjusting = clock.after(Math.max(SHORTEST_ADJUST_MS, adjustIntervalMs), () => { this.#adjust(); if (!this.#isStopped) this.#armAdjust() }, { unref: true })
  }

  /** Looks at what is outstanding now; called by the clock, and with every request that comes. */
  look (): void {
    if (this.#isStopped) return
    const { clock, outstanding, idleTimeoutMs } = this.#needs
    const now = clock.now()
    const work = outstanding()
    const asked = this.#target
    if (work > 0) {
      this.#idleSince = now
      this.#min = this.#least
      if (this.#wanted(work) > asked) {
        this.#measure() // the instances may be others than a second ago
        this.#target = Math.max(asked, this.#wanted(work))
        this.#shrunk = 0
      }
    } else if (now - this.#idleSince >= idleTimeoutMs) {
      this.#min = this.#needs.minUnits ?? 0
      this.#target = this.#warm
    }
    if (this.#target !== asked || now - this.#assertedAt >= ASSERT_MS) this.#write(now)
  }

  /** Who leaves or where nothing is to start is another one now: the board is told. */
  wantsChanged (): void { if (!this.#isStopped) this.#write(this.#needs.clock.now()) }

  /** Instances that cannot be reached are asked for once more, elsewhere. */
  #wanted (outstanding: number): number {
    return Math.min(this.#most, unitsFor(outstanding, this.#callsPerUnit, this.#least, this.#most) + this.#blocked)
  }

  /** Of the instances that are there on average; whole sockets and nodes have as many cores as they have, which is known when the first one runs. */
  #measure (): void {
    const { base, units, maxConcurrentCalls, reckonedCalls, prefetch } = this.#needs
    const { loads } = units()
    this.#blocked = loads.reduce((sum, { isBlocked }) => sum + Number(isBlocked), 0)
    const isUnknown = loads.length === 0 && base.unitType !== undefined && base.unitType !== 'core'
    const cores = isUnknown ? Infinity : loads.length === 0 ? base.coresPerUnit : Math.floor(loads.reduce((sum, load) => sum + load.cores, 0) / loads.length)
    this.#callsPerUnit = (reckonedCalls || maxConcurrentCalls || cores) * (1 + prefetch)
  }

  /** Some may go while others work ([broker-behaviour] 5.3); what was asked for beyond what is there, and is not needed any more, is asked for no longer. */
  #adjust (): void {
    const { outstanding, units, shrinks, clock } = this.#needs
    const work = outstanding()
    if (this.#isStopped || !shrinks || work === 0) { this.#shrunk = 0; return }
    this.#measure()
    const { loads, starting } = units()
    const there = loads.length + starting
    const idle = idleUnits(loads, work)
    const going = idle.slice(0, goingNow(idle.length, there - Math.max(this.#least, this.#warm), this.#shrunk + 1))
    this.#shrunk = going.length === 0 ? 0 : this.#shrunk + 1
    const target = Math.min(this.#target, Math.max(this.#wanted(work), this.#warm, there - going.length))
    if (target === this.#target && going.length === 0) return
    this.#target = target
    this.#write(clock.now(), going.map(({ id }) => id))
  }

  /** @param going those that leave while others work; not said: all beyond the target */
  #write (now: number, going?: readonly string[]): void {
    const { board, units, log } = this.#needs
    this.#assertedAt = now
    const target = this.#target
    const isLess = target < this.#asked
    this.#asked = target
    this.#writing = this.#writing.then(async () => {
      if (this.#isStopped) return
      // Told before less is wanted: afterwards the plan cancels them, and their own way of leaving is cut short.
      if (going !== undefined) {
        const gone = await units().retire(going)
        log.info({ target, going: gone.length }, 'service instances leave: others can do the work')
        // Those that got a call in the meantime stay.
        if (this.#target === target) this.#asked = this.#target = target + going.length - gone.length
      } else if (isLess && this.#target === target) await units().leave(target)
      // What is wanted by now: work may have come while they were told.
      if (!this.#isStopped) await board.put(this.#demand())
    }).catch(error => {
      // Said again in ASSERT_MS: an outage of the store must not end the session.
      log.warn({ err: error as Error, target }, 'demand not written')
    })
  }

  #demand (): Demand {
    const { base, units } = this.#needs
    const { leaving, avoided } = units()
    return { ...base, target: this.#target, min: this.#min, ...(leaving.length === 0 ? {} : { leaving }), ...(avoided.length === 0 ? {} : { avoid: avoided }) }
  }

  /** Nothing is wanted any more: tasks are canceled; the event stream goes too when `forget`. */
  async stop (forget: boolean): Promise<void> {
    this.letGo()
    await this.#writing
    await this.#needs.board.remove(this.#needs.base.sessionId, { forget })
  }

  /** Stops saying anything; what is on the board stays for another broker. */
  letGo (): void {
    this.#isStopped = true
    this.#stopLooking()
    this.#stopAdjusting()
  }
}
