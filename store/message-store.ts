import type { Envelope } from '../wire/soap/envelope.ts'
import type { DeadLetterStore, NewLetter } from './dead-letters.ts'
import type { Scanned, Sieve, TraceFacts } from './trace-facts.ts'

/** A message that a custom broker made: its body as markup. */
export interface MadeMessage { readonly action: string, readonly body: string, readonly isFault?: boolean | undefined }

/** What a custom broker decided of a request, once, before it was stored. */
export interface Decision {
  /** Higher lanes go first; 0 when absent. */
  readonly lane?: number | undefined
  /** Its response: no service instance is asked. */
  readonly answer?: MadeMessage | undefined
  /** The requests that are sent in its place, whose responses are gathered into one. */
  readonly scatter?: readonly MadeMessage[] | undefined
}

/** One change of a custom broker's durable map: `n` only grows, and of two changes of a name the one with the higher `n` counts. `value`: JSON; undefined: removed. */
export interface StateChange { readonly key: string, readonly n: number, readonly value: string | undefined }

/** A request as the store keeps it. */
export interface StoredRequest {
  /** 1, 2, 3 … per client, given by the broker; never used twice. */
  readonly seq: number
  readonly envelope: Envelope
  /** HPC's batch id (ClientInstanceIdNS), -1 when absent. */
  readonly batchId: number
  /** Undefined in sessions of the stock broker, and where a custom one let it pass. */
  readonly decision?: Decision | undefined
  /** When the broker got it, ms since 1970; undefined: it was not told. */
  readonly receivedAt?: number | undefined
}

/** A response as the store keeps it; `at` is its place in the client's order of arrival: 0, 1, 2 … */
export interface StoredResponse {
  readonly at: number
  /** The request that it answers. */
  readonly seq: number
  readonly envelope: Envelope
  readonly isFault: boolean
  /** Action of the request: RequestActionNS on delivery, and the action filter of PullResponses. */
  readonly requestAction: string
  readonly trace?: TraceFacts | undefined
}

/** What a broker needs to raise a client again. Bodies stay in the store. */
export interface StoredClient {
  readonly clientId: string
  /** As first written by the client; `clientId` is its lower-case key. */
  readonly displayId: string
  /** Highest seq ever appended (0: none). */
  readonly appended: number
  /** Requests covered by successful commits, in number; HPC's "flushed". */
  readonly committed: number
  /** Every request with seq up to here is committed. */
  readonly committedSeq: number
  readonly endOfMessages: boolean
  readonly batchId: number
  readonly responses: number
  readonly faults: number
  /** Seqs of requests without a response, ascending. */
  readonly outstanding: readonly number[]
  /** Message ids of requests not yet committed, so that a client that sends again after a crash is not counted twice. */
  readonly uncommittedMessageIds: readonly string[]
}

export interface Settlement {
  readonly clientId: string
  readonly seq: number
  readonly response: Envelope
  readonly isFault: boolean
  readonly requestAction: string
  /** The request was given up. */
  readonly letter?: NewLetter | undefined
  readonly trace?: TraceFacts | undefined
}

/**
 * The queues of one session, written by the one broker that owns it. Says nothing of Redis: no connection, key or script shows through.
 *
 * Every write is one atomic step and idempotent by seq, so it may be tried again after a lost connection. Any write may refuse with
 * `storeFenced` (another broker owns the session), `storeLost` (the store has less than was acknowledged), `StorageSpaceNotSufficient`,
 * `StorageServiceNotAvailble` (not reachable within the time limit) or `StorageClosed`. `clientId` is always the lower-case key.
 */
export interface MessageStore {
  /** Keeps requests, not yet committed, and with them changes of the custom broker's map. The same batch again changes nothing. Resolves when the session's level is met. */
  append (clientId: string, displayId: string, batch: readonly StoredRequest[], state?: readonly StateChange[]): Promise<void>
  /** All requests up to `throughSeq` are committed, `committed` in number, and the end mark is kept in the same step. At `replicas` this waits for the replicas. */
  commit (clientId: string, displayId: string, through: { seq: number, committed: number, endOfMessages: boolean, batchId: number }): Promise<void>
  /** Forgets uncommitted requests (a newer batch id came): those with seq > `afterSeq` and without a response. */
  discard (clientId: string, afterSeq: number): Promise<void>
  /**
   * In one step for each row: the response is kept and its request goes; `state` is kept too, and the letter of a request that was given up.
   * A request already gone: nothing happens. Resolves to the rows that were kept, with their place.
   */
  settle (batch: readonly Settlement[], state?: readonly StateChange[]): Promise<Array<{ clientId: string, seq: number, at: number }>>
  /** Responses from place `from` on, at most `count` and at most about `maxBytes` (but at least one if there is one). */
  read (clientId: string, from: number, count: number, maxBytes: number): Promise<StoredResponse[]>
  /** Requests by seq; those that are gone are left out. */
  requests (clientId: string, seqs: readonly number[]): Promise<StoredRequest[]>
  /** Looks at `count` seqs (requests) or places (responses) before `below`, and gives those that the sieve lets through, newest first. */
  scan (clientId: string, of: 'requests' | 'responses', below: number, count: number, sieve: Sieve): Promise<Scanned>
  /** Drops responses up to and with place `through`: interactive sessions free what was delivered. */
  release (clientId: string, through: number): Promise<void>
  /** What a broker needs to raise the session again. */
  load (): Promise<StoredClient[]>
  /** Requests that were given up. */
  readonly letters: DeadLetterStore
  /** Removes all of one client, its dead letters too; its totals are added to the session's purged counters in the same step. */
  purge (clientId: string): Promise<void>
  /** The totals of purged clients: session totals never go down (HPC_PurgedTotal …). */
  purged (): Promise<{ total: number, processed: number, faulted: number }>
  /** Dead letters that there ever were, those that are gone too. */
  deadLettered (): Promise<number>
  /** Changes of the custom broker's map that go with no batch. */
  keepState (changes: readonly StateChange[]): Promise<void>
  /** The custom broker's map: JSON by name; and the highest `n` that was kept. */
  state (): Promise<{ entries: Map<string, string>, n: number }>
  /** Bytes kept now, as counted by the store. */
  bytes (): Promise<number>
  /** `keep`: lets go of the session (its token is given back). Otherwise removes every trace of it. */
  close (keep: boolean): Promise<void>
}
