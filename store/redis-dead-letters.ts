import type { DeadLetter, DeadLetterStore, LetterPage, Replayed } from './dead-letters.ts'
import { packLetter, packResponse, unpackLetter, unpackLetterHead, type LetterHead } from './pack.ts'
import type { SessionKeys } from './redis-keys.ts'
import { int, list, script, text, type Argument, type Reply, type Script } from './redis-script.ts'

const PAGE = script('letters-page')
const READ = script('letter-read')
const BEGIN = script('letter-begin')
const END = script('letter-end')
const REMOVE = script('letter-remove')

interface Needs {
  keys: SessionKeys
  /** One script under the session's token. */
  run: (of: () => Script, keys: string[], args: Argument[]) => Promise<Reply>
  /** A move was acknowledged as number `writes`. */
  moved: (writes: number) => void
}

const ENDS: readonly Replayed[] = ['letterGone', 'replaced', 'placeGone']

/** The dead letters of one session in Redis. */
export class RedisDeadLetters implements DeadLetterStore {
  readonly #needs: Needs

  constructor (needs: Needs) { this.#needs = needs }

  async page ({ clientId, after, limit }: { clientId?: string | undefined, after: string, limit: number }): Promise<LetterPage> {
    const [total, dropped, ...rows] = list(await this.#run(PAGE, [after === '' ? '0' : after, limit + 1, clientId === undefined ? '' : `=${clientId}`]))
    const items: DeadLetter[] = []
    for (let i = 0; i < rows.length && items.length < limit; i += 2) items.push(letterOf(text(rows[i]), unpackLetterHead(rows[i + 1] as Buffer)))
    return { items, total: int(total), dropped: int(dropped), ...(rows.length > 2 * limit ? { next: items.at(-1)?.id } : {}) }
  }

  async read (id: string): ReturnType<DeadLetterStore['read']> {
    const [member, row] = list(await this.#run(READ, [id]))
    if (member === undefined) return undefined
    const { seq, letter, envelope } = unpackLetter(row as Buffer)
    return { letter: letterOf(text(member), { seq, letter, messageId: envelope.messageId ?? '', action: envelope.action }), request: envelope, lane: letter.lane }
  }

  async begin (id: string): Promise<Replayed> {
    const known = await this.read(id)
    if (known === undefined) return 'letterGone'
    return this.#said(await this.#run(BEGIN, [id], [this.#needs.keys.of(known.letter.clientId).responses]))
  }

  async end (letter: Pick<DeadLetter, 'id' | 'clientId' | 'seq' | 'at'>, { response, isFault, requestAction, dead }: Parameters<DeadLetterStore['end']>[1]): Promise<Replayed> {
    const { client, responses } = this.#needs.keys.of(letter.clientId)
    const row = packResponse({ seq: letter.seq, isFault, requestAction, envelope: response })
    return this.#said(await this.#run(END, [letter.id, letter.at, isFault ? 1 : 0, row, dead === undefined ? '' : packLetter(letter.seq, dead)], [client, responses]))
  }

  async remove (id: string): Promise<boolean> { return this.#said(await this.#run(REMOVE, [id])) === 'replaced' }

  #said (reply: Reply): Replayed {
    const [writes, end] = list(reply)
    this.#needs.moved(int(writes))
    return ENDS[int(end)] ?? 'letterGone'
  }

  #run (of: () => Script, args: Argument[], more: string[] = []): Promise<Reply> {
    const { meta, dead, letters } = this.#needs.keys
    return this.#needs.run(of, [meta, dead, letters, ...more], args)
  }
}

/** @param member as store/lua/letters.lua writes it */
function letterOf (member: string, { seq, letter, messageId, action }: { seq: number, letter: LetterHead, messageId: string, action: string }): DeadLetter {
  const [, id = '', at = '', state, clientId = ''] = /^(\d+) (\d+) ([dr]) (.*)$/s.exec(member) ?? []
  const { client: displayId, when, why, tries, user: userData } = letter
  return { id, clientId, displayId, seq, at: Number(at), isReplaying: state === 'r', when, why, tries, messageId, action, userData }
}
