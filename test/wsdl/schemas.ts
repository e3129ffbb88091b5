/** One schema and one element, for tests of what schemas can say. libxml2 is the judge. */
import { XmlDocument, XsdValidator } from 'libxml2-wasm'
import { SoaError } from '../../core/errors.ts'
import { readTree } from '../../wire/xml/tree.ts'
import { readBody } from '../../wsdl/schema/reader.ts'
import { SchemaSet } from '../../wsdl/schema/schema.ts'

/** A schema of `urn:t`, qualified, with `tns` bound to it. */
export const xsd = (inside: string, attributes = ''): string => `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:t" xmlns:tns="urn:t" elementFormDefault="qualified" ${attributes}>${inside}</xs:schema>`
export const setOf = (text: string): SchemaSet => new SchemaSet([{ node: readTree(text)[0] as never, document: 'test.xsd', targetNamespace: 'urn:t', isChameleon: false }])
/** An element `e` whose type has this content. */
export const elementOf = (content: string, more = ''): string => xsd(`<xs:element name="e"><xs:complexType>${content}</xs:complexType></xs:element>${more}`)
export const NAME = '{urn:t}e'
export const XSI = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'
export const e = (inside: string, attributes = ''): string => `<e xmlns="urn:t" ${XSI} ${attributes}>${inside}</e>`
export const read = (schema: string, body: string, options = {}): unknown => readBody(setOf(schema), body, [], options)?.value

export function why (act: () => unknown): string {
  try { act() } catch (error) { if (error instanceof SoaError) return error.message; throw error }
  return 'accepted'
}

export function libxml2 (schema: string, body: string): boolean {
  const doc = XmlDocument.fromString(schema)
  const validator = XsdValidator.fromDoc(doc)
  const parsed = XmlDocument.fromString(body)
  try { validator.validate(parsed); return true } catch { return false } finally { parsed.dispose(); validator.dispose(); doc.dispose() }
}
export const INT = 'type="xs:int"'
