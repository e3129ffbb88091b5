import { readFile, readdir, stat } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SaxesParser } from 'saxes'
import { SoaError } from '../core/errors.ts'
import { parseRegistration, type Environment, type ServiceRegistration } from './service-registration.ts'

/** The same shape as store/service-registry.ts's RegisteredService: config lies below the store and cannot import it. */
export interface LoadedService {
  readonly name: string
  readonly version?: string | undefined
  readonly config: string
  readonly file: string
  readonly wsdlFile?: string | undefined
  readonly documents: Readonly<Record<string, string>>
  readonly addedAt: string
}

export interface LoadOptions {
  /** For %NAME% and $NAME in paths. */
  readonly env?: Environment
  /** Told each warning of the registration file and of the documents. */
  readonly warn?: (warning: string) => void
  /** Milliseconds since the epoch, for `addedAt`. */
  readonly now?: () => number
}

/** A WSDL of the field has under 1 MB and a dozen schemas; all of this lies in Redis and in each head. */
const MAX_DOCUMENT_BYTES = 4_194_304
const MAX_DOCUMENTS = 200
const MAX_TOTAL_BYTES = 16_777_216

/**
 * Reads a registration file with the WSDL that belongs to it (attribute `wsdl`, else the file's, the service's or the assembly's name with `.wsdl`, beside the
 * file or beside the assembly) and every document that the WSDL imports from disk. Refuses with `ConfigFile_Invalid` or `Broker_InvalidConfiguration`.
 */
export async function loadServiceFile (path: string, options: LoadOptions = {}): Promise<LoadedService> {
  const { env = {}, warn = () => {}, now = Date.now } = options
  const file = resolve(path)
  const refuse = (why: string, cause?: unknown): never => { throw new SoaError('ConfigFile_Invalid', { file, why }, { cause }) }
  if (!/\.config$/i.test(file)) refuse('the name of a registration file ends in .config: <service>.config or <service>_<version>.config')
  const config = await readText(file, refuse, file)
  const registration = parseRegistration(config, file, env)
  for (const warning of registration.warnings) warn(warning)
  const wsdlFile = await findWsdl(registration, refuse)
  if (wsdlFile === undefined && registration.host.hostType === 'Standard') {
    refuse(`no WSDL: looked for ${wsdlCandidates(registration).join(', ')}; or name it with the attribute wsdl="…" of service`)
  }
  const documents = wsdlFile === undefined ? {} : await readDocuments(wsdlFile, refuse, warn, file)
  const { name, version } = registration
  return { name, version, config, file, wsdlFile, documents, addedAt: new Date(now()).toISOString() }
}

/** A WSDL on disk with every document that it imports from there, by absolute path. Refuses with `ConfigFile_Invalid`. */
export async function loadWsdlFile (path: string, warn: (warning: string) => void = () => {}): Promise<{ wsdlFile: string, documents: Readonly<Record<string, string>> }> {
  const wsdlFile = resolve(path)
  const refuse = (why: string, cause?: unknown): never => { throw new SoaError('ConfigFile_Invalid', { file: wsdlFile, why }, { cause }) }
  return { wsdlFile, documents: await readDocuments(wsdlFile, refuse, warn, wsdlFile) }
}

/** Every registration file below a folder, sorted; `node_modules` and hidden folders are passed over. */
export async function findServiceFiles (folder: string): Promise<string[]> {
  const found: string[] = []
  const walk = async (dir: string, depth: number): Promise<void> => {
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      if (entry.isDirectory() && depth < 8 && entry.name !== 'node_modules' && !entry.name.startsWith('.')) await walk(join(dir, entry.name), depth + 1)
      if (entry.isFile() && /\.config$/i.test(entry.name)) found.push(join(dir, entry.name))
    }
  }
  await walk(resolve(folder), 0)
  return found.sort()
}

function wsdlCandidates ({ name, file, service: { assembly } }: ServiceRegistration): string[] {
  const bases = [...new Set([basename(file).replace(/\.config$/i, ''), name])]
  const stem = assembly === '' ? [] : [assembly.slice(0, assembly.length - extname(assembly).length)]
  const folders = [...new Set([dirname(file), ...stem.map(dirname)])]
  return [...new Set([...folders.flatMap(folder => bases.map(base => join(folder, base))), ...stem])].map(path => `${path}.wsdl`)
}

async function findWsdl (registration: ServiceRegistration, refuse: (why: string) => never): Promise<string | undefined> {
  const { wsdl } = registration.service
  if (wsdl !== undefined) return await isFile(wsdl) ? wsdl : refuse(`its wsdl="…" names ${wsdl}, which is not there`)
  for (const candidate of wsdlCandidates(registration)) if (await isFile(candidate)) return candidate
  return undefined
}

const isFile = (path: string): Promise<boolean> => stat(path).then(found => found.isFile(), () => false)

async function readDocuments (wsdlFile: string, refuse: (why: string, cause?: unknown) => never, warn: (warning: string) => void, named: string): Promise<Record<string, string>> {
  const documents = new Map<string, string>()
  let total = 0
  const waiting = [wsdlFile]
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (documents.has(path)) continue
    const text = await readText(path, refuse, named)
    total += text.length
    if (documents.size >= MAX_DOCUMENTS) refuse(`its WSDL imports more than ${MAX_DOCUMENTS} documents`)
    if (total > MAX_TOTAL_BYTES) refuse(`its WSDL and schemas have more than ${MAX_TOTAL_BYTES} characters`)
    documents.set(path, text)
    for (const location of importsOf(text, path, refuse)) {
      if (/^https?:/i.test(location)) warn(`${path} imports ${location}: not on disk, not followed`)
      else waiting.push(location.startsWith('file:') ? fileURLToPath(location) : resolve(dirname(path), decoded(location)))
    }
  }
  return Object.fromEntries(documents)
}

// A location is a URI reference: %20 is a blank. One that is no URI is taken as a path, letter by letter.
const decoded = (location: string): string => { try { return decodeURI(location) } catch { return location } }

const WSDL_NS = 'http://schemas.xmlsoap.org/wsdl/'
const XSD_NS = 'http://www.w3.org/2001/XMLSchema'

/** Locations that a WSDL or schema names: wsdl:import, and import, include and redefine of XML Schema. Refuses what is no XML and what has a DTD. */
function importsOf (text: string, path: string, refuse: (why: string) => never): string[] {
  const found: string[] = []
  const parser = new SaxesParser({ xmlns: true, fileName: basename(path) })
  parser.on('error', error => refuse(`${path} is no well-formed XML: ${error.message}`))
  parser.on('doctype', () => refuse(`${path} has a document type declaration, which is refused`))
  parser.on('opentag', ({ uri, local, attributes }) => {
    const attribute = uri === WSDL_NS && local === 'import' ? 'location' : uri === XSD_NS && ['import', 'include', 'redefine'].includes(local) ? 'schemaLocation' : undefined
    const location = attribute === undefined ? undefined : attributes[attribute]?.value
    if (location !== undefined) found.push(location)
  })
  parser.write(text).close()
  return found
}

/** A text file by its byte order mark: UTF-16 (as Windows tools write it) or UTF-8. `named`: the file that the refusal names anyway. */
async function readText (path: string, refuse: (why: string, cause?: unknown) => never, named: string): Promise<string> {
  const it = path === named ? 'it' : path
  const unreadable = (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException
    return refuse(code === 'ENOENT' ? `${it} does not exist` : `${it} cannot be read: ${String(code)}`, error)
  }
  const found = await stat(path).catch(unreadable)
  // A device says that it has no bytes, and a pipe waits for somebody to write.
  if (!found.isFile()) refuse(`${it} is no file`)
  if (found.size > MAX_DOCUMENT_BYTES) refuse(`${it} has ${found.size} bytes, the limit is ${MAX_DOCUMENT_BYTES}`)
  const bytes = await readFile(path).catch(unreadable)
  const charset = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8'
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch (error) {
    return refuse(`${it} is not ${charset}`, error)
  }
}
