/** Marks in messages of what this codec does not do. Each is refused by name, also by a lenient reader: skipped, it would leave a member silently empty. */
import type { XmlAttribute, XmlStart } from '../../wire/xml/events.ts'

/** Of WCF's own types; ser:Id and ser:Ref mark objects that are sent once and referred to. */
export const SERIALIZATION = 'http://schemas.microsoft.com/2003/10/Serialization/'
export const SOAP_ENCODINGS: ReadonlySet<string> = new Set(['http://schemas.xmlsoap.org/soap/encoding/', 'http://www.w3.org/2003/05/soap-encoding'])
export const XOP = 'http://www.w3.org/2004/08/xop/include'

export function unsupportedElement ({ uri, local }: XmlStart): string | undefined {
  if (uri === XOP) return `xop:${local}: binary data outside the envelope (MTOM) is not supported; send it as base64`
  return SOAP_ENCODINGS.has(uri) ? `element {${uri}}${local}: SOAP encoding (rpc/encoded) is not supported` : undefined
}

/** Of an attribute that the type does not have. */
export function unsupportedAttribute ({ uri, local, value }: XmlAttribute, isLenient: boolean): string | undefined {
  // An Id alone changes nothing; it is the Ref that has its content elsewhere.
  if (uri === SERIALIZATION && (local === 'Ref' || (local === 'Id' && !isLenient))) return `z:${local}: object references (preserveObjectReferences, IsReference) are not supported`
  if (SOAP_ENCODINGS.has(uri) || (local === 'encodingStyle' && uri !== '')) return `attribute {${uri}}${local}: SOAP encoding (rpc/encoded) is not supported`
  return uri === '' && local === 'href' && value.startsWith('#') ? 'attribute href: references between elements (SOAP encoding) are not supported' : undefined
}
