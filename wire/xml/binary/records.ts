/**
 * [MC-NBFX] 2.2: binary XML is a row of records, each with one byte that says which. Lengths and ids are size.ts's numbers, but for those of texts;
 * `name` is such a length and UTF-8, `id` names a string of a dictionary (tables.ts).
 *
 *     01 EndElement                02 Comment name               03 Array: an element with its attributes, 01, item code, count, the items one after the other
 *     40 ShortElement name         41 Element name name          42 ShortDictionaryElement id   43 DictionaryElement name id
 *     44…5d an element with prefix a…z and an id as its name     5e…77 the same with a name
 *     04 ShortAttribute name text  05 Attribute name name text   06 and 07 the same with ids    0c…25 prefix a…z, id, text   26…3f prefix a…z, name, text
 *     08 xmlns name                09 xmlns:name name            0a and 0b the same with ids as namespaces
 *     80…bd texts: even codes are the text alone, odd ones end the element too
 *
 * Attributes and declarations follow their element's record in any mix; the first byte outside 04…3f ends them.
 */
export const RECORD = {
  endElement: 0x01,
  comment: 0x02,
  array: 0x03,
  shortAttribute: 0x04,
  attribute: 0x05,
  shortDictionaryAttribute: 0x06,
  dictionaryAttribute: 0x07,
  shortXmlns: 0x08,
  xmlns: 0x09,
  shortDictionaryXmlns: 0x0a,
  dictionaryXmlns: 0x0b,
  prefixDictionaryAttribute: 0x0c,
  prefixAttribute: 0x26,
  shortElement: 0x40,
  element: 0x41,
  shortDictionaryElement: 0x42,
  dictionaryElement: 0x43,
  prefixDictionaryElement: 0x44,
  prefixElement: 0x5e
} as const

/** Codes of texts without the end of the element; the odd ones are these plus one. */
export const TEXT = {
  zero: 0x80,
  one: 0x82,
  false: 0x84,
  true: 0x86,
  int8: 0x88,
  int16: 0x8a,
  int32: 0x8c,
  int64: 0x8e,
  float: 0x90,
  double: 0x92,
  decimal: 0x94,
  dateTime: 0x96,
  chars8: 0x98,
  chars16: 0x9a,
  chars32: 0x9c,
  bytes8: 0x9e,
  bytes16: 0xa0,
  bytes32: 0xa2,
  startList: 0xa4,
  endList: 0xa6,
  empty: 0xa8,
  dictionary: 0xaa,
  uniqueId: 0xac,
  timeSpan: 0xae,
  guid: 0xb0,
  uint64: 0xb2,
  bool: 0xb4,
  unicodeChars8: 0xb6,
  unicodeChars16: 0xb8,
  unicodeChars32: 0xba,
  qnameDictionary: 0xbc
} as const
export type TextName = keyof typeof TEXT

export const KIND = { none: 0, endElement: 1, comment: 2, array: 3, element: 4, attribute: 5, xmlns: 6, text: 7 } as const
/** What a code begins; the other codes are no records. */
export const KINDS = new Uint8Array(256)
KINDS[0x01] = KIND.endElement
KINDS[0x02] = KIND.comment
KINDS[0x03] = KIND.array
KINDS.fill(KIND.attribute, 0x04, 0x40)
KINDS.fill(KIND.xmlns, 0x08, 0x0c)
KINDS.fill(KIND.element, 0x40, 0x78)
KINDS.fill(KIND.text, 0x80, 0xbe)
// Numbers without a meaning: Microsoft's reader refuses both, and no writer writes them.
KINDS[TEXT.startList + 1] = KINDS[TEXT.endList + 1] = KIND.none

/** Bytes of a text's value by its even code: 0 … 16; -1, -2, -4: a length of so many bytes comes first; -8: look at the code. */
export const VALUE_BYTES = new Int8Array(256)
for (const [code, bytes] of [
  [TEXT.int8, 1], [TEXT.int16, 2], [TEXT.int32, 4], [TEXT.int64, 8], [TEXT.float, 4], [TEXT.double, 8], [TEXT.decimal, 16], [TEXT.dateTime, 8],
  [TEXT.chars8, -1], [TEXT.chars16, -2], [TEXT.chars32, -4], [TEXT.bytes8, -1], [TEXT.bytes16, -2], [TEXT.bytes32, -4],
  [TEXT.unicodeChars8, -1], [TEXT.unicodeChars16, -2], [TEXT.unicodeChars32, -4],
  [TEXT.uniqueId, 16], [TEXT.timeSpan, 8], [TEXT.guid, 16], [TEXT.uint64, 8], [TEXT.bool, 1],
  [TEXT.startList, -8], [TEXT.endList, -8], [TEXT.dictionary, -8], [TEXT.qnameDictionary, -8]
] as const) VALUE_BYTES[code] = bytes

/** Bytes of one item of an array by the item's odd code; 0: not a type that arrays have. [MC-NBFX] 2.2.3.31 */
export const ITEM_BYTES = new Uint8Array(256)
for (const code of [TEXT.bool, TEXT.int16, TEXT.int32, TEXT.int64, TEXT.float, TEXT.double, TEXT.decimal, TEXT.dateTime, TEXT.timeSpan, TEXT.guid]) ITEM_BYTES[code + 1] = VALUE_BYTES[code] as number

export const TEXT_NAMES: ReadonlyMap<number, TextName> = new Map(Object.entries(TEXT).map(([name, code]) => [code, name as TextName]))
