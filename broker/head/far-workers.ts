import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join as joinPath } from 'node:path'
import { sleep, type Clock } from '../../core/clock.ts'
import { Lifetime } from '../../core/lifetime.ts'
import type { Logger } from '../../core/log.ts'
import type { HeadRecord, RedisHeadDirectory } from '../../store/redis-heads.ts'
import type { WorkerDirectory, WorkerRecord } from '../../store/session-store.ts'
import { dialPeer, join, type PeerSocket } from '../../transport/peer.ts'
import { WorkerLink, type Worker } from './worker-link.ts'

export interface FarWorkersNeeds {
  heads: Pick<RedisHeadDirectory, 'list'>
  directory: Pick<WorkerDirectory, 'list' | 'get'>
  machine: string
  runDir: string
  /** Another number after each lost connection to the store: what was seen before says nothing about what went on meanwhile. */
  storeConnection: () => number
  /** Nobody serves its sessions any more. */
  onDeath: (workerId: string, why: string) => Promise<void>
  clock: Clock
  log: Logger
}

/** A worker of another machine, brought here: its sockets lie in this run folder, and each connection to one goes to the same socket there. */
interface Brought {
  readonly worker: Worker
  /** When a connection last got there. */
  reachedAt: number
  close (): Promise<void>
}

interface Seen {
  record: WorkerRecord | undefined
  /** Not in the directory since then, as far as we could look. */
  missingSince: number | undefined
}

const LOOK_MS = 3000
/**
 * A worker that is missing for this long on top of its lease (15 s) is dead, if we could look all the while: after an outage of the store all leases have run out,
 * and who lives beats again within 3 s and the reconnect's 1 s.
 */
const GRACE_MS = 7000
const MOST_DEAD = 10_000
/** A worker that was reached so lately is given out without another try. */
const REACHED_MS = 1000
const ENDINGS: Readonly<Record<PeerSocket, string>> = { http: 'sock', netTcp: 'tcp', control: 'ctl' }

/**
 * The workers of other machines. They are reached through the heads there, and they are dead when the directory says so: that they cannot be reached
 * from here says nothing about them, for who is cut off may only be us.
 */
export class FarWorkers {
  readonly #needs: FarWorkersNeeds
  readonly #life = new Lifetime()
  readonly #seen = new Map<string, Seen>()
  readonly #dead = new Set<string>()
  readonly #brought = new Map<string, Promise<Brought>>()
  #heads: HeadRecord[] = []
  #connection = -1
  #lookedAt = 0

  constructor (needs: FarWorkersNeeds) { this.#needs = needs }

  async start (): Promise<void> {
    await this.#look()
    void this.#watch()
  }

  /** The worker, to be used like one of this machine; undefined: it is not known, or no head of its machine answers. */
  async find (workerId: string): Promise<Worker | undefined> {
    const record = this.#seen.get(workerId)?.record ?? await this.#needs.directory.get(workerId)
    if (record === undefined || record.machine === this.#needs.machine) return undefined
    if (this.#peersOf(record.machine).length === 0) this.#heads = await this.#needs.heads.list()
    if (this.#peersOf(record.machine).length === 0) return undefined
    this.#seen.set(workerId, { record, missingSince: undefined })
    let brought = this.#brought.get(workerId)
    if (brought === undefined) {
      brought = this.#bring(record)
      this.#brought.set(workerId, brought)
      brought.catch(() => this.#brought.delete(workerId))
    }
    const there = await brought
    return await this.#isReached(record, there) ? there.worker : undefined
  }

  /** Whether the worker has been found dead. One that is not known yet is watched from now on. */
  isDead (workerId: string): boolean {
    if (this.#dead.has(workerId)) return true
    if (!this.#seen.has(workerId)) this.#seen.set(workerId, { record: undefined, missingSince: this.#needs.clock.now() })
    return false
  }

  async close (): Promise<void> {
    await this.#life.close()
    await Promise.all([...this.#brought.keys()].map(id => this.#drop(id)))
  }

  #peersOf (machine: string): HeadRecord[] { return this.#heads.filter(head => head.machine === machine) }

  async #watch (): Promise<void> {
    const { clock, log } = this.#needs
    while (!this.#life.signal.aborted) {
      await sleep(clock, LOOK_MS, this.#life.signal).catch(() => {})
      if (this.#life.signal.aborted) return
      await this.#look().catch(err => log.debug({ err: err as Error }, 'workers of other machines could not be looked at'))
    }
  }

  async #look (): Promise<void> {
    const { heads, directory, machine, clock, storeConnection, onDeath, log } = this.#needs
    const [listed, records] = await Promise.all([heads.list(), directory.list()])
    this.#heads = listed
    const now = clock.now()
    // What we did not see, because the store was away or this process stood still, is nobody's fault.
    const wasBlind = storeConnection() !== this.#connection || now - this.#lookedAt > 3 * LOOK_MS
    this.#connection = storeConnection()
    this.#lookedAt = now
    const there = new Set<string>()
    for (const record of records) {
      if (record.machine === machine) continue
      there.add(record.workerId)
      this.#dead.delete(record.workerId)
      this.#seen.set(record.workerId, { record, missingSince: undefined })
    }
    for (const [id, seen] of this.#seen) {
      if (there.has(id)) continue
      if (seen.missingSince === undefined || wasBlind) { seen.missingSince = now; continue }
      if (now - seen.missingSince < GRACE_MS) continue
      this.#seen.delete(id)
      if (this.#dead.size >= MOST_DEAD) this.#dead.clear() // forgetting only means to look again
      this.#dead.add(id)
      await this.#drop(id)
      onDeath(id, 'its broker worker is gone: it no longer beats').catch(err => log.error({ workerId: id, err: err as Error }, 'sessions of an ended worker were not looked after'))
    }
  }

  /** Whoever is given the worker's sockets cannot be given others when nobody answers there: so that is known before. */
  async #isReached (record: WorkerRecord, there: Brought): Promise<boolean> {
    const { clock, log } = this.#needs
    if (clock.now() - there.reachedAt < REACHED_MS) return true
    try {
      const socket = await this.#dial(record, nameOf(record), 'control')
      socket.destroy()
      there.reachedAt = clock.now()
      return true
    } catch (error) {
      log.warn({ workerId: record.workerId, err: error as Error }, 'a worker of another machine cannot be reached')
      return false
    }
  }

  async #bring (record: WorkerRecord): Promise<Brought> {
    const { runDir, clock, log } = this.#needs
    const name = nameOf(record)
    const life = new Lifetime()
    const path = (kind: PeerSocket): string => joinPath(runDir, `p-${name}.${ENDINGS[kind]}`)
    try {
      for (const kind of Object.keys(ENDINGS) as PeerSocket[]) {
        const sockets = new Set<Socket>()
        const server = life.own(createServer({ allowHalfOpen: true, pauseOnConnect: true }, near => {
          sockets.add(near)
          near.once('close', () => sockets.delete(near))
          near.on('error', error => log.trace({ err: error }, 'a connection broke'))
          this.#dial(record, name, kind).then(far => {
            if (near.destroyed) { far.destroy(); return }
            there.reachedAt = clock.now()
            sockets.add(far)
            far.once('close', () => sockets.delete(far))
            join(near, far)
          }, error => {
            log.warn({ workerId: record.workerId, kind, err: error as Error }, 'a worker of another machine cannot be reached')
            near.destroy()
          })
        }), server => new Promise(resolve => { server.close(resolve); for (const socket of sockets) socket.destroy() }))
        await listen(server, path(kind))
      }
    } catch (error) {
      await life.close()
      throw error
    }
    const link = life.own(new WorkerLink(path('control')), link => link.close())
    log.info({ workerId: record.workerId }, 'a worker of another machine is reached through its head')
    const there: Brought = {
      reachedAt: 0,
      worker: { id: record.workerId, pid: record.pid, socket: path('http'), netTcp: record.netTcp === undefined ? undefined : path('netTcp'), link, isFar: true },
      close: () => life.close()
    }
    return there
  }

  /** Over whichever head of its machine answers. */
  async #dial ({ machine }: WorkerRecord, name: string, kind: PeerSocket): Promise<Socket> {
    let last: unknown = new Error(`no head lives on machine ${machine}`)
    for (const { peer, secret } of this.#peersOf(machine)) {
      try { return await dialPeer(peer, secret, name, kind) } catch (error) { last = new Error(`the head at ${peer} (its setting peer): ${(error as Error).message}`, { cause: error }) }
    }
    throw last
  }

  async #drop (id: string): Promise<void> {
    const brought = this.#brought.get(id)
    this.#brought.delete(id)
    await brought?.then(brought => brought.close(), () => {})
  }
}

const nameOf = ({ workerId }: WorkerRecord): string => workerId.slice(workerId.lastIndexOf('/') + 1)

async function listen (server: Server, path: string): Promise<void> {
  await rm(path, { force: true })
  server.listen(path)
  await once(server, 'listening')
}
