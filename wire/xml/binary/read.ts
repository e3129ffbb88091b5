/** Binary XML → events. What ../text.ts is for text: whoever reads bodies need not know which of the two came in. */
import type { Scope } from '../../soap/envelope.ts'
import type { XmlAttribute, XmlHandler } from '../events.ts'
import { ITEM_BYTES, TEXT } from './records.ts'
import { BinaryScanner, TOKEN } from './scan.ts'
import type { Strings } from './tables.ts'
import { textOf } from './values.ts'

export interface BinaryOptions {
  /** Declarations in force around a fragment. */
  readonly scope?: Scope
  /** A fragment (the inside of an element: any number of elements, also none) instead of a document with one root. */
  readonly fragment?: boolean
  /** Deepest nesting, in levels; a root is level 1. */
  readonly maxDepth?: number
  /** What ids stand for; default: the static strings. */
  readonly strings?: Strings
}

const NONE: readonly never[] = []

/**
 * Reads all of `bytes` into `handler`; an array is said as the elements that it stands for. Throws SoaError `badXml` with the byte, `overLimit` naming
 * maxDepth, or whatever the handler throws.
 */
export function readBinary (bytes: Uint8Array, handler: XmlHandler, options: BinaryOptions = {}): void {
  const { maxDepth = 128, strings } = options
  const scanner = new BinaryScanner().open(bytes, { maxDepth, strings, fragmentOf: options.fragment === true ? options.scope ?? [] : undefined, fault: 'badXml' })
  const resolve = (prefix: string): string | undefined => scanner.resolve(prefix)
  const base64 = new Base64(text => handler.text(text))
  for (let token = scanner.next(); ; token = scanner.next()) {
    if (token === TOKEN.text && isBytes(scanner.textCode)) { base64.add(scanner.bytes.subarray(scanner.valueAt, scanner.valueEnd)); continue }
    base64.flush()
    switch (token) {
      case TOKEN.eof: return
      case TOKEN.start: handler.start(startOf(scanner), resolve); break
      case TOKEN.end: handler.end(); break
      case TOKEN.text: if (scanner.depth > 0 || options.fragment === true) handler.text(scanner.value()); break
      case TOKEN.array: {
        const start = startOf(scanner)
        const code = scanner.itemCode & 0xfe; const size = ITEM_BYTES[scanner.itemCode]!
        for (let item = 0, at = scanner.itemsAt; item < scanner.itemCount; item++, at += size) {
          handler.start(start, resolve)
          handler.text(textOf(scanner.bytes, code, at, at + size, scanner.strings))
          handler.end()
        }
      }
    }
  }
}

export const isBytes = (code: number): boolean => code >= TEXT.bytes8 && code <= TEXT.bytes32

/** Bytes records that follow one another are one value: base64 of the pieces would not be base64 of the whole. */
export class Base64 {
  readonly #say: (text: string) => void
  #pieces: Buffer[] = []
  constructor (say: (text: string) => void) { this.#say = say }
  add (piece: Buffer): void { this.#pieces.push(piece) }
  flush (): void {
    if (this.#pieces.length === 0) return
    const text = (this.#pieces.length === 1 ? this.#pieces[0] as Buffer : Buffer.concat(this.#pieces)).toString('base64')
    this.#pieces = []
    this.#say(text)
  }
}

function startOf (scanner: BinaryScanner): Parameters<XmlHandler['start']>[0] {
  let attributes: XmlAttribute[] | undefined
  for (let i = 0; i < scanner.attributeCount; i++) {
    (attributes ??= []).push({ prefix: scanner.attributePrefix(i), local: scanner.attributeLocal(i), uri: scanner.attributeNamespace(i), value: scanner.attributeValue(i) })
  }
  return { prefix: scanner.prefix(), local: scanner.local(), uri: scanner.namespace(), attributes: attributes ?? NONE, declarations: scanner.declaresHere ? scanner.ownScope() : NONE }
}
