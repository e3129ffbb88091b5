/**
 * Bodies of our own contracts ⇄ values, by the rows of contracts.ts. Reading follows the .NET rule that unknown children are skipped and absent or
 * nil ones are undefined, but takes the children in any order. Values: int and long are numbers, `xml` is markup passed on as it is, data contracts
 * and dictionaries are objects, lists are arrays (data-contracts.ts).
 */
import { SoaError } from '../core/errors.ts'
import type { Scope } from '../wire/soap/envelope.ts'
import { XSI } from '../wire/xml/events.ts'
import { readTree, type XmlNode } from '../wire/xml/tree.ts'
import { XmlWriter } from '../wire/xml/text-writer.ts'
import type { Field, FieldType, Operation } from './contracts.ts'
import { ARRAYS, type DataContract, type DataDictionary, type DataList } from './data-contracts.ts'

export type Value = string | number | boolean | undefined | readonly Value[] | { readonly [member: string]: Value }
export type Values = Readonly<Record<string, Value>>

/** Nesting allowed in bodies of our own contracts (design: 64; bodies of services have maxDepth). */
export const CONTRACT_DEPTH = 64

/** The request's body: wrapper and fields in wire order. An undefined value is written as nil. */
export const encodeRequest = (operation: Operation, values: Values): Buffer => encode(operation.namespace, operation.name, operation.input, values)

/** The reply's body. */
export const encodeReply = (operation: Operation, values: Values): Buffer => encode(operation.namespace, `${operation.name}Response`, operation.output, values)

function encode (namespace: string, wrapper: string, fields: readonly Field[], values: Values): Buffer {
  const writer = new XmlWriter().start(namespace, wrapper)
  for (const [name, type] of fields) write(writer, namespace, name, type, values[name])
  return Buffer.from(writer.end().toString())
}

type Structure = DataContract | DataList | DataDictionary

function write (writer: XmlWriter, namespace: string, name: string, type: FieldType, value: Value): void {
  writer.start(namespace, name)
  if (value === undefined) writer.attribute(XSI, 'nil', 'true')
  else if (type === 'xml') writer.raw(String(value))
  else if (typeof type === 'string' || type.kind === 'enum') writer.text(String(value))
  else writeStructure(writer, type, value)
  writer.end()
}

function writeStructure (writer: XmlWriter, type: Structure, value: Value): void {
  if (typeof value !== 'object') throw new TypeError(`a ${type.kind} is written from an object, not from ${typeof value}`)
  if (type.kind === 'list') {
    writer.use(type.namespace)
    for (const item of value as readonly Value[]) write(writer, type.namespace, type.item, type.of, item)
  } else if (type.kind === 'contract') {
    writer.use(type.namespace)
    for (const [name, member] of type.members) write(writer, type.namespace, name, member, (value as Values)[name])
  } else {
    writer.use(ARRAYS)
    for (const [key, item] of Object.entries(value)) {
      writer.start(ARRAYS, PAIR)
      write(writer, ARRAYS, 'Key', 'string', key)
      write(writer, ARRAYS, 'Value', 'string', item as Value)
      writer.end()
    }
  }
}

/** An item of a dictionary string → string. */
const PAIR = 'KeyValueOfstringstring'

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

const LIMITS = { int: 2 ** 31, 'int?': 2 ** 31, long: 2 ** 53 } as const

/** @param name of the field, with dots where it lies deeper: for refusals */
function read (node: XmlNode | undefined, name: string, type: FieldType): Value {
  if (node === undefined || ['true', '1'].includes(node.get(`{${XSI}}nil`)?.trim() ?? '')) return undefined
  if (type === 'string' || type === 'xml') return node.text
  if (typeof type !== 'string') return type.kind === 'enum' ? node.text : readStructure(node, name, type)
  const text = node.text.trim()
  if (type === 'base64') return text
  if (type === 'boolean' || type === 'boolean?') {
    if (!/^(true|false|1|0)$/.test(text)) throw new SoaError('InvalidArgument', { argument: name, why: `true or false is expected, not "${text}"` })
    return text === 'true' || text === '1'
  }
  const value = Number(text)
  if (!/^[+-]?\d+$/.test(text) || value >= LIMITS[type] || value < -LIMITS[type]) throw new SoaError('InvalidArgument', { argument: name, why: `a whole number (${type.replace('?', '')}) is expected, not "${text.slice(0, 40)}"` })
  return value
}

function readStructure (node: XmlNode, name: string, type: Structure): Value {
  if (type.kind === 'list') return node.all(type.namespace, type.item).map((item, i) => read(item, `${name}[${i}]`, type.of))
  if (type.kind === 'contract') return Object.fromEntries(type.members.map(([member, of]) => [member, read(node.first(type.namespace, member), `${name}.${member}`, of)]))
  return Object.fromEntries(node.all(ARRAYS, PAIR).map((pair, i) => {
    const key = read(pair.first(ARRAYS, 'Key'), `${name}[${i}].Key`, 'string')
    if (typeof key !== 'string') throw new SoaError('InvalidArgument', { argument: `${name}[${i}].Key`, why: 'is missing' })
    return [key, read(pair.first(ARRAYS, 'Value'), `${name}.${key}`, 'string')]
  }))
}
