import type { Clock } from '../../core/clock.ts'
import type { Demand, DemandBoard } from '../../store/placement-store.ts'

export interface DemandNeeds {
  board: DemandBoard
  /** All of the demand that does not change while the session lives. */
  base: Omit<Demand, 'target' | 'min'>
  /** As the session was asked for; undefined: 1, and all that the grid has. */
  minUnits: number | undefined
  maxUnits: number | undefined
  /** Calls that one unit takes at a time: maxConcurrentCalls × (1 + prefetch). */
  callsPerUnit: number
  /** Instances that were not asked for by minUnits leave after this long without work. */
  idleTimeoutMs: number
  outstanding: () => number
  /** Makes all instances but so many leave by themselves; resolves when they have been told. */
  leave: (keep: number) => Promise<void>
  clock: Clock
  log: { warn (facts: object, message: string): void, debug (facts: object, message: string): void }
}

/** HPC Pack starts a session with at most this many service tasks ([broker-behaviour] 5.5). */
const UNITS_AT_START = 16
/** How often the target is looked at, and how often an unchanged one is said again (a flushed store heals by it). */
const LOOK_MS = 1000
const ASSERT_MS = 10_000

/** Units wanted for `outstanding` requests: enough that each unit is busy, within min and max ([broker-behaviour] 5.2). */
export function unitsFor (outstanding: number, callsPerUnit: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, Math.ceil(outstanding / callsPerUnit)))
}

/** Says how many service instances the session wants: some at the start, more while requests wait, none above minUnits when idle. */
export class DemandKeeper {
  readonly #needs: DemandNeeds
  #target: number
  #min: number
  #idleSince: number
  #assertedAt = -Infinity
  /** Target of the last demand that was written or is about to be. */
  #asked = 0
  #isStopped = false
  #cancel: () => void = () => {}
  #writing: Promise<void> = Promise.resolve()

  constructor (needs: DemandNeeds) {
    this.#needs = needs
    this.#min = Math.max(1, needs.minUnits ?? 1)
    this.#target = Math.max(this.#min, Math.min(needs.maxUnits ?? UNITS_AT_START, UNITS_AT_START))
    this.#idleSince = needs.clock.now()
  }

  get target (): number { return this.#target }

  /** Writes the first demand; resolves when it is on the board. */
  async start (): Promise<void> {
    this.#asked = this.#target
    await this.#needs.board.put(this.#demand())
    this.#assertedAt = this.#needs.clock.now()
    this.#arm()
  }

  #arm (): void {
    this.#cancel = this.#needs.clock.after(LOOK_MS, () => { this.look(); if (!this.#isStopped) this.#arm() }, { unref: true })
  }

  /** Looks at what is outstanding now; called by the clock, and at once when work comes to an idle session. */
  look (): void {
    if (this.#isStopped) return
    const { clock, outstanding, callsPerUnit, minUnits, maxUnits, idleTimeoutMs } = this.#needs
    const now = clock.now()
    const work = outstanding()
    const asked = this.#target
    const least = Math.max(1, minUnits ?? 1)
    if (work > 0) {
      this.#idleSince = now
      this.#min = least
      this.#target = Math.max(asked, unitsFor(work, callsPerUnit, least, maxUnits ?? Infinity))
    } else if (now - this.#idleSince >= idleTimeoutMs) {
      this.#min = minUnits ?? 0
      this.#target = this.#min
    }
    if (this.#target !== asked || now - this.#assertedAt >= ASSERT_MS) this.#write(now)
  }

  #write (now: number): void {
    this.#assertedAt = now
    const demand = this.#demand()
    const isLess = demand.target < this.#asked
    this.#asked = demand.target
    this.#writing = this.#writing.then(async () => {
      // Told before less is wanted: afterwards the plan cancels them, and their own way of leaving is cut short.
      if (isLess && !this.#isStopped) await this.#needs.leave(demand.target)
      if (!this.#isStopped) await this.#needs.board.put(demand)
    }).catch(error => {
      // Said again in ASSERT_MS: an outage of the store must not end the session.
      this.#needs.log.warn({ err: error as Error, target: demand.target }, 'demand not written')
    })
  }

  #demand (): Demand { return { ...this.#needs.base, target: this.#target, min: this.#min } }

  /** Nothing is wanted any more: tasks are canceled; the event stream goes too when `forget`. */
  async stop (forget: boolean): Promise<void> {
    this.letGo()
    await this.#writing
    await this.#needs.board.remove(this.#needs.base.sessionId, { forget })
  }

  /** Stops saying anything; what is on the board stays for another broker. */
  letGo (): void {
    this.#isStopped = true
    this.#cancel()
  }
}
