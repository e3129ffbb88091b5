import { isSoaError } from '../../core/errors.ts'
import type { StoredClient } from '../../store/message-store.ts'
import type { ClientView } from '../contract.ts'
import { BrokerClient, type BrokerClientNeeds, type Leaving } from './broker-client.ts'
import { ClientQueue, type QueueNeeds } from './client-queue.ts'
import { Purges } from './purges.ts'

interface Needs extends Omit<QueueNeeds, 'predecessorGone' | 'throttle'>, Pick<BrokerClientNeeds, 'idleTimeoutMs' | 'throttle'> {
  log: QueueNeeds['log'] & BrokerClientNeeds['log']
  /** By lower-case id; written here only. */
  queues: Map<string, ClientQueue>
  /** Aborted when the session ends. */
  signal: AbortSignal
  isJobEnded: () => boolean
  came: () => void
  lastLeft: () => void
  /** A client's queue is being removed. */
  forgotten: (clientKey: string) => void
  failed: (error: unknown) => void
}

/** The clients of a session, and their queues, which outlive them ([broker-behaviour] 2.1, 2.6). Both by lower-case id. */
export class SessionClients {
  readonly #needs: Needs
  readonly #clients = new Map<string, BrokerClient>()
  readonly #queues: Map<string, ClientQueue>
  readonly #purges: Purges

  constructor (needs: Needs) {
    this.#needs = needs
    this.#queues = needs.queues
    this.#purges = new Purges(needs.clock, needs.signal)
  }

  /** Clients that are there; queues may wait for theirs. */
  get size (): number { return this.#clients.size }
  find (clientKey: string): BrokerClient | undefined { return this.#clients.get(clientKey) }

  /** A client with work left goes on at once, with nobody connected; others wait until somebody asks for them ([broker-behaviour] 1.6). */
  recover (stored: StoredClient): void {
    const queue = this.#queue(stored.displayId, stored)
    if (queue.outstanding > 0) this.get(queue.displayId)
  }

  /** The client of this id, made when it is first asked for. */
  get (displayId: string): BrokerClient {
    const known = this.#clients.get(displayId.toLowerCase())
    if (known !== undefined) { known.touch(); return known }
    const { isDurable, idleTimeoutMs, throttle, clock, log, isJobEnded, came } = this.#needs
    const client = new BrokerClient({
      queue: this.#queue(displayId), isDurable, idleTimeoutMs, throttle, clock, isJobEnded: isJobEnded(), gone: (gone, why) => this.#gone(gone, why), log,
    })
    this.#clients.set(client.key, client)
    came()
    return client
  }

  /** Removes a client and all of its messages; one that is gone already: waits until its last row is. */
  async purge (clientKey: string): Promise<void> {
    const queue = this.#queues.get(clientKey)
    this.#clients.get(clientKey)?.purge()
    await (queue === undefined ? this.#purges.under(clientKey) : this.#forget(queue))
  }

  /** Only responses can be read from now on. */
  jobEnded (): void { for (const client of this.#clients.values()) client.jobEnded() }

  /** Whoever waits for requests or responses looks again. */
  tell (): void { for (const queue of this.#queues.values()) queue.changed.tell() }

  views (): ClientView[] {
    return [...this.#queues.values()].map(queue => this.#clients.get(queue.key)?.view() ?? queue.view('Disconnected', queue.isAllProcessed ? 'Finished' : 'Ready'))
  }

  #queue (displayId: string, stored?: StoredClient): ClientQueue {
    const key = displayId.toLowerCase()
    let queue = this.#queues.get(key)
    if (queue === undefined) this.#queues.set(key, queue = new ClientQueue({ ...this.#needs, predecessorGone: this.#purges.under(key) }, displayId, stored))
    return queue
  }

  #gone (client: BrokerClient, why: Leaving): void {
    const { isDurable, lastLeft, failed } = this.#needs
    this.#clients.delete(client.key)
    const { queue } = client
    // What becomes of the data when the client object goes ([broker-behaviour] 2.6): a durable queue that flushed anything stays, an interactive one only after EndRequests.
    const isKept = isDurable ? queue.isFlushed : queue.endOfMessages
    if (why !== 'purge' && !isKept) this.#forget(queue).catch(error => { if (!isSoaError(error, 'StorageServiceNotAvailble')) failed(error) })
    if (this.#clients.size === 0) lastLeft()
  }

  #forget (queue: ClientQueue): Promise<void> {
    this.#queues.delete(queue.key)
    this.#needs.forgotten(queue.key)
    return this.#purges.begin(queue)
  }
}
