/**
 * Bodies of our own contracts ⇄ values, by the rows of contracts.ts. Reading follows the .NET rule that unknown children are skipped and absent or
 * nil ones are undefined, but takes the children in any order. Values: int and long are numbers, `xml` is markup passed on as it is.
 */
import { SoaError } from '../core/errors.ts'
import type { Scope } from '../wire/soap/envelope.ts'
import { XSI } from '../wire/xml/events.ts'
import { readTree, type XmlNode } from '../wire/xml/tree.ts'
import { XmlWriter } from '../wire/xml/text-writer.ts'
import type { Field, Operation } from './contracts.ts'

export type Value = string | number | boolean | undefined
export type Values = Readonly<Record<string, Value>>

/** Nesting allowed in bodies of our own contracts (design: 64; bodies of services have maxDepth). */
export const CONTRACT_DEPTH = 64

/** The request's body: wrapper and fields in wire order. An undefined value is written as nil. */
export const encodeRequest = (operation: Operation, values: Values): Buffer => encode(operation.namespace, operation.name, operation.input, values)

/** The reply's body. */
export const encodeReply = (operation: Operation, values: Values): Buffer => encode(operation.namespace, `${operation.name}Response`, operation.output, values)

function encode (namespace: string, wrapper: string, fields: readonly Field[], values: Values): Buffer {
  const writer = new XmlWriter().start(namespace, wrapper)
  for (const [name, type] of fields) {
    const value = values[name]
    writer.start(namespace, name)
    if (value === undefined) writer.attribute(XSI, 'nil', 'true')
    else if (type === 'xml') writer.raw(String(value))
    else writer.text(String(value))
    writer.end()
  }
  return Buffer.from(writer.end().toString())
}

/** Fields of a request body. Refuses with `InvalidArgument` naming the field and what was seen. */
export const decodeRequest = (operation: Operation, body: Uint8Array, scope: Scope): Record<string, Value> => decode(operation.namespace, operation.name, operation.input, body, scope)

/** Fields of a reply body; `xml` fields are not read here. */
export const decodeReply = (operation: Operation, body: Uint8Array, scope: Scope): Record<string, Value> =>
  decode(operation.namespace, `${operation.name}Response`, operation.output.filter(([, type]) => type !== 'xml'), body, scope)

function decode (namespace: string, wrapper: string, fields: readonly Field[], body: Uint8Array, scope: Scope): Record<string, Value> {
  const root = readTree(body, { scope, fragment: true, maxDepth: CONTRACT_DEPTH })[0]
  if (root === undefined || root.uri !== namespace || root.local !== wrapper) {
    throw new SoaError('InvalidArgument', { argument: 'Body', why: `{${namespace}}${wrapper} is expected, not ${root?.name ?? 'an empty body'}` })
  }
  return Object.fromEntries(fields.map(([name, type]) => [name, read(root.first(namespace, name), name, type)]))
}

const LIMITS = { int: 2 ** 31, long: 2 ** 53 } as const

function read (node: XmlNode | undefined, name: string, type: Field[1]): Value {
  if (node === undefined || ['true', '1'].includes(node.get(`{${XSI}}nil`)?.trim() ?? '')) return undefined
  if (type === 'string' || type === 'xml') return node.text
  const text = node.text.trim()
  if (type === 'boolean') {
    if (!/^(true|false|1|0)$/.test(text)) throw new SoaError('InvalidArgument', { argument: name, why: `true or false is expected, not "${text}"` })
    return text === 'true' || text === '1'
  }
  const value = Number(text)
  if (!/^[+-]?\d+$/.test(text) || value >= LIMITS[type] || value < -LIMITS[type]) throw new SoaError('InvalidArgument', { argument: name, why: `a whole number (${type}) is expected, not "${text.slice(0, 40)}"` })
  return value
}
