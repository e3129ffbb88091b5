import type { SoaError } from '../../core/errors.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { SoapReply } from '../../transport/channel.ts'
import type { BrokerClient } from './broker-client.ts'
import type { SessionCounters } from './counters.ts'
import type { CustomWork } from './custom-work.ts'
import type { BrokerRequest } from './broker-request.ts'

interface Needs {
  counters: SessionCounters
  custom?: Pick<CustomWork, 'decides' | 'accept' | 'route' | 'giveBack'> | undefined
  put: (request: BrokerRequest) => void
  /** There is work: service instances are wanted. */
  workCame: () => void
  failed: (error: unknown) => void
}

interface DirectCall extends BrokerRequest { refuse (error: SoaError): void }

/** Calls that are answered in the same exchange and never stored. They take the same turns and slots as stored requests. */
export class DirectCalls {
  readonly #needs: Needs
  readonly #open = new Set<DirectCall>()

  constructor (needs: Needs) { this.#needs = needs }

  /** Waits for the service's reply; the call is dropped when its caller goes before its turn. */
  async call (client: BrokerClient, envelope: Envelope, signal: AbortSignal): Promise<SoapReply> {
    const { custom } = this.#needs
    const accepted = custom?.decides === true ? await custom.accept(envelope, client.queue.displayId) : undefined
    if (accepted !== undefined) custom?.giveBack(accepted.changes) // nothing is stored for it: they go with the next batch
    signal.throwIfAborted()
    return await new Promise<SoapReply>((resolve, reject) => {
      const endCall = client.beginCall()
      const drop = (): void => { letGo(); reject(signal.reason as Error) }
      const letGo = (): void => { call.isDropped = true; this.#needs.counters.droppedCalls++; done() }
      const done = (): void => { this.#open.delete(call); signal.removeEventListener('abort', drop); endCall() }
      const call: DirectCall = {
        clientKey: client.key,
        seq: 0,
        tries: 0,
        envelope: accepted?.envelope ?? envelope,
        decision: accepted?.decision,
        answer: (response, isFault) => { done(); resolve({ envelope: response, isFault }) },
        refuse: error => { letGo(); reject(error) },
      }
      signal.addEventListener('abort', drop, { once: true })
      this.#open.add(call)
      this.#take(call)
    })
  }

  /** One-way: taken now, run when its turn comes, its end only counted. */
  callOneWay (client: BrokerClient, envelope: Envelope): void {
    const { custom, failed } = this.#needs
    const answer = client.beginCall()
    if (custom?.decides !== true) { this.#take({ clientKey: client.key, seq: 0, tries: 0, envelope, answer }); return }
    custom.accept(envelope, client.queue.displayId).then(accepted => {
      custom.giveBack(accepted.changes)
      this.#take({ clientKey: client.key, seq: 0, tries: 0, envelope: accepted.envelope, decision: accepted.decision, answer })
    }, error => { answer(); failed(error) })
  }

  #take (request: BrokerRequest): void {
    const { counters, custom, put, workCame } = this.#needs
    counters.total++
    if (custom === undefined) put(request)
    else custom.route(request)
    workCame()
  }

  /** All of them, or those of one client, get this refusal. */
  refuse (error: SoaError, clientKey?: string): void {
    for (const call of [...this.#open]) if (clientKey === undefined || call.clientKey === clientKey) call.refuse(error)
  }
}
