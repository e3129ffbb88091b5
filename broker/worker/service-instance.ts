import { randomUUID } from 'node:crypto'
import { cutText } from '../../core/cut-text.ts'
import type { Envelope, Reading } from '../../wire/soap/envelope.ts'
import type { SoapCaller } from '../../transport/channel.ts'
import { dispatchIdHeader } from '../../wire/soap/hpc-headers.ts'
import { readRetryOperationError, readSessionFault } from '../../wire/soap/fault.ts'
import type { Outcome } from './retry.ts'

/** What one call at a service instance came to. `broken` is judged by the dispatcher when the task's fate is known. */
export type InstanceResult =
  | { readonly response: Envelope | undefined, readonly isFault: boolean, readonly isLeaving: boolean }
  | { readonly outcome: Outcome | 'broken', readonly why: string, readonly isLeaving?: boolean }

/** The service inside one task, as the broker calls it: transport results become what they mean for a request ([broker-behaviour] 4.5). */
export class ServiceInstance {
  readonly taskId: string
  readonly #caller: SoapCaller
  readonly #hasReply: (action: string) => boolean
  readonly #replyActionOf: (action: string) => string | undefined
  readonly #isOneWay: (action: string) => boolean

  constructor (
    taskId: string, caller: SoapCaller, hasReply: (action: string) => boolean,
    replyActionOf: (action: string) => string | undefined = () => undefined, isOneWay: (action: string) => boolean = () => false
  ) {
    this.taskId = taskId
    this.#caller = caller
    this.#hasReply = hasReply
    this.#replyActionOf = replyActionOf
    this.#isOneWay = isOneWay
  }

  /** @param timeoutMs serviceOperationTimeout */
  async call (envelope: Envelope, timeoutMs: number, signal: AbortSignal): Promise<InstanceResult> {
    // A new id per dispatch, for the host's own traces ([wire-contract] 3.1).
    const sent: Envelope = { ...envelope, userData: undefined, clientId: undefined, otherHeaders: [...envelope.otherHeaders, dispatchIdHeader(randomUUID())] }
    const result = await this.#caller.call(sent, { timeoutMs, signal, isOneWay: this.#isOneWay(envelope.action) })
    switch (result.outcome) {
      case 'answered': return answered(result.reading, this.#replyActionOf(envelope.action))
      case 'accepted':
        if (this.#hasReply(envelope.action)) return { outcome: 'badReply', why: 'an empty answer, as to a one-way operation, which this is not' }
        return { response: undefined, isFault: false, isLeaving: false }
      case 'timedOut': return { outcome: 'timedOut', why: `no answer within ${timeoutMs} ms (serviceOperationTimeout)` }
      case 'unreachable': return { outcome: 'instanceUnreachable', why: result.error.message }
      case 'broken': return { outcome: 'broken', why: result.error.message }
      case 'badReply': return { outcome: 'badReply', why: result.error.message }
      case 'aborted': return { outcome: 'taskTakenAway', why: 'the task was ended' }
    }
  }

  close (): Promise<void> { return this.#caller.close() }
}

/** @param action what clients look for in a stored reply, where the host (SOAP 1.1 without addressing) does not say it */
function answered (reading: Reading, action = ''): InstanceResult {
  const isLeaving = reading.preemption !== undefined
  if (reading.isFault) {
    const retry = readRetryOperationError(reading)
    if (retry !== undefined) return { outcome: 'serviceAskedRetry', why: cutText(retry.reason), isLeaving }
    const fault = readSessionFault(reading)
    if (fault?.name === 'Service_Preempted') return { outcome: 'preempted', why: 'the service instance is being preempted' }
    if (fault?.name === 'Service_InitializeFailed') return { outcome: 'initializeFailed', why: `the service host could not load its service: ${cutText(fault.context[0] ?? fault.reason)}` }
  }
  const { envelope } = reading
  return { response: envelope.action === '' && !reading.isFault ? { ...envelope, action } : envelope, isFault: reading.isFault, isLeaving }
}
