import type { Envelope } from '../../wire/soap/envelope.ts'
import type { BrokerRequest } from './broker-request.ts'

interface Part { envelope: Envelope, isFault: boolean }
interface Open { readonly parts: BrokerRequest[], readonly responses: Array<Part | undefined>, left: number }

interface Needs {
  put: (request: BrokerRequest) => void
  /** All parts have their response, in the order of the parts. */
  gathered: (request: BrokerRequest, parts: Part[]) => void
}

/** Parts on their way at a time; a request that would be scattered beyond it waits. */
const MOST_PARTS_OPEN = 20_000

/** Requests that were scattered: each of their parts is dispatched, retried and given up like a request, and counts as none. */
export class Scatters {
  readonly #needs: Needs
  readonly #open = new Map<BrokerRequest, Open>()
  #partsOpen = 0
  #waiters: Array<() => void> = []

  constructor (needs: Needs) { this.#needs = needs }

  /** Parts that are not answered yet, beyond one for each request. */
  get extra (): number { return this.#partsOpen - this.#open.size }

  async room (): Promise<void> {
    while (this.#partsOpen >= MOST_PARTS_OPEN) await new Promise<void>(resolve => this.#waiters.push(resolve))
  }

  open (request: BrokerRequest, envelopes: readonly Envelope[]): void {
    const scattered: Open = { parts: [], responses: envelopes.map(() => undefined), left: envelopes.length }
    this.#open.set(request, scattered)
    this.#partsOpen += envelopes.length
    envelopes.forEach((envelope, n) => {
      scattered.parts.push({
        clientKey: request.clientKey,
        seq: 0,
        tries: 0,
        envelope,
        lane: request.lane,
        isPart: true,
        answer: (response, isFault) => this.#answered(request, scattered, n, { envelope: response, isFault }),
      })
    })
    for (const part of scattered.parts) this.#needs.put(part)
  }

  #answered (request: BrokerRequest, scattered: Open, n: number, part: Part): void {
    if (this.#open.get(request) !== scattered || scattered.responses[n] !== undefined) return
    scattered.responses[n] = part
    this.#less(1)
    if (--scattered.left > 0) return
    this.#open.delete(request)
    this.#needs.gathered(request, scattered.responses as Part[])
  }

  forget (clientKey?: string): void {
    for (const [request, { parts, left }] of this.#open) {
      if (clientKey !== undefined && request.clientKey !== clientKey) continue
      for (const part of parts) part.isDropped = true
      this.#open.delete(request)
      this.#less(left)
    }
  }

  #less (parts: number): void {
    this.#partsOpen -= parts
    for (const go of this.#waiters.splice(0)) go()
  }
}
