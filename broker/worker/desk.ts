import { isSoaError } from '../../core/errors.ts'
import { sleep, type Clock } from '../../core/clock.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { retryOperationFault } from '../../wire/soap/fault.ts'
import type { BrokerClient } from './broker-client.ts'
import type { ClientQueue } from './client-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { Desk } from './dispatcher.ts'
import type { BrokerRequest, RequestQueue } from './request-queue.ts'
import type { Settler } from './settler.ts'

interface Needs {
  requests: RequestQueue
  settler: Settler
  counters: SessionCounters
  queueOf: (key: string) => ClientQueue | undefined
  clientOf: (key: string) => BrokerClient | undefined
  /** The operation's request action for a response; from the request, or by its body element. */
  requestAction: (request: Envelope) => string
  resendLimit: number
  clock: Clock
  /** Aborted when the session ends. */
  signal: AbortSignal
  failed: (error: unknown) => void
  log: { warn (facts: object, message: string): void }
}

/** Where dispatchers get requests from and bring answers to: the session's side of the Desk. */
export function sessionDesk (needs: Needs): Desk {
  const { requests, settler, counters, queueOf, clientOf, failed } = needs

  /** The request's queue; undefined once it was purged, also when another one has its client id now. */
  const owned = (request: BrokerRequest): ClientQueue | undefined => {
    const queue = queueOf(request.clientKey)
    return queue === request.owner ? queue : undefined
  }

  async function load (request: BrokerRequest): Promise<boolean> {
    if (request.envelope !== undefined) return true
    try {
      return await owned(request)?.load(request) ?? false
    } catch (error) {
      if (!isSoaError(error, 'StorageServiceNotAvailble')) throw error
      requests.putBack(request)
      return false
    }
  }

  /** A store that is away or full for a while keeps the answer waiting here; the dispatchers stop when there is no room. */
  async function store (queue: ClientQueue, request: BrokerRequest, response: Envelope, isFault: boolean, requestAction: string): Promise<void> {
    for (;;) {
      try {
        await queue.complete(request, response, isFault, requestAction)
        clientOf(request.clientKey)?.settled()
        return
      } catch (error) {
        if (!isSoaError(error, 'StorageServiceNotAvailble', 'StorageSpaceNotSufficient') || needs.signal.aborted) throw error
        needs.log.warn({ err: error, clientId: queue.displayId, seq: request.seq }, 'response could not be stored yet')
        await sleep(needs.clock, 1000, needs.signal)
      }
    }
  }

  async function complete (request: BrokerRequest, answer: Envelope | undefined, isFault: boolean): Promise<void> {
    counters.processing--
    const queue = owned(request)
    if (request.answer === undefined && queue === undefined) return // purged meanwhile
    const sent = request.envelope as Envelope
    const requestAction = needs.requestAction(sent)
    // One-way: an empty response, so that counts and the end mark come out as for any other request.
    const reply: Envelope = answer ?? { ...sent, action: `${requestAction}Response`, otherHeaders: [], prefixesInScope: [], body: new Uint8Array() }
    const response: Envelope = { ...reply, relatesTo: sent.messageId, userData: sent.userData, clientId: undefined }
    if (request.answer !== undefined) {
      counters.processed++
      counters.directlyReplied++
      if (isFault) counters.faulted++
      request.answer(response, isFault)
      return
    }
    if (queue === undefined) return
    store(queue, request, response, isFault, requestAction).catch(error => { if (!needs.signal.aborted) failed(error) })
    await settler.room()
  }

  return {
    requests,
    load,
    started () { counters.processing++ },
    complete,
    async giveUp (request, why, taskId) {
      const sent = request.envelope
      if (sent === undefined) { counters.processing--; return } // purged meanwhile
      await complete(request, retryOperationFault(sent, { reason: why, retryCount: needs.resendLimit + 1, lastFailedServiceId: taskId }), true)
    },
    putBack (request) {
      counters.processing--
      if (request.answer !== undefined || owned(request) !== undefined) requests.putBack(request)
    },
  }
}
