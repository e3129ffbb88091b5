import type { Clock } from '../../core/clock.ts'
import type { StateChange } from '../../store/message-store.ts'
import type { CustomBroker, Hook } from '../custom-broker.ts'
import type { ClientQueue } from './client-queue.ts'
import { CustomHooks, type HooksNeeds } from './custom-hooks.ts'
import type { SessionFacts } from './custom-session.ts'
import { CustomWork } from './custom-work.ts'
import type { Desk } from './dispatcher.ts'
import type { BrokerRequest } from './broker-request.ts'

/** A custom broker as a session gets it. */
export interface CustomNeeds {
  /** Of the class, or of the program, for people. */
  readonly name: string
  readonly broker: CustomBroker
  /** In place of chooseDispatcher, where asking is a round trip: an answer for each, as chooseDispatcher gives it. What it puts into the state is kept before they are sent. */
  readonly chooseMany?: HooksNeeds['chooseMany']
  /** It ends hooks that do not return by itself. */
  readonly timesItself?: boolean
  /** Called once: whom it tells that it cannot go on, when no hook is at work. */
  readonly whenFailed?: (failed: (error: unknown) => void) => void
  /** Runs the synchronous part of a hook under watch. */
  readonly run: <T>(hook: Hook, call: () => T) => T
  /** The session has ended here, after onSessionEnd. Again: nothing happens. */
  readonly close: () => Promise<void>
}

interface Needs extends CustomNeeds {
  facts: Omit<SessionFacts, 'dispatchers'>
  replyActionOf: (action: string) => string | undefined
  desk: () => Desk
  queueOf: (clientKey: string) => ClientQueue | undefined
  put: (request: BrokerRequest) => void
  keepState: (changes: readonly StateChange[]) => Promise<void>
  clock: Clock
  failed: (error: unknown) => void
}

/** The session's side of its custom broker. */
export function customWork ({ name, broker, chooseMany, timesItself = false, whenFailed, run, close, facts, replyActionOf, desk, queueOf, put, keepState, clock, failed }: Needs): CustomWork {
  const settings = facts.settings as { hookTimeoutMs: number, maxMessageSize: number, maxHeaderBytes: number, maxDepth: number }
  const hooks = new CustomHooks({
    name, broker, chooseMany, run, clock, failed, timeoutMs: timesItself ? undefined : settings.hookTimeoutMs, limits: settings, replyActionOf: action => replyActionOf(action) ?? `${action}Response`,
  })
  whenFailed?.(failed)

  /** A queue that was purged, or has another's client id now, has them no more. */
  const owner = (request: BrokerRequest): ClientQueue | undefined => {
    const queue = queueOf(request.clientKey)
    return queue === request.owner ? queue : undefined
  }

  async function read (requests: readonly BrokerRequest[]): Promise<BrokerRequest[]> {
    const byQueue = new Map<ClientQueue | undefined, BrokerRequest[]>()
    for (const request of requests) byQueue.set(owner(request), [...byQueue.get(owner(request)) ?? [], request])
    for (const [queue, mine] of byQueue) await queue?.fill(mine)
    return requests.filter(request => request.envelope === undefined)
  }

  return new CustomWork({
    hooks,
    facts,
    limits: settings,
    timeoutMs: settings.hookTimeoutMs,
    desk,
    clientIdOf: request => queueOf(request.clientKey)?.displayId ?? request.clientKey,
    read,
    shed: request => owner(request)?.shed(request),
    put,
    keepState,
    close,
    clock,
    log: facts.log,
    failed,
  })
}
