import { SoaError } from '../../../core/errors.ts'
import type { MessageStore, Settlement, StoredRequest } from '../../../store/message-store.ts'

/** refuse: not done, and said to be away · lose: done, and said to be away · full: not done, no room. */
export type Trouble = 'refuse' | 'lose' | 'full'
/** Moves that can be troubled. */
export const MOVES = ['append', 'commit', 'discard', 'settle', 'read', 'requests', 'release', 'purge'] as const
export type Move = (typeof MOVES)[number]

type Kept = ReadonlyArray<{ clientId: string, seq: number, at: number }>

/** Told of what was really done to the queues, whatever the broker was told of it. */
export interface StoreWatch {
  appended (clientId: string, rows: readonly StoredRequest[]): void
  committed (clientId: string, through: { seq: number, endOfMessages: boolean }): void
  discarded (clientId: string, afterSeq: number): void
  settled (rows: Kept, batch: readonly Settlement[]): void
  purged (clientId: string): void
}

/** One life of a broker process: what it asks for after its end is not done, and what it asked for is not answered. */
export class Life {
  isOver = false
}

/** Each call takes a turn of the event loop each way, so that moves of others come in between. */
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const UNHEARD = Symbol('its broker is no more')
const never = (): Promise<never> => new Promise<never>(() => {})

/** The troubles that lie ahead: each hits the next call of its move, of whatever life. */
export class Troubles {
  readonly #ahead = new Map<string, Trouble>()
  /** Calls under way. */
  inFlight = 0
  /** Settled without its broker having heard: named by the next try, as the store's promise is (ADR 0010). */
  readonly landed = new Map<string, number>()
  /** And never heard of: purged before the next try. */
  purged = 0

  /** Settled in the store, for all that its broker knows not. */
  get unheard (): number { return this.landed.size + this.purged }

  arm (move: Move, trouble: Trouble): void { this.#ahead.set(move, trouble) }
  clear (): void { this.#ahead.clear() }
  /** Places of this client mean other requests from now on. */
  forget (clientId: string): void {
    for (const place of this.landed.keys()) if (place.startsWith(`${clientId} `) && this.landed.delete(place)) this.purged++
  }

  take (move: string): Trouble | undefined {
    const trouble = this.#ahead.get(move)
    this.#ahead.delete(move)
    return trouble
  }
}

const away = (): SoaError => new SoaError('StorageServiceNotAvailble', { why: 'by the test' })
const full = (): SoaError => new SoaError('StorageSpaceNotSufficient', { setting: 'maxSessionBytes', value: 2, limit: 1 })

/** The store as one life of the broker sees it. `keeps`: closing it leaves what is in it (memory); else its own close does. */
export function troubledStore (inner: MessageStore, life: Life, troubles: Troubles, watch: StoreWatch, keeps: boolean): MessageStore {
  const tell = (move: string, args: unknown[], result: unknown): void => {
    switch (move) {
      case 'append': { watch.appended(args[0] as string, args[2] as StoredRequest[]); return }
      case 'commit': { watch.committed(args[0] as string, args[2] as { seq: number, endOfMessages: boolean }); return }
      case 'discard': { watch.discarded(args[0] as string, args[1] as number); return }
      case 'settle': { watch.settled(result as Kept, args[0] as Settlement[]); return }
      case 'purge': { watch.purged(args[0] as string); troubles.forget(args[0] as string) }
    }
  }

  /** A settle that landed unheard is no second one: its place is told again. */
  const withLanded = (move: string, args: unknown[], result: unknown): unknown => {
    if (move !== 'settle') return result
    const again = (args[0] as Settlement[]).flatMap(({ clientId, seq }) => {
      const at = troubles.landed.get(`${clientId} ${seq}`)
      troubles.landed.delete(`${clientId} ${seq}`)
      return at === undefined ? [] : [{ clientId, seq, at }]
    })
    return [...result as unknown[], ...again]
  }

  const run = async (target: object, move: string, args: unknown[]): Promise<unknown> => {
    troubles.inFlight++
    const result = await runNow(target, move, args).finally(() => { troubles.inFlight-- })
    return result === UNHEARD ? await never() : result
  }

  const runNow = async (target: object, move: string, args: unknown[]): Promise<unknown> => {
    await turn()
    if (life.isOver) return UNHEARD
    const trouble = troubles.take(move)
    if (trouble === 'refuse') throw away()
    // Only what makes it larger is refused when it is full.
    if (trouble === 'full' && (move === 'append' || move === 'settle')) throw full()
    const call = (target as Record<string, (...args: unknown[]) => Promise<unknown>>)[move]
    const result = move === 'close' && args[0] === true && keeps ? undefined : await call?.apply(target, args)
    tell(move, args, result)
    await turn()
    if (life.isOver) return UNHEARD
    if (trouble === 'lose') {
      if (move === 'settle') for (const { clientId, seq, at } of result as Kept) troubles.landed.set(`${clientId} ${seq}`, at)
      throw away()
    }
    return withLanded(move, args, result)
  }
  const seen = <T extends object>(target: T): T => new Proxy(target, {
    get (_, name) {
      const part = (target as Record<string | symbol, unknown>)[name]
      if (typeof part === 'object' && part !== null) return seen(part)
      return typeof part === 'function' ? async (...args: unknown[]) => await run(target, String(name), args) : part
    }
  })
  return seen(inner)
}
