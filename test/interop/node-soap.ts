/** node-soap as a client, as it comes: createClientAsync(url) and nothing else. */
import soap from 'soap'
import { cases } from '../wsdl/cases.ts'

type Json = null | string | number | boolean | Json[] | { [key: string]: Json }

/** A value of the cases as users of node-soap write it. */
function argument (json: Json): unknown {
  if (json === null || typeof json !== 'object') return json
  if (Array.isArray(json)) return json.map(argument)
  if (typeof json.$i === 'string') return Number.isSafeInteger(Number(json.$i)) ? Number(json.$i) : json.$i
  if (typeof json.$f === 'string') return json.$f === 'INF' || json.$f === '-INF' ? json.$f : Number(json.$f)
  for (const key of ['$b', '$d', '$t', '$u']) if (typeof json[key] === 'string') return json[key]
  const value: Record<string, unknown> = {}
  const attributes: Record<string, unknown> = {}
  for (const [key, one] of Object.entries(json)) {
    if (key === '$type') {
      const [, uri, local] = /^\{(.*)\}(.*)$/.exec(String(one)) ?? []
      Object.assign(attributes, { 'xmlns:of': uri, 'xsi:type': `of:${local}` })
    } else if (key.startsWith('@')) attributes[key.slice(1)] = argument(one)
    else value[key === '$' ? '$value' : key] = argument(one)
  }
  return Object.keys(attributes).length > 0 ? { ...value, attributes } : value
}

const text = (value: unknown): string => value instanceof Date ? value.toISOString() : String(value)

/** Where what node-soap read is not what the case says; it has types of its own for numbers, so these are compared by their text. */
function difference (json: Json, actual: unknown, at = ''): string | undefined {
  const no = `${at || '/'}: ${JSON.stringify(json)}, not ${JSON.stringify(actual)}`
  if (json === null) return actual === null || actual === undefined ? undefined : no
  if (typeof json !== 'object') return text(actual) === String(json) ? undefined : no
  if (Array.isArray(json)) {
    const list = Array.isArray(actual) ? actual : actual === undefined ? [] : [actual] // one item is no array for it
    return list.length !== json.length ? no : json.map((one, i) => difference(one, list[i], `${at}[${i}]`)).find(found => found !== undefined)
  }
  if (typeof json.$i === 'string') return text(actual) === json.$i ? undefined : no
  if (typeof json.$f === 'string') return Number(text(actual)) === Number(json.$f) || text(actual) === json.$f ? undefined : no
  if (typeof json.$t === 'string') return Date.parse(text(actual)) === Date.parse(json.$t) ? undefined : no
  for (const key of ['$b', '$d', '$u']) if (typeof json[key] === 'string') return text(actual) === json[key] ? undefined : no
  const read = (actual ?? {}) as Record<string, unknown>
  const attributes = (read.attributes ?? {}) as Record<string, unknown>
  return Object.entries(json).filter(([key]) => key !== '$type')
    .map(([key, one]) => difference(one, key === '$' ? read.$value : key.startsWith('@') ? attributes[key.slice(1)] : read[key], `${at}/${key}`)).find(found => found !== undefined)
}

/** Each case of the WSDL, called: what was wrong with it, or null. */
export async function callAsNodeSoap (url: string, wsdl: string): Promise<Record<string, string | null>> {
  const client = await soap.createClientAsync(url)
  const found: Record<string, string | null> = {}
  const all = cases().filter(one => one.wsdl === wsdl)
  for (const request of all.filter(one => !one.isReply)) {
    const name = request.name.replace(/\.req$/, '')
    const reply = all.find(one => one.name === `${name}.rep`)
    try {
      const [value] = await (client[`${request.operation}Async`] as (args: unknown) => Promise<unknown[]>)(argument(request.values as Json))
      found[name] = reply === undefined ? null : difference(reply.values as Json, value) ?? null
    } catch (error) {
      found[name] = (error as Error).message.slice(0, 300)
    }
  }
  return found
}
