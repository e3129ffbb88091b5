import { newMessageId } from '../core/ids.ts'
import type { SoapCaller } from '../transport/channel.ts'
import { withTextBody } from '../wire/soap/body-form.ts'
import type { Reading } from '../wire/soap/envelope.ts'
import { BROKER_CONTROLLER, type Operation } from '../wsdl/contracts.ts'
import { readPulledPage } from '../wsdl/pulled-page.ts'
import { decodeReply, encodeRequest, type Value, type Values } from '../wsdl/shapes.ts'
import { BrokenError, ConnectionError, WaitTimeoutError } from './errors.ts'
import { faultOf } from './fault.ts'
import { StatusError } from './retry.ts'
import type { Way } from './way.ts'

/** What GetBrokerClientStatus says: `Ready` takes requests, `Processing` was ended and works, `Finished` has all its responses. */
export type ClientStatus = 'Ready' | 'Processing' | 'Finished' | 'Unknown'

export interface ControllerNeeds {
  readonly caller: Pick<SoapCaller, 'call'>
  readonly way: Pick<Way, 'persist'>
  readonly clientId: string
  readonly retryForMs: number
  /** Asked when nobody was reached: rejects when the session is no more. */
  readonly stillThere?: ((error: Error, signal: AbortSignal) => Promise<void>) | undefined
}

export interface CommitOptions { readonly count: number, readonly batchId: number, readonly timeoutMs: number, readonly signal: AbortSignal }

const OPERATIONS = BROKER_CONTROLLER.operations
/** Longest answer of the calls that only ask. HPC Pack's client gives them 60 s. */
const ASK_TIMEOUT_MS = 60_000
/** The broker keeps the time limit of a flush itself; this is what its answer may take beyond that. */
const ANSWER_SLACK_MS = 30_000

/** HPC Pack's IBrokerController for one client id ([wire-contract] 1.3). Asking is repeated while nobody can be reached. */
export class Controller {
  readonly #needs: ControllerNeeds
  constructor (needs: ControllerNeeds) { this.#needs = needs }

  async status (signal: AbortSignal): Promise<ClientStatus> {
    const { GetBrokerClientStatusResult: status } = await this.#ask(OPERATIONS.GetBrokerClientStatus, { clientId: this.#needs.clientId }, signal)
    return status as ClientStatus
  }

  /** Requests covered by successful flushes. */
  async requestsCount (signal: AbortSignal): Promise<number> {
    const { GetRequestsCountResult: count } = await this.#ask(OPERATIONS.GetRequestsCount, { clientId: this.#needs.clientId }, signal)
    return count as number
  }

  async purge (signal: AbortSignal): Promise<void> { await this.#ask(OPERATIONS.Purge, { clientid: this.#needs.clientId }, signal) }

  /**
   * Flush or EndRequests; when its answer was lost, it is first looked up whether it was done, and only else said again.
   *
   * @param count requests since the last flush: the broker waits until it has exactly these.
   * @param committed requests covered by earlier flushes.
   */
  async commit (name: 'Flush' | 'EndRequests', committed: number, { count, batchId, timeoutMs, signal }: CommitOptions): Promise<void> {
    const limit = name === 'Flush' ? 'timeoutFlushMs' : 'timeoutEOMMs'
    const values = { count, clientid: this.#needs.clientId, batchId, timeoutThrottlingMs: timeoutMs, [limit]: timeoutMs }
    await this.#needs.way.persist(name, { retryForMs: this.#needs.retryForMs, signal }, async (failed, silence) => {
      if (failed > 0 && await this.#isDone(name, committed + count, signal)) return
      await this.#once(OPERATIONS[name], values, timeoutMs < 0 ? timeoutMs : 2 * timeoutMs + ANSWER_SLACK_MS, AbortSignal.any([signal, silence]))
    })
  }

  /** Answers that were lost: EndRequests said again would be refused, Flush would wait for as many requests once more. */
  async #isDone (name: 'Flush' | 'EndRequests', target: number, signal: AbortSignal): Promise<boolean> {
    if (name === 'Flush') return await this.requestsCount(signal) >= target
    return ['Processing', 'Finished'].includes(await this.status(signal))
  }

  /** One page: waits until `count` responses are there or the end is reached. Not repeated: the place in the queue has moved, and the caller knows what it has. */
  async pull (page: { action: string, position: 'Begin' | 'Current', count: number }, timeoutMs: number, signal: AbortSignal): Promise<{ endOfMessages: boolean, envelopes: string[] }> {
    const { envelope } = await this.#exchange(OPERATIONS.PullResponses, { ...page, clientId: this.#needs.clientId }, timeoutMs, signal)
    return readPulledPage(envelope.body, envelope.prefixesInScope)
  }

  #ask (operation: Operation, values: Values, signal: AbortSignal): Promise<Record<string, Value>> {
    return this.#needs.way.persist(operation.name, { retryForMs: this.#needs.retryForMs, signal },
      (_failed, silence) => this.#once(operation, values, ASK_TIMEOUT_MS, AbortSignal.any([signal, silence])))
  }

  async #once (operation: Operation, values: Values, timeoutMs: number, signal: AbortSignal): Promise<Record<string, Value>> {
    const { envelope } = await this.#exchange(operation, values, timeoutMs, signal)
    return decodeReply(operation, envelope.body, envelope.prefixesInScope)
  }

  async #exchange (operation: Operation, values: Values, timeoutMs: number, signal: AbortSignal): Promise<Reading> {
    signal.throwIfAborted()
    const { action, name } = operation
    const envelope = { v: 1, soap: 11, enc: 'utf8', action, messageId: newMessageId(), otherHeaders: [], prefixesInScope: [], body: encodeRequest(operation, values) } as const
    const result = await this.#needs.caller.call(envelope, { timeoutMs: timeoutMs < 0 ? LONGEST_MS : timeoutMs, signal })
    switch (result.outcome) {
      case 'answered':
        if (result.reading.isFault) throw faultOf(result.reading)
        return { ...result.reading, envelope: withTextBody(result.reading.envelope) }
      case 'aborted': throw signal.reason
      case 'accepted': throw new ConnectionError(`${name}: answered without a message`)
      case 'timedOut': throw new WaitTimeoutError(name, timeoutMs)
      case 'badReply':
        if (result.status !== undefined) throw new StatusError(result.status, `${name}: ${result.error.message}`)
        throw new ConnectionError(`${name}: ${result.error.message}`, {}, { cause: result.error })
      default:
        await this.#needs.stillThere?.(result.error, signal)
        throw new BrokenError(name, result.error)
    }
  }
}

/** -1, HPC Pack's "for ever": a year. */
const LONGEST_MS = 365 * 86_400_000
