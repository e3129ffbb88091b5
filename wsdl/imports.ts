/** All documents that a WSDL is made of: follows wsdl:import, xs:import and xs:include through a map from path to text. No file and no socket is opened here. */
import { posix } from 'node:path'
import { SoaError } from '../core/errors.ts'
import { XML_NAMESPACE, XSD } from '../wire/xml/events.ts'
import { readTree, type XmlNode } from '../wire/xml/tree.ts'
import type { SchemaDocument } from './schema/schema.ts'

export const WSDL = 'http://schemas.xmlsoap.org/wsdl/'

/** Path → text. Locations in a document are relative to its own path, or are keys of the map as they stand (`?xsd=xsd0`). */
export type Documents = ReadonlyMap<string, string> | Readonly<Record<string, string>>

export interface Gathered { readonly definitions: readonly XmlNode[], readonly schemas: readonly SchemaDocument[] }

/** Namespaces whose schemas nobody ships, because everybody knows them. */
const WELL_KNOWN = new Set([XSD, XML_NAMESPACE, 'http://schemas.xmlsoap.org/soap/encoding/', 'http://schemas.xmlsoap.org/wsdl/'])
const MOST_DOCUMENTS = 1000
const DEEPEST = 100

const ABSOLUTE = /^[a-z][a-z0-9+.-]+:/i
export const isAbsolute = (location: string): boolean => ABSOLUTE.test(location)

export const textOf = (documents: Documents, path: string): string | undefined => documents instanceof Map ? documents.get(path) : (documents as Readonly<Record<string, string>>)[path]

/** Where `location`, found in `from`, is: a key of the map; undefined: nowhere. */
export function resolveLocation (documents: Documents, from: string, location: string): string | undefined {
  const has = (key: string): boolean => documents instanceof Map ? documents.has(key) : Object.hasOwn(documents, key)
  const candidates = [location]
  if (ABSOLUTE.test(from)) candidates.unshift(...URL.canParse(location, from) ? [new URL(location, from).href] : [])
  else if (!ABSOLUTE.test(location)) {
    const join = (name: string): string => name.startsWith('/') ? posix.normalize(name) : posix.join(posix.dirname(from), name)
    candidates.unshift(join(location))
    // Written as a URL, a blank in a file's name is %20.
    try { candidates.push(join(decodeURIComponent(location))) } catch { /* a % that is no escape: the name is meant as it stands */ }
  }
  return candidates.find(has)
}

export function gather (documents: Documents, main: string): Gathered {
  const definitions: XmlNode[] = []
  const schemas: SchemaDocument[] = []
  const seen = new Set<string>()
  const missing: Array<{ document: string, location: string, namespace: string }> = []
  const read = (path: string): XmlNode => {
    if (seen.size > MOST_DOCUMENTS) throw new SoaError('badContract', { document: main, why: `it is made of more than ${MOST_DOCUMENTS} documents` })
    const text = textOf(documents, path)
    if (text === undefined) throw new SoaError('badContract', { document: path, why: 'the document is not there' })
    try {
      return readTree(text, { maxDepth: DEEPEST })[0] as XmlNode
    } catch (error) {
      throw new SoaError('badContract', { document: path, why: (error as Error).message }, { cause: error })
    }
  }

  const addSchema = (node: XmlNode, document: string, includer?: string): void => {
    const own = node.get('targetNamespace')
    const targetNamespace = own ?? includer ?? ''
    schemas.push({ node, document, targetNamespace, isChameleon: own === undefined && includer !== undefined && includer !== '' })
    for (const link of node.all(XSD, 'import', 'include', 'redefine')) {
      const location = link.get('schemaLocation')
      if (location === undefined) continue
      const found = resolveLocation(documents, document, location)
      if (found === undefined) { missing.push({ document, location, namespace: link.get('namespace') ?? '' }); continue }
      const adopted = link.local === 'import' ? undefined : targetNamespace
      // The same file may be included by several namespaces, and is then another schema in each.
      const key = `${found} ${adopted ?? ''}`
      if (seen.has(key)) continue
      seen.add(key)
      const root = read(found)
      if (root.uri !== XSD || root.local !== 'schema') throw new SoaError('badContract', { document: found, why: `it is no schema, but ${root.name}` })
      addSchema(root, found, adopted)
    }
  }

  const addWsdl = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    const root = read(path)
    if (root.uri === XSD && root.local === 'schema') { addSchema(root, path); return }
    if (root.uri !== WSDL || root.local !== 'definitions') throw new SoaError('badContract', { document: path, why: `it is no WSDL 1.1, but ${root.name}` })
    definitions.push(root)
    for (const link of root.all(WSDL, 'import')) {
      const location = link.get('location')
      if (location === undefined) continue
      const found = resolveLocation(documents, path, location)
      if (found === undefined) throw new SoaError('badContract', { document: path, why: `it imports ${location}, which is not there` })
      addWsdl(found)
    }
    for (const types of root.all(WSDL, 'types')) for (const schema of types.all(XSD, 'schema')) addSchema(schema, path)
  }

  addWsdl(main)
  for (const { document, location, namespace } of missing) {
    if (WELL_KNOWN.has(namespace) || schemas.some(s => s.targetNamespace === namespace)) continue
    throw new SoaError('badContract', { document, why: `it imports ${location} (namespace ${namespace || 'none'}), which is not there` })
  }
  return { definitions, schemas }
}
