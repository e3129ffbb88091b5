import type { DeadLetter, FailedTry, NewLetter } from '../../store/dead-letters.ts'
import type { Decision } from '../../store/message-store.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import type { TraceRow } from './trace-row.ts'

/** A request on its way through the broker. */
export interface BrokerRequest {
  /** Lower-case client id: requests of different clients take turns. */
  readonly clientKey: string
  /** The ClientQueue that gave it its seq; after a purge another one may have the same key. */
  readonly owner?: object | undefined
  /** Place in the client's order; 0 for a call that is answered in the same exchange and never stored. */
  readonly seq: number
  /** Executions that counted so far (retry.ts). */
  tries: number
  /** Those that came to nothing without being counted. */
  uncounted?: number
  /** The latest executions that came to nothing, oldest first. */
  history?: FailedTry[]
  /** What is kept of it, since it was given up. */
  letter?: NewLetter
  /** It is the one of this dead letter, which is run again. */
  readonly replayOf?: DeadLetter | undefined
  /** With multiEmissionDelayTime: the instances that have it now, and whether one more waits for it (re-emission.ts). */
  at?: Set<string>
  isCopyWaiting?: boolean
  isAnswered?: boolean
  /** Undefined: only in the store, read when its turn comes. */
  envelope: Envelope | undefined
  /** Higher lanes go first; undefined: 0. */
  lane?: number | undefined
  /** What a custom broker decided. `unread`: that lies in the store. */
  decision?: Decision | 'unread' | undefined
  /** For a call in the same exchange, and for a part of a scattered request: where the answer goes. */
  readonly answer?: ((response: Envelope, isFault: boolean) => void) | undefined
  /** One of those that a custom broker sent in another one's place: it counts as that one does, and not by itself. */
  readonly isPart?: boolean | undefined
  /** A host died while it had this request: it may be why, so the next host has it alone. */
  isSuspect?: boolean
  /** Set when nobody waits for it any more: it is skipped when its turn comes. */
  isDropped?: boolean
  /** When it came, and since when it may be dispatched; undefined with traceMessages 0. */
  receivedAt?: number | undefined
  queuedAt?: number | undefined
  /** From its first run on. */
  trace?: TraceRow | undefined
}
