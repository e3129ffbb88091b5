import type { Figures, WorkerFigures } from '../contract.ts'
import type { BrokerSession } from './session.ts'

type Counted = Pick<BrokerSession, 'counters' | 'letters' | 'units' | 'taskInfos'> & { readonly service: { readonly registered: { readonly name: string } } }

/**
 * What the sessions of this worker have done, by service, for heads that are scraped. Only what was done here counts: a raised session brings the totals of its store along, and
 * whoever raised it before has told of them. What an ended session has done stays.
 */
export class SessionFigures {
  /** With what each had when it came. */
  readonly #open = new Map<Counted, Figures['grown']>()
  readonly #ended = new Map<string, Figures['grown']>()

  opened (session: Counted): void { this.#open.set(session, session.counters.grown()) }

  /** Again: nothing happens. */
  ended (session: Counted): void {
    const before = this.#open.get(session)
    if (before === undefined || !this.#open.delete(session)) return
    const { name } = session.service.registered
    this.#ended.set(name, sum(this.#ended.get(name), difference(session.counters.grown(), before)))
  }

  view (): WorkerFigures {
    const found = new Map<string, Figures>([...this.#ended].map(([name, grown]) => [name, { grown: { ...grown }, now: sum(undefined, NOTHING_NOW) }]))
    for (const [session, before] of this.#open) {
      const { name } = session.service.registered
      const there = found.get(name)
      found.set(name, { grown: sum(there?.grown, difference(session.counters.grown(), before)), now: sum(there?.now, nowOf(session)) })
    }
    return Object.fromEntries(found)
  }
}

const NOTHING_NOW: Figures['now'] = { sessions: 0, queued: 0, processing: 0, replaying: 0, dispatchers: 0, starting: 0, running: 0, leaving: 0, blocked: 0 }
const SHOWN_AS: Readonly<Record<string, 'starting' | 'running' | 'leaving'>> = { Dispatching: 'starting', Running: 'running', Canceling: 'leaving', Finishing: 'leaving' }

function nowOf ({ counters, letters, units, taskInfos }: Counted): Figures['now'] {
  const { processing, outstanding } = counters
  const { loads } = units
  const blocked = loads.filter(({ isBlocked }) => isBlocked).length
  // What was purged at an instance is outstanding no more, though it is still there.
  const now = { ...NOTHING_NOW, sessions: 1, queued: Math.max(0, outstanding - processing), processing, replaying: letters.running, dispatchers: loads.length - blocked, blocked }
  for (const { state } of taskInfos) {
    const as = SHOWN_AS[state]
    if (as !== undefined) now[as]++
  }
  return now
}

function sum<K extends string> (a: Record<K, number> | undefined, b: Record<K, number>): Record<K, number> {
  if (a === undefined) return { ...b }
  return Object.fromEntries(Object.entries<number>(b).map(([name, value]) => [name, value + a[name as K]])) as Record<K, number>
}

function difference<K extends string> (a: Record<K, number>, b: Record<K, number>): Record<K, number> {
  return Object.fromEntries(Object.entries<number>(a).map(([name, value]) => [name, value - b[name as K]])) as Record<K, number>
}
