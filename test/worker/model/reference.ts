import { userDataText } from '../../../wire/soap/hpc-headers.ts'
import type { Settlement, StoredRequest, StoredResponse } from '../../../store/message-store.ts'
import type { SessionCounters } from '../../../broker/worker/counters.ts'
import type { StoreWatch } from './troubled-store.ts'

/** One request as the reference knows it: plain facts, each set once. */
export interface Entry {
  readonly key: string
  readonly seq: number
  readonly id: string
  readonly action: string
  readonly batch: number
  isFlushed: boolean
  /** Its client knows that. */
  isHeard: boolean
  /** A later batch, or its sender's leaving, has made it void. */
  isVoid: boolean
  /** Taken out of the store. */
  isForgotten: boolean
  isPurged: boolean
  isDoubtful: boolean
  at: number | undefined
  isFault: boolean
  isRead: boolean
}

/** `covered`: what was committed for it. */
export interface FlushCall { readonly count: number, readonly endOfMessages: boolean, readonly batch: number, covered: Entry[] | undefined }

/** One client id between two purges. */
export interface RefClient {
  readonly entries: Map<number, Entry>
  isEnded: boolean
  /** What comes of an older batch than this one is void. */
  batch: number
  /** Purges that were asked for and not done yet. */
  purging: number
  /** Counts of Flush and EndRequests under way: what a commit may cover. */
  readonly flushes: Set<FlushCall>
  isEndHeard: boolean
}

const fresh = (): RefClient => ({ entries: new Map(), isEnded: false, isEndHeard: false, batch: -1, purging: 0, flushes: new Set() })

/**
 * What a session promises, as plain maps: it is told what clients asked for and were answered, and what was really done to the store, and throws when the two
 * do not fit. It knows nothing of how the broker keeps its queues.
 */
export class Reference implements StoreWatch {
  readonly clients = new Map<string, RefClient>()
  readonly #isDurable: boolean
  /** Message ids that clients have sent. */
  readonly sent = new Map<string, { action: string, user: string }>()
  /** All that was ever purged. */
  readonly gone: Entry[] = []
  #totalFloor = 0
  #processedFloor = 0
  #voided = 0

  constructor (isDurable: boolean) { this.#isDurable = isDurable }

  client (key: string): RefClient {
    let client = this.clients.get(key)
    if (client === undefined) this.clients.set(key, client = fresh())
    return client
  }

  live (key: string): Entry[] { return [...this.client(key).entries.values()].filter(({ isForgotten }) => !isForgotten) }
  unflushed (key: string): Entry[] { return this.live(key).filter(({ isFlushed, isVoid }) => !isFlushed && !isVoid) }
  find (id: string): Entry | undefined {
    for (const client of this.clients.values()) for (const entry of client.entries.values()) if (entry.id === id && !entry.isForgotten) return entry
    return undefined
  }

  wasKept (id: string): boolean {
    const all = [...this.gone, ...[...this.clients.values()].flatMap(({ entries }) => [...entries.values()])]
    return all.some(entry => entry.id === id)
  }

  /** A newer batch has begun, or a sender that hears nothing has left: what is not flushed is void. */
  startAnew (key: string, batch = -1): void {
    const client = this.client(key)
    client.batch = batch
    client.isEndHeard ||= client.isEnded
    for (const entry of this.live(key)) entry.isHeard ||= entry.isFlushed // nobody asks about the last batch any more
    for (const entry of this.unflushed(key)) {
      entry.isVoid = true
      this.#voided++
    }
  }

  /** Its sender was told that the store is away: the broker learns what came of it when it has to. */
  doubted (id: string): void {
    // A message whose first sending is flushed may be there once more.
    for (const client of this.clients.values()) for (const entry of client.entries.values()) if (entry.id === id && !entry.isFlushed) entry.isDoubtful = true
  }

  appended (key: string, rows: readonly StoredRequest[]): void {
    const { entries, batch } = this.client(key)
    for (const { seq, envelope, batchId } of rows) {
      if (entries.has(seq)) continue // the same row again changes nothing
      const id = envelope.messageId ?? ''
      const request = this.sent.get(id)
      if (request === undefined) throw new Error(`${key}: ${id} was kept, and nobody sent it`)
      const twin = this.live(key).find(entry => entry.id === id && !entry.isVoid && !entry.isFlushed)
      if (twin !== undefined) throw new Error(`${key}: ${id} is kept twice, as ${twin.seq} and as ${seq}`)
      const isVoid = batchId < batch // a newer batch has begun while it was on its way
      if (isVoid) this.#voided++
      const facts = { isFlushed: false, isHeard: false, isVoid, isForgotten: false, isPurged: false, isDoubtful: false, at: undefined, isFault: false, isRead: false }
      entries.set(seq, { key, seq, id, action: request.action, batch: batchId, ...facts })
    }
  }

  committed (key: string, { seq, endOfMessages }: { seq: number, endOfMessages: boolean }): void {
    const client = this.client(key)
    // Counted from the last one that its client knows of.
    const covered = this.live(key).filter(entry => !entry.isHeard && entry.seq <= seq)
    const waits = [...client.flushes].filter(flush => flush.covered === undefined && flush.endOfMessages === endOfMessages)
    // What an older batch's call repeats is done already, and its client has ceased to ask.
    const call = waits.find(({ count }) => count === covered.length) ?? (covered.length === 0 ? waits.find(({ batch }) => batch < client.batch) : undefined)
    if (call === undefined) {
      const ids = covered.map(({ id }) => id).join(' ')
      throw new Error(`${key}: a commit of ${ids === '' ? 'nothing' : ids}${endOfMessages ? ' with the end mark' : ''} that no call asked for`)
    }
    call.covered = covered
    for (const entry of covered) {
      // The commit was on its way when the newer batch began: it counts, for all that it covers.
      if (entry.isVoid && (call.batch >= client.batch || entry.batch !== call.batch)) throw new Error(`${key}: ${entry.id} is flushed, and was void`)
      entry.isHeard = entry.isVoid
      entry.isVoid = false
      entry.isFlushed = true
    }
    client.isEnded ||= endOfMessages
    client.isEndHeard ||= endOfMessages && call.batch < client.batch
  }

  /** A Flush or EndRequests was answered. */
  heard (key: string, call: FlushCall): void {
    for (const entry of call.covered ?? []) entry.isHeard = true
    if (call.endOfMessages) this.client(key).isEndHeard = true
  }

  /** Its client was told that it comes after the end: so its requests are flushed, if they are there. */
  heardOfEnd (key: string): void {
    const client = this.client(key)
    client.isEndHeard ||= client.isEnded
    for (const entry of client.isEnded ? this.live(key) : []) entry.isHeard ||= entry.isFlushed
  }

  /** Flushed, and its client was not told. */
  isUnsure (key: string): boolean {
    const { isEnded, isEndHeard } = this.client(key)
    return (isEnded && !isEndHeard) || this.live(key).some(({ isFlushed, isHeard }) => isFlushed && !isHeard)
  }

  /** What its client announces with the next Flush. */
  announced (key: string): Entry[] { return this.live(key).filter(({ isHeard, isVoid }) => !isHeard && !isVoid) }

  discarded (key: string, afterSeq: number): void {
    for (const entry of this.live(key)) {
      if (entry.seq <= afterSeq || entry.isFlushed) continue
      if (!entry.isVoid) throw new Error(`${key}: ${entry.id} is thrown away, and no newer batch has begun`)
      entry.isForgotten = true
    }
  }

  settled (kept: ReadonlyArray<{ clientId: string, seq: number, at: number }>, batch: readonly Settlement[]): void {
    for (const { clientId, seq, at } of kept) {
      const entry = this.clients.get(clientId)?.entries.get(seq)
      if (entry === undefined || entry.isForgotten) throw new Error(`${clientId}: a response to ${seq}, which is not there`)
      if (entry.at !== undefined) throw new Error(`${clientId}: ${entry.id} has two responses`)
      if (this.#isDurable && !entry.isFlushed) throw new Error(`${clientId}: ${entry.id} has a response and was never flushed`)
      entry.at = at
      entry.isFault = batch.find(row => row.clientId === clientId && row.seq === seq)?.isFault === true
    }
  }

  purged (key: string): void {
    const client = this.client(key)
    if (client.purging > 0) client.purging--
    else {
      // Nobody asked for it: the client has left with nothing that is promised.
      const kept = this.#isDurable ? this.live(key).filter(({ isFlushed }) => isFlushed) : client.isEnded ? this.live(key) : []
      if (kept.length > 0) throw new Error(`${key}: ${kept.length} requests were purged, and nobody asked for it`)
    }
    for (const entry of this.live(key)) { entry.isPurged = true; this.gone.push(entry) }
    const { batch, purging, flushes } = client
    this.clients.set(key, { ...fresh(), batch, purging, flushes })
  }

  /** May an instance have this request now? The same message may be there twice, in two batches. */
  dispatched (id: string): void {
    const entries = [...this.clients.values()].flatMap(client => [...client.entries.values()]).filter(entry => entry.id === id && !entry.isForgotten)
    if (entries.some(({ at, isFlushed }) => at === undefined && (isFlushed || !this.#isDurable))) return
    if (this.gone.some(entry => entry.id === id)) return // purged while it was on its way
    throw new Error(`${id} runs, and ${entries.length === 0 ? 'is not there' : entries.some(({ at }) => at !== undefined) ? 'has its response' : 'was never flushed'}`)
  }

  /** A page that a client got. `from`: place of the first response that it could have got, undefined: not known. */
  pulled (key: string, page: { responses: readonly StoredResponse[], endOfMessages: boolean }, wanted: { action: string, count: number, from: number | undefined }): void {
    const { action, count, from } = wanted
    const entries = [...this.live(key), ...this.gone.filter(entry => entry.key === key)]
    let last = (from ?? 0) - 1
    for (const { at, seq, envelope, requestAction, isFault } of page.responses) {
      const entry = entries.find(one => one.seq === seq && one.at === at && one.id === envelope.relatesTo)
      if (entry === undefined) throw new Error(`${key}: got a response to ${seq} (${envelope.relatesTo ?? ''}) at ${at}, which is not stored`)
      if (at <= last) throw new Error(`${key}: place ${at} came after ${last}`)
      if (action !== '' && entry.action !== action) throw new Error(`${key}: ${entry.id} came through a filter for ${action}`)
      if (requestAction !== entry.action || isFault !== entry.isFault) throw new Error(`${key}: ${entry.id} says ${requestAction}, fault ${String(isFault)}`)
      if (userDataText(envelope.userData ?? new Uint8Array()) !== this.sent.get(entry.id)?.user) throw new Error(`${key}: ${entry.id} has another's user data`)
      last = at
      entry.isRead = true
    }
    if (page.responses.length > count) throw new Error(`${key}: ${page.responses.length} came, ${count} were asked for`)
    const first = from ?? page.responses[0]?.at
    const missed = first === undefined ? [] : this.live(key).filter(entry => entry.at !== undefined && entry.at >= first && entry.at < last && (action === '' || entry.action === action) && !page.responses.some(({ at }) => at === entry.at))
    if (this.#isDurable && missed.length > 0) throw new Error(`${key}: ${missed.map(({ id }) => id).join(' ')} passed over`)
    if (!page.endOfMessages) return
    const client = this.client(key)
    if (!client.isEnded) throw new Error(`${key}: the end came, and EndRequests did not`)
    const left = this.live(key).filter(entry => entry.isFlushed && (entry.at === undefined || (first !== undefined && entry.at > last && (this.#isDurable || !entry.isRead) && (action === '' || entry.action === action))))
    if (left.length > 0) throw new Error(`${key}: the end came before ${left.map(({ id }) => id).join(' ')}`)
  }

  /** Counts that a broker shows must add up at any time, and never go down but for what was forgotten. */
  check (counters: SessionCounters): void {
    const { total, processed, processing, queued } = counters
    if (processing < 0 || queued < 0 || total !== processed + processing + queued) throw new Error(`counts: total ${total}, processed ${processed}, processing ${processing}, queued ${queued}`)
    if (processed < this.#processedFloor) throw new Error(`processed went down from ${this.#processedFloor} to ${processed}`)
    if (total < this.#totalFloor - this.#voided) throw new Error(`total went down from ${this.#totalFloor} to ${total}`)
    this.#processedFloor = processed
    this.#totalFloor = Math.max(this.#totalFloor, total)
  }

  /** The same at rest: what was kept, and of that what waits. A broker that was raised has counted what is there; before, it need not know of what is in doubt. */
  checkAtRest ({ total, processed, outstanding }: SessionCounters, isRaised: boolean, unheard: number): void {
    const live = [...this.clients.keys()].flatMap(key => this.live(key))
    const all = [...live, ...this.gone]
    const doubtful = isRaised ? 0 : all.filter(entry => !entry.isFlushed && (entry.isDoubtful || entry.isVoid)).length
    const answered = all.filter(({ at }) => at !== undefined).length
    const waiting = live.filter(({ at }) => at === undefined).length
    const fits = (seen: number, kept: number): boolean => seen <= kept && seen >= kept - doubtful
    if (processed > answered || processed < answered - unheard || !fits(total, all.length) || !fits(outstanding, waiting)) {
      throw new Error(`counts: total ${total}, processed ${processed}, outstanding ${outstanding}; kept were ${all.length}, ${answered} are answered, ${waiting} wait, ${doubtful} in doubt`)
    }
  }

  /** A broker raised again counts anew from the store: what it shows after that may be less only by what was not known to be kept. */
  raised (): void {
    const all = [...[...this.clients.keys()].flatMap(key => this.live(key)), ...this.gone]
    this.#totalFloor = 0
    this.#voided = all.filter(({ isVoid }) => isVoid).length
    this.#processedFloor = all.filter(({ at }) => at !== undefined).length
    // Its clients ask how many are flushed.
    for (const entry of all) entry.isHeard ||= entry.isFlushed
    for (const client of this.clients.values()) { client.isEndHeard ||= client.isEnded; client.flushes.clear() }
  }
}
