import { setMaxListeners } from 'node:events'
import type { Agent } from 'undici'
import { isLoopback } from '../config/addresses.ts'
import { systemClock } from '../core/clock.ts'
import { BrokenError, HeadsError, ProblemError, whyOf } from './errors.ts'
import type { Heads } from './heads.ts'
import { restOnce } from './rest.ts'
import { persist } from './retry.ts'

/** How a session is reached now: the head that was asked, and the endpoints that it told. A new object each time somebody has looked. */
export interface Place {
  readonly head: string
  /** `http://…/{id}/Http` */
  readonly http: string
  /** `net.tcp://…/{id}/NetTcp`; undefined: the head serves none. */
  readonly netTcp: string | undefined
}

export interface WayNeeds {
  readonly agent: Agent
  readonly heads: Heads
  readonly sessionId: string
  readonly place: Place
  /** Messages go over net.tcp: a head without it is of no use. */
  readonly overNetTcp: boolean
  /** Connections to the place before have had their time. */
  readonly moved: () => void
}

export interface Persistence { readonly retryForMs: number, readonly signal?: AbortSignal | undefined }
interface Seen { readonly endpoints: { readonly http: string, readonly netTcp: string | null } }
interface HeadSeen { readonly http: string, readonly machine: string }

/** So long nothing may come back through a head before it is asked whether it lives; and so long it has to say so. A machine that is gone without a word, or stands still, cuts no connection. */
const QUIET_MS = 10_000
const PROBE_TIMEOUT_MS = 10_000
/** Longest wait for the list of heads: nobody needs it now. */
const LIST_TIMEOUT_MS = 5000

/** The way to one session: through one head for as long as that serves, then through another one that it is found by. */
export class Way {
  readonly #needs: WayNeeds
  #place: Place
  #looking: Promise<void> | undefined
  /** Aborted when the head of this place does not answer; attempts through it end with it. */
  #silence = newSilence()
  #underWay = 0
  #heardAt = 0
  #isWatched = false

  constructor (needs: WayNeeds) {
    this.#needs = needs
    this.#place = needs.place
  }

  get place (): Place { return this.#place }

  /**
   * `persist` for what goes through a head: before each further try it is looked which head serves the session.
   * With one head there is nothing to look for.
   *
   * @param attempt what waits for long ends when `silence` aborts, with its reason
   */
  async persist<T> (what: string, { retryForMs, signal }: Persistence, attempt: (failed: number, silence: AbortSignal) => Promise<T>): Promise<T> {
    let tried = this.#place
    const failures = new Map<string, string>()
    const blame = (last: unknown): string => failures.size < 2 ? whyOf(last) : [...failures].map(([head, why]) => `${head}: ${why}`).join('; ')
    return await persist(what, { clock: systemClock, retryForMs, signal, blame }, async failed => {
      try {
        if (this.#silence.signal.aborted || (failed > 0 && this.#needs.heads.areSeveral)) await this.#leave(tried, failed > 1, signal)
        tried = this.#place
        return await this.#watched(silence => attempt(failed, silence))
      } catch (error) {
        if (error instanceof HeadsError) for (const { head, error: one } of error.failures) failures.set(head, whyOf(one))
        else failures.set(tried.head, whyOf(error))
        throw error
      }
    })
  }

  /**
   * Asks the head that the session was reached through which others there are, so that one name is enough to be told. Only when that head is in the list
   * by the very address that was used: else a proxy stands between, or the addresses are not those of this network. Never fails.
   */
  async learn (): Promise<void> {
    const { agent, heads } = this.#needs
    const { head } = this.#place
    try {
      const { items } = await restOnce<{ items: HeadSeen[] }>(agent, head, { method: 'GET', path: 'heads', isRepeatable: true, signal: AbortSignal.timeout(LIST_TIMEOUT_MS) })
      const [mine, another] = items.filter(({ http }) => isSame(http, head))
      if (mine === undefined || another !== undefined) return
      heads.learn(items.filter(({ http, machine }) => machine === mine.machine || !isLoopback(new URL(http).hostname)).map(({ http }) => http).filter(http => !isSame(http, head)))
    } catch { /* the heads that were named are still known, and the next look asks again */ }
  }

  async #watched<T> (attempt: (silence: AbortSignal) => Promise<T>): Promise<T> {
    const silence = this.#silence.signal
    if (this.#underWay++ === 0) this.#heardAt = systemClock.now()
    if (!this.#isWatched) this.#watch()
    try {
      const answer = await attempt(silence)
      this.#heardAt = systemClock.now()
      return answer
    } finally {
      this.#underWay--
    }
  }

  /** While somebody waits for an answer: looks now and then whether there was one lately, and otherwise asks for one. */
  #watch (): void {
    this.#isWatched = true
    systemClock.after(QUIET_MS, () => {
      void this.#probe().finally(() => {
        this.#isWatched = false
        if (this.#underWay > 0) this.#watch()
      })
    }, { unref: true })
  }

  async #probe (): Promise<void> {
    const { agent, heads } = this.#needs
    const { head } = this.#place
    const silence = this.#silence
    if (!heads.areSeveral || this.#underWay === 0 || systemClock.now() - this.#heardAt < QUIET_MS) return
    const { origin, pathname } = new URL(`${head}/healthz`)
    try {
      await (await agent.request({ origin, path: pathname, method: 'GET', headersTimeout: PROBE_TIMEOUT_MS, bodyTimeout: PROBE_TIMEOUT_MS })).body.dump()
    } catch (error) {
      silence.abort(new BrokenError(`no answer of ${head}`, error as Error))
    }
  }

  /** Whoever fails at a place that others have left already goes where they went. `again`: it failed there before, so others are asked first. */
  async #leave (tried: Place, again: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (this.#place !== tried) return
    this.#looking ??= this.#look(again || this.#silence.signal.aborted ? tried.head : undefined).finally(() => { this.#looking = undefined })
    await orAborted(this.#looking, signal)
  }

  async #look (last: string | undefined): Promise<void> {
    const { heads, moved } = this.#needs
    const before = this.#place
    this.#place = await heads.ask(undefined, head => this.#at(head), last)
    if (this.#silence.signal.aborted) this.#silence = newSilence()
    if (this.#place.http !== before.http || this.#place.netTcp !== before.netTcp) moved()
    void this.learn()
  }

  async #at (head: string): Promise<Place> {
    const { agent, sessionId, overNetTcp } = this.#needs
    const { endpoints: { http, netTcp } } = await restOnce<Seen>(agent, head, { method: 'GET', path: `sessions/${sessionId}`, isRepeatable: true, isOneOfSeveral: true })
    if (overNetTcp && netTcp === null) throw new ProblemError({ status: 503, detail: 'it serves no net.tcp, by which this session\'s messages go' })
    return { head, http, netTcp: netTcp ?? undefined }
  }
}

function newSilence (): AbortController {
  const silence = new AbortController()
  setMaxListeners(0, silence.signal) // as many as there are attempts
  return silence
}

/** Two URLs of one head; whichever way this machine calls itself. */
function isSame (one: string, other: string): boolean {
  const [a, b] = [new URL(one), new URL(other)]
  return a.protocol === b.protocol && a.pathname === b.pathname && a.port === b.port && (a.hostname === b.hostname || (isLoopback(a.hostname) && isLoopback(b.hostname)))
}

function orAborted (work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop)).catch(() => {})
  })
}
