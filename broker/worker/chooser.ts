import type { CustomDispatcher } from '../custom-broker.ts'
import type { BrokerRequest } from './broker-request.ts'

/** Where a chooser takes requests from, and the slots that wait: how a slot is given one → the dispatcher's task id. */
interface Source {
  next: () => BrokerRequest | undefined
  putBack: (request: BrokerRequest) => void
  readonly waiters: Map<(request: BrokerRequest) => void, string>
}

export interface ChooserNeeds {
  /** chooseDispatcher, checked: `any`, `wait`, or the id of a dispatcher that is known. */
  choose: (request: BrokerRequest, free: readonly CustomDispatcher[]) => string
  /** In its place, where asking is a round trip: many at once, an answer for each. */
  chooseMany?: ((requests: readonly BrokerRequest[]) => Promise<readonly string[]>) | undefined
  /** Reads the request's envelope if it is only in the store. False: it is gone, or came back into the queue. */
  load: (request: BrokerRequest) => Promise<boolean>
  /** The hook failed: the session ends, nothing is chosen any more. */
  failed: (error: unknown) => void
}

/** Requests that said `wait` and are asked again each time: more would make every free slot cost as many calls. */
const ASKED_AGAIN = 1000
/** Requests in one question of chooseMany. */
const ASKED_AT_ONCE = 256

/**
 * Hands waiting requests to the dispatchers that a custom broker names. A request that names a busy dispatcher waits in that one's own line, which costs nothing until
 * it is free; one that says `wait` is asked again whenever a slot becomes free or a dispatcher comes or goes.
 */
export class Chooser {
  readonly #needs: ChooserNeeds
  /** None while a custom broker does not choose: then it only knows who is there. */
  #source: Source = { next: () => undefined, putBack: () => {}, waiters: new Map() }
  readonly #dispatchers = new Map<string, CustomDispatcher>()
  readonly #own = new Map<string, BrokerRequest[]>()
  #aside: BrokerRequest[] = []
  /** About whom chooseMany is being asked. */
  readonly #asking = new Set<BrokerRequest>()
  /** Of those aside, how many are to be asked for the news that there was. */
  #leftToAsk = 0
  #batch = 0
  #isNews = false
  #isLooking = false
  #looksAgain = false
  #isOver = false
  #free: CustomDispatcher[] | undefined

  constructor (needs: ChooserNeeds) { this.#needs = needs }

  serve (source: Source): void { this.#source = source }

  /** Requests that wait for one dispatcher, or for something to change. */
  get held (): number {
    let sum = this.#aside.length + this.#asking.size
    for (const line of this.#own.values()) sum += line.length
    return sum
  }

  knows (id: string): boolean { return this.#dispatchers.has(id) }

  get dispatchers (): CustomDispatcher[] {
    const free = new Map(this.#freeNow().map(dispatcher => [dispatcher.id, dispatcher]))
    return [...this.#dispatchers.values()].map(dispatcher => free.get(dispatcher.id) ?? dispatcher)
  }

  added (dispatcher: Omit<CustomDispatcher, 'free'>): void {
    this.#dispatchers.set(dispatcher.id, { ...dispatcher, free: 0 })
    this.again()
  }

  /** What waited for it is asked again. */
  removed (id: string): void {
    this.#dispatchers.delete(id)
    const line = this.#own.get(id) ?? []
    this.#own.delete(id)
    for (const request of line.reverse()) this.#source.putBack(request)
    this.again()
  }

  /** Something has changed that those who wait may look at. */
  again (): void {
    this.#isNews = true
    this.look()
  }

  /** A slot waits. */
  came (): void {
    this.#free = undefined
    this.again()
  }

  left (): void { this.#free = undefined }

  drop (clientKey: string | undefined, into: BrokerRequest[]): void {
    const keeps = (request: BrokerRequest): boolean => {
      const isGone = clientKey === undefined || request.clientKey === clientKey
      if (isGone) into.push(request)
      return !isGone
    }
    this.#aside = this.#aside.filter(keeps)
    for (const request of this.#asking) if (!keeps(request)) this.#asking.delete(request)
    for (const [id, line] of this.#own) this.#own.set(id, line.filter(keeps))
  }

  /** One look at a time: while a request is read from the store nobody else is asked, so that order stays. */
  look (): void {
    if (this.#isOver || this.#source.waiters.size === 0) return
    if (this.#isLooking) { this.#looksAgain = true; return }
    this.#isLooking = true
    this.#match().catch(error => { this.#isOver = true; this.#needs.failed(error) }).finally(() => {
      this.#isLooking = false
      if (!this.#looksAgain) return
      this.#looksAgain = false
      this.look()
    })
  }

  async #match (): Promise<void> {
    const { chooseMany } = this.#needs
    for (;;) {
      this.#serveOwn()
      if (chooseMany !== undefined) {
        if (await this.#askMany(chooseMany)) continue
        return
      }
      if (this.#isNews) {
        this.#isNews = false
        this.#askAside()
      }
      if (this.#freeNow().length === 0) return // nobody asks, or nobody who has been introduced yet
      const request = this.#source.next()
      if (request === undefined) return
      if (request.isDropped === true) continue
      if (request.envelope === undefined && !await this.#needs.load(request)) continue
      if (!this.#ask(request)) this.#aside.push(request)
    }
  }

  #serveOwn (): void {
    for (const { id } of this.#freeNow()) {
      const line = this.#own.get(id)
      if (line === undefined) continue
      while (line.length > 0 && this.#give(line[0] as BrokerRequest, id)) line.shift()
    }
  }

  #askAside (): void {
    const asked = this.#aside.splice(0, ASKED_AGAIN)
    const still = asked.filter(request => request.isDropped !== true && (this.#freeNow().length === 0 || !this.#ask(request)))
    // Behind those that were not asked this time: everybody's turn comes.
    this.#aside = this.#aside.length === 0 ? still : [...this.#aside, ...still]
  }

  /**
   * One question about as many requests as there are free slots; about twice as many each time nothing came of the last one, for then they wait for others. False: nobody
   * is left to ask about, or nobody is free.
   */
  async #askMany (choose: NonNullable<ChooserNeeds['chooseMany']>): Promise<boolean> {
    const slots = this.#freeNow().reduce((sum, { free }) => sum + free, 0)
    if (slots === 0) return false
    if (this.#isNews) { this.#isNews = false; this.#leftToAsk = Math.min(ASKED_AGAIN, this.#aside.length) }
    const most = Math.min(ASKED_AT_ONCE, Math.max(slots, this.#batch))
    while (this.#asking.size < most) {
      const again = this.#leftToAsk-- > 0 ? this.#aside.shift() : undefined
      const request = again ?? this.#source.next()
      if (request === undefined) break
      if (request.isDropped !== true) this.#asking.add(request)
    }
    this.#leftToAsk = Math.max(0, this.#leftToAsk)
    if (this.#asking.size === 0) return false
    for (const request of await this.#unreadable([...this.#asking])) this.#asking.delete(request)
    const asked = [...this.#asking]
    try {
      this.#handOut(asked, asked.length === 0 ? [] : await choose(asked))
    } catch (error) {
      for (const request of asked.reverse()) if (this.#asking.delete(request)) this.#source.putBack(request)
      throw error
    }
    return true
  }

  async #unreadable (requests: readonly BrokerRequest[]): Promise<BrokerRequest[]> {
    const read = await Promise.all(requests.map(request => request.envelope !== undefined || this.#needs.load(request)))
    return requests.filter((_, i) => read[i] === false)
  }

  #handOut (asked: readonly BrokerRequest[], choices: readonly string[]): void {
    const back: BrokerRequest[] = []
    let given = 0
    for (const [i, request] of asked.entries()) {
      if (!this.#asking.delete(request) || request.isDropped === true) continue // dropped meanwhile
      const choice = choices[i] as string
      if (choice === 'wait') { this.#aside.push(request); continue }
      const id = choice === 'any' ? this.#freeNow()[0]?.id : choice
      if (id === undefined) { back.push(request); continue } // whoever is free next
      if (this.#give(request, id)) given++
      else this.#waitFor(id, request)
    }
    for (const request of back.reverse()) this.#source.putBack(request)
    this.#batch = given > 0 ? 0 : asked.length * 2
  }

  /** False: it waits. */
  #ask (request: BrokerRequest): boolean {
    const free = this.#freeNow()
    if (free.length === 0) { this.#source.putBack(request); return true }
    let choice: string
    try {
      choice = this.#needs.choose(request, free)
    } catch (error) {
      this.#source.putBack(request)
      throw error
    }
    if (choice === 'wait') return false
    const id = choice === 'any' ? (free[0] as CustomDispatcher).id : choice
    if (this.#give(request, id)) return true
    this.#waitFor(id, request)
    return true
  }

  #waitFor (id: string, request: BrokerRequest): void {
    const line = this.#own.get(id)
    if (line === undefined) this.#own.set(id, [request])
    else line.push(request)
  }

  #give (request: BrokerRequest, id: string): boolean {
    for (const [give, taskId] of this.#source.waiters) {
      if (taskId !== id) continue
      this.#source.waiters.delete(give)
      this.#free = undefined
      give(request)
      return true
    }
    return false
  }

  #freeNow (): CustomDispatcher[] {
    if (this.#free !== undefined) return this.#free
    const slots = new Map<string, number>()
    for (const id of this.#source.waiters.values()) slots.set(id, (slots.get(id) ?? 0) + 1)
    this.#free = [...slots].flatMap(([id, free]) => {
      const dispatcher = this.#dispatchers.get(id)
      return dispatcher === undefined ? [] : [{ ...dispatcher, free }]
    })
    return this.#free
  }
}
