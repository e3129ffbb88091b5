import type { BrokerRequest } from './broker-request.ts'
import type { Chooser } from './chooser.ts'

/** One client's waiting requests of a lane, first in first out, with a second line in front for those that come back. */
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

/** Requests of one urgency: clients take turns, so that one with a million requests does not starve one with ten. */
class Lane {
  readonly rank: number
  readonly #lines = new Map<string, Line>()
  /** Keys of lines that are not empty, in order of their turn. */
  readonly #turns: string[] = []

  constructor (rank: number) { this.rank = rank }

  add (request: BrokerRequest, again: boolean): void {
    let line = this.#lines.get(request.clientKey)
    if (line === undefined) this.#lines.set(request.clientKey, line = new Line())
    if (line.length === 0) this.#turns.push(request.clientKey)
    ;(again ? line.again : line.back).push(request)
  }

  next (): BrokerRequest | undefined {
    const key = this.#turns.shift()
    if (key === undefined) return undefined
    const line = this.#lines.get(key) as Line
    const request = line.shift()
    if (line.length > 0) this.#turns.push(key)
    else this.#lines.delete(key)
    return request
  }

  peek (clientKey: string, count: number): BrokerRequest[] { return this.#lines.get(clientKey)?.peek(count) ?? [] }

  drop (clientKey: string | undefined, into: BrokerRequest[]): void {
    for (const [key, line] of this.#lines) {
      if (clientKey !== undefined && key !== clientKey) continue
      for (let request = line.shift(); request !== undefined; request = line.shift()) into.push(request)
      this.#lines.delete(key)
      const turn = this.#turns.indexOf(key)
      if (turn >= 0) this.#turns.splice(turn, 1)
    }
  }
}

type Give = (request: BrokerRequest) => void

/**
 * What waits for a dispatcher, of all clients of a session. Slots pull; a free slot gets the next request of the highest lane, and in it of the client whose turn it is.
 * With a chooser (a custom broker's chooseDispatcher) it says which of the dispatchers that wait gets a request. The bound is the clients' own: throttling for
 * interactive sessions, and for durable ones only seqs are kept beyond maxRequestCacheBytes.
 */
export class RequestQueue {
  /** Highest first; that of rank 0 is always there. */
  readonly #lanes: Lane[] = [new Lane(0)]
  readonly #waiters = new Map<Give, string>()
  readonly #chooser: Chooser | undefined
  /** Requests that an instance has already and another one is to have too. */
  readonly #copies = new Set<BrokerRequest>()
  #length = 0

  constructor (chooser?: Chooser) {
    this.#chooser = chooser
    chooser?.serve({ next: () => this.#next(), putBack: request => this.putBack(request), waiters: this.#waiters })
  }

  get length (): number { return this.#length + (this.#chooser?.held ?? 0) }

  put (request: BrokerRequest): void { this.#add(request, false) }

  /** Gives a request back: it goes before what has not been tried yet. */
  putBack (request: BrokerRequest): void { this.#add(request, true) }

  #add (request: BrokerRequest, again: boolean): void {
    if (request.isDropped === true) return
    if (this.#chooser === undefined) {
      const [waiter] = this.#waiters.keys()
      if (waiter !== undefined) {
        this.#waiters.delete(waiter)
        waiter(request)
        return
      }
    }
    this.#lane(request.lane ?? 0).add(request, again)
    this.#length++
    this.#chooser?.look()
  }

  /** One more run of a request: a slot of an instance that does not have it gets it, before anything else. */
  putCopy (request: BrokerRequest): void {
    for (const [waiter, taskId] of this.#waiters) {
      if (request.at?.has(taskId) === true) continue
      this.#waiters.delete(waiter)
      waiter(request)
      return
    }
    this.#copies.add(request)
  }

  dropCopy (request: BrokerRequest): void { this.#copies.delete(request) }

  #copyFor (taskId: string): BrokerRequest | undefined {
    for (const request of this.#copies) {
      if (request.at?.has(taskId) === true) continue
      this.#copies.delete(request)
      return request
    }
    return undefined
  }

  #lane (rank: number): Lane {
    const at = this.#lanes.findIndex(lane => lane.rank <= rank)
    const known = this.#lanes[at]
    if (known?.rank === rank) return known
    const made = new Lane(rank)
    this.#lanes.splice(at < 0 ? this.#lanes.length : at, 0, made)
    return made
  }

  /** The next request; waits for one. Undefined when the signal aborts first. @param taskId whose slot asks */
  async take (signal: AbortSignal, taskId = ''): Promise<BrokerRequest | undefined> {
    for (;;) {
      if (signal.aborted) return undefined
      const copy = this.#copies.size === 0 ? undefined : this.#copyFor(taskId)
      const request = copy ?? (this.#chooser === undefined ? this.#next() : undefined) ?? await this.#wait(signal, taskId)
      if (request === undefined || request.isDropped !== true) return request
    }
  }

  #next (): BrokerRequest | undefined {
    for (const lane of this.#lanes) {
      const request = lane.next()
      if (request === undefined) continue
      this.#length--
      return request
    }
    return undefined
  }

  #wait (signal: AbortSignal, taskId: string): Promise<BrokerRequest | undefined> {
    return new Promise(resolve => {
      const got = (request: BrokerRequest): void => { signal.removeEventListener('abort', stop); resolve(request) }
      const stop = (): void => { this.#waiters.delete(got); this.#chooser?.left(); resolve(undefined) }
      this.#waiters.set(got, taskId)
      signal.addEventListener('abort', stop, { once: true })
      this.#chooser?.came()
    })
  }

  /** The next `count` waiting requests of a client (for reading bodies ahead). */
  peek (clientKey: string, count: number): BrokerRequest[] {
    return this.#lanes.length === 1 ? (this.#lanes[0] as Lane).peek(clientKey, count) : this.#lanes.flatMap(lane => lane.peek(clientKey, count)).slice(0, count)
  }

  /** Forgets all waiting requests of a client, or of all clients, and returns them. */
  drop (clientKey?: string): BrokerRequest[] {
    const dropped: BrokerRequest[] = []
    for (const lane of this.#lanes) lane.drop(clientKey, dropped)
    this.#length -= dropped.length
    for (const copy of this.#copies) if (clientKey === undefined || copy.clientKey === clientKey) this.#copies.delete(copy)
    this.#chooser?.drop(clientKey, dropped)
    return dropped
  }
}
