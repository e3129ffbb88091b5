import { randomUUID } from 'node:crypto'
import { SoaError } from '../core/errors.ts'
import { patiently, type CallNeeds } from './redis-call.ts'
import { sharedKey } from './redis-keys.ts'
import { int, list, script, text, type Argument, type Reply } from './redis-script.ts'
import type { RecordGuard, SessionQuery, SessionRecord, SessionState, SessionStore, WorkerDirectory, WorkerRecord } from './session-store.ts'

const CREATE = script('session-create')
const UPDATE = script('session-update')
const REMOVE = script('session-remove')
const STATES = script('session-states')
const BEAT = script('worker-beat')
const TAKE_OFF = script('worker-remove')

/** Records looked at in one round trip of a list. */
const LOOKED_AT_A_STEP = 200
const MOST_LISTED = 1000
/** Numbers of sessions by state are counted anew this often. */
const COUNT_KEPT_MS = 3_600_000

export interface DirectoryNeeds extends CallNeeds { readonly prefix: string }

/**
 * The directory of sessions. One hash each, `{soa}:session:<id>`, a field for each member of SessionRecord with its value as JSON; beside it
 * `{soa}:sessions` (sorted set, order of creation), `{soa}:served` (hash: session id → worker) and `{soa}:session-states` (hash: state → sessions). `_op` is the last change's own id, by
 * which a change sent again after a lost answer knows that it has landed.
 */
export class RedisSessionStore implements SessionStore {
  readonly #needs: DirectoryNeeds
  readonly #index: string
  readonly #served: string
  readonly #states: string

  constructor (needs: DirectoryNeeds) {
    this.#needs = needs
    this.#index = sharedKey(needs.prefix, 'sessions')
    this.#served = sharedKey(needs.prefix, 'served')
    this.#states = sharedKey(needs.prefix, 'session-states')
  }

  async create (record: SessionRecord): Promise<boolean> {
    const worker = record.worker === undefined ? '' : JSON.stringify(record.worker)
    const args = [randomUUID(), record.sessionId, worker, ...fieldsOf(record, 'leave out')]
    return int(await this.#patiently(() => CREATE().run(this.#needs.redis, [this.#key(record.sessionId), this.#index, this.#served, this.#states], args))) === 1
  }

  async get (sessionId: string): Promise<SessionRecord | undefined> {
    return recordOf(await this.#patiently(() => this.#needs.redis.hgetall(this.#key(sessionId))))
  }

  async update (sessionId: string, change: Partial<SessionRecord>, when: RecordGuard = {}): Promise<SessionRecord | undefined> {
    const { sessionId: _fixed, ...fields } = change
    const worker = !('worker' in when) ? 'any' : when.worker === undefined ? 'nobody' : JSON.stringify(when.worker)
    const states = (when.state ?? []).map(state => JSON.stringify(state))
    // An empty list of states allows none; the script's 0 means that nothing was asked.
    if (when.state !== undefined && states.length === 0) return undefined
    const args = [randomUUID(), sessionId, worker, states.length, ...states, ...fieldsOf(fields, 'remove')]
    const flat = list(await this.#patiently(() => UPDATE().run(this.#needs.redis, [this.#key(sessionId), this.#served, this.#states], args)))
    return recordOf(pairs(flat))
  }

  async list ({ state, service, cursor, limit = 100 }: SessionQuery): Promise<{ items: SessionRecord[], next?: string | undefined }> {
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_LISTED) throw new SoaError('InvalidArgument', { argument: 'limit', why: `${limit} is not a whole number from 1 to ${MOST_LISTED}` })
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw new SoaError('InvalidArgument', { argument: 'cursor', why: 'is not one that a list gave' })
    const name = service?.toLowerCase()
    const items: SessionRecord[] = []
    let last = cursor ?? '0'
    for (let after = last; ;) {
      const page = await this.#patiently(() => this.#needs.redis.zrange(this.#index, `(${after}`, '+inf', 'BYSCORE', 'LIMIT', 0, LOOKED_AT_A_STEP, 'WITHSCORES'))
      const records = await this.#records(page.filter((_, i) => i % 2 === 0))
      for (const [i, record] of records.entries()) {
        if (record === undefined || (state !== undefined && record.state !== state) || (name !== undefined && record.service.toLowerCase() !== name)) continue
        if (items.length === limit) return { items, next: last } // there is one more: that is why there is a next page
        items.push(record)
        last = page[i * 2 + 1] ?? last
      }
      if (records.length < LOOKED_AT_A_STEP) return { items }
      after = page.at(-1) ?? after
    }
  }

  async remove (sessionId: string): Promise<void> {
    await this.#patiently(() => REMOVE().run(this.#needs.redis, [this.#key(sessionId), this.#index, this.#served, this.#states], [sessionId]))
  }

  async countByState (): Promise<Partial<Record<SessionState, number>>> {
    const flat = list(await this.#patiently(() => STATES().run(this.#needs.redis, [this.#states, this.#index], [this.#key(''), COUNT_KEPT_MS])))
    return Object.fromEntries(Object.entries(pairs(flat)).map(([state, count]) => [JSON.parse(state) as SessionState, Number(count)]))
  }

  async ofWorker (workerId: string): Promise<SessionRecord[]> {
    const served = await this.#patiently(() => this.#needs.redis.hgetall(this.#served))
    const mine = JSON.stringify(workerId)
    const records = await this.#records(Object.keys(served).filter(id => served[id] === mine))
    return records.filter(record => record !== undefined && record.worker === workerId) as SessionRecord[]
  }

  async #records (ids: string[]): Promise<Array<SessionRecord | undefined>> {
    return await this.#patiently(() => Promise.all(ids.map(async id => recordOf(await this.#needs.redis.hgetall(this.#key(id))))))
  }

  #key (sessionId: string): string { return sharedKey(this.#needs.prefix, 'session', sessionId) }
  #patiently<T> (work: () => Promise<T>): Promise<T> { return patiently(this.#needs, work) }
}

/** The workers that beat: `{soa}:worker:<id>` runs out with its lease, `{soa}:workers` lists them. */
export class RedisWorkerDirectory implements WorkerDirectory {
  readonly #needs: DirectoryNeeds
  readonly #all: string

  constructor (needs: DirectoryNeeds) {
    this.#needs = needs
    this.#all = sharedKey(needs.prefix, 'workers')
  }

  async beat (record: WorkerRecord, leaseMs: number): Promise<void> {
    const args: Argument[] = [record.workerId, JSON.stringify(record), Math.max(1, Math.round(leaseMs))]
    await patiently(this.#needs, () => BEAT().run(this.#needs.redis, [this.#key(record.workerId), this.#all], args))
  }

  async get (workerId: string): Promise<WorkerRecord | undefined> {
    const json = await patiently(this.#needs, () => this.#needs.redis.get(this.#key(workerId)))
    return json === null ? undefined : JSON.parse(json) as WorkerRecord
  }

  async list (): Promise<WorkerRecord[]> {
    const ids = (await patiently(this.#needs, () => this.#needs.redis.smembers(this.#all))).sort()
    if (ids.length === 0) return []
    const found = await patiently(this.#needs, () => this.#needs.redis.mget(ids.map(id => this.#key(id))))
    const expired = ids.filter((_, i) => found[i] === null)
    if (expired.length > 0) await this.#takeOff('expired', expired)
    return found.filter(json => json !== null && json !== undefined).map(json => JSON.parse(json) as WorkerRecord)
  }

  async remove (workerId: string): Promise<void> { await this.#takeOff('gone', [workerId]) }

  async #takeOff (why: 'gone' | 'expired', ids: string[]): Promise<void> {
    await patiently(this.#needs, () => TAKE_OFF().run(this.#needs.redis, [this.#all, ...ids.map(id => this.#key(id))], [why, ...ids]))
  }

  #key (workerId: string): string { return sharedKey(this.#needs.prefix, 'worker', workerId) }
}

function fieldsOf (record: Partial<SessionRecord>, undefinedMeans: 'leave out' | 'remove'): string[] {
  const flat: string[] = []
  for (const [field, value] of Object.entries(record)) {
    if (value !== undefined) flat.push(field, JSON.stringify(value))
    else if (undefinedMeans === 'remove') flat.push(field, '')
  }
  return flat
}

function recordOf (fields: Record<string, string>): SessionRecord | undefined {
  const members = Object.entries(fields).filter(([field]) => field !== '_op')
  if (members.length === 0) return undefined
  return Object.fromEntries(members.map(([field, json]) => [field, JSON.parse(json) as unknown])) as unknown as SessionRecord
}

function pairs (flat: Reply[]): Record<string, string> {
  const fields: Record<string, string> = {}
  for (let i = 0; i < flat.length; i += 2) fields[text(flat[i])] = text(flat[i + 1])
  return fields
}
