/**
 * A WSDL as an endpoint serves it: `?wsdl` with the parts that it imports as `?wsdl=…` and `?xsd=…` of the same endpoint, as WCF does it, and `?singleWsdl`.
 * It is read and changed once; each caller's addresses are put into the text that came of it.
 */
import { randomUUID } from 'node:crypto'
import { isSoaError } from '../core/errors.ts'
import { XSD } from '../wire/xml/events.ts'
import { escapeAttribute } from '../wire/xml/text-writer.ts'
import { loadWsdl, localOfContract, type WsdlOperation } from './document.ts'
import { isAbsolute, resolveLocation, textOf, WSDL, type Documents } from './imports.ts'
import { portEdits, type PortKind } from './ports.ts'
import { singleWsdl } from './single.ts'
import { addAttributes, apply, get, parse, replaceAttribute, type Edit, type Parsed } from './splice.ts'

/** What an endpoint is called by one caller: its own URL, and where each kind of port is. */
export interface EndpointAddress { readonly url: string, readonly ports: ReadonlyArray<{ readonly kind: PortKind, readonly address: string }> }

/** An endpoint over HTTP: both versions of SOAP at its URL. */
export const httpEndpoint = (url: string): EndpointAddress => ({ url, ports: [{ kind: 'Soap11', address: url }, { kind: 'Soap12', address: url }] })

export interface Page { readonly status: number, readonly contentType: string, readonly body: string }

const XML = 'text/xml; charset=utf-8'
const TEXT = 'text/plain; charset=utf-8'

/** Stand for addresses in a text that waits for them; no document can have them in it by chance, nor by intent. */
const MARK = randomUUID()
const URL_MARK = `urn:uuid:${MARK}`
const portMark = (kind: PortKind): string => `urn:uuid:${MARK}:${kind}`

/** One document behind a query. A schema without a namespace is served in that of its includer, once for each. */
interface Part { readonly kind: 'wsdl' | 'xsd', readonly name: string, readonly path: string, readonly adopted: string }

export class ServedWsdl {
  readonly #documents: Documents
  readonly #main: string
  readonly #contract: string
  readonly #templates = new Map<string, string>()
  #parts: readonly Part[] | undefined
  #operations: readonly WsdlOperation[] | undefined

  /** @param contract the portType that is served, or a .NET interface's full name that ends in it; empty, or none of the WSDL's: all that it has */
  constructor (documents: Documents, main: string, contract = '') {
    this.#documents = documents
    this.#main = main
    this.#contract = localOfContract(contract)
  }

  /** Of the contract that is served; none when the WSDL is not one that we can read. */
  get operations (): readonly WsdlOperation[] {
    const served = this.#portType
    return this.#allOperations.filter(({ portType }) => served === undefined || portType === served)
  }

  get #portType (): string | undefined { return this.#allOperations.some(({ portType }) => portType === this.#contract) ? this.#contract : undefined }

  /** Queries that have an answer: `wsdl`, `singleWsdl`, `xsd=xsd0` … Of a WSDL that is no XML only the first two, whose answer says so. */
  get queries (): string[] {
    try {
      return ['wsdl', 'singleWsdl', ...this.#all.slice(1).map(({ kind, name }) => `${kind}=${name}`)]
    } catch (error) {
      if (!isSoaError(error, 'badContract')) throw error
      return ['wsdl', 'singleWsdl']
    }
  }

  /** undefined: the query asks for no WSDL. Names of queries count in any case, as WCF has it. */
  answer (query: string, at: EndpointAddress): Page | undefined {
    const [, name = '', value = ''] = /^([^=&]*)=?([^&]*)/.exec(query) ?? []
    const asked = name.toLowerCase()
    if (!['wsdl', 'singlewsdl', 'xsd'].includes(asked)) return undefined
    const kinds = at.ports.map(({ kind }) => kind)
    try {
      const template = asked === 'singlewsdl' ? this.#single(kinds) : this.#part(asked, value, kinds)
      if (template === undefined) return { status: 404, contentType: TEXT, body: `there is no ${asked}=${value.slice(0, 100)}; there are ${this.queries.map(known => `?${known}`).join(', ')}\n` }
      return { status: 200, contentType: XML, body: addressed(template, at) }
    } catch (error) {
      // Only one document may be asked too much of a WSDL; the parts are the user's own.
      if (!isSoaError(error, 'badContract')) throw error
      return { status: 404, contentType: TEXT, body: `${error.message}\n${asked === 'singlewsdl' ? `Its parts can be had: ${at.url}?wsdl\n` : ''}` }
    }
  }

  get #allOperations (): readonly WsdlOperation[] {
    if (this.#operations === undefined) {
      try {
        this.#operations = loadWsdl(this.#documents, this.#main).operations
      } catch (error) {
        if (!isSoaError(error)) throw error
        this.#operations = [] // who registered it was told
      }
    }
    return this.#operations
  }

  get #all (): readonly Part[] { return (this.#parts ??= partsOf(this.#documents, this.#main)) }

  #single (kinds: readonly PortKind[]): string {
    return this.#template(`single ${kinds.join()}`, () => {
      const doc = parse(singleWsdl(this.#documents, this.#main, this.#portType), this.#main)
      return apply(doc.text, this.#portEdits([doc], kinds).get(doc) ?? [])
    })
  }

  #part (kind: string, name: string, kinds: readonly PortKind[]): string | undefined {
    const part = kind === 'wsdl' && name === '' ? this.#all[0] : this.#all.find(part => part.kind === kind && part.name === name.toLowerCase())
    if (part === undefined) return undefined
    return this.#template(`${part.kind} ${part.name} ${kinds.join()}`, () => {
      if (part.kind === 'xsd') {
        const doc = this.#parse(part)
        return apply(doc.text, [...adoptionEdits(doc, part.adopted), ...this.#locationEdits(doc, part.adopted)])
      }
      // A port and its binding may lie in two documents, so all are looked at.
      const docs = this.#all.filter(({ kind }) => kind === 'wsdl').map(part => this.#parse(part))
      const doc = docs.find(({ path }) => path === part.path) as Parsed
      return apply(doc.text, [...this.#portEdits(docs, kinds).get(doc) ?? [], ...this.#locationEdits(doc, '')])
    })
  }

  #template (key: string, make: () => string): string {
    const known = this.#templates.get(key) ?? inUtf8(make())
    this.#templates.set(key, known)
    return known
  }

  #parse ({ path }: Part): Parsed { return parse(textOf(this.#documents, path) ?? '', path) }

  #portEdits (docs: readonly Parsed[], kinds: readonly PortKind[]): ReadonlyMap<Parsed, readonly Edit[]> {
    return portEdits(docs, { addresses: kinds.map(kind => ({ kind, address: portMark(kind) })), portType: this.#portType, operations: this.#allOperations })
  }

  /** Imports and includes lead to parts; to a place elsewhere they stay, and to nowhere they lose their location. */
  #locationEdits (doc: Parsed, adopted: string): Edit[] {
    return linksIn(doc, adopted).flatMap(({ element, attribute, location, namespace }) => {
      const path = resolveLocation(this.#documents, doc.path, location)
      if (path === undefined) return isAbsolute(location) ? [] : replaceAttribute(doc, element, attribute, undefined)
      const parts = this.#all.filter(part => part.path === path)
      const part = parts.find(({ adopted }) => adopted === namespace) ?? parts[0]
      if (part === undefined) return []
      return replaceAttribute(doc, element, attribute, part.name === '' ? `${URL_MARK}?wsdl` : `${URL_MARK}?${part.kind}=${part.name}`)
    })
  }
}

/** What a document says of its encoding is about the file that it came from. */
const inUtf8 = (text: string): string => text.replace(/^(\ufeff?<\?xml[^>]*?\sencoding\s*=\s*)(?:"(?!utf-8")[^"]*"|'(?!utf-8')[^']*')/i, '$1"utf-8"')

function addressed (template: string, { url, ports }: EndpointAddress): string {
  // The longer marks first: they begin like the other.
  const pairs = [...ports.map(({ kind, address }) => [portMark(kind), address] as const), [URL_MARK, url] as const]
  return pairs.reduce((text, [mark, address]) => text.replaceAll(mark, () => escapeAttribute(address)), template)
}

/** A chameleon says what it is here, for clients that do not know the rule. */
function adoptionEdits ({ root }: Parsed, adopted: string): Edit[] {
  if (get(root, 'targetNamespace') !== undefined || adopted === '') return []
  return [addAttributes(root, [['targetNamespace', adopted], ...root.scope.has('') ? [] : [['xmlns', adopted] as const]])]
}

interface Link { readonly element: Parsed['root'], readonly attribute: string, readonly location: string, /** Of whoever includes it. */ readonly namespace: string }

function linksIn (doc: Parsed, adopted: string): Link[] {
  return doc.all.flatMap((element): Link[] => {
    const isSchemaLink = element.uri === XSD && ['import', 'include', 'redefine'].includes(element.local) && element.parent?.uri === XSD && element.parent.local === 'schema'
    if (!isSchemaLink && !(element.uri === WSDL && element.local === 'import' && element.parent === doc.root)) return []
    const attribute = isSchemaLink ? 'schemaLocation' : 'location'
    const location = get(element, attribute)
    if (location === undefined) return []
    const own = isSchemaLink ? get(element.parent as Parsed['root'], 'targetNamespace') ?? adopted : ''
    return [{ element, attribute, location, namespace: element.local === 'import' ? '' : own }]
  })
}

/** The main document and all that it leads to, in the order in which they are met. */
function partsOf (documents: Documents, main: string): Part[] {
  const parts: Part[] = [{ kind: 'wsdl', name: '', path: main, adopted: '' }]
  const count = { wsdl: 0, xsd: 0 }
  const parsed = new Map<string, Parsed>()
  const read = (path: string): Parsed => {
    const doc = parsed.get(path) ?? parse(textOf(documents, path) ?? '', path)
    parsed.set(path, doc)
    return doc
  }
  for (let i = 0; i < parts.length; i++) {
    const { path, adopted } = parts[i] as Part
    for (const { location, namespace } of linksIn(read(path), adopted)) {
      const target = resolveLocation(documents, path, location)
      if (target === undefined) continue
      const { root } = read(target)
      const kind = root.uri === XSD ? 'xsd' : 'wsdl'
      const stands = kind === 'wsdl' ? '' : get(root, 'targetNamespace') ?? namespace
      if (!parts.some(part => part.path === target && part.adopted === stands)) parts.push({ kind, name: `${kind}${count[kind]++}`, path: target, adopted: stands })
    }
  }
  return parts
}
