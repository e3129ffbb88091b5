import type { FailedTry } from './dead-letters.ts'

/** How a request came to its response, as far as it is kept with it. Times: ms since 1970. */
export interface TraceFacts {
  readonly receivedAt: number | undefined
  /** Since when it might have been dispatched. */
  readonly queuedAt: number | undefined
  /** Of the run that answered, as are `taskId` and `node`; undefined: none did. */
  readonly dispatchedAt: number | undefined
  readonly repliedAt: number
  /** Runs, that one too. */
  readonly tries: number
  readonly taskId: string | undefined
  readonly node: string | undefined
  /** The latest runs that came to nothing, oldest first. */
  readonly failed?: readonly FailedTry[] | undefined
}

/** In the head of a stored response, about 60 bytes: `[received, then ms to the next: queued, dispatched, replied, tries, taskId, node, failed?]`; null where it is not known. */
export type TraceHead = readonly [number | null, number | null, number | null, number, number, string | null, string | null, (readonly FailedTry[])?]

export function packTrace ({ receivedAt, queuedAt, dispatchedAt, repliedAt, tries, taskId, node, failed }: TraceFacts): TraceHead {
  let last = 0
  const since = (at: number): number => { const ms = at - last; last = at; return ms }
  const known = (at: number | undefined): number | null => at === undefined ? null : since(at)
  const head = [known(receivedAt), known(queuedAt), known(dispatchedAt), since(repliedAt), tries, taskId ?? null, node ?? null] as const
  return failed === undefined ? head : [...head, failed]
}

export function unpackTrace ([received, queued, dispatched, replied, tries, taskId, node, failed]: TraceHead): TraceFacts {
  let last = 0
  const known = (ms: number | null): number | undefined => ms === null ? undefined : (last += ms)
  const [receivedAt, queuedAt, dispatchedAt, repliedAt] = [known(received), known(queued), known(dispatched), known(replied) as number]
  return { receivedAt, queuedAt, dispatchedAt, repliedAt, tries, taskId: taskId ?? undefined, node: node ?? undefined, failed }
}

/** What a search lets through. All that is given must fit; a store may let through what does not, and never keeps back what does. */
export interface Sieve {
  /** Beginning of the message id, behind `urn:uuid:` if it has that. */
  readonly messageId?: string | undefined
  /** Part of the user data's text. */
  readonly userData?: string | undefined
  /** Only faults. */
  readonly faults?: boolean | undefined
}

/** A kept request or response without its body. */
export interface KeptHead {
  /** Of the request, and of the one that was answered. */
  readonly seq: number
  /** Place among the client's responses; undefined: a request. */
  readonly at: number | undefined
  readonly messageId: string
  /** Of the request. */
  readonly action: string
  readonly userData: Uint8Array | undefined
  readonly isFault: boolean
  /** Of a request. */
  readonly receivedAt: number | undefined
  /** Of a response. */
  readonly trace: TraceFacts | undefined
}

/** One step of a search. `looked`: seqs or places; `next`: where to go on, undefined when nothing is kept before it. */
export interface Scanned { readonly items: KeptHead[], readonly looked: number, readonly next: number | undefined }
