import { SoaError } from '../../../core/errors.ts'
import { writeSize } from '../../framing/size.ts'

/** Memory that is kept from one message to the next; what a big one needed is given back. */
const KEPT_BYTES = 65_536

/** Bytes written one after the other into memory that grows. One is used for many messages: `take` copies what was written. */
export class ByteOutput {
  buffer: Buffer = Buffer.allocUnsafeSlow(4096)
  at = 0
  #most = Infinity
  /** What may be written before `grow` is asked: the memory there is, or less. */
  #until = 4096
  #what = ''

  /** @param most bytes that may be written, else overLimit naming `what`: what is small in one form may be huge in the other. */
  open (most = Infinity, what = ''): this {
    this.at = 0
    this.#most = most
    this.#what = what
    if (this.buffer.length > KEPT_BYTES) this.buffer = Buffer.allocUnsafeSlow(4096)
    this.#until = Math.min(this.buffer.length, most)
    return this
  }

  /** Sees to it that so many more bytes fit. */
  room (bytes: number): void { if (this.at + bytes > this.#until) this.#grow(bytes) }

  #grow (bytes: number): void {
    const wanted = this.at + bytes
    if (wanted > this.#most) throw new SoaError('overLimit', { setting: this.#what, limit: this.#most, value: `${wanted} or more` })
    const larger = Buffer.allocUnsafeSlow(Math.max(wanted, Math.min(2 * this.buffer.length, this.#most)))
    this.buffer.copy(larger, 0, 0, this.at)
    this.buffer = larger
    this.#until = Math.min(larger.length, this.#most)
  }

  byte (value: number): void {
    this.room(1)
    this.buffer[this.at++] = value
  }

  /** A number of size.ts. */
  size (value: number): void {
    this.room(5)
    this.at = writeSize(this.buffer, this.at, value)
  }

  bytes (from: Uint8Array, start = 0, end = from.length): void {
    const length = end - start
    this.room(length)
    // Short pieces are copied quicker than native code is called.
    if (length <= 24) {
      const to = this.buffer
      for (let at = this.at; start < end; at++, start++) to[at] = from[start]!
    } else (from as Buffer).copy(this.buffer, this.at, start, end)
    this.at += length
  }

  /** @param text all ASCII. */
  ascii (text: string): void {
    this.room(text.length)
    if (text.length <= 16) {
      for (let i = 0; i < text.length; i++) this.buffer[this.at + i] = text.charCodeAt(i)
    } else this.buffer.write(text, this.at, 'latin1')
    this.at += text.length
  }

  utf8 (text: string): void {
    const most = 3 * text.length
    this.room(most > 1024 || this.at + most > this.#until ? Buffer.byteLength(text) : most)
    this.at += this.buffer.write(text, this.at)
  }

  /** What was written since `from`, copied. */
  take (from = 0): Buffer {
    const bytes = Buffer.allocUnsafe(this.at - from)
    this.buffer.copy(bytes, 0, from, this.at)
    return bytes
  }
}
