import type { Envelope } from '../wire/soap/envelope.ts'

/** One execution of a request that came to nothing. */
export interface FailedTry {
  readonly taskId: string
  readonly node: string
  /** ISO 8601. */
  readonly at: string
  /** A row of OUTCOMES (broker/worker/retry.ts). */
  readonly outcome: string
  readonly why: string
}

/** A request that was given up, as its broker hands it over together with the fault that answers it. */
export interface NewLetter {
  /** As the client wrote its id. */
  readonly displayId: string
  /** When it was given up, ISO 8601. */
  readonly when: string
  readonly why: string
  /** The latest ones, oldest first. */
  readonly tries: readonly FailedTry[]
  readonly request: Envelope
  /** In which a custom broker put it. */
  readonly lane?: number | undefined
}

/** A dead letter without its request's body. */
export interface DeadLetter {
  /** A number that only grows within a session, as text. */
  readonly id: string
  /** Lower-case key. */
  readonly clientId: string
  readonly displayId: string
  readonly seq: number
  /** Place of its fault among the client's responses, which the response of a replay takes. */
  readonly at: number
  /** It was asked to run again, and has not come to an end yet. */
  readonly isReplaying: boolean
  readonly when: string
  readonly why: string
  readonly tries: readonly FailedTry[]
  readonly messageId: string
  readonly action: string
  /** As text, at most USER_DATA_SHOWN characters. */
  readonly userData: string
}

export const USER_DATA_SHOWN = 1024

export interface LetterPage { readonly items: DeadLetter[], readonly next?: string | undefined, readonly total: number, readonly dropped: number }

/** What a replay came to: its response is in the fault's place · that place was freed since, so the letter is dead again · the letter was removed or purged meanwhile. */
export type Replayed = 'replaced' | 'placeGone' | 'letterGone'

/** The dead letters of one session. Written by `settle` of the message store, in one step with the fault; gone with the purge of their client and the close of the session. */
export interface DeadLetterStore {
  /** In the order in which they died, those behind `after` ('' from the start). `total`: all that are kept now; `dropped`: the oldest, which went when there were more than maxDeadLetters. */
  page (query: { clientId?: string | undefined, after: string, limit: number }): Promise<LetterPage>
  read (id: string): Promise<{ letter: DeadLetter, request: Envelope, lane?: number | undefined } | undefined>
  /** Marks it as being run again, so that a broker that raises the session goes on with it. Again: the same. */
  begin (id: string): Promise<Replayed>
  /** In one step: the response takes the fault's place, and the letter goes; with `dead` it stays, with this in its place (the replay was given up too). Again: the same. */
  end (letter: Pick<DeadLetter, 'id' | 'clientId' | 'seq' | 'at'>, replay: { response: Envelope, isFault: boolean, requestAction: string, dead?: NewLetter | undefined }): Promise<Replayed>
  /** False: there is none. */
  remove (id: string): Promise<boolean>
}
