import { SoaError } from '../../core/errors.ts'
import { machine, type Machine } from '../../core/machine.ts'
import type { Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { DuplexChannel } from '../../transport/channel.ts'
import type { ClientView } from '../contract.ts'
import { BROKER_CLIENT, CLIENT_STATUS, type BrokerClientState } from './broker-client.states.ts'
import type { ClientQueue } from './client-queue.ts'
import { ResponsePusher, type Wanted } from './response-pusher.ts'
import { ResponseReader, type Position, type PulledPage, type ReadEnd } from './response-reader.ts'
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
  gone: (client: BrokerClient, why: Leaving) => void
  log: { info (facts: object, message: string): void, warn (facts: object, message: string): void }
}

/** Why a client is let go of: its clock, its own wish, or that its last channel was closed with nothing left to do. */
export type Leaving = 'idle' | 'purge' | 'gone'

/** One client of a session: its state, its idle clock and who reads for it. The messages are in its ClientQueue. */
export class BrokerClient {
  readonly queue: ClientQueue
  readonly #needs: BrokerClientNeeds
  readonly #life: Machine<typeof BROKER_CLIENT>
  #disarm: (() => void) | undefined
  readonly reader: ResponseReader
  #pusher: ResponsePusher | undefined
  #left: Leaving | undefined
  /** Channels open for it; HTTP opens none. */
  #channels = 0
  /** Its last channel was closed. */
  #isDeserted = false
  /** It sends without waiting to hear that a request has arrived, as HPC's client does over net.tcp: when its channels are gone it has to begin its batch anew. */
  #sendsBlindly = false
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
    const { queue, isDurable, clock } = needs
    this.reader = new ResponseReader({ queue, isDurable, throttle: { remove: count => queue.acknowledged(count) }, clock, gone: () => this.#left === undefined ? undefined : new SoaError(this.#left === 'purge' ? 'ClientPurged' : 'ClientTimeout', {}) })
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
      this.#goIfDeserted()
    }
  }

  /**
   * A channel is open for this client, until the result is called. When the last one is closed, HPC's rules hold ([broker-behaviour] 2.6) for a client that sends
   * blindly: what it has not flushed is forgotten, and it goes as soon as it has nothing to wait for. One that hears of each request knows what is here,
   * and may come back for it: its idle clock decides.
   */
  connect (): () => void {
    this.#channels++
    this.#isDeserted = false
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      if (--this.#channels > 0) return
      this.#isDeserted = true
      // Let go of before: the queue is another object's now.
      if (this.#sendsBlindly && this.#left === undefined) this.queue.desert()
      this.#goIfDeserted()
    }
  }

  #goIfDeserted (): void {
    const { queue } = this
    if (this.#isDeserted && queue.outstanding === 0 && this.#calls === 0 && (this.#sendsBlindly || queue.endOfMessages || queue.total + queue.uncommitted === 0)) this.#leave('gone')
  }

  #leave (why: Leaving): void {
    if (!this.#life.fire(why)) return
    this.#left = why
    this.queue.restart()
    this.#disarm?.()
    this.queue.changed.tell()
    this.#needs.gone(this, why)
  }

  /**
   * A request with UserData: stored. Resolves when the store has it.
   * @param isAcknowledged its sender is told so; one who is not sends blindly
   */
  async accept (envelope: Envelope, batchId: number, signal: AbortSignal, isAcknowledged = true): Promise<void> {
    if (!isAcknowledged) this.#sendsBlindly = true
    this.refuseUnlessConnected()
    await this.#needs.throttle.open(signal)
    this.refuseUnlessConnected()
    const refusal = await this.queue.accept(envelope, batchId, isAcknowledged)
    if (refusal === 'olderBatch') throw new SoaError('InvalidArgument', { argument: 'HPCServer2008_Broker_ClientInstanceIdNS', why: `batch ${batchId} is over, a newer one has begun` })
    if (refusal === 'ended') throw new SoaError('Broker_EOMReject_EndRequests', {})
    this.touch()
  }

  /** A request that came on a way on which its sender reads no answer was refused: Flush or EndRequests will tell. */
  refused (error: unknown): void { this.queue.refused(error) }

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
    await this.#commit(count, { ...options, endOfMessages: false })
    this.settled()
  }

  async endRequests (count: number, options: { batchId: number, timeoutMs: number, signal: AbortSignal }): Promise<void> {
    this.#refuseEnd()
    await this.#commit(count, { ...options, endOfMessages: true })
    if (this.queue.endOfMessages) this.#life.fire('endRequests')
    this.settled()
  }

  /** Whoever waits for its Flush is neither idle nor gone: what it commits must not be forgotten in the same moment. */
  async #commit (count: number, options: Parameters<ClientQueue['commit']>[1]): Promise<void> {
    const end = this.beginCall()
    try { await this.queue.commit(count, options) } finally { end() }
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
    this.#goIfDeserted()
  }

  jobEnded (): void {
    this.#life.fire('jobEnded')
    this.queue.changed.tell()
    this.touch()
  }

  purge (): void { this.#leave('purge') }

  /** PullResponses: see ResponseReader.pull. A reader that pushes has to give way. */
  async pull (position: Position, count: number, action: string, options: { maxBytes: number, signal: AbortSignal, end: ReadEnd }): Promise<PulledPage> {
    this.touch()
    this.#pusher?.dispose()
    this.#pusher = undefined
    const page = await this.reader.pull(position, count, action, options)
    this.#read(page.endOfMessages)
    return page
  }

  /** GetResponses: pushes down the channel. One reader at a time: a call that is not one more of the last one's ends that one ([broker-behaviour] 2.7). */
  getResponses (wanted: Wanted, channel: DuplexChannel, end: ReadEnd): void {
    this.touch()
    if (this.#pusher?.serves(wanted, channel) !== true) {
      this.#pusher?.dispose()
      const { action, clientData } = wanted
      this.#pusher = new ResponsePusher({
        reader: this.reader,
        channel,
        action,
        clientData,
        end,
        pushed: isEnd => this.#read(isEnd),
        failed: error => { this.#needs.log.warn({ clientId: this.queue.displayId, err: error as Error }, 'responses could not be pushed'); channel.end() },
      })
    }
    this.#pusher?.want(wanted)
  }

  #read (isEnd: boolean): void {
    if (isEnd) this.#life.fire('getResponses')
    this.touch()
  }

  view (): ClientView { return this.queue.view(this.#life.state, this.status) }
}
