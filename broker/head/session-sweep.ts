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
  clock: Clock
  log: Logger
  signal: AbortSignal
}

/** Name of the durable timer after which an ended session is forgotten. */
export const RETENTION = 'retention'
/** A worker's death is noticed at once where its head lives; this is for what nobody was there to notice. */
const SWEEP_MS = 30_000

/** Now and then: sessions that lost their worker unseen are looked after, and sessions that have ended get a time at which they are forgotten. */
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

  /** Every session that has ended has a time at which it is forgotten. */
  async keepTime (): Promise<void> {
    const { sessions, timers, setTimer, endedRetentionMs, clock } = this.#needs
    for (const state of ['Finished', 'Failed'] as const) {
      let cursor: string | undefined
      do {
        const page = await sessions.list({ state, cursor, limit: 1000 })
        for (const record of page.items) {
          if (isForgettable(record) && await timers.get(RETENTION, record.sessionId) === undefined) await setTimer(RETENTION, record.sessionId, clock.now() + endedRetentionMs)
        }
        cursor = page.next
      } while (cursor !== undefined && !this.#needs.signal.aborted)
    }
  }

  /** Its time has come: the handler of the timer. */
  async forget (sessionId: string): Promise<void> {
    const record = await this.#needs.sessions.get(sessionId)
    if (record !== undefined && isForgettable(record)) await this.#needs.launcher.close(sessionId)
  }
}

/** Over, and nothing is kept for anybody: what a durable session has stored is given up by its client only. */
const isForgettable = ({ state, durable }: SessionRecord): boolean => state === 'Finished' || (state === 'Failed' && !durable)
