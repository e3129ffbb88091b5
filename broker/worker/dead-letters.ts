import { cutText } from '../../core/cut-text.ts'
import { SoaError, isSoaError } from '../../core/errors.ts'
import { sleep, type Clock } from '../../core/clock.ts'
import type { DeadLetter, DeadLetterStore, NewLetter } from '../../store/dead-letters.ts'
import { withTextBody } from '../../wire/soap/body-form.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import type { DeadLetterPage, DeadLetterView, WholeDeadLetter } from '../contract.ts'
import type { ClientQueue } from './client-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'

interface Needs {
  sessionId: string
  store: DeadLetterStore
  requests: RequestQueue
  counters: SessionCounters
  queueOf: (clientKey: string) => ClientQueue | undefined
  /** Throws when the session works no more. */
  refuseUnlessTaking: () => void
  workCame: () => void
  clock: Clock
  /** Aborted when the session ends. */
  signal: AbortSignal
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void }
}

/** How much of why a request was given up is kept with it: the fault has it whole. */
const WHY_KEPT = 4000
const MOST_LISTED = 1000
const AGAIN_MS = 1000
const LETTER_ID = /^[1-9]\d{0,14}$/

/** What is kept of a request that is given up. */
export function letterOf (request: BrokerRequest, sent: Envelope, displayId: string, why: string, now: number): NewLetter {
  return { displayId, when: new Date(now).toISOString(), why: cutText(why, WHY_KEPT), tries: request.history ?? [], request: sent, lane: request.lane }
}

/**
 * The requests of a session that were given up: looked at, run again, removed. A request that runs again has its fault all the while; its response takes the
 * fault's place in one step with the end of the letter, so that whoever reads from Begin gets it. A broker that raises the session goes on with it.
 */
export class DeadLetters {
  readonly #needs: Needs
  /** By letter. */
  readonly #running = new Map<string, BrokerRequest>()

  constructor (needs: Needs) { this.#needs = needs }

  /** Goes on with what an earlier broker of the session was running again. */
  async recover (): Promise<void> {
    let next: string | undefined = ''
    while (next !== undefined) {
      const page = await this.#needs.store.page({ after: next, limit: MOST_LISTED })
      for (const letter of page.items) if (letter.isReplaying) this.#run(letter)
      next = page.next
    }
  }

  async page (query: URLSearchParams): Promise<DeadLetterPage> {
    const limit = Number(query.get('limit') ?? 100)
    const after = query.get('cursor') ?? ''
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED) throw new SoaError('InvalidArgument', { argument: 'limit', why: `1 to ${MOST_LISTED}, not ${query.get('limit') ?? ''}` })
    if (!/^\d{0,15}$/.test(after)) throw new SoaError('InvalidArgument', { argument: 'cursor', why: `"next" of the page before is expected, not "${after.slice(0, 100)}"` })
    const { items, ...page } = await this.#needs.store.page({ clientId: query.get('client')?.toLowerCase(), after, limit })
    return { items: items.map(letter => this.#view(letter)), ...page }
  }

  async show (id: string): Promise<WholeDeadLetter> {
    const { letter, request } = await this.#find(id)
    return { ...this.#view(letter), body: Buffer.from(withTextBody(request).body).toString('utf8'), envelope: writeEnvelope(request, { soap: 12, addressing: 'wsa' }).toString('utf8') }
  }

  /** Again while it runs: nothing more happens. */
  async replay (id: string): Promise<DeadLetterView> {
    const { store, queueOf, refuseUnlessTaking, workCame, log } = this.#needs
    refuseUnlessTaking()
    const { letter, lane } = await this.#find(id)
    if (queueOf(letter.clientId) === undefined) throw this.#unknown(id)
    const begun = await store.begin(id)
    if (begun === 'letterGone') throw this.#unknown(id)
    if (begun === 'placeGone') throw new SoaError('deadLetterRead', { id })
    if (!this.#running.has(id)) {
      log.info({ deadLetter: id, clientId: letter.displayId, messageId: letter.messageId }, 'a dead letter runs again')
      this.#run(letter, lane)
      workCame()
    }
    return this.#view(letter)
  }

  /** Of one that runs again the fault stays, whatever comes of it. */
  async remove (id: string): Promise<void> {
    if (!LETTER_ID.test(id)) throw this.#unknown(id)
    const request = this.#running.get(id)
    if (request !== undefined) this.#over(id, request)
    await this.#needs.store.remove(id)
  }

  /** No work is done any more: what ran again is dead as before. */
  stop (): void { for (const [id, request] of this.#running) this.#over(id, request) }

  /** How many run again; those whose client was purged do not. */
  get running (): number {
    for (const [id, request] of this.#running) if (request.isDropped === true || this.#needs.queueOf(request.clientKey) !== request.owner) this.#over(id, request)
    return this.#running.size
  }

  #run (letter: DeadLetter, lane?: number): void {
    const { queueOf, requests, counters } = this.#needs
    const owner = queueOf(letter.clientId)
    if (owner === undefined) return
    const request: BrokerRequest = { clientKey: letter.clientId, owner, seq: letter.seq, tries: 0, envelope: undefined, replayOf: letter, lane }
    this.#running.set(letter.id, request)
    counters.replaying = this.#running.size
    requests.put(request)
  }

  #over (id: string, request: BrokerRequest): void {
    request.isDropped = true
    this.#running.delete(id)
    this.#needs.counters.replaying = this.#running.size
  }

  /** Reads its request when its turn comes. False: it was removed. */
  async load (request: BrokerRequest): Promise<boolean> {
    const { id } = request.replayOf as DeadLetter
    request.envelope ??= (await this.#needs.store.read(id))?.request
    if (request.envelope === undefined) this.#over(id, request)
    return request.envelope !== undefined
  }

  /** Its turn comes again; until then nothing is kept in memory. */
  putBack (request: BrokerRequest): void {
    request.envelope = undefined
    this.#needs.requests.putBack(request)
  }

  /** @param why it was given up once more */
  async answered (request: BrokerRequest, response: Envelope, isFault: boolean, requestAction: string, why?: string): Promise<void> {
    const { store, queueOf, counters, clock, log } = this.#needs
    const letter = request.replayOf as DeadLetter
    const facts = { deadLetter: letter.id, clientId: letter.displayId, messageId: letter.messageId }
    if (this.#running.get(letter.id) !== request || queueOf(letter.clientId) !== request.owner) return // removed or purged meanwhile
    const dead = why === undefined ? undefined : letterOf(request, request.envelope as Envelope, letter.displayId, why, clock.now())
    const end = await this.#patiently(() => store.end(letter, { response, isFault, requestAction, dead }), facts)
    this.#over(letter.id, request)
    if (end !== 'replaced') log.warn({ ...facts, end }, 'the response of a dead letter has no place any more')
    else if (!isFault) {
      counters.faulted--
      counters.mended++
      queueOf(letter.clientId)?.mended()
    }
  }

  /** A store that is away for a while keeps it waiting here, as any response. */
  async #patiently<T> (work: () => Promise<T>, facts: object): Promise<T> {
    const { clock, signal, log } = this.#needs
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!isSoaError(error, 'StorageServiceNotAvailble', 'StorageSpaceNotSufficient') || signal.aborted) throw error
        log.warn({ ...facts, err: error }, 'the response of a dead letter could not be stored yet')
        await sleep(clock, AGAIN_MS, signal)
      }
    }
  }

  async #find (id: string): Promise<NonNullable<Awaited<ReturnType<DeadLetterStore['read']>>>> {
    const found = LETTER_ID.test(id) ? await this.#needs.store.read(id) : undefined
    if (found === undefined) throw this.#unknown(id)
    return found
  }

  #unknown (id: string): SoaError { return new SoaError('noDeadLetter', { sessionId: this.#needs.sessionId, id: id.slice(0, 100) }) }

  #view ({ id, displayId, seq, when, why, tries, messageId, action, userData }: DeadLetter): DeadLetterView {
    return { id, sessionId: this.#needs.sessionId, clientId: displayId, seq, messageId, action, userData, state: this.#running.has(id) ? 'Replaying' : 'Dead', at: when, why, tries: [...tries] }
  }
}
