import { SoaError } from '../../core/errors.ts'
import { machine } from '../../core/machine.ts'
import { framingError, type FramingFault } from './faults.ts'
import { CLIENT_FRAMES, SERVER_FRAMES } from './frames.states.ts'
import { KNOWN_ENCODINGS, MAX_TEXT_BYTES, MODE, RECORD, RECORD_NAMES, type Mode } from './records.ts'
import { addGroup } from './size.ts'

/** What a peer said. `bytes` may be a view of the chunk it came in. */
export type Frame =
  /** Version, mode, via and encoding: all that decides who serves the connection. Via as it came, not yet parsed. */
  | { readonly kind: 'preamble', readonly minor: number, readonly mode: Mode, readonly via: string, readonly contentType: string }
  /** Decoding stops here: what follows belongs to the upgrade (`takeRest`, then `upgraded`). */
  | { readonly kind: 'upgradeRequest', readonly name: string }
  | { readonly kind: 'upgradeResponse' }
  | { readonly kind: 'preambleEnd' }
  | { readonly kind: 'preambleAck' }
  | { readonly kind: 'envelope', readonly bytes: Buffer }
  | { readonly kind: 'end' }
  /** Only from a server; the connection is of no more use. */
  | { readonly kind: 'fault', readonly uri: string }

export interface DecoderOptions {
  /** Whose bytes are read: a client's (we serve) or a server's (we call). */
  readonly of: 'client' | 'server'
  /** Bytes of one envelope's payload, its string table included. May be changed when the via is known. */
  readonly maxMessageSize: number
  /** With `of: 'server'`: the mode that our preamble named. Default: duplex. */
  readonly mode?: Mode
}

const EMPTY = Buffer.alloc(0)
/** Of an envelope that comes in pieces, those of some size are kept as they are until all are there; smaller ones are put together in blocks. A size alone reserves nothing. */
const PIECE_BYTES = 1024
const BLOCK_BYTES = 4096
const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** What the next byte is part of. */
const STEP = { code: 0, fixed: 1, size: 2, text: 3, payload: 4 } as const

/**
 * [MC-NMF] bytes in any cut → frames. `push` a chunk, then pull with `next` until it says undefined: it wants more, or stands before an upgrade.
 * Whoever stops pulling holds the peer back; the rest waits here. Throws SoaError badFrame (faults.ts `framingFault`: what to tell the peer), and then
 * again on every call: nothing behind a broken record can be read. An envelope that lies in one chunk is not copied; else memory stays near what came, and is twice that for a moment.
 */
export class FrameDecoder {
  maxMessageSize: number
  readonly #isOfClient: boolean
  readonly #machine: { readonly state: string, fire (event: string): boolean }
  #chunk: Buffer = EMPTY
  #at = 0
  #failed: unknown

  #step: number = STEP.code
  #code = 0
  #size = 0
  #group = 0
  /** Bytes of the current text, fixed part or payload that came so far, when they came in pieces. */
  #pieces: Buffer[] = []
  #haveBytes = 0
  /** The last of the pieces, if it is a block: it is filled up to here. */
  #block: Buffer = EMPTY
  #blockBytes = 0
  /** Bytes of the current Unsized Envelope in finished chunks. */
  #unsizedBytes = 0

  #mode: Mode
  #minor = 0
  #via = ''

  constructor (options: DecoderOptions) {
    this.maxMessageSize = options.maxMessageSize
    this.#isOfClient = options.of === 'client'
    this.#mode = options.mode ?? MODE.duplex
    this.#machine = this.#isOfClient ? machine(CLIENT_FRAMES, 'start') as Machine : machine(SERVER_FRAMES, 'start') as Machine
  }

  /** Row of frames.states.ts. */
  get state (): string { return this.#machine.state }

  /** No record is begun and no byte unread: a connection that ends here cuts nothing off. */
  get isBetweenRecords (): boolean { return this.#step === STEP.code && this.#at === this.#chunk.length }

  push (chunk: Uint8Array): this {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.#chunk = this.#at === this.#chunk.length ? bytes : Buffer.concat([this.#chunk.subarray(this.#at), bytes])
    this.#at = 0
    return this
  }

  next (): Frame | undefined {
    if (this.#failed !== undefined) throw this.#failed
    try {
      while (this.#at < this.#chunk.length && !(this.#step === STEP.code && this.#machine.state === 'upgrading')) {
        const frame = this.#take()
        if (frame !== undefined) return frame
      }
    } catch (error) {
      this.#failed = error
      this.#chunk = this.#block = EMPTY
      this.#pieces = []
      this.#at = 0
      throw error
    }
    if (this.#at === this.#chunk.length) { this.#chunk = EMPTY; this.#at = 0 }
    return undefined
  }

  /** Bytes that came behind an upgrade's record; they are taken out. */
  takeRest (): Buffer {
    const rest = this.#chunk.subarray(this.#at)
    this.#chunk = EMPTY
    this.#at = 0
    return rest
  }

  /** The upgrade is done: what is pushed from now on came through it. */
  upgraded (): void { this.#fire('upgraded') }

  /** With `of: 'server'`, after End: our side sends a new preamble on the same connection. */
  again (mode: Mode = MODE.duplex): void { this.#mode = mode; this.#fire('again') }

  #take (): Frame | undefined {
    const chunk = this.#chunk
    switch (this.#step) {
      case STEP.code: return this.#record(chunk[this.#at++]!)
      case STEP.size: {
        const byte = chunk[this.#at++]!
        this.#size = addGroup(this.#size, byte, this.#group++)
        return byte < 0x80 ? this.#sized() : undefined
      }
      default: return this.#bytes()
    }
  }

  #record (code: number): Frame | undefined {
    const name = RECORD_NAMES[code]
    if (name === undefined) throw this.#bad(this.#machine.state === 'start' && this.#isOfClient ? `the first byte is 0x${hex(code)}: the peer does not speak net.tcp` : `there is no record 0x${hex(code)}`)
    this.#code = code
    const opens = code === (this.#isOfClient ? RECORD.preambleEnd : RECORD.preambleAck)
    const from = this.#machine.state
    if (!this.#machine.fire(opens ? this.#mode === MODE.duplex ? 'openDuplex' : 'openSingleton' : name)) throw this.#bad(`a record ${name} (0x${hex(code)}) cannot come here (state ${from})`)
    this.#size = this.#group = this.#haveBytes = this.#unsizedBytes = 0
    switch (code) {
      case RECORD.version: this.#size = 2; this.#step = STEP.fixed; return undefined
      case RECORD.mode: case RECORD.knownEncoding: this.#size = 1; this.#step = STEP.fixed; return undefined
      case RECORD.end: return { kind: 'end' }
      case RECORD.upgradeResponse: return { kind: 'upgradeResponse' }
      case RECORD.preambleAck: return { kind: 'preambleAck' }
      case RECORD.preambleEnd: return { kind: 'preambleEnd' }
    }
    this.#step = STEP.size
    return undefined
  }

  /** A size is complete: may there be so much? */
  #sized (): Frame | undefined {
    const size = this.#size
    const most = (what: keyof typeof MAX_TEXT_BYTES, fault: FramingFault | undefined): void => {
      if (size > MAX_TEXT_BYTES[what]) throw this.#bad(`the ${TEXTS[what]} has ${size} bytes, the limit is ${MAX_TEXT_BYTES[what]}`, fault)
    }
    this.#step = STEP.text
    switch (this.#code) {
      case RECORD.via: most('via', 'ViaTooLong'); break
      case RECORD.extensibleEncoding: most('contentType', 'ContentTypeTooLong'); break
      case RECORD.upgradeRequest: most('upgrade', 'ContentTypeTooLong'); break
      case RECORD.fault: most('fault', undefined); break
      default: {
        const isUnsized = this.#code === RECORD.unsizedEnvelope
        if (isUnsized && size === 0) { this.#step = STEP.code; return { kind: 'envelope', bytes: this.#whole() } }
        const total = size + this.#unsizedBytes
        if (total > this.maxMessageSize) throw this.#bad(`an envelope has ${isUnsized ? 'at least ' : ''}${total} bytes, the limit is ${this.maxMessageSize} (maxMessageSize)`, 'MaxMessageSizeExceededFault')
        this.#step = STEP.payload
      }
    }
    return size === 0 ? this.#complete(EMPTY) : undefined
  }

  /** Up to `size` bytes of a text, a fixed part or a payload. */
  #bytes (): Frame | undefined {
    const from = this.#at
    const isUnsized = this.#code === RECORD.unsizedEnvelope
    const missing = this.#size - (isUnsized ? this.#haveBytes - this.#unsizedBytes : this.#haveBytes)
    const here = Math.min(missing, this.#chunk.length - from)
    this.#at = from + here
    const view = this.#chunk.subarray(from, from + here)
    if (here === missing && this.#haveBytes === 0) return this.#complete(view)
    this.#keep(view, missing)
    return here === missing ? this.#complete(undefined) : undefined
  }

  /** @param missing bytes that are still to come, this piece's among them. */
  #keep (piece: Buffer, missing: number): void {
    this.#haveBytes += piece.length
    if (piece.length >= PIECE_BYTES) {
      this.#endBlock()
      this.#pieces.push(piece)
      return
    }
    if (piece.length > this.#block.length - this.#blockBytes) {
      this.#endBlock()
      this.#block = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(PIECE_BYTES, missing)))
    }
    piece.copy(this.#block, this.#blockBytes)
    this.#blockBytes += piece.length
  }

  #endBlock (): void {
    if (this.#blockBytes > 0) this.#pieces.push(this.#block.subarray(0, this.#blockBytes))
    this.#block = EMPTY
    this.#blockBytes = 0
  }

  #whole (): Buffer {
    this.#endBlock()
    const whole = this.#pieces.length === 1 ? this.#pieces[0] as Buffer : Buffer.concat(this.#pieces, this.#haveBytes)
    this.#pieces = []
    this.#haveBytes = 0
    return whole
  }

  /** @param view the bytes, if they lay together; else they are in `have`. */
  #complete (view: Buffer | undefined): Frame | undefined {
    if (this.#code === RECORD.unsizedEnvelope) {
      if (view !== undefined) { this.#pieces.push(view); this.#haveBytes += view.length }
      this.#unsizedBytes = this.#haveBytes
      this.#size = this.#group = 0
      this.#step = STEP.size
      return undefined
    }
    this.#step = STEP.code
    const bytes = view ?? this.#whole()
    switch (this.#code) {
      case RECORD.sizedEnvelope: return { kind: 'envelope', bytes }
      case RECORD.version:
        if (bytes[0] !== 1) throw this.#bad(`version ${bytes[0]}.${bytes[1]}, which is not 1.0`, 'UnsupportedVersion')
        this.#minor = bytes[1]!
        return undefined
      case RECORD.mode: {
        const mode = bytes[0]!
        if (mode !== MODE.duplex && mode !== MODE.singletonUnsized) throw this.#bad(`mode ${mode}; served are 1 (singleton-unsized) and 2 (duplex)`, 'UnsupportedMode')
        this.#mode = mode
        return undefined
      }
      case RECORD.via: this.#via = this.#text(bytes, 'via', 'EndpointNotFound'); return undefined
      case RECORD.knownEncoding: {
        const contentType = KNOWN_ENCODINGS[bytes[0]!]
        if (contentType === undefined) throw this.#bad(`known encoding ${bytes[0]}; there are 0 to ${KNOWN_ENCODINGS.length - 1}`, 'ContentTypeInvalid')
        return this.#preamble(contentType)
      }
      case RECORD.extensibleEncoding: return this.#preamble(this.#text(bytes, 'contentType', 'ContentTypeInvalid'))
      case RECORD.upgradeRequest: return { kind: 'upgradeRequest', name: this.#text(bytes, 'upgrade', 'UpgradeInvalid') }
      default: return { kind: 'fault', uri: this.#text(bytes, 'fault', undefined) }
    }
  }

  #preamble (contentType: string): Frame { return { kind: 'preamble', minor: this.#minor, mode: this.#mode, via: this.#via, contentType } }

  #text (bytes: Buffer, what: keyof typeof MAX_TEXT_BYTES, fault: FramingFault | undefined): string {
    try {
      return UTF8.decode(bytes)
    } catch {
      throw this.#bad(`the ${TEXTS[what]} is not UTF-8`, fault)
    }
  }

  #fire (event: string): void {
    if (!this.#machine.fire(event)) throw new Error(`${event} in state ${this.#machine.state}`)
  }

  /** Servers are told nothing: only they send faults. */
  #bad (why: string, fault?: FramingFault): SoaError<'badFrame'> {
    return fault !== undefined && this.#isOfClient ? framingError(fault, why) : new SoaError('badFrame', { why, framingFault: '' })
  }
}

type Machine = { readonly state: string, fire (event: string): boolean }
const TEXTS: Readonly<Record<keyof typeof MAX_TEXT_BYTES, string>> = { via: 'via', contentType: 'content type', upgrade: 'name of the upgrade', fault: 'fault' }
const hex = (byte: number): string => byte.toString(16).padStart(2, '0')
