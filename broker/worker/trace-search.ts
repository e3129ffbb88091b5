import { setImmediate as turn } from 'node:timers/promises'
import { SoaError } from '../../core/errors.ts'
import type { MessageStore } from '../../store/message-store.ts'
import type { KeptHead, Scanned, Sieve } from '../../store/trace-facts.ts'
import { userDataText } from '../../wire/soap/hpc-headers.ts'
import type { MessageState } from '../contract.ts'

export interface Wanted {
  /** Beginning of the message id, without `urn:uuid:`. */
  readonly messageId?: string | undefined
  readonly userData?: string | undefined
  /** The user data is this text, and not only has it in it. */
  readonly isExact?: boolean | undefined
  readonly state?: MessageState | undefined
}

/** `most`: rows looked at. */
export interface Extent { readonly limit: number, readonly cursor?: string | undefined, readonly most?: number | undefined, readonly signal: AbortSignal }
export interface Hit { readonly clientKey: string, readonly head: KeptHead }
export interface Hits { readonly hits: Hit[], readonly looked: number, readonly next: string | undefined }

/** Where a search is: these rows of this client, before this seq or place. */
interface Place { of: 'requests' | 'responses', clientKey: string, below: number }

/** Rows of one step, and of one call, which then says where to go on: whoever asks is not kept waiting for more than seconds. */
const STEP = 2000
const LOOKED_AT_MOST = 1_000_000

/** Every kept message of the given clients that is wanted: client by client, what waits before what is answered, newest first. */
export async function search (store: MessageStore, clients: readonly string[], wanted: Wanted, fits: (hit: Hit) => boolean, options: Extent): Promise<Hits> {
  const { limit, cursor, most = LOOKED_AT_MOST, signal } = options
  const { state } = wanted
  const rows = (['requests', 'responses'] as const).filter(of => state === undefined || (of === 'responses') === (state === 'answered' || state === 'faulted'))
  const sieve: Sieve = { messageId: wanted.messageId, userData: wanted.userData, faults: state === 'faulted' }
  // Without anything that the store could sift by, what is read is what is shown.
  const step = wanted.messageId === undefined && wanted.userData === undefined && state !== 'faulted' ? Math.min(STEP, Math.max(100, limit)) : STEP
  const places = [...clients].sort().flatMap(clientKey => rows.map((of): Place => ({ of, clientKey, below: Infinity })))
  const start = cursor === undefined ? 0 : placeAt(places, cursor)
  const hits: Hit[] = []
  let looked = 0
  for (const place of places.slice(start)) {
    let below: number | undefined = place.below
    while (below !== undefined) {
      if (looked >= most) return { hits, looked, next: cursorOf({ ...place, below }) }
      signal.throwIfAborted()
      const { items, next, looked: some }: Scanned = await store.scan(place.clientKey, place.of, below, step, sieve)
      looked += some
      for (const head of items) {
        const hit = { clientKey: place.clientKey, head }
        if (!isWanted(head, wanted) || !fits(hit)) continue
        hits.push(hit)
        if (hits.length >= limit) return { hits, looked, next: cursorOf({ ...place, below: head.at ?? head.seq }) }
      }
      below = next
      await turn() // a store in this process answers at once: others get their turn too
    }
  }
  return { hits, looked, next: undefined }
}

function isWanted ({ messageId, userData }: KeptHead, wanted: Wanted): boolean {
  if (wanted.messageId !== undefined && !withoutScheme(messageId).startsWith(wanted.messageId)) return false
  if (wanted.userData === undefined) return true
  if (userData === undefined) return false
  const text = userDataText(userData)
  return wanted.isExact === true ? text === wanted.userData : text.includes(wanted.userData)
}

export const withoutScheme = (messageId: string): string => messageId.replace(/^urn:uuid:/i, '')

const cursorOf = ({ of, clientKey, below }: Place): string => `${of}.${below}.${encodeURIComponent(clientKey)}`

function placeAt (places: Place[], cursor: string): number {
  const [, of, below, key] = /^(requests|responses)\.(\d{1,15}|Infinity)\.(.*)$/.exec(cursor.slice(0, 1000)) ?? []
  if (of === undefined || key === undefined) throw new SoaError('InvalidArgument', { argument: 'cursor', why: `"next" of the page before is expected, not "${cursor.slice(0, 100)}"` })
  const clientKey = decodeURIComponent(key)
  const at = places.findIndex(place => place.clientKey === clientKey && place.of === of)
  // Purged meanwhile: with the next one.
  if (at < 0) { const after = places.findIndex(place => place.clientKey > clientKey); return after < 0 ? places.length : after }
  ;(places[at] as Place).below = Number(below)
  return at
}
