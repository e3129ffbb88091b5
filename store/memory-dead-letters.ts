import type { Envelope } from '../wire/soap/envelope.ts'
import type { DeadLetter, DeadLetterStore, LetterPage, NewLetter, Replayed } from './dead-letters.ts'
import { letterBytes, shownUserData } from './pack.ts'

interface Needs {
  most: number
  /** The session's bytes change. */
  grow: (bytes: number) => void
  /** Puts a response in the place of another one. False: nothing is there any more. */
  replace: (clientId: string, at: number, response?: { envelope: Envelope, isFault: boolean, requestAction: string }) => boolean
}

interface Kept { letter: DeadLetter, from: NewLetter, bytes: number }

/** The dead letters of one interactive session, in this process. */
export class MemoryDeadLetters implements DeadLetterStore {
  readonly #needs: Needs
  /** By number, in order. */
  readonly #kept = new Map<number, Kept>()
  #last = 0
  #dropped = 0

  constructor (needs: Needs) { this.#needs = needs }

  get ever (): number { return this.#last }

  keep (clientId: string, seq: number, at: number, from: NewLetter): void {
    this.#put(++this.#last, { clientId, seq, at }, from, false)
    let over = this.#kept.size - this.#needs.most
    for (const [number, { letter }] of this.#kept) {
      if (over <= 0) break
      if (letter.isReplaying) continue
      this.#drop(number)
      this.#dropped++
      over--
    }
  }

  purge (clientId: string): void {
    for (const [number, { letter }] of this.#kept) if (letter.clientId === clientId) this.#drop(number)
  }

  async page ({ clientId, after, limit }: { clientId?: string | undefined, after: string, limit: number }): Promise<LetterPage> {
    const items: DeadLetter[] = []
    const base = { items, total: this.#kept.size, dropped: this.#dropped }
    for (const [number, { letter }] of this.#kept) {
      if (number <= Number(after) || (clientId !== undefined && letter.clientId !== clientId)) continue
      if (items.length === limit) return { ...base, next: items.at(-1)?.id }
      items.push(letter)
    }
    return base
  }

  async read (id: string): ReturnType<DeadLetterStore['read']> {
    const kept = this.#kept.get(Number(id))
    return kept === undefined ? undefined : { letter: kept.letter, request: kept.from.request, lane: kept.from.lane }
  }

  async begin (id: string): Promise<Replayed> {
    const kept = this.#kept.get(Number(id))
    if (kept === undefined) return 'letterGone'
    if (!this.#needs.replace(kept.letter.clientId, kept.letter.at)) return 'placeGone'
    kept.letter = { ...kept.letter, isReplaying: true }
    return 'replaced'
  }

  async end (letter: Pick<DeadLetter, 'id' | 'clientId' | 'seq' | 'at'>, { response, isFault, requestAction, dead }: Parameters<DeadLetterStore['end']>[1]): Promise<Replayed> {
    const number = Number(letter.id)
    const kept = this.#kept.get(number)
    if (kept?.letter.isReplaying !== true) return 'letterGone'
    const isReplaced = this.#needs.replace(letter.clientId, letter.at, { envelope: response, isFault, requestAction })
    if (dead !== undefined || !isReplaced) this.#put(number, letter, dead ?? kept.from, false)
    else this.#drop(number)
    return isReplaced ? 'replaced' : 'placeGone'
  }

  async remove (id: string): Promise<boolean> { return this.#drop(Number(id)) }

  #put (number: number, { clientId, seq, at }: Pick<DeadLetter, 'clientId' | 'seq' | 'at'>, from: NewLetter, isReplaying: boolean): void {
    const { displayId, when, why, tries, request } = from
    const bytes = letterBytes(from)
    this.#needs.grow(bytes - (this.#kept.get(number)?.bytes ?? 0))
    const letter: DeadLetter = { id: String(number), clientId, displayId, seq, at, isReplaying, when, why, tries, messageId: request.messageId ?? '', action: request.action, userData: shownUserData(request.userData) }
    this.#kept.set(number, { letter, from, bytes })
  }

  #drop (number: number): boolean {
    const kept = this.#kept.get(number)
    if (kept === undefined) return false
    this.#needs.grow(-kept.bytes)
    return this.#kept.delete(number)
  }
}
