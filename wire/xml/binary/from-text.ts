/** Text XML → binary XML with the static strings only, without an object for any element. */
import type { Scope } from '../../soap/envelope.ts'
import { CONTENT, decodeText, NAME, VALUE } from '../characters.ts'
import { TOKEN, XmlScanner, type Token } from '../scan.ts'
import { BinaryWriter } from './writer.ts'

const scanner = new XmlScanner()
const output = new BinaryWriter()

/**
 * The content of an element: any number of elements, texts and comments. CDATA becomes text, comments stay, processing instructions have no record and go.
 * `scope` is what its prefixes may refer to; it is not written. Throws badEnvelope for what is no XML.
 */
export function fragmentToBinary (text: Uint8Array, scope: Scope): Buffer {
  output.open()
  textToBinary(text, scope, output)
  return output.take()
}

/** One element that needs nothing from outside: a header. Throws badEnvelope for what is no XML. */
export function elementToBinary (text: Uint8Array, into: BinaryWriter): void {
  if (!simpleElement(Buffer.isBuffer(text) ? text : Buffer.from(text.buffer, text.byteOffset, text.byteLength), into)) textToBinary(text, [], into)
}

/** `<name xmlns="uri">text</name>` and nothing that needs a second look, which nearly all headers are: read at once, or not at all. */
function simpleElement (b: Buffer, into: BinaryWriter): boolean {
  const { length } = b
  let i = 1
  while (i < length && NAME[b[i]!]! !== 0 && NAME[b[i]!]! < 3) i++
  const nameEnd = i
  if (b[0] !== 0x3c || NAME[b[1] ?? 0] !== 1 || length - i < DECLARATION.length + nameEnd + 4) return false
  for (const byte of DECLARATION) if (b[i++] !== byte) return false
  const uriAt = i
  while (i < length && VALUE[b[i]!] === 0 && b[i]! >= 0x20) i++
  const uriEnd = i
  if (uriEnd === uriAt || b[i++] !== 0x22 || b[i++] !== 0x3e) return false
  const textAt = i
  while (i < length && CONTENT[b[i]!] === 0) i++
  const textEnd = i
  if (length - i !== nameEnd + 2 || b[i++] !== 0x3c || b[i++] !== 0x2f || b[length - 1] !== 0x3e) return false
  for (let at = 1; at < nameEnd; at++) if (b[i++] !== b[at]) return false
  into.element(b, 1, 0, nameEnd)
  into.xmlnsDefault(b, uriAt, uriEnd)
  if (textAt === textEnd) into.end(); else into.text(b, textAt, textEnd, 1)
  return true
}

const DECLARATION = Buffer.from(' xmlns="')

/** The same behind what a writer has written already. */
export function textToBinary (text: Uint8Array, scope: Scope, into: BinaryWriter): void {
  try {
    scanner.open(text, { maxDepth: Infinity, fragmentOf: scope })
    write(into)
  } finally {
    scanner.close()
  }
}

function write (into: BinaryWriter): void {
  const b = scanner.bytes
  // A text waits for what follows it: an end goes into the same record.
  let waits: Token = TOKEN.eof
  let from = 0; let to = 0; let value: string | undefined
  const flush = (closes: 0 | 1): void => {
    if (waits === TOKEN.eof) { if (closes === 1) into.end(); return }
    waits = TOKEN.eof
    if (value !== undefined) into.textOf(value, closes)
    else if (from === to && closes === 1) into.end()
    else if (from !== to) into.text(b, from, to, closes)
  }
  for (;;) {
    const behind = scanner.at
    const token = scanner.next()
    if (behind < scanner.start && token !== TOKEN.eof) { if (hasComment(b, behind, scanner.start)) { flush(0); comments(b, behind, scanner.start, into) } }
    if (token === TOKEN.eof) {
      flush(0)
      comments(b, behind, scanner.end, into)
      return
    }
    if (token === TOKEN.end) { flush(1); continue }
    if (waits !== TOKEN.eof) flush(0)
    if (token === TOKEN.start) {
      into.element(b, scanner.nameAt, scanner.colon, scanner.nameEnd)
      if (scanner.attributeCount > 0) attributes(b, into)
      continue
    }
    waits = token
    from = scanner.contentAt
    to = scanner.contentEnd
    value = scanner.needsDecoding ? scanner.value(token) : undefined
  }
}

/** The scanner has found the tag well-formed, so its bytes are simply names, `=` and values in quotes. */
function attributes (b: Buffer, into: BinaryWriter): void {
  let i = scanner.nameEnd
  for (let left = scanner.attributeCount; left > 0; left--) {
    while (b[i]! <= 0x20) i++
    const at = i
    let colon = 0
    for (; b[i] !== 0x3d && b[i]! > 0x20; i++) if (b[i] === 0x3a) colon = i
    const end = i
    while (b[i] !== 0x22 && b[i] !== 0x27) i++
    const quote = b[i]!; const from = ++i
    let isPlain = true
    for (; b[i] !== quote; i++) if (b[i] === 0x26 || b[i]! < 0x20) isPlain = false
    const value = (): string => isPlain ? b.toString('utf8', from, i) : decodeText(b.toString('utf8', from, i), true)
    if (isXmlns(b, at, colon === 0 ? end : colon)) into.xmlns(colon === 0 ? '' : b.toString('utf8', colon + 1, end), value())
    else {
      into.attribute(b, at, colon, end)
      if (isPlain) into.text(b, from, i, 0); else into.textOf(value(), 0)
    }
    i++
  }
}

const isXmlns = (b: Buffer, at: number, end: number): boolean => end - at === 5 && b[at] === 0x78 && b[at + 1] === 0x6d && b[at + 2] === 0x6c && b[at + 3] === 0x6e && b[at + 4] === 0x73

const hasComment = (b: Buffer, from: number, to: number): boolean => { const at = b.indexOf('<!--', from); return at >= 0 && at < to }

/** What the scanner passed over between two tokens: comments and processing instructions. */
function comments (b: Buffer, from: number, to: number, into: BinaryWriter): void {
  while (from < to) {
    if (b[from + 1] === 0x3f) { from = b.indexOf('?>', from) + 2; continue }
    const end = b.indexOf('-->', from + 4)
    into.comment(b, from + 4, end)
    from = end + 3
  }
}
