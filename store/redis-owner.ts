import { randomUUID } from 'node:crypto'
import { SoaError, isSoaError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { failureOf, patiently, type CallNeeds } from './redis-call.ts'
import { connectionNumber, type Redis } from './redis.ts'
import type { SessionKeys } from './redis-keys.ts'
import { int, list, script, text, type Argument, type Reply, type Script } from './redis-script.ts'

const CLAIM = script('claim')
const RENEW = script('renew')
const TAIL = script('tail')
const PLACES = script('places')
const CLIENTS = script('clients')

/** Clients whose tail one script compares, places that one script reads: a step stays far below a millisecond a hundred. */
const CLIENTS_A_STEP = 500
const PLACES_A_STEP = 1000

/** What the store has acknowledged for one client. */
interface Acknowledged { appended: number, committedSeq: number, responses: number }

export interface OwnerNeeds extends CallNeeds {
  readonly sessionId: string
  readonly keys: SessionKeys
  /** `create`: refused with Broker_SessionIdAlreadyExists when the session has data. `raise`: refused with storeLost when it has none. */
  readonly mode: 'create' | 'raise'
  /**
   * Level `replicas`: resolves when enough replicas have all that this connection wrote, throws NotYet when they do not have it in time. Waited for after every write, so that
   * whatever was acknowledged is in the store after the primary is lost too.
   */
  readonly replicated?: (() => Promise<void>) | undefined
}

/**
 * A session as its owner sees it: the token, and what the store has acknowledged under it.
 *
 * After every lost connection, before anything else is sent:
 *  1. a new token replaces the old, so that a command still on its way over the old connection is refused when Redis comes to read it;
 *  2. the acknowledged tail is compared with the store's. The store has less: storeLost, for good;
 *  3. responses that landed without an answer are found by their places, so that a settle sent again tells what it kept.
 */
export class SessionOwner {
  readonly #needs: OwnerNeeds
  readonly #redis: Redis
  readonly #log: Logger
  readonly #tail = new Map<string, Acknowledged>()
  readonly #landed = new Map<string, Map<number, number>>()
  #token: string
  #maybe: string[] = []
  #writes: number
  /** Number of the connection on which the tail was last compared. */
  #checkedOn: number
  #renewing: Promise<void> | undefined
  #failed: SoaError | undefined

  private constructor (needs: OwnerNeeds, token: string, writes: number, checkedOn: number) {
    this.#needs = needs
    this.#redis = needs.redis
    this.#log = needs.log
    this.#token = token
    this.#writes = writes
    this.#checkedOn = checkedOn
  }

  static async claim (needs: OwnerNeeds): Promise<SessionOwner> {
    const uuid = randomUUID()
    try {
      const checkedOn = connectionNumber(needs.redis)
      const [token, writes] = list(await patiently(needs, async () => {
        const reply = await CLAIM().run(needs.redis, [needs.keys.meta], [uuid, needs.mode])
        await needs.replicated?.()
        return reply
      }))
      const owner = new SessionOwner(needs, text(token), int(writes), checkedOn)
      if (needs.mode === 'raise') await owner.#readTail()
      return owner
    } catch (error) {
      throw said(error, needs.sessionId)
    }
  }

  get token (): string { return this.#token }

  /** Fenced, or less in the store than was acknowledged: no call goes through any more. */
  get isRefused (): boolean { return this.#failed !== undefined }

  /** The session is about to be removed: what was acknowledged no longer matters, a loss least of all. A fence stands. */
  forget (): void {
    this.#tail.clear()
    this.#landed.clear()
    this.#writes = 0
    if (isSoaError(this.#failed, 'storeLost')) this.#failed = undefined
  }

  /**
   * One script under the token, tried again after a lost connection. `make` is called before each try; undefined: nothing is left to do.
   */
  async run (script: () => Script, make: () => { keys: string[], args: Argument[] } | undefined): Promise<Reply> {
    if (this.#failed) throw this.#failed
    const { replicated } = this.#needs
    // Run, and only waiting for replicas: a second run would say that it changed nothing.
    let answer: Reply | undefined
    try {
      return await patiently(this.#needs, async () => {
        if (this.#failed) throw this.#failed
        if (this.#checkedOn !== connectionNumber(this.#redis)) {
          answer = undefined
          await this.#renew()
        }
        const call = answer === undefined ? make() : undefined
        if (call !== undefined) answer = await script().run(this.#redis, call.keys, [this.#token, ...call.args])
        if (answer === undefined) return null
        if (replicated !== undefined && script().writes) await replicated()
        return answer
      }, () => { this.#checkedOn = -1 })
    } catch (error) {
      throw this.#keep(said(error, this.#needs.sessionId))
    }
  }

  /** A move was acknowledged as number `writes`. */
  moved (writes: number): void { this.#writes = Math.max(this.#writes, writes) }

  acknowledged (clientId: string, what: Partial<Acknowledged>): void {
    const known = this.#tail.get(clientId)
    if (known === undefined) this.#tail.set(clientId, { appended: 0, committedSeq: 0, responses: 0, ...what })
    else for (const field of ['appended', 'committedSeq', 'responses'] as const) known[field] = Math.max(known[field], what[field] ?? 0)
  }

  /** Runs while the client is expected to vanish: its tail is not compared meanwhile, or a purge whose answer was lost would look like a loss. */
  async leaving (clientId: string, work: () => Promise<void>): Promise<void> {
    const before = this.#tail.get(clientId)
    this.#tail.delete(clientId)
    try {
      await work()
      this.#landed.delete(clientId)
    } catch (error) {
      if (before) this.#tail.set(clientId, before)
      throw error
    }
  }

  /** Place of a response that was kept without an answer, once: whoever sent it hears of it. */
  takeLanded (clientId: string, seq: number): number | undefined {
    const places = this.#landed.get(clientId)
    const at = places?.get(seq)
    if (at !== undefined) places?.delete(seq)
    return at
  }

  #renew (): Promise<void> {
    return (this.#renewing ??= this.#doRenew().finally(() => { this.#renewing = undefined }))
  }

  async #doRenew (): Promise<void> {
    const on = connectionNumber(this.#redis)
    const candidate = `${this.#token.slice(0, this.#token.indexOf(':'))}:${randomUUID()}`
    const ours = [this.#token, ...this.#maybe]
    this.#maybe = [...this.#maybe, candidate].slice(-20)
    const [writes] = list(await RENEW().run(this.#redis, [this.#needs.keys.meta], [candidate, ...ours]))
    await this.#needs.replicated?.()
    this.#token = candidate
    this.#maybe = []
    if (int(writes) < this.#writes) throw this.#lost(`${int(writes)} writes`, this.#writes)
    await this.#compare()
    this.#checkedOn = on
    this.#log.info({ sessionId: this.#needs.sessionId, writes: int(writes), clients: this.#tail.size }, 'store has all that was acknowledged')
  }

  async #compare (): Promise<void> {
    const known = [...this.#tail.keys()]
    for (let from = 0; from < known.length; from += CLIENTS_A_STEP) {
      const ids = known.slice(from, from + CLIENTS_A_STEP)
      const tails = list(await TAIL().run(this.#redis, [this.#needs.keys.meta, ...ids.map(id => this.#needs.keys.of(id).client)], [this.#token]))
      for (const [i, id] of ids.entries()) {
        const ours = this.#tail.get(id)
        if (ours === undefined) continue // purged while we looked
        const theirs = { appended: int(tails[i * 3]), committedSeq: int(tails[i * 3 + 1]), responses: int(tails[i * 3 + 2]) }
        for (const field of ['appended', 'committedSeq', 'responses'] as const) {
          if (theirs[field] < ours[field]) throw this.#lost(`${field} ${theirs[field]} of client "${id}"`, ours[field])
        }
        if (theirs.responses > ours.responses) await this.#find(id, ours, theirs.responses)
      }
    }
  }

  async #find (clientId: string, ours: Acknowledged, responses: number): Promise<void> {
    const places = this.#landed.get(clientId) ?? new Map<number, number>()
    this.#landed.set(clientId, places)
    while (ours.responses < responses) {
      const from = ours.responses
      const count = Math.min(PLACES_A_STEP, responses - from)
      const seqs = list(await PLACES().run(this.#redis, [this.#needs.keys.meta, this.#needs.keys.of(clientId).responses], [this.#token, from, count]))
      for (const [i, seq] of seqs.entries()) places.set(int(seq), from + i)
      ours.responses = from + count
    }
  }

  /** What is there when a session is raised counts as acknowledged. */
  async #readTail (): Promise<void> {
    const { meta, clients, of } = this.#needs.keys
    const ids = list(await this.run(CLIENTS, () => ({ keys: [meta, clients], args: [] }))).map(text)
    for (let from = 0; from < ids.length; from += CLIENTS_A_STEP) {
      const step = ids.slice(from, from + CLIENTS_A_STEP)
      const tails = list(await this.run(TAIL, () => ({ keys: [meta, ...step.map(id => of(id).client)], args: [] })))
      for (const [i, id] of step.entries()) {
        this.#tail.set(id, { appended: int(tails[i * 3]), committedSeq: int(tails[i * 3 + 1]), responses: int(tails[i * 3 + 2]) })
      }
    }
  }

  #lost (has: string, acknowledged: number): SoaError {
    return new SoaError('storeLost', { sessionId: this.#needs.sessionId, has, acknowledged })
  }

  /** Fenced and lost are for good: a store that has refused once must not let a later call through. */
  #keep (error: unknown): unknown {
    if (isSoaError(error, 'storeFenced', 'storeLost') && this.#failed === undefined) {
      this.#failed = error
      this.#log.error({ sessionId: this.#needs.sessionId, err: error }, 'the store refuses this broker for good')
    }
    return error
  }
}

/** An answer of our scripts as the fault that it stands for; anything else as it is. */
function said (error: unknown, sessionId: string): unknown {
  const { kind, word, error: cause } = failureOf(error)
  if (kind !== 'said') return error
  switch (word) {
    case 'FENCED': return new SoaError('storeFenced', { sessionId }, { cause })
    case 'LOST': return new SoaError('storeLost', { sessionId, has: 'nothing', acknowledged: 'its queues' }, { cause })
    case 'EXISTS': return new SoaError('Broker_SessionIdAlreadyExists', { sessionId }, { cause })
    default: return new SoaError('StorageFailure', { why: cause.message }, { cause })
  }
}
