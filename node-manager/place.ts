import { readFileSync, readlinkSync } from 'node:fs'
import { sleep, type Clock } from '../core/clock.ts'
import { SoaError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import { NameHeld, type NameHolder, type NodeRecord, type RedisNodeLink } from '../store/redis-placement-node.ts'
import { startTime } from './guardian.ts'

export interface PlaceNeeds {
  readonly record: NodeRecord
  readonly link: Pick<RedisNodeLink, 'register'>
  readonly clock: Clock
  readonly log: Logger
  /** A node that has not beaten for so long is dead. */
  readonly leaseMs: number
  /** Whether this process is known to be no more; false: it may live. */
  readonly isGone?: ((holder: NodeRecord) => boolean) | undefined
}

/** Between two looks at who holds the name. */
const LOOK_MS = 250
/** Beyond the lease: a look or two. */
const SLACK_MS = 500
/** A beat that is old already may be so because Redis was away, for the holder too: it gets the time for a beat and for finding its way back. */
const SETTLE_MS = 2500

/**
 * Registers under the node's name, where another process may have it: one that lives is left alone, one that is dead is replaced. Which of the two it is shows in
 * whether it goes on beating, within a lease; at once, where it ran here and its process is gone.
 *
 * @returns the node's epoch
 * @throws `SoaError` `refused` that names the holder
 */
export async function takePlace ({ record, link, clock, log, leaseMs, isGone = isGoneHere }: PlaceNeeds): Promise<string> {
  const began = clock.now()
  let dead: NameHolder | undefined
  let last: NameHolder | undefined
  let unmovedSince = began
  for (let moves = 0; ;) {
    const holder = await link.register(record, dead).catch((error: unknown) => { if (error instanceof NameHeld) return error.holder; throw error })
    if (typeof holder === 'string') {
      if (last !== undefined) log.info({ node: record.id, holder: told(last) }, 'the other process is no more: this node has its name')
      return holder
    }
    const now = clock.now()
    const isFirst = last === undefined
    if (last !== undefined && (holder.beat !== last.beat || holder.epoch !== last.epoch)) {
      unmovedSince = now
      moves++
    }
    last = holder
    const isDead: boolean = isGone(holder.record) || (holder.ageMs > leaseMs && now - unmovedSince >= SETTLE_MS)
    dead = isDead ? holder : undefined
    if (isDead) continue
    if (isFirst) log.warn({ node: record.id, holder: told(holder), waitMs: leaseMs + SLACK_MS }, 'another process has the name of this node: waiting whether it is dead')
    // One move alone may be a head that gave every node a fresh lease: then the lease counts from there.
    if (now - (moves > 1 ? began : unmovedSince) >= leaseMs + SLACK_MS) throw new SoaError('refused', { why: nameTaken(holder) })
    await sleep(clock, LOOK_MS)
  }
}

/** What is said of whoever has the name. */
export function nameTaken ({ record: { id, machine, pid, startedAt }, ageMs }: NameHolder): string {
  const since = startedAt === undefined ? '' : `, since ${startedAt}`
  return `another node manager has the name ${id}: process ${pid} on ${machine}${since}, heard of ${(Math.max(0, ageMs) / 1000).toFixed(1)} s ago. Each node needs a name of its own: choose another with --node-id or SOA_NODE_ID, or end that process`
}

const told = ({ record: { machine, pid, startedAt }, ageMs }: NameHolder): object => ({ machine, pid, startedAt, heartbeatAgeMs: ageMs })

/**
 * Where a process id means what it means here: this boot of this kernel, this namespace of processes (containers share host names, and the first without the second).
 * Undefined: the system does not say.
 */
export function homeOfPids (): string | undefined {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return undefined
  }
}

/** It ran where we run, and its number is nobody's now or another one's. */
export function isGoneHere ({ home, pid, startTime: started }: NodeRecord): boolean {
  return home !== undefined && home === homeOfPids() && started !== undefined && startTime(pid) !== started
}
