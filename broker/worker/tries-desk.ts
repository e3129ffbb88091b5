import { isSoaError } from '../../core/errors.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { retryOperationFault } from '../../wire/soap/fault.ts'
import type { SessionCounters } from './counters.ts'
import type { CustomWork } from './custom-work.ts'
import { letterOf, type DeadLetters } from './dead-letters.ts'
import { emptyReply } from './desk.ts'
import type { Desk } from './dispatcher.ts'
import type { ReEmission } from './re-emission.ts'
import type { BrokerRequest } from './broker-request.ts'

interface Needs {
  desk: Omit<Desk, 'giveUp'>
  letters: DeadLetters
  custom: Pick<CustomWork, 'respond' | 'giveBack'> | undefined
  /** Undefined: no request is at several instances. */
  reEmission: ReEmission | undefined
  counters: SessionCounters
  /** As the client wrote its id; undefined once it was purged. */
  displayIdOf: (request: BrokerRequest) => string | undefined
  requestAction: (request: Envelope) => string
  resendLimit: number
  now: () => number
  failed: (error: unknown) => void
}

/**
 * The desk as dispatchers see it: before a request's end reaches the session's own desk, its runs meet here. Of several runs the first response counts, and a run
 * that failed is nobody's affair while another one is under way; a request that is given up leaves a dead letter; a dead letter that runs again has its response already.
 */
export function triesDesk ({ desk, letters, custom, reEmission, counters, displayIdOf, requestAction, resendLimit, now, failed }: Needs): Desk {
  const { requests } = desk

  /** True: what becomes of the request is another run's affair, or it has its response. */
  function goesOn (request: BrokerRequest): boolean {
    if (reEmission === undefined) return false
    if (request.isAnswered === true) return true
    const where = reEmission.livesOn(request)
    // Being waited for by an instance is not being processed.
    if (where === 'waiting' && request.replayOf === undefined && request.isPart !== true) counters.processing--
    return where !== undefined
  }

  /** The response of a dead letter that ran again; not waited for, as little as any other. */
  async function replayed (request: BrokerRequest, answer: Envelope | undefined, fault: boolean, why?: string): Promise<void> {
    const sent = request.envelope as Envelope
    const action = requestAction(sent)
    const reply: Envelope = { ...answer ?? emptyReply({ ...sent, action }), relatesTo: sent.messageId, userData: sent.userData, clientId: undefined }
    if (custom === undefined) { await letters.answered(request, reply, fault, action, why); return }
    const responded = await custom.respond(request, reply, fault)
    if (responded === undefined) return // the session is over: whoever raises it runs it again
    const { response, isFault, changes } = responded
    custom.giveBack(changes)
    await letters.answered(request, response, isFault, action, why)
  }

  return {
    requests,
    async load (request) {
      if (request.replayOf === undefined) return await desk.load(request)
      try {
        return await letters.load(request)
      } catch (error) {
        if (!isSoaError(error, 'StorageServiceNotAvailble')) throw error
        letters.putBack(request)
        return false
      }
    },
    started (request, taskId) {
      if (taskId === '') { desk.started(request, taskId); return } // answered by the custom broker itself
      const isFirst = reEmission === undefined || reEmission.started(request, taskId)
      if (isFirst && request.replayOf === undefined) desk.started(request, taskId)
    },
    ended (request, taskId, ms) {
      if (ms !== undefined) counters.took(ms)
      reEmission?.ended(request, taskId)
    },
    async complete (request, response, isFault, isMade, changes) {
      if (isMade === true) { await desk.complete(request, response, isFault, isMade, changes); return }
      if (request.isAnswered === true) { counters.duplicates++; return }
      reEmission?.answered(request)
      if (request.replayOf === undefined) await desk.complete(request, response, isFault)
      else replayed(request, response, isFault).catch(failed)
    },
    async giveUp (request, why, taskId) {
      if (goesOn(request)) return
      const sent = request.envelope
      const displayId = displayIdOf(request)
      if (sent === undefined || (displayId === undefined && request.answer === undefined)) { desk.putBack(request); return } // purged meanwhile
      const fault = retryOperationFault(sent, { reason: why, retryCount: runsOf(request, resendLimit), lastFailedServiceId: taskId })
      if (request.replayOf !== undefined) { replayed(request, fault, true, why).catch(failed); return }
      if (request.answer === undefined && displayId !== undefined) request.letter = letterOf(request, sent, displayId, why, now())
      reEmission?.answered(request)
      await desk.complete(request, fault, true)
    },
    putBack (request) {
      if (goesOn(request)) return
      if (request.replayOf === undefined) desk.putBack(request)
      else letters.putBack(request)
    },
  }
}

/** Runs that a fault tells of: HPC Pack's limit and one, or, when it was given up without having used them up, all that there were. */
function runsOf ({ tries, uncounted = 0 }: BrokerRequest, resendLimit: number): number {
  return tries > resendLimit || resendLimit === 0 ? resendLimit + 1 : tries + uncounted
}
