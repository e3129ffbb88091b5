/**
 * What single bytes mean to the scanner, and the few questions that take more than a byte. [XML 1.0, fifth edition] 2.2, 2.3, 2.11, 3.3.3, 4.1
 */

/** In content: 0 nothing, 1 `<`, 2 `&`, 3 `>` (the end of a `]]>`?), 4 not a character of XML, 5 perhaps U+FFFE or U+FFFF, 6 carriage return. */
export const CONTENT = new Uint8Array(256)
/** In an attribute value: 0 nothing, 1 a quote, 2 `&`, 3 `<`, 4 and 5 as above. */
export const VALUE = new Uint8Array(256)
/** In a name: 0 cannot be there, 1 can begin one, 2 can only go on one, 3 colon, 4 part of a character beyond ASCII: ask `isName`. */
export const NAME = new Uint8Array(256)

for (let byte = 0; byte < 0x20; byte++) CONTENT[byte] = VALUE[byte] = byte === 0x09 || byte === 0x0a || byte === 0x0d ? 0 : 4
CONTENT[0x0d] = 6
CONTENT[0x3c] = 1; CONTENT[0x26] = 2; CONTENT[0x3e] = 3; CONTENT[0xef] = 5
VALUE[0x22] = VALUE[0x27] = 1; VALUE[0x26] = 2; VALUE[0x3c] = 3; VALUE[0xef] = 5
for (let byte = 0; byte < 0x80; byte++) {
  const c = String.fromCharCode(byte)
  NAME[byte] = /[A-Za-z_]/.test(c) ? 1 : /[0-9.-]/.test(c) ? 2 : c === ':' ? 3 : 0
}
NAME.fill(4, 0x80)

/** Whether the three bytes at `at`, which begin with 0xEF, are a character of XML: U+FFFE and U+FFFF are not. */
export const isChar = (b: Uint8Array, at: number): boolean => !(b[at + 1] === 0xbf && (b[at + 2] === 0xbe || b[at + 2] === 0xbf))

const START = 'A-Z_a-z\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\\u{37F}-\\u{1FFF}\\u{200C}\\u{200D}\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}' +
  '\\u{3001}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}'
// Combining characters are meant one by one here.
// eslint-disable-next-line no-misleading-character-class
const NCNAME = new RegExp(`^[${START}][${START}\\-.0-9\\u{B7}\\u{300}-\\u{36F}\\u{203F}\\u{2040}]*$`, 'u')
/** A name without a colon. */
export const isName = (text: string): boolean => NCNAME.test(text)

const DECLARATION = /^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(["'])1\.[0-9]+\1(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(["'])([A-Za-z][\w.-]*)\2)?(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(["'])(?:yes|no)\4)?[ \t\r\n]*\?>/
/** Longest XML declaration looked at, bytes. */
const LONGEST_DECLARATION = 256

/** The encoding that the document declares of itself: undefined without a declaration, '' when it has one that names none. */
export function declaredEncoding (head: string): string | undefined {
  const found = DECLARATION.exec(head)
  return found === null ? undefined : found[3] ?? ''
}

export const isXmlDeclaration = (b: Buffer, at: number, end: number): boolean => declaredEncoding(b.toString('latin1', at, Math.min(end, at + LONGEST_DECLARATION))) !== undefined

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** What stands between `&` and `;`, as the character meant; undefined for any other entity and for what XML has no character for. */
export function referenced (name: string): string | undefined {
  if (!name.startsWith('#')) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined
  const digits = /^#(?:x([0-9A-Fa-f]+)|([0-9]+))$/.exec(name)
  if (digits === null) return undefined
  const code = digits[1] !== undefined ? Number.parseInt(digits[1], 16) : Number(digits[2])
  const valid = code === 9 || code === 10 || code === 13 || (code >= 0x20 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd) || (code >= 0x10000 && code <= 0x10ffff)
  return valid ? String.fromCodePoint(code) : undefined
}

export const lineEnds = (text: string): string => text.replace(/\r\n?/g, '\n')

/** Text or an attribute value of a document that has been scanned, as the value it stands for. */
export function decodeText (text: string, attribute: boolean): string {
  if (text.includes('\r')) text = lineEnds(text)
  if (attribute && /[\t\n]/.test(text)) text = text.replace(/[\t\n]/g, ' ')
  return text.includes('&') ? text.replace(/&([^;]+);/g, (whole, name: string) => referenced(name) ?? whole) : text
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\r': '&#13;', '\n': '&#10;', '\t': '&#9;' }
// What XML has no character for cannot be written at all, so it becomes the replacement character rather than a document that nobody can read.
// eslint-disable-next-line no-control-regex
const IMPOSSIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g
const possible = (text: string): string => text.replace(IMPOSSIBLE, '\ufffd')

/** A value as element content. */
export const escapeText = (text: string): string => /^[\w /:.#-]*$/.test(text) ? text : possible(text).replace(/[&<>\r]/g, c => ESCAPES[c] as string)

/** A value between double quotes. */
export const escapeAttribute = (text: string): string => /^[\w /:.#-]*$/.test(text) ? text : possible(text).replace(/[&<>"\r\n\t]/g, c => ESCAPES[c] as string)
