import { SoaError } from '../core/errors.ts'
import type { Envelope } from '../wire/soap/envelope.ts'
import type { MessageStore, Settlement, StateChange, StoredClient, StoredRequest, StoredResponse } from './message-store.ts'
import { MemoryDeadLetters } from './memory-dead-letters.ts'
import { rowBytes } from './pack.ts'
import type { KeptHead, Scanned, Sieve } from './trace-facts.ts'

interface Client {
  displayId: string
  appended: number
  /** Seqs up to `appended` that have not come: only these are let in late. */
  missing: Set<number>
  committed: number
  committedSeq: number
  endOfMessages: boolean
  batchId: number
  responses: number
  faults: number
  released: number
  bytes: number
  readonly requests: Map<number, StoredRequest>
  /** Place → response, from `released` on. */
  readonly kept: Map<number, StoredResponse>
}

export interface MemoryNeeds {
  /** Setting maxSessionBytes; 0 or undefined: none. */
  readonly maxSessionBytes?: number | undefined
  /** Setting maxDeadLetters, default 1000. */
  readonly maxDeadLetters?: number | undefined
}

/**
 * The queues of one session in this process: interactive sessions. The same promises as Redis's, but for surviving; `release` is
 * what keeps it small, and a response that is read and released is garbage.
 */
export class MemoryMessageStore implements MessageStore {
  readonly #clients = new Map<string, Client>()
  readonly #quota: number
  readonly #state = new Map<string, StateChange>()
  readonly letters: MemoryDeadLetters
  #purged = { total: 0, processed: 0, faulted: 0 }
  #bytes = 0
  #isClosed = false

  constructor ({ maxSessionBytes = 0, maxDeadLetters = 1000 }: MemoryNeeds = {}) {
    this.#quota = maxSessionBytes
    this.letters = new MemoryDeadLetters({ most: maxDeadLetters, grow: bytes => { this.#bytes += bytes }, replace: (clientId, at, response) => this.#replace(clientId, at, response) })
  }

  async append (clientId: string, displayId: string, batch: readonly StoredRequest[], state: readonly StateChange[] = []): Promise<void> {
    this.#mustBeOpen()
    if (batch.length === 0) return
    const known = this.#clients.get(clientId)
    const fresh = new Map<number, StoredRequest>()
    for (const request of batch) {
      if (!fresh.has(request.seq) && (known === undefined || request.seq > known.appended || known.missing.has(request.seq))) fresh.set(request.seq, request)
    }
    if (fresh.size === 0) return
    let size = 0
    for (const { envelope } of fresh.values()) size += rowBytes(envelope)
    if (this.#quota > 0 && this.#bytes + size > this.#quota) {
      throw new SoaError('StorageSpaceNotSufficient', { setting: 'maxSessionBytes', value: this.#bytes + size, limit: this.#quota })
    }
    const client = this.#clientOf(clientId, displayId)
    for (const [seq, request] of fresh) {
      for (let missing = client.appended + 1; missing < seq; missing++) client.missing.add(missing)
      client.missing.delete(seq)
      client.appended = Math.max(client.appended, seq)
      client.batchId = Math.max(client.batchId, request.batchId)
      client.requests.set(seq, request)
    }
    this.#grow(client, size)
    this.#keep(state)
  }

  async commit (clientId: string, displayId: string, through: { seq: number, committed: number, endOfMessages: boolean, batchId: number }): Promise<void> {
    this.#mustBeOpen()
    const appended = this.#clients.get(clientId)?.appended ?? 0
    if (through.seq > appended) throw new SoaError('StorageFailure', { why: `BEYOND commit through ${through.seq}, appended are ${appended}` })
    const client = this.#clientOf(clientId, displayId)
    if (through.seq >= client.committedSeq) {
      client.committedSeq = through.seq
      client.committed = Math.max(client.committed, through.committed)
      client.batchId = Math.max(client.batchId, through.batchId)
    }
    client.endOfMessages ||= through.endOfMessages
  }

  async discard (clientId: string, afterSeq: number): Promise<void> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    if (client === undefined) return
    const after = Math.max(afterSeq, client.committedSeq)
    for (const [seq, { envelope }] of client.requests) {
      if (seq <= after) continue
      client.requests.delete(seq)
      this.#grow(client, -rowBytes(envelope))
    }
    for (const seq of client.missing) if (seq > after) client.missing.delete(seq)
  }

  async settle (batch: readonly Settlement[], state: readonly StateChange[] = []): Promise<Array<{ clientId: string, seq: number, at: number }>> {
    this.#mustBeOpen()
    this.#keep(state)
    const kept: Array<{ clientId: string, seq: number, at: number }> = []
    for (const { clientId, seq, response, isFault, requestAction, letter, trace } of batch) {
      const client = this.#clients.get(clientId)
      const request = client?.requests.get(seq)
      if (client === undefined || request === undefined) continue
      const at = client.responses++
      if (isFault) client.faults++
      client.kept.set(at, { at, seq, envelope: response, isFault, requestAction, trace })
      client.requests.delete(seq)
      this.#grow(client, rowBytes(response) - rowBytes(request.envelope))
      if (letter !== undefined) this.letters.keep(clientId, seq, at, letter)
      kept.push({ clientId, seq, at })
    }
    return kept
  }

  async read (clientId: string, from: number, count: number, maxBytes: number): Promise<StoredResponse[]> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    const found: StoredResponse[] = []
    if (client === undefined) return found
    const start = Math.max(from, client.released)
    for (let at = start, left = maxBytes; at < Math.min(start + count, client.responses); at++) {
      const response = client.kept.get(at)
      if (response === undefined) break
      left -= rowBytes(response.envelope)
      if (left < 0 && found.length > 0) break
      found.push(response)
    }
    return found
  }

  async requests (clientId: string, seqs: readonly number[]): Promise<StoredRequest[]> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    return seqs.map(seq => client?.requests.get(seq)).filter(request => request !== undefined)
  }

  async scan (clientId: string, of: 'requests' | 'responses', below: number, count: number, { messageId, userData, faults = false }: Sieve): Promise<Scanned> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    if (client === undefined) return { items: [], looked: 0, next: undefined }
    const [least, most] = of === 'requests' ? [1, client.appended + 1] : [client.released, client.responses]
    const from = Math.min(below, most)
    const to = Math.max(least, from - count)
    const items: KeptHead[] = []
    for (let i = from - 1; i >= to; i--) {
      const row = of === 'requests' ? client.requests.get(i) : client.kept.get(i)
      if (row === undefined) continue
      const head = keptHead(row)
      if (faults && !head.isFault) continue
      if (messageId !== undefined && !head.messageId.replace(/^urn:uuid:/, '').startsWith(messageId)) continue
      if (userData !== undefined && head.userData === undefined) continue
      items.push(head)
    }
    return { items, looked: Math.max(0, from - to), next: to > least ? to : undefined }
  }

  async release (clientId: string, through: number): Promise<void> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    if (client === undefined) return
    for (; client.released <= Math.min(through, client.responses - 1); client.released++) {
      const response = client.kept.get(client.released)
      if (response === undefined) continue
      client.kept.delete(client.released)
      this.#grow(client, -rowBytes(response.envelope))
    }
  }

  async load (): Promise<StoredClient[]> {
    this.#mustBeOpen()
    return [...this.#clients].sort(([a], [b]) => a < b ? -1 : 1).map(([clientId, client]) => {
      const outstanding = [...client.requests.keys()].sort((a, b) => a - b)
      const { displayId, appended, committed, committedSeq, endOfMessages, batchId, responses, faults } = client
      const uncommittedMessageIds = outstanding.filter(seq => seq > committedSeq)
        .map(seq => client.requests.get(seq)?.envelope.messageId).filter(id => id !== undefined && id !== '') as string[]
      return { clientId, displayId, appended, committed, committedSeq, endOfMessages, batchId, responses, faults, outstanding, uncommittedMessageIds }
    })
  }

  async purge (clientId: string): Promise<void> {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    if (client === undefined) return
    const { total, processed, faulted } = this.#purged
    this.#purged = { total: total + client.responses + client.requests.size, processed: processed + client.responses, faulted: faulted + client.faults }
    this.#bytes -= client.bytes
    this.#clients.delete(clientId)
    this.letters.purge(clientId)
  }

  async purged (): Promise<{ total: number, processed: number, faulted: number }> {
    this.#mustBeOpen()
    return { ...this.#purged }
  }

  async keepState (state: readonly StateChange[]): Promise<void> {
    this.#mustBeOpen()
    this.#keep(state)
  }

  async state (): Promise<{ entries: Map<string, string>, n: number }> {
    this.#mustBeOpen()
    const kept = [...this.#state.values()]
    return { entries: new Map(kept.flatMap(({ key, value }) => value === undefined ? [] : [[key, value]])), n: Math.max(0, ...kept.map(({ n }) => n)) }
  }

  async deadLettered (): Promise<number> { return this.letters.ever }

  async bytes (): Promise<number> {
    this.#mustBeOpen()
    return this.#bytes
  }

  /** `keep` makes no difference here: what is in memory goes with the process anyway. */
  async close (_keep: boolean): Promise<void> {
    this.#isClosed = true
    this.#clients.clear()
    this.#bytes = 0
  }

  #clientOf (clientId: string, displayId: string): Client {
    let client = this.#clients.get(clientId)
    if (client === undefined) {
      client = {
        displayId,
        appended: 0,
        missing: new Set(),
        committed: 0,
        committedSeq: 0,
        endOfMessages: false,
        batchId: -1,
        responses: 0,
        faults: 0,
        released: 0,
        bytes: 0,
        requests: new Map(),
        kept: new Map()
      }
      this.#clients.set(clientId, client)
    }
    return client
  }

  #keep (state: readonly StateChange[]): void {
    for (const change of state) if ((this.#state.get(change.key)?.n ?? -1) < change.n) this.#state.set(change.key, change)
  }

  /** The response to a replay takes its fault's place; without one only looks. */
  #replace (clientId: string, at: number, response?: { envelope: Envelope, isFault: boolean, requestAction: string }): boolean {
    this.#mustBeOpen()
    const client = this.#clients.get(clientId)
    const before = client?.kept.get(at)
    if (client === undefined || before === undefined) return false
    if (response === undefined) return true
    client.kept.set(at, { at, seq: before.seq, ...response })
    if (before.isFault && !response.isFault) client.faults--
    this.#grow(client, rowBytes(response.envelope) - rowBytes(before.envelope))
    return true
  }

  #grow (client: Client, size: number): void {
    client.bytes += size
    this.#bytes += size
  }

  #mustBeOpen (): void {
    if (this.#isClosed) throw new SoaError('StorageClosed', {})
  }
}

function keptHead (row: StoredRequest | StoredResponse): KeptHead {
  const { seq, envelope: { messageId = '', relatesTo = '', action, userData } } = row
  return 'at' in row
    ? { seq, at: row.at, messageId: relatesTo, action: row.requestAction, userData, isFault: row.isFault, receivedAt: undefined, trace: row.trace }
    : { seq, at: undefined, messageId, action, userData, isFault: false, receivedAt: row.receivedAt, trace: undefined }
}
