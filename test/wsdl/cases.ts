/** The vectors of vectors/README.md, and a judge that is not ours: libxml2's XML Schema validator. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { XmlDocument, XsdValidator, xmlCleanupInputProvider, xmlRegisterInputProvider } from 'libxml2-wasm'
import { fsInputProviders } from 'libxml2-wasm/lib/nodejs.mjs'
import { asset } from '../../core/assets.ts'
import { loadWsdl, type WsdlDocument } from '../../wsdl/document.ts'

export const vectors = process.env.WSDL_CASES ?? asset('test/wsdl/vectors')
export const forms = ['split', 'flat'] as const

export function documents (name: string): Map<string, string> {
  const dir = join(vectors, 'wsdl', name)
  return new Map(readdirSync(dir).map(file => [file, readFileSync(join(dir, file), 'utf8')]))
}

export const load = (name: string, form: string): WsdlDocument => loadWsdl(documents(name), `${form}.wsdl`)

export interface Case {
  readonly name: string
  readonly wsdl: string
  readonly operation: string
  readonly isReply: boolean
  readonly values: unknown
  readonly messages: ReadonlyArray<{ file: string, body: string }>
}

export function cases (): Case[] {
  const dir = join(vectors, 'cases')
  const files = readdirSync(dir)
  return files.filter(f => f.endsWith('.json')).map(file => {
    const [wsdl, operation, tag, way] = file.split('.') as [string, string, string, string]
    const messages = files.filter(f => f.startsWith(`${wsdl}.${operation}.${tag}.${way}`) && f.endsWith('.xml'))
    return {
      name: basename(file, '.json'),
      wsdl,
      operation,
      isReply: way === 'rep',
      values: JSON.parse(readFileSync(join(dir, file), 'utf8')) as unknown,
      messages: messages.map(f => ({ file: f, body: bodyOf(readFileSync(join(dir, f), 'utf8')) }))
    }
  })
}

/** zeep's envelopes have one form: a Body without attributes, and no declarations around it but that of soap-env. */
export const bodyOf = (envelope: string): string => /<soap-env:Body>([\s\S]*)<\/soap-env:Body>/.exec(envelope)?.[1] ?? ''

type Json = null | string | number | boolean | Json[] | { [key: string]: Json }

/** The JSON of a case as a value for the writer. */
export function toValue (json: Json): unknown {
  if (json === null || typeof json !== 'object') return json
  if (Array.isArray(json)) return json.map(toValue)
  if (typeof json.$i === 'string') return BigInt(json.$i)
  if (typeof json.$f === 'string') return json.$f === 'INF' ? Infinity : json.$f === '-INF' ? -Infinity : Number(json.$f)
  if (typeof json.$b === 'string') return Buffer.from(json.$b, 'base64')
  for (const key of ['$d', '$t', '$u']) if (typeof json[key] === 'string') return json[key]
  const value: Record<string, unknown> = {}
  const attributes: Record<string, unknown> = {}
  for (const [key, one] of Object.entries(json)) {
    if (key.startsWith('@')) attributes[key.slice(1)] = toValue(one)
    else value[key === '$' ? '$value' : key] = key === '$type' ? one : toValue(one)
  }
  return Object.keys(attributes).length > 0 ? { ...value, $attributes: attributes } : value
}

/** Microseconds: zeep writes six digits and no more. */
function micros (text: string): number {
  const [, base = '', fraction = '', zone = ''] = /^([^.Z+]*?)(\.\d+)?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? []
  return Date.parse(`${base}${zone}`) * 1000 + Math.round(Number(fraction || 0) * 1e6)
}

/** Where `actual`, as read, is not what the JSON says; undefined: the same. */
export function difference (json: Json, actual: unknown, at = ''): string | undefined {
  const no = (): string => `${at || '/'}: ${JSON.stringify(json)} ≠ ${typeof actual === 'bigint' ? `${actual}n` : JSON.stringify(actual)}`
  if (json === null || typeof json !== 'object') return json === actual ? undefined : no()
  if (Array.isArray(json)) {
    if (!Array.isArray(actual) || actual.length !== json.length) return no()
    return json.map((one, i) => difference(one, actual[i], `${at}[${i}]`)).find(d => d !== undefined)
  }
  if (typeof json.$i === 'string') return (typeof actual === 'bigint' || typeof actual === 'number') && BigInt(actual) === BigInt(json.$i) ? undefined : no()
  if (typeof json.$f === 'string') return Object.is(actual, toValue(json)) ? undefined : no()
  if (typeof json.$b === 'string') return Buffer.isBuffer(actual) && actual.toString('base64') === json.$b ? undefined : no()
  if (typeof json.$t === 'string') return micros(actual instanceof Date ? actual.toISOString() : String(actual)) === micros(json.$t) ? undefined : no()
  for (const key of ['$d', '$u']) if (typeof json[key] === 'string') return json[key] === actual ? undefined : no()
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual)) return no()
  const value = actual as Record<string, unknown>
  const flat: Record<string, unknown> = { ...value, ...Object.fromEntries(Object.entries(value.$attributes ?? {}).map(([k, v]) => [`@${k}`, v])) }
  delete flat.$attributes
  if ('$value' in flat) { flat.$ = flat.$value; delete flat.$value }
  const keys = new Set([...Object.keys(json), ...Object.keys(flat)])
  for (const key of keys) {
    if (!(key in json) || !(key in flat)) return `${at}/${key}: only ${key in json ? 'expected' : 'read'}`
    const found = key === '$type' ? (json[key] === flat[key] ? undefined : no()) : difference(json[key] as Json, flat[key], `${at}/${key}`)
    if (found !== undefined) return found
  }
  return undefined
}

/** Judges bodies of one WSDL by its split schemas. Close it: it holds memory outside of JavaScript's. */
export function judge (name: string): { check (body: string): string | undefined, close (): void } {
  xmlRegisterInputProvider(fsInputProviders)
  const dir = join(vectors, 'wsdl', name)
  const main = /<xsd:schema[\s\S]*?<\/xsd:schema>/.exec(readFileSync(join(dir, 'split.wsdl'), 'utf8'))?.[0] as string
  const doc = XmlDocument.fromString(main.replace('<xsd:schema', '<xsd:schema xmlns:xsd="http://www.w3.org/2001/XMLSchema"'), { url: join(dir, 'all.xsd') })
  const validator = XsdValidator.fromDoc(doc)
  return {
    check (body) {
      try {
        const parsed = XmlDocument.fromString(body)
        try { validator.validate(parsed) } finally { parsed.dispose() }
        return undefined
      } catch (error) {
        return (error as Error).message
      }
    },
    close () { validator.dispose(); doc.dispose(); xmlCleanupInputProvider() }
  }
}
