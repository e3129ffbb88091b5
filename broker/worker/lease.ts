import { within, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'

export interface LeaseNeeds {
  /** Puts this worker into the directory for another `leaseMs`. */
  beat: () => Promise<void>
  /** Sessions that are served here. */
  served: () => readonly string[]
  /** Whether the session's record still names this worker. */
  isMine: (sessionId: string) => Promise<boolean>
  /** The session is another broker's, or gone: everything of it that is in this process is let go of, and nothing written. */
  letGo: (sessionId: string) => void
  /** This worker has been given up: its sockets close and it ends, without a word to the store. */
  disowned: (why: string) => void
  leaseMs: number
  beatMs: number
  clock: Clock
  log: Logger
}

/**
 * A worker's place in the directory of workers. Heads that find it run out take the worker for dead and give its sessions to others, also when it only
 * stood still (stopped, swapped out, cut off). So whoever wakes up with a lease that ran out asks, before it beats again, whether its sessions are still
 * its own: those that are not are let go of, and a worker that lost any, or has none left, ends. A store that was away for everybody costs nothing: the records
 * still name this worker then.
 */
export class Lease {
  readonly #needs: LeaseNeeds
  #heldAt: number
  #looking: Promise<void> | undefined
  #disarm = (): void => {}
  #isOver = false
  /** A store has said that this worker does not own a session that it served. */
  #wasRefused = false

  constructor (needs: LeaseNeeds) {
    this.#needs = needs
    this.#heldAt = needs.clock.now()
  }

  /** Writes the first beat and goes on until `end`. */
  async start (): Promise<void> {
    await this.#beat()
    this.#arm()
  }

  end (): void {
    this.#isOver = true
    this.#disarm()
  }

  /** A store has refused a write, so somebody else owns that session: what about the others? */
  refused (): void {
    this.#wasRefused = true
    this.look().catch(err => this.#needs.log.warn({ err: err as Error }, 'not known whose the sessions are; asked again with the next beat'))
  }

  /** Asked again meanwhile: one answer for all. */
  look (): Promise<void> {
    return (this.#looking ??= this.#look().finally(() => { this.#looking = undefined }))
  }

  /** The directory has forgotten this worker by now. */
  get #hasRunOut (): boolean { return this.#needs.clock.now() - this.#heldAt > this.#needs.leaseMs }

  async #look (): Promise<void> {
    if (this.#isOver) return
    const { served, isMine, letGo, disowned, leaseMs, log } = this.#needs
    const hadRunOut = this.#hasRunOut
    const before = served()
    const mine = await Promise.all(before.map(isMine))
    const lost = before.filter((_, i) => mine[i] === false)
    for (const sessionId of lost) letGo(sessionId)
    if (lost.length > 0) log.error({ sessions: lost, hadRunOut }, 'sessions are another broker\'s')
    // A fence with the lease in hand concerns one session, e.g. one whose start took longer than its head waited; the others here are nobody else's.
    const isRefused = this.#wasRefused || lost.length > 0
    if (isRefused && (hadRunOut || served().length === 0)) {
      this.end()
      disowned(hadRunOut ? `it did not beat for more than ${leaseMs} ms, and its sessions were given to others` : 'its sessions are others\' now')
    }
  }

  async #beat (): Promise<void> {
    const at = this.#needs.clock.now()
    await this.#needs.beat()
    this.#heldAt = at
  }

  #arm (): void {
    if (this.#isOver) return
    const { clock, beatMs, leaseMs, log } = this.#needs
    this.#disarm = clock.after(beatMs, () => {
      const round = async (): Promise<void> => {
        if (this.#hasRunOut || this.#wasRefused) await this.look()
        this.#wasRefused = false
        if (!this.#isOver) await this.#beat()
      }
      within(clock, leaseMs, round(), () => new Error(`no answer within ${leaseMs} ms`)).catch(err => log.warn({ err: err as Error }, 'worker beat not written')).finally(() => this.#arm())
    })
  }
}
