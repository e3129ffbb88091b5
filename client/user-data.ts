import { SoaError } from '../core/errors.ts'
import { HPC } from '../wire/soap/envelope.ts'
import { escapeText } from '../wire/xml/text-writer.ts'
import { decodeUtf8, readText } from '../wire/xml/text.ts'

/** Longest UserData header, in characters with its tags: HPC Pack's client refuses longer ones ([wire-contract] 3.1). */
export const MAX_USER_DATA = 1024

/** Goes with a request and comes back with its response, unchanged: text, or the inside of an XML element. */
export type UserData = string | { readonly xml: string }

const NAME = 'HPCServer2008_Broker_UserDataNS'

/**
 * The header element. Text is escaped; an XML fragment must be well-formed and declare the prefixes that it uses.
 *
 * @throws `SoaError` with `InvalidArgument` when it is too long, no fragment of XML, or has a document type.
 */
export function userDataHeader (userData: UserData): string {
  const header = typeof userData === 'string' ? textHeader(userData) : fragmentHeader(userData.xml)
  if (header.length > MAX_USER_DATA) throw refused(`its header has ${header.length} characters with its tags, the limit is ${MAX_USER_DATA}`)
  return header
}

function textHeader (text: string): string {
  try {
    return `<${NAME} xmlns="${HPC}">${escapeText(text)}</${NAME}>`
  } catch (error) {
    throw refused((error as Error).message, error)
  }
}

/** With a prefix for its own name: an element of the fragment that has none must not fall into HPC Pack's namespace. */
function fragmentHeader (xml: unknown): string {
  if (typeof xml !== 'string') throw refused('a string or { xml: string } is expected')
  try {
    readText(xml, { start () {}, text () {}, end () {} }, { fragment: true })
  } catch (error) {
    throw refused((error as Error).message, error)
  }
  return `<h:${NAME} xmlns:h="${HPC}">${xml}</h:${NAME}>`
}

const refused = (why: string, cause?: unknown): SoaError => new SoaError('InvalidArgument', { argument: 'userData', why }, { cause })

/** What was sent: the text, or the inside of the header element as it is when there are elements in it. Empty without a header. */
export function readUserData (header: Uint8Array | undefined): string {
  if (header === undefined) return ''
  const xml = decodeUtf8(header)
  let elements = 0
  let text = ''
  let inside = 0
  readText(xml, { start () { elements++ }, text (piece) { text += piece }, end () {} }, { at (end) { if (elements === 0) inside = end } })
  return elements > 1 ? xml.slice(inside, xml.lastIndexOf('</')) : text
}
