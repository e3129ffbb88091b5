import { systemClock, sleep, within } from '../core/clock.ts'
import type { TaskEvents, TaskInfo } from './placement-store.ts'
import { placementKeys, SCRIPTS, toTaskInfo, type PlacementKeys } from './redis-placement-scripts.ts'
import { patiently, type CallNeeds } from './redis-call.ts'
import { list, text } from './redis-script.ts'
import { waitReady, type Redis } from './redis.ts'

/** Longest blocking read: bounds how long a dead link goes unnoticed. */
const BLOCK_MS = 5000
const DEAD_LINK_MS = 2 * BLOCK_MS
/** Entries that wait for one follower; the others stay in Redis until it has taken these. */
const MAX_WAITING = 1000
/** Longest wait for a connection before it is looked at again; the wait itself has no end, since brokers outlive a Redis. */
const RECONNECT_MS = 60_000

type Batch = { tasks: TaskInfo[], cursor: string }
type XreadReply = Array<[stream: string, entries: Array<[id: string, fields: string[]]>]> | null

interface Follower { readonly stream: string, cursor: string, waiting: Batch[], wake: () => void }

/**
 * TaskStateChanged for every session of a process, over one blocking connection: one XREAD waits on all streams. A stream joins by ending the read in
 * flight (CLIENT UNBLOCK over the other connection). Cursors are kept here, so a lost connection loses nothing: the next read goes on from them.
 */
export class RedisTaskEvents implements TaskEvents {
  readonly #needs: CallNeeds
  readonly #blocking: Redis
  readonly #keys: PlacementKeys
  readonly #followers = new Set<Follower>()
  readonly #closed = new AbortController()
  #loop: Promise<void> | undefined
  /** The read in flight; a new object each time, so that a poke knows whether its read is over. */
  #reading: object | undefined
  #clientId: number | undefined

  /** `blocking`: opened with kind `blocking`, used by nobody else. Both connections stay the caller's to close, after `close()`. */
  constructor (needs: CallNeeds & { readonly prefix: string, readonly blocking: Redis }) {
    this.#needs = needs
    this.#blocking = needs.blocking
    this.#keys = placementKeys(needs.prefix)
    this.#blocking.on('close', () => { this.#clientId = undefined })
  }

  async snapshot (sessionId: string): Promise<Batch> {
    const [cursor, ...tasks] = list(await patiently(this.#needs, () => SCRIPTS.session().run(this.#needs.redis, [this.#keys.version], [sessionId])))
    return { cursor: text(cursor), tasks: tasks.map(task => toTaskInfo(text(task))) }
  }

  async * follow (sessionId: string, cursor: string, signal: AbortSignal): AsyncGenerator<Batch> {
    const follower: Follower = { stream: this.#keys.events(sessionId), cursor, waiting: [], wake: () => {} }
    const ended = AbortSignal.any([signal, this.#closed.signal])
    const wake = (): void => follower.wake()
    ended.addEventListener('abort', wake)
    this.#followers.add(follower)
    this.#poke()
    try {
      while (!ended.aborted) {
        if (follower.waiting.length === 0) {
          await new Promise<void>(resolve => { follower.wake = resolve; if (ended.aborted) resolve() })
          continue
        }
        const batches = follower.waiting
        follower.waiting = []
        if (batches.length >= MAX_WAITING) this.#poke()
        yield { tasks: batches.flatMap(({ tasks }) => tasks), cursor: batches.at(-1)!.cursor }
      }
    } finally {
      ended.removeEventListener('abort', wake)
      this.#followers.delete(follower)
    }
  }

  /** Ends every `follow` and the read in flight. */
  async close (): Promise<void> {
    this.#closed.abort()
    this.#poke()
    await this.#loop
  }

  /** Makes the loop look at its followers again: starts it, or ends the read in flight, which knows only those from before. */
  #poke (): void {
    const reading = this.#reading
    if (this.#loop === undefined) {
      if (!this.#closed.signal.aborted) this.#loop = this.#run().finally(() => { this.#loop = undefined; if (this.#hungry().size > 0) this.#poke() })
    } else if (reading !== undefined) {
      void this.#unblock(reading)
    }
  }

  async #unblock (reading: object): Promise<void> {
    while (this.#reading === reading) {
      // 0: sent, but Redis has not got it yet. Try again until this very read is over.
      const isDone = this.#clientId === undefined ? 0 : await this.#needs.redis.client('UNBLOCK', this.#clientId).catch(() => 0)
      if (isDone === 1) return
      await sleep(systemClock, 5)
    }
  }

  /** Streams to read, each from the oldest cursor of those who follow it. */
  #hungry (): Map<string, string> {
    const streams = new Map<string, string>()
    if (this.#closed.signal.aborted) return streams
    for (const { stream, cursor, waiting } of this.#followers) {
      const known = streams.get(stream)
      if (waiting.length < MAX_WAITING && (known === undefined || isAfter(known, cursor))) streams.set(stream, cursor)
    }
    return streams
  }

  async #run (): Promise<void> {
    for (let streams = this.#hungry(); streams.size > 0; streams = this.#hungry()) {
      try {
        if (this.#blocking.status !== 'ready') await waitReady(this.#blocking, RECONNECT_MS, systemClock, this.#closed.signal)
        this.#clientId ??= await this.#blocking.client('ID')
        streams = this.#hungry() // who came while we waited
        if (streams.size === 0) return
        this.#reading = {}
        this.#deliver(await this.#read(streams))
      } catch (error) {
        if (this.#closed.signal.aborted || this.#blocking.status === 'end') return
        this.#needs.log.warn({ err: error as Error }, 'reading task events failed, goes on')
        await sleep(systemClock, 100, this.#closed.signal).catch(() => { /* closed: the loop ends by itself */ })
      } finally {
        this.#reading = undefined
      }
    }
  }

  async #read (streams: ReadonlyMap<string, string>): Promise<XreadReply> {
    const reply = this.#blocking.call('xread', ['COUNT', 500, 'BLOCK', BLOCK_MS, 'STREAMS', ...streams.keys(), ...streams.values()])
    return await within(systemClock, DEAD_LINK_MS, reply, () => {
      this.#blocking.disconnect(true)
      return new Error(`no answer for ${DEAD_LINK_MS} ms: the link is taken for dead`)
    }) as XreadReply
  }

  #deliver (reply: XreadReply): void {
    for (const [stream, entries] of reply ?? []) {
      const batches = entries.map(([cursor, [, tasks = '[]']]) => ({ cursor, tasks: (JSON.parse(tasks) as never[]).map(toTaskInfo) }))
      for (const follower of this.#followers) {
        if (follower.stream !== stream) continue
        // Two may follow one session from different places: each gets what is new to it.
        const fresh = batches.filter(({ cursor }) => isAfter(cursor, follower.cursor))
        if (fresh.length === 0 || follower.waiting.length >= MAX_WAITING) continue
        follower.waiting.push(...fresh)
        follower.cursor = fresh.at(-1)!.cursor
        follower.wake()
      }
    }
  }
}

/** Stream ids are `<ms>-<n>`, both numbers. */
function isAfter (a: string, b: string): boolean {
  const [msA = 0, nA = 0] = a.split('-').map(Number)
  const [msB = 0, nB = 0] = b.split('-').map(Number)
  return msA > msB || (msA === msB && nA > nB)
}
