import type { Envelope } from '../../wire/soap/envelope.ts'

/** A request on its way through the broker. */
export interface BrokerRequest {
  /** Lower-case client id: requests of different clients take turns. */
  readonly clientKey: string
  /** The ClientQueue that gave it its seq; after a purge another one may have the same key. */
  readonly owner?: object | undefined
  /** Place in the client's order; 0 for a call that is answered in the same exchange and never stored. */
  readonly seq: number
  /** Executions that counted so far (retry.ts). */
  tries: number
  /** Undefined: only in the store, read when its turn comes. */
  envelope: Envelope | undefined
  /** For a call in the same exchange: where the answer goes. */
  readonly answer?: ((response: Envelope, isFault: boolean) => void) | undefined
  /** A host died while it had this request: it may be why, so the next host has it alone. */
  isSuspect?: boolean
  /** Set when nobody waits for it any more: it is skipped when its turn comes. */
  isDropped?: boolean
}

/** One client's waiting requests, first in first out, with a second lane in front for those that come back. */
class Line {
  readonly back: BrokerRequest[] = []
  readonly again: BrokerRequest[] = []
  #head = 0

  get length (): number { return this.again.length + this.back.length - this.#head }

  shift (): BrokerRequest | undefined {
    if (this.again.length > 0) return this.again.pop()
    const request = this.back[this.#head]
    if (request === undefined) return undefined
    this.#head++
    // Cutting off the used front only now and then keeps shift cheap for queues of a million.
    if (this.#head > 1024 && this.#head * 2 > this.back.length) { this.back.splice(0, this.#head); this.#head = 0 }
    return request
  }

  /** The next `count` requests, without taking them. */
  peek (count: number): BrokerRequest[] { return this.back.slice(this.#head, this.#head + count) }
}

/**
 * What waits for a dispatcher, of all clients of a session. Slots pull; a free slot gets the next request of the client whose turn it is
 * (round robin, so a client with a million requests does not starve one with ten). The bound is the clients' own: throttling for
 * interactive sessions, and for durable ones only seqs are kept beyond maxRequestCacheBytes.
 */
export class RequestQueue {
  readonly #lines = new Map<string, Line>()
  /** Keys of lines that are not empty, in order of their turn. */
  readonly #turns: string[] = []
  readonly #waiters = new Set<(request: BrokerRequest) => void>()
  #length = 0

  get length (): number { return this.#length }

  put (request: BrokerRequest): void { this.#add(request, false) }

  /** Gives a request back: it goes before what has not been tried yet. */
  putBack (request: BrokerRequest): void { this.#add(request, true) }

  #add (request: BrokerRequest, again: boolean): void {
    if (request.isDropped === true) return
    const [waiter] = this.#waiters
    if (waiter !== undefined) {
      this.#waiters.delete(waiter)
      waiter(request)
      return
    }
    let line = this.#lines.get(request.clientKey)
    if (line === undefined) this.#lines.set(request.clientKey, line = new Line())
    if (line.length === 0) this.#turns.push(request.clientKey)
    ;(again ? line.again : line.back).push(request)
    this.#length++
  }

  /** The next request; waits for one. Undefined when the signal aborts first. */
  async take (signal: AbortSignal): Promise<BrokerRequest | undefined> {
    for (;;) {
      if (signal.aborted) return undefined
      const request = this.#next() ?? await this.#wait(signal)
      if (request === undefined || request.isDropped !== true) return request
    }
  }

  #next (): BrokerRequest | undefined {
    const key = this.#turns.shift()
    if (key === undefined) return undefined
    const line = this.#lines.get(key) as Line
    const request = line.shift()
    this.#length--
    if (line.length > 0) this.#turns.push(key)
    else this.#lines.delete(key)
    return request
  }

  #wait (signal: AbortSignal): Promise<BrokerRequest | undefined> {
    return new Promise(resolve => {
      const got = (request: BrokerRequest): void => { signal.removeEventListener('abort', stop); resolve(request) }
      const stop = (): void => { this.#waiters.delete(got); resolve(undefined) }
      this.#waiters.add(got)
      signal.addEventListener('abort', stop, { once: true })
    })
  }

  /** The next `count` waiting requests of a client (for reading bodies ahead). */
  peek (clientKey: string, count: number): BrokerRequest[] { return this.#lines.get(clientKey)?.peek(count) ?? [] }

  /** Forgets all waiting requests of a client, or of all clients, and returns them. */
  drop (clientKey?: string): BrokerRequest[] {
    const dropped: BrokerRequest[] = []
    for (const [key, line] of this.#lines) {
      if (clientKey !== undefined && key !== clientKey) continue
      for (let request = line.shift(); request !== undefined; request = line.shift()) dropped.push(request)
      this.#lines.delete(key)
      const turn = this.#turns.indexOf(key)
      if (turn >= 0) this.#turns.splice(turn, 1)
    }
    this.#length -= dropped.length
    return dropped
  }
}
