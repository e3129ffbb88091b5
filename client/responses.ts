import { systemClock } from '../core/clock.ts'
import type { Controller } from './controller.ts'
import type { Response } from './response.ts'
import { ClientError } from './errors.ts'
import type { Service } from './service.ts'
import { signalFor } from './signals.ts'
import type { Way } from './way.ts'

export interface ResponsesOptions<O extends string = string> {
  /** `begin` (default): all that are stored. `current`: those not handed out yet. */
  readonly from?: 'begin' | 'current' | undefined
  /** Only responses of this operation. */
  readonly op?: O | undefined
  /** Longest wait for more responses, milliseconds; default 24 h, the longest call that a service may make by default. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ReaderNeeds {
  readonly controller: Controller
  readonly way: Pick<Way, 'persist'>
  readonly openService: () => Promise<Service>
  readonly retryForMs: number
}

/** Most responses of one page, as in HPC Pack's client. */
const LARGEST_PAGE = 512
/** The broker answers when the page is full: pages grow while they come quickly and shrink when they keep the caller waiting. */
const QUICK_MS = 50
const SLOW_MS = 250
const DAY_MS = 86_400_000

/** Pulls pages, remembers what it handed out, and finds its place again after a broken connection: the broker's own place may be ahead of us or, after a restart, behind. */
export class ResponseReader {
  readonly #needs: ReaderNeeds
  /** Message ids handed out or waiting in `#left` since the last `begin`: about 100 bytes each. */
  #seen = new Set<string>()
  /** Pulled and not handed out yet; stays here when a reader goes away, for the next one. */
  #left: Response[] = []
  #readers = 0

  constructor (needs: ReaderNeeds) { this.#needs = needs }

  forget (): void {
    this.#seen.clear()
    this.#left = []
  }

  async * read ({ from = 'begin', op, timeoutMs = DAY_MS, ...options }: ResponsesOptions): AsyncGenerator<Response, void, undefined> {
    const me = ++this.#readers
    const signal = signalFor(options.signal)
    const service = await this.#needs.openService()
    const action = op === undefined ? '' : service.operation(op).action
    if (from === 'begin') this.forget()
    yield * this.#handOut(op, me)

    let position: 'Begin' | 'Current' = from === 'begin' ? 'Begin' : 'Current'
    for (let count = 1; ;) {
      const asked = systemClock.now()
      const page = await this.#needs.way.persist('responses', { retryForMs: this.#needs.retryForMs, signal }, (failed, silence) => {
        // Whether the lost page moved the broker's place is not known, so it is read anew from the beginning, what we have in one go.
        if (failed > 0) { position = 'Begin'; count = Math.max(count, Math.min(this.#seen.size, LARGEST_PAGE)) }
        return this.#needs.controller.pull({ action, position, count }, timeoutMs, AbortSignal.any([signal, silence]))
      })
      position = 'Current'
      const took = systemClock.now() - asked
      if (took < QUICK_MS) count = Math.min(count * 2, LARGEST_PAGE)
      else if (took > SLOW_MS) count = Math.max(1, Math.floor(count / 2))
      this.#left.push(...page.envelopes.map(xml => service.readResponse(xml)).filter(response => this.#isNew(response)))
      yield * this.#handOut(op, me)
      if (page.endOfMessages) return
    }
  }

  #isNew ({ messageId }: Response): boolean {
    if (messageId === '') return true // a broker's fault that answers no request
    if (this.#seen.has(messageId)) return false
    this.#seen.add(messageId)
    return true
  }

  * #handOut (op: string | undefined, me: number): Generator<Response, void, undefined> {
    for (;;) {
      if (me !== this.#readers) throw new ClientError('the responses of this client are being read by a newer iteration')
      const at = op === undefined ? 0 : this.#left.findIndex(response => response.op === op)
      const [response] = at < 0 ? [] : this.#left.splice(at, 1)
      if (response === undefined) return
      yield response
    }
  }
}
