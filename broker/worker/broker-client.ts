import { SoaError } from '../../core/errors.ts'
import { machine, type Machine } from '../../core/machine.ts'
import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import type { ClientView } from '../contract.ts'
import { BROKER_CLIENT, CLIENT_STATUS, type BrokerClientState } from './broker-client.states.ts'
import type { ClientQueue } from './client-queue.ts'
import type { Throttle } from './throttle.ts'

export interface BrokerClientNeeds {
  queue: ClientQueue
  isDurable: boolean
  idleTimeoutMs: number
  throttle: Throttle
  clock: Clock
  /** The job has ended: only responses can be read. */
  isJobEnded: boolean
  /** Told once, when the client is let go of. */
  gone: (client: BrokerClient, why: 'idle' | 'purge') => void
  log: { info (facts: object, message: string): void }
}

/** Why reading cannot go on after what is stored: the session was canceled or failed. */
export type ReadEnd = () => SoaError | undefined

export interface PulledPage { responses: StoredResponse[], endOfMessages: boolean }

/** One client of a session: its state, its idle clock and its reading cursor. The messages are in its ClientQueue. */
export class BrokerClient {
  readonly queue: ClientQueue
  readonly #needs: BrokerClientNeeds
  readonly #life: Machine<typeof BROKER_CLIENT>
  #disarm: (() => void) | undefined
  /** Place of the next response for position `Current`. */
  #cursor = 0
  /** Interactive: everything before this place has been delivered and freed. */
  #released = 0
  #reading: Promise<unknown> = Promise.resolve()
  /** Calls in the same exchange that are not answered yet. */
  #calls = 0

  constructor (needs: BrokerClientNeeds) {
    this.#needs = needs
    this.queue = needs.queue
    // [broker-behaviour] 2.1: what a client object is when it is made, from what its queue says.
    const start: BrokerClientState = needs.queue.isAllProcessed || needs.isJobEnded ? 'GetResponse' : needs.queue.endOfMessages ? 'EndRequests' : 'ClientConnected'
    this.#life = machine(BROKER_CLIENT, start, (from, event, to) => {
      needs.log.info({ clientId: needs.queue.displayId, from, event, to }, 'broker client changed state')
    })
    if (start !== 'EndRequests') this.touch()
  }

  get key (): string { return this.queue.key }
  get state (): BrokerClientState { return this.#life.state }
  get status (): (typeof CLIENT_STATUS)[BrokerClientState] { return CLIENT_STATUS[this.#life.state] }

  /** The idle clock starts again; it stands while work is outstanding ([broker-behaviour] 2.6). */
  touch (): void {
    this.#disarm?.()
    this.#disarm = undefined
    if (this.#life.state === 'Disconnected' || this.#life.state === 'EndRequests' || this.queue.outstanding > 0 || this.#calls > 0) return
    this.#disarm = this.#needs.clock.after(this.#needs.idleTimeoutMs, () => this.#leave('idle'), { unref: true })
  }

  /** A call in the same exchange begins; the result ends it. While one runs the client is not idle. */
  beginCall (): () => void {
    this.#calls++
    this.touch()
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#calls--
      this.touch()
    }
  }

  #leave (why: 'idle' | 'purge'): void {
    if (!this.#life.fire(why)) return
    this.#disarm?.()
    this.queue.changed.tell()
    this.#needs.gone(this, why)
  }

  /** A request with UserData: stored. Resolves when the store has it. */
  async accept (envelope: Envelope, batchId: number, signal: AbortSignal): Promise<void> {
    this.refuseUnlessConnected()
    await this.#needs.throttle.open(signal)
    this.refuseUnlessConnected()
    const refusal = await this.queue.accept(envelope, batchId)
    if (refusal === 'olderBatch') throw new SoaError('InvalidArgument', { argument: 'HPCServer2008_Broker_ClientInstanceIdNS', why: `batch ${batchId} is over, a newer one has begun` })
    if (refusal === 'ended') throw new SoaError('Broker_EOMReject_EndRequests', {})
    this.#needs.throttle.add()
    this.touch()
  }

  /** Requests are taken only in ClientConnected; a late one gets a fault where HPC Pack dropped it silently. */
  refuseUnlessConnected (): void {
    switch (this.#life.state) {
      case 'ClientConnected': return
      case 'EndRequests': case 'AllRequestDone': throw new SoaError('Broker_EOMReject_EndRequests', {})
      case 'GetResponse': throw new SoaError('Broker_EOMReject_GetResponse', {})
      case 'Disconnected': throw new SoaError('ClientPurged', {})
    }
  }

  async flush (count: number, options: { batchId: number, timeoutMs: number, signal: AbortSignal }): Promise<void> {
    if (this.#life.state !== 'ClientConnected') throw new SoaError('Broker_FlushRejected', { state: this.#life.state })
    await this.queue.commit(count, { ...options, endOfMessages: false })
    this.settled()
  }

  async endRequests (count: number, options: { batchId: number, timeoutMs: number, signal: AbortSignal }): Promise<void> {
    this.#refuseEnd()
    await this.queue.commit(count, { ...options, endOfMessages: true })
    if (this.queue.endOfMessages) this.#life.fire('endRequests')
    this.settled()
  }

  #refuseEnd (): void {
    switch (this.#life.state) {
      case 'ClientConnected': return
      case 'GetResponse': case 'AllRequestDone': throw new SoaError('Broker_EOMReject_GetResponse', {})
      case 'EndRequests': throw new SoaError('Broker_EOMReject_EndRequests', {})
      case 'Disconnected': throw new SoaError('Broker_EOMRejected', { state: this.#life.state })
    }
  }

  /** Called after every stored response and commit: has the last one come? */
  settled (): void {
    if (this.queue.isAllProcessed) this.#life.fire('allProcessed')
    this.touch()
  }

  jobEnded (): void {
    this.#life.fire('jobEnded')
    this.queue.changed.tell()
    this.touch()
  }

  purge (): void { this.#leave('purge') }

  /**
   * Collects responses from the cursor on (PullResponses): waits until `count` are there, or the end. Fewer come back only with the end,
   * or when `maxBytes` is reached (at least one does).
   * @param position Begin: all again (interactive: those not yet acknowledged by a later call) · Current: after the last
   * @param action only responses to requests of this action; '' for all
   */
  pull (position: 'Begin' | 'Current', count: number, action: string, options: { maxBytes: number, signal: AbortSignal, end: ReadEnd }): Promise<PulledPage> {
    // One reader at a time: several outstanding calls are served in turn, each with its own count ([broker-behaviour] 2.7).
    const turn = this.#reading.then(() => this.#pull(position, count, action, options))
    this.#reading = turn.catch(() => undefined)
    return turn
  }

  async #pull (position: 'Begin' | 'Current', count: number, action: string, { maxBytes, signal, end }: { maxBytes: number, signal: AbortSignal, end: ReadEnd }): Promise<PulledPage> {
    this.touch()
    const { queue } = this
    if (position === 'Begin') this.#cursor = this.#released
    // Asking for more is the acknowledgement of what came before: a page lost with its connection can be read again from Begin.
    else await this.#releaseDelivered()
    const responses: StoredResponse[] = []
    let left = maxBytes
    let cursor = this.#cursor
    for (;;) {
      signal.throwIfAborted()
      // Read before the rows are: what is stored in between is found in the next round.
      const isComplete = queue.isAllProcessed
      const page = await queue.read(cursor, count - responses.length, left)
      for (const response of page) {
        cursor = response.at + 1
        if (action !== '' && response.requestAction !== action) continue
        left -= response.envelope.body.length
        responses.push(response)
      }
      const isEnd = isComplete && cursor >= queue.responses
      if (isEnd || responses.length >= count || (left <= 0 && responses.length > 0)) {
        this.#cursor = cursor
        if (isEnd) this.#life.fire('getResponses')
        this.touch()
        return { responses, endOfMessages: isEnd }
      }
      if (page.length > 0) continue
      const ended = this.#life.state === 'Disconnected' ? new SoaError('ClientPurged', {}) : end()
      if (ended !== undefined) {
        if (responses.length === 0) throw ended
        this.#cursor = cursor
        return { responses, endOfMessages: false }
      }
      if (cursor < queue.responses || queue.isAllProcessed !== isComplete) continue // stored or ended while we read
      await queue.changed.next(this.#needs.clock, -1, signal)
    }
  }

  /** Place of the next response that a reader would get. */
  position (from: 'Begin' | 'Current'): number { return from === 'Begin' ? this.#released : this.#cursor }

  async #releaseDelivered (): Promise<void> {
    if (this.#needs.isDurable || this.#cursor === this.#released) return
    const delivered = this.#cursor - this.#released
    this.#released = this.#cursor
    await this.queue.release(this.#cursor - 1)
    this.#needs.throttle.remove(delivered)
  }

  view (): ClientView {
    const { queue } = this
    return {
      clientId: queue.displayId,
      state: this.#life.state,
      status: this.status,
      total: queue.total,
      flushed: queue.committed,
      processed: queue.responses,
      faulted: queue.faults,
      endRequests: queue.endOfMessages,
    }
  }
}
