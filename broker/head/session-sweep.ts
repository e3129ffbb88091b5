import { sleep, type Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { SessionRecord, SessionStore } from '../../store/session-store.ts'
import type { SessionLauncher } from './session-launcher.ts'
import type { SessionRaising } from './session-raising.ts'

export interface SweepNeeds {
  sessions: Pick<SessionStore, 'list' | 'get'>
  raising: Pick<SessionRaising, 'recover'>
  launcher: Pick<SessionLauncher, 'close'>
  /** When a record is to be forgotten; undefined: nobody has said yet. */
  timers: { get: (name: string, sessionId: string) => Promise<number | undefined> }
  setTimer: (name: string, sessionId: string, atMs: number) => Promise<void>
  endedRetentionMs: number
  durableRetentionMs: number
  clock: Clock
  log: Logger
  signal: AbortSignal
}

/** Name of the durable timer after which an ended session is forgotten. */
export const RETENTION = 'retention'
/** A worker's death is noticed at once where its head lives; this is for what nobody was there to notice. */
const SWEEP_MS = 30_000

/** Now and then: sessions that lost their worker unseen are looked after, and sessions that nobody serves any more get a time at which they are forgotten. */
export class SessionSweep {
  readonly #needs: SweepNeeds

  constructor (needs: SweepNeeds) { this.#needs = needs }

  /** Goes on until the signal aborts. */
  async run (): Promise<void> {
    const { raising, clock, log, signal } = this.#needs
    while (!signal.aborted) {
      await sleep(clock, SWEEP_MS, signal).catch(() => {})
      if (signal.aborted) return
      try {
        const found = await raising.recover()
        if (found.raised + found.failed > 0) log.warn(found, 'sessions without a worker found')
        await this.keepTime()
      } catch (err) {
        if (!signal.aborted) log.warn({ err }, 'sweep of sessions failed; the next one tries again')
      }
    }
  }

  /** Every session that nobody serves, and whose time is not without end, has a time at which it is forgotten. */
  async keepTime (): Promise<void> {
    const { sessions, timers, setTimer, clock } = this.#needs
    let cursor: string | undefined
    do {
      const page = await sessions.list({ cursor, limit: 1000 })
      for (const record of page.items) {
        const keptMs = this.#keptMs(record)
        if (keptMs !== undefined && await timers.get(RETENTION, record.sessionId) === undefined) await setTimer(RETENTION, record.sessionId, clock.now() + keptMs)
      }
      cursor = page.next
    } while (cursor !== undefined && !this.#needs.signal.aborted)
  }

  /** Its time has come: the handler of the timer. */
  async forget (sessionId: string): Promise<void> {
    const record = await this.#needs.sessions.get(sessionId)
    if (record === undefined || this.#keptMs(record) === undefined) return
    this.#needs.log.info({ sessionId, state: record.state, durable: record.durable }, 'session forgotten: nobody asked for it any more')
    await this.#needs.launcher.close(sessionId)
  }

  /** How long a session stays that nobody asks for; undefined: until it is closed. Whoever asks for a durable one has it raised, which takes its time back. */
  #keptMs ({ state, durable, worker }: SessionRecord): number | undefined {
    const { endedRetentionMs, durableRetentionMs } = this.#needs
    if (state === 'Finished' || (state === 'Failed' && !durable)) return endedRetentionMs
    if (worker !== undefined || state === 'Starting' || state === 'Running') return undefined
    if (!durable) return endedRetentionMs
    return durableRetentionMs === 0 ? undefined : durableRetentionMs
  }
}
