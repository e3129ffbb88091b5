import { SoaError } from '../../core/errors.ts'
import { machine, states } from '../../core/machine.ts'
import type { SessionRecord, SessionState } from '../../store/session-store.ts'

/**
 * The life of a session as the heads see it ([broker-behaviour] 1.1, 1.6). The record in Redis holds the state; this table says which changes are legal.
 *
 * `served`: a worker takes its requests · `released`: its worker let go of it (idle, or told to) · `orphaned`: its worker is gone, and the session lives in Redis ·
 * `lost`: its worker is gone, and the session with it · `waits`: the head stops, and the next head is to raise it again.
 */
export const SESSION = states({
  Starting: { served: 'Running', refused: 'Failed', lost: 'Failed', orphaned: 'Starting', waits: 'Starting', cancel: 'Canceled' },
  Running: { served: 'Running', released: 'Suspended', orphaned: 'Suspended', waits: 'Starting', lost: 'Failed', failed: 'Failed', ended: 'Finished', cancel: 'Canceled' },
  Suspended: { served: 'Running', orphaned: 'Suspended', waits: 'Starting', failed: 'Failed', ended: 'Finished', cancel: 'Canceled' },
  // Work is over, but stored responses are read through a worker, so it is served and let go of like any other.
  Canceled: { served: 'Canceled', released: 'Canceled', orphaned: 'Canceled', waits: 'Canceled', lost: 'Canceled', cancel: 'Canceled' },
  // Likewise; raised again it computes nothing.
  Failed: { served: 'Failed', released: 'Failed', orphaned: 'Failed', lost: 'Failed' },
  Finished: { orphaned: 'Finished', lost: 'Finished' }
})

type SessionEvent = { [S in SessionState]: keyof (typeof SESSION)[S] & string }[SessionState]

/** Where the event leads from here, or undefined: it means nothing in this state. */
export function after (from: SessionState, event: SessionEvent): SessionState | undefined {
  const life = machine(SESSION, from)
  return life.fire(event) ? life.state : undefined
}

/** The states in which the event means something: the guard of a change in the store. */
export const statesWith = (event: SessionEvent): SessionState[] => (Object.keys(SESSION) as SessionState[]).filter(state => after(state, event) !== undefined)

/** A worker can be asked to serve it, now or after raising it. An interactive session is served by its first worker only: its queues live in there. */
export const canBeRaised = (record: SessionRecord): boolean => record.durable && after(record.state, 'served') !== undefined

/** How a caller is told that nobody serves the session any more. */
export function whyNotServed (record: SessionRecord): SoaError {
  const { sessionId, state, why } = record
  if (state === 'Finished') return new SoaError('Session_ValidateJobFailed_AlreadyFinished', { sessionId })
  if (state === 'Canceled') return new SoaError('Session_ValidateJobFailed_JobCanceled', { sessionId })
  if (state === 'Failed') return new SoaError('Broker_SessionFailure', { sessionId, why: why ?? 'nobody wrote down why' })
  return new SoaError('Broker_BrokerUnavailable', { sessionId })
}
