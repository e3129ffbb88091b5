import { isSoaError } from '../../core/errors.ts'
import { sleep, type Clock } from '../../core/clock.ts'
import type { StateChange } from '../../store/message-store.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { BrokerClient } from './broker-client.ts'
import type { ClientQueue } from './client-queue.ts'
import type { SessionCounters } from './counters.ts'
import type { CustomWork } from './custom-work.ts'
import type { Desk } from './dispatcher.ts'
import type { BrokerRequest } from './broker-request.ts'
import type { RequestQueue } from './request-queue.ts'
import type { Settler } from './settler.ts'

interface Needs {
  requests: RequestQueue
  settler: Settler
  counters: SessionCounters
  queueOf: (key: string) => ClientQueue | undefined
  clientOf: (key: string) => BrokerClient | undefined
  /** The operation's request action for a response; from the request, or by its body element. */
  requestAction: (request: Envelope) => string
  custom?: Pick<CustomWork, 'responds' | 'respond' | 'room'> | undefined
  clock: Clock
  /** Aborted when the session ends. */
  signal: AbortSignal
  failed: (error: unknown) => void
  log: { warn (facts: object, message: string): void }
}

/** Where dispatchers get requests from and bring answers to: the session's side of the Desk. */
export function sessionDesk (needs: Needs): Omit<Desk, 'giveUp'> {
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
  async function store (queue: ClientQueue, request: BrokerRequest, response: Envelope, isFault: boolean, requestAction: string, changes?: readonly StateChange[]): Promise<void> {
    for (;;) {
      try {
        await queue.complete(request, response, isFault, requestAction, changes)
        clientOf(request.clientKey)?.settled()
        return
      } catch (error) {
        if (!isSoaError(error, 'StorageServiceNotAvailble', 'StorageSpaceNotSufficient') || needs.signal.aborted) throw error
        needs.log.warn({ err: error, clientId: queue.displayId, seq: request.seq }, 'response could not be stored yet')
        await sleep(needs.clock, 1000, needs.signal)
      }
    }
  }

  /** A custom broker may change the response before anybody has it. */
  async function respond (custom: Pick<CustomWork, 'respond'>, queue: ClientQueue | undefined, request: BrokerRequest, answer: Envelope, fault: boolean, requestAction: string): Promise<void> {
    const responded = await custom.respond(request, answer, fault)
    if (responded === undefined) return
    const { response, isFault, changes } = responded
    if (request.answer !== undefined) reply(request, response, isFault)
    else if (queue !== undefined && owned(request) === queue) await store(queue, request, response, isFault, requestAction, changes)
  }

  function reply (request: BrokerRequest, response: Envelope, isFault: boolean): void {
    if (request.isDropped === true) return // its caller has gone, and it is counted as dropped
    counters.processed++
    counters.directlyReplied++
    counters.replyFetched++
    if (isFault) counters.faulted++
    request.answer?.(response, isFault)
  }

  async function complete (request: BrokerRequest, answer: Envelope | undefined, isFault: boolean, isMade = false, changes?: readonly StateChange[]): Promise<void> {
    if (request.isPart === true) { request.answer?.(answer ?? emptyReply(request.envelope as Envelope), isFault); return }
    counters.processing--
    const queue = owned(request)
    if (request.answer === undefined && queue === undefined) return // purged meanwhile
    const sent = request.envelope as Envelope
    const requestAction = needs.requestAction(sent)
    const response: Envelope = { ...answer ?? emptyReply({ ...sent, action: requestAction }), relatesTo: sent.messageId, userData: sent.userData, clientId: undefined }
    const tell = (error: unknown): void => { if (!needs.signal.aborted) failed(error) }
    if (needs.custom?.responds === true && !isMade) {
      respond(needs.custom, queue, request, response, isFault, requestAction).catch(tell)
      await needs.custom.room()
      return
    }
    if (request.answer !== undefined) { reply(request, response, isFault); return }
    if (queue === undefined) return
    store(queue, request, response, isFault, requestAction, changes).catch(tell)
    await settler.room()
  }

  return {
    requests,
    load,
    started (request) { if (request.isPart !== true) counters.processing++ },
    complete,
    putBack (request) {
      if (request.isPart !== true) counters.processing--
      if (request.answer === undefined && owned(request) === undefined) return
      counters.retried++
      requests.putBack(request)
    },
  }
}

/** One-way: an empty response, so that counts and the end mark come out as for any other request. */
export const emptyReply = (sent: Envelope): Envelope => ({ ...sent, action: `${sent.action}Response`, otherHeaders: [], prefixesInScope: [], body: new Uint8Array() })
