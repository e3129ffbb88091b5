import { SoaError, isSoaError } from '../core/errors.ts'
import { systemClock, type Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { MessageStore, Settlement, StateChange, StoredClient, StoredRequest, StoredResponse } from './message-store.ts'
import { packLetter, packRequest, packResponse, unpackKept, unpackRequest, unpackResponse } from './pack.ts'
import { RedisDeadLetters } from './redis-dead-letters.ts'
import { sessionKeys, type SessionKeys } from './redis-keys.ts'
import { loadClients } from './redis-load.ts'
import { SessionOwner } from './redis-owner.ts'
import { replicasHave } from './redis-replicas.ts'
import { int, list, script, text, type Argument, type Reply } from './redis-script.ts'
import type { KeptHead, Scanned, Sieve } from './trace-facts.ts'
import { forgetUsage, type Quota } from './redis-usage.ts'
import type { Redis } from './redis.ts'

const APPEND = script('append')
const COMMIT = script('commit')
const SETTLE = script('settle')
const DISCARD = script('discard')
const RELEASE = script('release')
const READ = script('read')
const REQUESTS = script('requests')
const SCAN = script('scan')
const PURGE = script('purge')
const TOTALS = script('totals')
const CLIENTS = script('clients')
const LET_GO = script('let-go')
const REMOVE = script('remove')
const STATE_READ = script('state-read')
const STATE_KEEP = script('state-keep')

const RELEASED_A_STEP = 1000
const REMOVED_A_STEP = 300
const READ_AT_MOST = 10_000
/** Seqs or places that one step of a scan looks at: a few milliseconds in which Redis does nothing else. */
const SCANNED_AT_MOST = 2000

/** What an acknowledged commit is safe against (design.md): process: kill -9 of all but Redis · disk: and of Redis, power loss · replicas: and loss of the primary. */
export type Level = 'process' | 'disk' | 'replicas'

export interface OpenSession {
  /** A connection of kind `commands` (redis.ts); sessions may share it. It stays open when the store is closed. */
  readonly redis: Redis
  readonly prefix: string
  readonly sessionId: string
  /** `process` and `disk` differ in Redis's own settings, which `checkDurable` looks at; `replicas` makes each write wait for them too. */
  readonly level: Level
  /** True: a new session, refused with Broker_SessionIdAlreadyExists when it has data. False: raise it, refused with storeLost when it has none. */
  readonly create: boolean
  readonly log: Logger
  readonly limits?: {
    /** Setting maxSessionBytes; 0 or undefined: none. */
    readonly maxSessionBytes?: number | undefined
    /** Setting maxDeadLetters, default 1000. */
    readonly maxDeadLetters?: number | undefined
    /** Setting storeTimeoutMs, default 30 s. */
    readonly timeoutMs?: number | undefined
  } | undefined
  /** Of all durable sessions together; asked before each append. */
  readonly quota?: Quota | undefined
  /** Replicas that every write waits for at level `replicas`, default 1. A guarantee only with all of them. */
  readonly replicas?: number | undefined
  readonly clock?: Clock | undefined
}

/** The queues of one session in Redis: every move is one Lua script of store/lua under the owner's token. */
export class RedisMessageStore implements MessageStore {
  readonly #owner: SessionOwner
  readonly #keys: SessionKeys
  readonly #opened: OpenSession
  readonly letters: RedisDeadLetters
  readonly #stop: AbortController
  #settling: Promise<unknown> = Promise.resolve()
  #isClosed = false

  private constructor (opened: OpenSession, owner: SessionOwner, keys: SessionKeys, stop: AbortController) {
    this.#opened = opened
    this.#owner = owner
    this.#keys = keys
    this.#stop = stop
    this.letters = new RedisDeadLetters({ keys, run: (of, keys, args) => this.#run(of, keys, args), moved: writes => owner.moved(writes) })
  }

  /** Takes the session over: from now on every write of an earlier owner is refused with storeFenced. */
  static async open (opened: OpenSession): Promise<RedisMessageStore> {
    const { redis, prefix, sessionId, create, log, limits, clock = systemClock } = opened
    const keys = sessionKeys(prefix, sessionId)
    const timeoutMs = limits?.timeoutMs ?? 30_000
    const stop = new AbortController()
    const replicated = opened.level === 'replicas' ? replicasHave(redis, opened.replicas ?? 1, Math.min(500, Math.floor(timeoutMs / 10))) : undefined
    const owner = await SessionOwner.claim({ replicated, redis, log, timeoutMs, clock, signal: stop.signal, sessionId, keys, mode: create ? 'create' : 'raise' })
    return new RedisMessageStore(opened, owner, keys, stop)
  }

  async append (clientId: string, displayId: string, batch: readonly StoredRequest[], state: readonly StateChange[] = []): Promise<void> {
    if (batch.length === 0) return
    const { client, requests } = this.#keys.of(clientId)
    const quota = this.#opened.limits?.maxSessionBytes ?? 0
    let batchId = -1
    let top = 0
    const rows: Argument[] = []
    let bytes = 0
    for (const request of batch) {
      const row = packRequest(request)
      bytes += row.length
      rows.push(request.seq, row)
      batchId = Math.max(batchId, request.batchId)
      top = Math.max(top, request.seq)
    }
    this.#opened.quota?.admit(bytes)
    const [writes, tooMany] = list(await this.#run(APPEND, [this.#keys.meta, this.#keys.clients, client, requests, this.#keys.state], [clientId, displayId, quota, batchId, changes(state), ...rows]))
    if (int(tooMany) > 0) throw new SoaError('StorageSpaceNotSufficient', { setting: 'maxSessionBytes', value: int(tooMany), limit: quota })
    this.#owner.moved(int(writes))
    this.#owner.acknowledged(clientId, { appended: top })
  }

  async commit (clientId: string, displayId: string, through: { seq: number, committed: number, endOfMessages: boolean, batchId: number }): Promise<void> {
    const args = [clientId, displayId, through.seq, through.committed, through.endOfMessages ? 1 : 0, through.batchId]
    this.#owner.moved(int(await this.#run(COMMIT, [this.#keys.meta, this.#keys.clients, this.#keys.of(clientId).client], args)))
    this.#owner.acknowledged(clientId, { committedSeq: through.seq })
  }

  async discard (clientId: string, afterSeq: number): Promise<void> {
    const { client, requests } = this.#keys.of(clientId)
    this.#owner.moved(int(await this.#run(DISCARD, [this.#keys.meta, client, requests], [afterSeq])))
  }

  /** One at a time: after a lost connection it must be clear whose responses landed without an answer. */
  settle (batch: readonly Settlement[], state: readonly StateChange[] = []): Promise<Array<{ clientId: string, seq: number, at: number }>> {
    const turn = this.#settling.then(() => this.#settle(batch, state))
    this.#settling = turn.catch(() => { /* told to its own caller; the next one has its own try */ })
    return turn
  }

  async #settle (batch: readonly Settlement[], state: readonly StateChange[]): Promise<Array<{ clientId: string, seq: number, at: number }>> {
    if (batch.length === 0) return []
    const rows = new Map<string, Array<{ seq: number, isFault: boolean, row: Buffer, letter: Buffer | undefined }>>()
    for (const { clientId, seq, isFault, requestAction, response, letter, trace } of batch) {
      const row = { seq, isFault, row: packResponse({ seq, isFault, requestAction, envelope: response, trace }), letter: letter && packLetter(seq, letter) }
      const of = rows.get(clientId)
      if (of === undefined) rows.set(clientId, [row])
      else of.push(row)
    }
    const kept: Array<{ clientId: string, seq: number, at: number }> = []
    let ids: string[] = []
    const reply = await this.#runMade(SETTLE, () => {
      const keys = [this.#keys.meta, this.#keys.state, this.#keys.dead, this.#keys.letters]
      const args: Argument[] = [changes(state)]
      const letters: Argument[] = []
      ids = []
      for (const [clientId, all] of rows) {
        const left = all.filter(({ seq }) => {
          const at = this.#owner.takeLanded(clientId, seq)
          if (at !== undefined) kept.push({ clientId, seq, at })
          return at === undefined
        })
        rows.set(clientId, left)
        if (left.length === 0) continue
        const { client, requests, responses } = this.#keys.of(clientId)
        ids.push(clientId)
        keys.push(client, requests, responses)
        args.push(left.length)
        for (const { seq, isFault, row, letter } of left) {
          args.push(seq, isFault ? 1 : 0, row)
          if (letter !== undefined) letters.push(ids.length - 1, seq, clientId, letter)
        }
      }
      if (letters.length > 0) args.push(this.#opened.limits?.maxDeadLetters ?? 1000, ...letters)
      return ids.length === 0 && state.length === 0 ? undefined : { keys, args }
    })
    const flat = list(reply)
    if (flat.length > 0) this.#owner.moved(int(flat[0]))
    for (let i = 1; i < flat.length; i += 3) {
      const clientId = ids[int(flat[i])] ?? ''
      const at = int(flat[i + 2])
      kept.push({ clientId, seq: int(flat[i + 1]), at })
      this.#owner.acknowledged(clientId, { responses: at + 1 })
    }
    return kept
  }

  async read (clientId: string, from: number, count: number, maxBytes: number): Promise<StoredResponse[]> {
    if (count <= 0) return []
    const { client, responses } = this.#keys.of(clientId)
    const flat = list(await this.#run(READ, [this.#keys.meta, client, responses], [from, Math.min(count, READ_AT_MOST), maxBytes]))
    const found: StoredResponse[] = []
    for (let i = 0; i < flat.length; i += 2) found.push(unpackResponse(flat[i + 1] as Buffer, int(flat[i])))
    return found
  }

  async requests (clientId: string, seqs: readonly number[]): Promise<StoredRequest[]> {
    if (seqs.length === 0) return []
    const rows = list(await this.#run(REQUESTS, [this.#keys.meta, this.#keys.of(clientId).requests], [...seqs]))
    return rows.filter(row => row !== null).map(row => unpackRequest(row as Buffer))
  }

  async scan (clientId: string, of: 'requests' | 'responses', below: number, count: number, { messageId, userData = '', faults = false }: Sieve): Promise<Scanned> {
    const { client, requests, responses } = this.#keys.of(clientId)
    const isRequests = of === 'requests'
    // As they stand in a row's head, behind urn:uuid: or without it.
    const ids = messageId === undefined ? ['', ''] : ['urn:uuid:', ''].map(before => `"${isRequests ? 'messageId' : 'relatesTo'}":${JSON.stringify(before + messageId).slice(0, -1)}`)
    const args = [isRequests ? 1 : 0, Math.min(below, Number.MAX_SAFE_INTEGER), Math.min(count, SCANNED_AT_MOST), ...ids, userData, faults ? 1 : 0]
    const [next, looked, ...flat] = list(await this.#run(SCAN, [this.#keys.meta, client, isRequests ? requests : responses], args))
    const items: KeptHead[] = []
    for (let i = 0; i < flat.length; i += 2) items.push(unpackKept(flat[i + 1] as Buffer, isRequests ? undefined : int(flat[i])))
    return { items, looked: int(looked), next: int(next) < 0 ? undefined : int(next) }
  }

  async release (clientId: string, through: number): Promise<void> {
    const { client, responses } = this.#keys.of(clientId)
    for (;;) {
      const [writes, more] = list(await this.#run(RELEASE, [this.#keys.meta, client, responses], [through, RELEASED_A_STEP]))
      this.#owner.moved(int(writes))
      if (int(more) === 0) return
    }
  }

  async load (): Promise<StoredClient[]> {
    return await loadClients((of, keys, args) => this.#run(of, keys, args), this.#keys)
  }

  async purge (clientId: string): Promise<void> {
    const { client, requests, responses } = this.#keys.of(clientId)
    await this.#owner.leaving(clientId, async () => {
      this.#owner.moved(int(await this.#run(PURGE, [this.#keys.meta, this.#keys.clients, client, requests, responses, this.#keys.dead, this.#keys.letters], [clientId])))
    })
  }

  async purged (): Promise<{ total: number, processed: number, faulted: number }> {
    const [total, processed, faulted] = list(await this.#run(TOTALS, [this.#keys.meta], []))
    return { total: int(total), processed: int(processed), faulted: int(faulted) }
  }

  async keepState (state: readonly StateChange[]): Promise<void> {
    if (state.length > 0) this.#owner.moved(int(await this.#run(STATE_KEEP, [this.#keys.meta, this.#keys.state], [changes(state)])))
  }

  async state (): Promise<{ entries: Map<string, string>, n: number }> {
    const flat = list(await this.#run(STATE_READ, [this.#keys.meta, this.#keys.state], [])).map(text)
    const entries = new Map<string, string>()
    let highest = 0
    for (let i = 0; i < flat.length; i += 2) {
      const [, n = '0', value = ''] = /^(\d+) (.*)$/s.exec(flat[i + 1] ?? '') ?? []
      highest = Math.max(highest, Number(n))
      if (value !== '') entries.set(flat[i] as string, value)
    }
    return { entries, n: highest }
  }

  async deadLettered (): Promise<number> { return int(list(await this.#run(TOTALS, [this.#keys.meta], []))[4]) }

  async bytes (): Promise<number> { return int(list(await this.#run(TOTALS, [this.#keys.meta], []))[3]) }

  async close (keep: boolean): Promise<void> {
    if (this.#isClosed) return
    if (!keep) await this.#remove()
    // Refused for good: there is no token to give back.
    else if (!this.#owner.isRefused) await this.#run(LET_GO, [this.#keys.meta], [])
    this.#isClosed = true
    this.#stop.abort(new SoaError('StorageClosed', {}))
  }

  async #remove (): Promise<void> {
    const { meta, clients, state, dead, letters, of } = this.#keys
    this.#owner.forget()
    try {
      const ids = list(await this.#run(CLIENTS, [meta, clients], [])).map(text)
      // The session itself goes last: a removal cut short is found again and ended by the next one.
      for (let from = 0; from === 0 || from < ids.length; from += REMOVED_A_STEP) {
        const step = ids.slice(from, from + REMOVED_A_STEP)
        await this.#run(REMOVE, [meta, clients, state, dead, letters, ...step.flatMap(id => Object.values(of(id)) as string[])], [from + REMOVED_A_STEP >= ids.length ? 1 : 0, ...step])
      }
    } catch (error) {
      if (!isSoaError(error, 'storeLost')) throw error // nothing of the session is there: that is what was wanted
    }
    await forgetUsage(this.#opened, this.#opened.sessionId)
  }

  #run (of: Parameters<SessionOwner['run']>[0], keys: string[], args: Argument[]): Promise<Reply> {
    return this.#runMade(of, () => ({ keys, args }))
  }

  async #runMade (...[of, make]: Parameters<SessionOwner['run']>): Promise<Reply> {
    if (this.#isClosed) throw new SoaError('StorageClosed', {})
    return await this.#owner.run(of, make)
  }
}

/** As store/lua/state.lua takes them. */
const changes = (state: readonly StateChange[]): string => state.length === 0 ? '' : JSON.stringify(state.map(({ key, n, value }) => [key, n, value ?? null]))
