import { SoaError } from '../../../core/errors.ts'
import { addGroup, sizeBytes, writeSize } from '../../framing/size.ts'
import { isName } from '../characters.ts'
import { isStaticName, sizeOf, STATIC_UTF8, staticId } from './dictionary.ts'
import { STATIC_STRINGS } from './static-strings.ts'

/**
 * [MC-NBFSE]: before each message of a session stand the strings that it is the first to use.
 *
 *     size of the table, { size, UTF-8 } …, binary XML
 *
 * A session has two tables, one per direction, which last from the preamble to End. String k of the session has id 2k+1, static string k has id 2k.
 */
export const MAX_SESSION_BYTES = 2048

/** A string of a session, as whoever resolves it wants it. */
export interface SessionString {
  readonly text: string
  readonly utf8: Buffer
  /** What replaces its id where a static one may stand; undefined: the text is not among the static strings. */
  readonly staticId: Buffer | undefined
  /** Its length and its bytes: a name as a record has it. */
  readonly inline: Buffer
  readonly isName: boolean
}

/** What the ids of a document stand for. */
export interface Strings {
  /** Undefined: there is no such string here. */
  text (id: number): string | undefined
  utf8 (id: number): Buffer | undefined
  /** The string is an XML name without a colon. */
  isName (id: number): boolean
}

/** Ids of the static strings only: HTTP, mode 1, and what is stored. */
export const STATIC: Strings = {
  text: id => (id & 1) === 0 ? STATIC_STRINGS[id >>> 1] : undefined,
  utf8: id => (id & 1) === 0 ? STATIC_UTF8[id >>> 1] : undefined,
  isName: id => (id & 1) === 0 && isStaticName(id)
}
/** A document without any dictionary. */
export const NO_STRINGS: Strings = { text: () => undefined, utf8: () => undefined, isName: () => false }

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The strings that a peer has sent in one session. */
export class ReaderTables implements Strings {
  readonly #maxBytes: number
  readonly #strings: SessionString[] = []
  #bytes = 0
  #broken = false

  /** @param maxBytes all tables of the session together, lengths included (WCF: MaxSessionSize). */
  constructor (maxBytes = MAX_SESSION_BYTES) { this.#maxBytes = maxBytes }

  text (id: number): string | undefined { return (id & 1) === 0 ? STATIC_STRINGS[id >>> 1] : this.#strings[id >>> 1]?.text }
  utf8 (id: number): Buffer | undefined { return (id & 1) === 0 ? STATIC_UTF8[id >>> 1] : this.#strings[id >>> 1]?.utf8 }
  isName (id: number): boolean { return (id & 1) === 0 ? isStaticName(id) : this.#strings[id >>> 1]?.isName === true }
  /** @param id odd. */
  sessionString (id: number): SessionString | undefined { return this.#strings[id >>> 1] }
  get size (): number { return this.#strings.length }

  /**
   * Takes in the table before a message; answers where the message's document begins. Throws badEnvelope for one that is malformed, overLimit for one too
   * many bytes, and from then on always: ids of later messages would mean something else than the peer says, so the session is over.
   */
  load (payload: Buffer): number {
    if (this.#broken) throw bad('the string table of an earlier message could not be read')
    this.#broken = true
    let at = 0
    const size = (what: string): number => {
      for (let size = 0, i = 0; ; i++) {
        const byte = payload[at++]
        if (byte === undefined) throw bad(`the message ends in ${what}`)
        if (i === 4 && byte > 0x07) throw bad(`${what} is above 2147483647`)
        size = addGroup(size, byte, i)
        if (byte < 0x80) return size
      }
    }
    const tableBytes = size('the size of its string table')
    if (tableBytes > payload.length - at) throw bad(`its string table has ${tableBytes} bytes, the message ${payload.length - at}`)
    this.#bytes += tableBytes
    if (this.#bytes > this.#maxBytes) throw new SoaError('overLimit', { setting: 'size of the string tables of a session', limit: this.#maxBytes, value: this.#bytes })
    const end = at + tableBytes
    while (at < end) {
      const length = size('the length of a string in its table')
      if (length > end - at) throw bad('a string is longer than the rest of its table')
      this.#add(payload.subarray(at, at + length))
      at += length
    }
    if (at !== end) throw bad('its string table has another size than it says')
    this.#broken = false
    return end
  }

  #add (view: Buffer): void {
    const inline = Buffer.allocUnsafeSlow(sizeBytes(view.length) + view.length)
    const from = writeSize(inline, 0, view.length)
    view.copy(inline, from)
    const utf8 = inline.subarray(from)
    let text: string
    try {
      text = UTF8.decode(utf8)
    } catch {
      throw bad('a string of its table is not UTF-8')
    }
    const id = staticId(text)
    this.#strings.push({ text, utf8, inline, isName: isName(text), staticId: id === undefined ? undefined : sizeOf(id) })
  }
}

/** The strings that our side has sent in one session. */
export class WriterTables {
  readonly #maxBytes: number
  readonly #ids = new Map<string, number>()
  /** Added since the last table was written. */
  #pending: string[] = []
  #pendingBytes = 0
  #bytes = 0
  #isFull = false

  constructor (maxBytes = MAX_SESSION_BYTES) { this.#maxBytes = maxBytes }

  /**
   * Id of a string, which is added if it is new. Undefined: write it as it is. The first that does not fit closes the table for good, also to shorter
   * ones, as WCF's does: a table that filled up to the last byte would be searched for nothing with each message.
   */
  id (text: string): number | undefined {
    const known = this.#ids.get(text)
    if (known !== undefined || this.#isFull) return known
    const bytes = Buffer.byteLength(text)
    const cost = bytes + sizeBytes(bytes)
    if (this.#bytes + cost > this.#maxBytes) { this.#isFull = true; return undefined }
    this.#bytes += cost
    this.#pendingBytes += cost
    this.#pending.push(text)
    const id = 2 * this.#ids.size + 1
    this.#ids.set(text, id)
    return id
  }

  /** Bytes of the table that the next message begins with, its size included. */
  get tableBytes (): number { return sizeBytes(this.#pendingBytes) + this.#pendingBytes }

  /** Writes that table at `at`, answers the place behind it. From here on the strings count as sent, so the message must be. */
  writeTable (into: Buffer, at: number): number {
    at = writeSize(into, at, this.#pendingBytes)
    if (this.#pending.length === 0) return at
    for (const text of this.#pending) {
      at = writeSize(into, at, Buffer.byteLength(text))
      at += into.write(text, at)
    }
    this.#pending = []
    this.#pendingBytes = 0
    return at
  }

  /** The message is not sent after all: its strings are not known to the peer. */
  forget (): void {
    for (const text of this.#pending) this.#ids.delete(text)
    this.#bytes -= this.#pendingBytes
    this.#pending = []
    this.#pendingBytes = 0
  }
}

const bad = (why: string): SoaError => new SoaError('badEnvelope', { why })
