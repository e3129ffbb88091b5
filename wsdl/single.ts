/**
 * One document instead of many (`?singleWsdl`), for clients that follow no imports.
 *
 * - Schemas that are imported stand in wsdl:types, as they are but for their own locations.
 * - What is included stands in the schema that includes it, in that one's namespace if it has none of its own (a chameleon).
 * - WSDLs that are imported are poured into the one that has the contract. Names of messages, bindings and services are never on a wire, so those of other
 *   namespaces may move into that one's: the contract keeps its own, and with it its actions.
 */
import { SoaError } from '../core/errors.ts'
import { qname, splitQName, XSD } from '../wire/xml/events.ts'
import { SOAP_BINDINGS } from './bindings.ts'
import { isAbsolute, resolveLocation, textOf, WSDL, type Documents } from './imports.ts'
import { addAttributes, apply, childrenOf, declarationsFor, get, insertInside, nameIn, parse, remove, replaceAttribute, type Edit, type Found, type Parsed, type Prefixes } from './splice.ts'

/** A schema that has to stand in wsdl:types on its own. `namespace`: of whoever includes it, where it has none itself. */
interface Waiting { readonly path: string, readonly namespace: string | undefined }

/**
 * The one document, with the addresses of the many. A WSDL that is one already stays as it is, to the byte. `portType`: the contract that is served.
 * Throws `badContract` where one document cannot say it: xs:redefine, two things of one name.
 */
export function singleWsdl (documents: Documents, main: string, portType?: string): string {
  return new Single(documents, main).text(portType)
}

class Single {
  readonly #documents: Documents
  readonly #main: string
  readonly #parsed = new Map<string, Parsed>()
  /** Schemas that stand in the document already: path, and the namespace where they were included. */
  readonly #seen = new Set<string>()
  readonly #waiting: Waiting[] = []

  constructor (documents: Documents, main: string) {
    this.#documents = documents
    this.#main = main
  }

  text (portType: string | undefined): string {
    const all = this.#definitions()
    const base = all.find(doc => childrenOf(doc.root, WSDL, 'portType').some(element => portType === undefined || get(element, 'name') === portType)) ?? all[0] as Parsed
    const edits = this.#schemaEdits(base)
    const moved: string[] = []
    const schemas: string[] = []
    if (all.length > 1) {
      refuseTwins(all, this.#main)
      edits.push(...childrenOf(base.root, WSDL, 'import').map(element => remove(base, element)))
      const names = new Names(all, base)
      edits.push(...names.edits(base))
      for (const doc of all.filter(doc => doc !== base)) {
        const inner = [...names.edits(doc), ...this.#schemaEdits(doc, base.root.scope)]
        for (const child of doc.root.children) {
          if (child.uri === WSDL && child.local === 'types') schemas.push(...childrenOf(child, XSD, 'schema').map(schema => carried(doc, schema, inner, base.root.scope)))
          else if (!(child.uri === WSDL && ['import', 'documentation'].includes(child.local))) moved.push(carried(doc, child, inner, base.root.scope))
        }
      }
    }
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) schemas.push(this.#standing(next, base.root.scope))
    if (schemas.length > 0) edits.push(typesEdit(base, schemas))
    if (moved.length > 0) edits.push(insertInside(base, base.root, `${moved.join('\n')}\n`))
    return apply(base.text, edits)
  }

  #parse (path: string): Parsed {
    const known = this.#parsed.get(path) ?? parse(textOf(this.#documents, path) ?? '', path)
    this.#parsed.set(path, known)
    return known
  }

  /** The WSDLs that it is made of, the main one first. Schemas that one of them imports as if they were WSDLs wait. */
  #definitions (): Parsed[] {
    const found = new Map<string, Parsed>()
    const visit = (path: string): void => {
      if (found.has(path)) return
      const doc = this.#parse(path)
      if (doc.root.uri === XSD) { this.#wait({ path, namespace: undefined }); return }
      found.set(path, doc)
      for (const link of childrenOf(doc.root, WSDL, 'import')) {
        const target = resolveLocation(this.#documents, path, get(link, 'location') ?? '')
        if (target !== undefined) visit(target)
      }
    }
    visit(this.#main)
    return [...found.values()]
  }

  #wait (schema: Waiting): void {
    if (this.#isNew(schema)) this.#waiting.push(schema)
  }

  /** Once for each namespace that it stands for: imported, it has its own. */
  #isNew ({ path, namespace }: Waiting): boolean {
    const key = `${path} ${get(this.#parse(path).root, 'targetNamespace') ?? namespace ?? ''}`
    if (this.#seen.has(key)) return false
    this.#seen.add(key)
    return true
  }

  /** Of the schemas that stand in a WSDL. */
  #schemaEdits (doc: Parsed, there?: Prefixes): Edit[] {
    const schemas = childrenOf(doc.root, WSDL, 'types').flatMap(types => childrenOf(types, XSD, 'schema'))
    return schemas.flatMap(schema => this.#resolved(doc, schema, get(schema, 'targetNamespace') ?? '', scopeAt(schema, there ?? schema.scope)))
  }

  /** What makes one schema whole: imports without locations, and all that it includes at its end. `scope`: in force in the schema where it will stand. */
  #resolved (doc: Parsed, schema: Found, namespace: string, scope: Prefixes): Edit[] {
    const { edits, imports, declarations } = this.#links(doc, schema, namespace, scope, formsOf(schema))
    if (declarations !== '') edits.push(insertInside(doc, schema, declarations))
    if (imports !== '') edits.push({ from: schema.open, to: schema.open, by: imports }) // they come first in a schema
    return edits
  }

  #links (doc: Parsed, schema: Found, namespace: string, scope: Prefixes, forms: string): { edits: Edit[], imports: string, declarations: string } {
    const edits: Edit[] = []
    let imports = ''
    let declarations = ''
    for (const link of childrenOf(schema, XSD, 'import', 'include', 'redefine')) {
      const location = get(link, 'schemaLocation')
      if (link.local === 'redefine') throw new SoaError('badContract', { document: doc.path, why: 'it uses xs:redefine, so it cannot be one document' })
      if (location === undefined) continue
      const path = resolveLocation(this.#documents, doc.path, location)
      if (path === undefined) { if (!isAbsolute(location)) edits.push(...replaceAttribute(doc, link, 'schemaLocation', undefined)); continue }
      if (link.local === 'import') {
        edits.push(...replaceAttribute(doc, link, 'schemaLocation', undefined))
        this.#wait({ path, namespace: undefined })
        continue
      }
      edits.push(remove(doc, link))
      const target = this.#parse(path)
      // Where unqualified means another thing it has to stay a schema of its own, beside the one that includes it.
      if (formsOf(target.root) !== forms) { this.#wait({ path, namespace }); continue }
      if (!this.#isNew({ path, namespace })) continue
      const inner = this.#links(target, target.root, namespace, scope, forms)
      imports += inner.imports
      const isChameleon = get(target.root, 'targetNamespace') === undefined
      for (const child of target.root.children) {
        if (child.uri === XSD && child.local === 'include') continue
        const text = carried(target, child, inner.edits, scope, isChameleon ? namespace : undefined)
        if (child.uri === XSD && child.local === 'import') imports += text
        else declarations += `${text}\n`
      }
      declarations += inner.declarations
    }
    return { edits, imports, declarations }
  }

  /** A schema of a file of its own as one of wsdl:types, without prolog. */
  #standing ({ path, namespace }: Waiting, there: Prefixes): string {
    const doc = this.#parse(path)
    const own = get(doc.root, 'targetNamespace')
    const isChameleon = own === undefined && namespace !== undefined && namespace !== ''
    const scope = scopeAt(doc.root, there)
    const edits = this.#resolved(doc, doc.root, own ?? namespace ?? '', isChameleon && scope.get('') === '' ? new Map([...scope, ['', namespace]]) : scope)
    if (isChameleon) edits.push(addAttributes(doc.root, [['targetNamespace', namespace]]))
    return carried(doc, doc.root, edits, there, isChameleon ? namespace : undefined)
  }
}

/** What unqualified names mean in a schema, and what may stand for what. */
const formsOf = (schema: Found): string => [get(schema, 'elementFormDefault') ?? 'unqualified', get(schema, 'attributeFormDefault') ?? 'unqualified', get(schema, 'blockDefault') ?? '', get(schema, 'finalDefault') ?? ''].join()

/** What is surely in force in a schema that is put at another place: `carried` declares there what its text needs, so a prefix that means two things may mean either. */
function scopeAt (schema: Found, there: Prefixes): Prefixes {
  const own = [...schema.scope].filter(([prefix, uri]) => schema.declared.includes(prefix) || there.get(prefix) === uri)
  const around = [...there].filter(([prefix]) => !schema.scope.has(prefix))
  return new Map([...around, ...own, ['', schema.scope.get('') ?? '']])
}

/**
 * An element's text with its edits, for another place, where it means the same. `adopted`: what names without prefix mean there, if they mean no namespace
 * here: those of a schema without one are its includer's.
 */
function carried (doc: Parsed, element: Found, edits: readonly Edit[], there: Prefixes, adopted?: string): string {
  const defaultNamespace = element.scope.get('') ?? ''
  const needed = declarationsFor(doc.text.slice(element.tag, element.behind), element, there, defaultNamespace === '' ? adopted ?? '' : defaultNamespace)
  return apply(doc.text, needed.length === 0 ? edits : [...edits, addAttributes(element, needed)], element.tag, element.behind)
}

function typesEdit (base: Parsed, schemas: readonly string[]): Edit {
  const types = childrenOf(base.root, WSDL, 'types')[0]
  const text = `${schemas.join('\n')}\n`
  if (types !== undefined) return insertInside(base, types, text)
  const tag = base.root.prefix === '' ? 'types' : `${base.root.prefix}:types`
  const at = childrenOf(base.root, WSDL, 'documentation')[0]?.behind ?? base.root.open
  return { from: at, to: at, by: `\n<${tag}>${text}</${tag}>` }
}

/** Attributes that name things of a WSDL. */
const REFERENCES: ReadonlyArray<readonly [local: string, attribute: string]> = [['input', 'message'], ['output', 'message'], ['fault', 'message'], ['header', 'message'], ['headerfault', 'message'], ['binding', 'type'], ['port', 'binding']]

/** Names of the other WSDLs become those of the one that they are poured into. */
class Names {
  readonly #base: string
  readonly #merged: ReadonlySet<string>
  readonly #prefix: string
  readonly #isNew: boolean

  constructor (all: readonly Parsed[], base: Parsed) {
    const target = (doc: Parsed): string => get(doc.root, 'targetNamespace') ?? ''
    this.#base = target(base)
    this.#merged = new Set(all.map(target))
    // A prefix that nobody declares means the same everywhere.
    let prefix = 'one'
    for (let n = 2; all.some(doc => doc.text.includes(`xmlns:${prefix}`)); n++) prefix = `one${n}`
    this.#prefix = prefix
    this.#isNew = this.#merged.size > 1
  }

  edits (doc: Parsed): Edit[] {
    if (!this.#isNew) return []
    const uris = [WSDL, ...SOAP_BINDINGS.map(([uri]) => uri)]
    const edits = doc.all.filter(({ uri }) => uris.includes(uri)).flatMap(element => REFERENCES.filter(([local]) => local === element.local).flatMap(([, attribute]) => {
      const name = nameIn(element, attribute)
      if (name === undefined) return []
      const { uri, local } = splitQName(name)
      return uri !== this.#base && this.#merged.has(uri) ? replaceAttribute(doc, element, attribute, `${this.#prefix}:${local}`) : []
    }))
    const isBase = get(doc.root, 'targetNamespace') === this.#base
    return isBase ? [...edits, addAttributes(doc.root, [[`xmlns:${this.#prefix}`, this.#base]])] : edits
  }
}

/** Things of one kind and one name cannot stand in one document. */
function refuseTwins (all: readonly Parsed[], main: string): void {
  const seen = new Map<string, string>()
  for (const doc of all) {
    for (const element of doc.root.children) {
      const id = element.attributes.find(a => a.local === 'Id' && a.uri !== '')?.value
      const name = id === undefined ? get(element, 'name') : `#${id}`
      if (name === undefined) continue
      const key = qname(id === undefined ? element.uri : '', `${id === undefined ? element.local : ''} ${name}`)
      const other = seen.get(key)
      if (other !== undefined) throw new SoaError('badContract', { document: main, why: `${other} and ${doc.path} both have a ${element.local} ${name}, so it cannot be one document` })
      seen.set(key, doc.path)
    }
  }
}
