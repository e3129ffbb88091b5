/**
 * The WSDL of a contract of ours, made of its rows as WCF makes one: a schema for each namespace, what may be nil, in the order of the wire. Every operation
 * has the fault SessionFault ([wire-contract] 1, 2.7).
 */
import { escapeAttribute } from '../wire/xml/text-writer.ts'
import { XSD } from '../wire/xml/events.ts'
import type { Contract, Field, FieldType, Operation } from './contracts.ts'
import { ARRAYS, type DataContract, type DataDictionary, type DataEnum, type DataList, type DataType, type SimpleType } from './data-contracts.ts'
import { WSDL } from './imports.ts'
import { PULLED_PAGE_TYPE } from './pulled-page.ts'

const SESSION = 'http://hpc.microsoft.com/session/'
const SERIALIZATION = 'http://schemas.microsoft.com/2003/10/Serialization/'
const FAULT_ACTION = `${SESSION}SessionFault`

/** The main document's name among them. */
export const CONTRACT_WSDL = 'contract.wsdl'

/** Documents by name: the WSDL, which has no service of its own yet (ports.ts adds it), and the schemas that it imports. */
export function contractDocuments (contract: Contract): Record<string, string> {
  const schemas = new Schemas()
  for (const operation of Object.values<Operation>(contract.operations)) {
    schemas.wrapper(operation.namespace, operation.name, operation.input)
    if (operation.oneWay !== true) schemas.wrapper(operation.namespace, `${operation.name}Response`, operation.output)
  }
  schemas.fault()
  const documents = schemas.documents()
  const files = Object.entries(documents)
  const imports = files.map(([file, { namespace }]) => `<xs:import namespace="${escapeAttribute(namespace)}" schemaLocation="${file}"/>`)
  const { name, namespace } = contract
  return { [CONTRACT_WSDL]: definitions(name, namespace, imports, Object.values<Operation>(contract.operations)), ...Object.fromEntries(files.map(([file, { text }]) => [file, text])) }
}

function definitions (name: string, namespace: string, imports: readonly string[], operations: readonly Operation[]): string {
  const message = (of: Operation, what: 'Input' | 'Output'): string => `${name}_${of.name}_${what}Message`
  const messages = operations.flatMap(of => [
    `<wsdl:message name="${message(of, 'Input')}"><wsdl:part name="parameters" element="tns:${of.name}"/></wsdl:message>`,
    ...of.oneWay === true
      ? []
      : [
          `<wsdl:message name="${message(of, 'Output')}"><wsdl:part name="parameters" element="tns:${of.name}Response"/></wsdl:message>`,
          `<wsdl:message name="${name}_${of.name}_SessionFaultFault_FaultMessage"><wsdl:part name="detail" element="fault:SessionFault"/></wsdl:message>`
        ]
  ])
  const rows = operations.map(of => `<wsdl:operation name="${of.name}"><wsdl:input wsaw:Action="${escapeAttribute(of.action)}" message="tns:${message(of, 'Input')}"/>${of.oneWay === true
    ? ''
    : `<wsdl:output wsaw:Action="${escapeAttribute(of.replyAction)}" message="tns:${message(of, 'Output')}"/><wsdl:fault wsaw:Action="${FAULT_ACTION}" name="SessionFaultFault" message="tns:${name}_${of.name}_SessionFaultFault_FaultMessage"/>`}</wsdl:operation>`)
  return `<?xml version="1.0" encoding="utf-8"?>
<wsdl:definitions name="${name.replace(/^I(?=[A-Z])/, '')}" targetNamespace="${escapeAttribute(namespace)}" xmlns:tns="${escapeAttribute(namespace)}" xmlns:fault="${SESSION}" xmlns:wsdl="${WSDL}" xmlns:xs="${XSD}" xmlns:wsaw="http://www.w3.org/2006/05/addressing/wsdl">
  <wsdl:types>
    <xs:schema targetNamespace="${escapeAttribute(`${namespace}${namespace.endsWith('/') ? '' : '/'}Imports`)}">
      ${imports.join('\n      ')}
    </xs:schema>
  </wsdl:types>
  ${messages.join('\n  ')}
  <wsdl:portType name="${name}">
    ${rows.join('\n    ')}
  </wsdl:portType>
</wsdl:definitions>
`
}

type NamedType = DataEnum | DataContract | DataList | DataDictionary

interface TypeName { readonly namespace: string, readonly name: string, readonly isNillable: boolean }

const SIMPLE: Readonly<Record<SimpleType, TypeName>> = {
  int: { namespace: XSD, name: 'int', isNillable: false },
  'int?': { namespace: XSD, name: 'int', isNillable: true },
  long: { namespace: XSD, name: 'long', isNillable: false },
  boolean: { namespace: XSD, name: 'boolean', isNillable: false },
  'boolean?': { namespace: XSD, name: 'boolean', isNillable: true },
  string: { namespace: XSD, name: 'string', isNillable: true },
  base64: { namespace: XSD, name: 'base64Binary', isNillable: true }
}

/** SessionFault's Context; values are strings with their type. */
const CONTEXT: TypeName = { namespace: ARRAYS, name: 'ArrayOfanyType', isNillable: true }
const STRING = SIMPLE.string

interface Schema { readonly text: string[], readonly uses: Set<string>, readonly types: Set<string> }

class Schemas {
  readonly #schemas = new Map<string, Schema>()

  wrapper (namespace: string, name: string, fields: readonly Field[]): void {
    const rows = fields.map(([field, type]) => this.#element(namespace, field, this.#typeOf(namespace, type)))
    this.#schema(namespace).text.push(`<xs:element name="${name}"><xs:complexType>${rows.length === 0 ? '<xs:sequence/>' : `<xs:sequence>${rows.join('')}</xs:sequence>`}</xs:complexType></xs:element>`)
  }

  fault (): void {
    const item = '<xs:element minOccurs="0" maxOccurs="unbounded" name="anyType" nillable="true" type="xs:anyType"/>'
    this.#schema(ARRAYS).text.push(`<xs:complexType name="ArrayOfanyType"><xs:sequence>${item}</xs:sequence></xs:complexType>`)
    const members = [this.#element(SESSION, 'Code', SIMPLE.int), this.#element(SESSION, 'Context', CONTEXT), this.#element(SESSION, 'Reason', STRING)]
    this.#schema(SESSION).text.push(`<xs:complexType name="SessionFault"><xs:sequence>${members.join('')}</xs:sequence></xs:complexType>`, '<xs:element name="SessionFault" nillable="true" type="tns:SessionFault"/>')
  }

  /** A file for each namespace. Each namespace has one prefix in all of them: `soap` for Node.js takes prefixes for the same everywhere. */
  documents (): Record<string, { namespace: string, text: string }> {
    const prefixes = new Map([...this.#schemas.keys()].map((namespace, i) => [namespace, `q${i}`]))
    return Object.fromEntries([...this.#schemas].map(([namespace, { text, uses }], i) => {
      const declarations = [...uses].map(uri => ` xmlns:${prefixes.get(uri)}="${escapeAttribute(uri)}"`).join('')
      const imports = [...uses].map(uri => `  <xs:import namespace="${escapeAttribute(uri)}" schemaLocation="xsd${[...this.#schemas.keys()].indexOf(uri)}.xsd"/>\n`).join('')
      const body = text.map(one => `  ${one.replace(/\{([^}]*)\}/g, (_, uri: string) => `${prefixes.get(uri) ?? ''}:`)}\n`).join('')
      return [`xsd${i}.xsd`, { namespace, text: `<?xml version="1.0" encoding="utf-8"?>\n<xs:schema elementFormDefault="qualified" targetNamespace="${escapeAttribute(namespace)}" xmlns:tns="${escapeAttribute(namespace)}" xmlns:xs="${XSD}"${declarations}>\n${imports}${body}</xs:schema>\n` }]
    }))
  }

  #schema (namespace: string): Schema {
    const known = this.#schemas.get(namespace) ?? { text: [], uses: new Set<string>(), types: new Set<string>() }
    this.#schemas.set(namespace, known)
    return known
  }

  /** `{namespace}` stands for a prefix until all namespaces are known. */
  #element (inside: string, name: string, { namespace, name: type, isNillable }: TypeName, occurs = 'minOccurs="0"'): string {
    if (namespace !== XSD && namespace !== inside) this.#schema(inside).uses.add(namespace)
    const prefix = namespace === XSD ? 'xs:' : namespace === inside ? 'tns:' : `{${namespace}}`
    return `<xs:element ${occurs} name="${name}"${isNillable ? ' nillable="true"' : ''} type="${prefix}${type}"/>`
  }

  #typeOf (inside: string, type: FieldType): TypeName {
    if (type === 'xml') return this.#define(inside, PULLED_PAGE_TYPE.name, PULLED_PAGE_TYPE.schema, false)
    if (typeof type === 'string') return SIMPLE[type]
    return this.#named(type)
  }

  #named (type: NamedType): TypeName {
    if (type.kind === 'dictionary') return this.#dictionary()
    const { name, namespace } = type
    const known: TypeName = { namespace, name, isNillable: type.kind !== 'enum' }
    // Before its members: a type may be used in two places.
    if (this.#schema(namespace).types.has(name)) return known
    this.#schema(namespace).types.add(name)
    const of = (member: DataType): TypeName => this.#typeOf(namespace, member)
    if (type.kind === 'enum') {
      const values = `<xs:restriction base="xs:string">${type.values.map(value => `<xs:enumeration value="${value}"/>`).join('')}</xs:restriction>`
      const content = type.isFlags === true ? `<xs:list><xs:simpleType>${values}</xs:simpleType></xs:list>` : values
      this.#schema(namespace).text.push(`<xs:simpleType name="${name}">${content}</xs:simpleType>`)
    } else {
      const members = type.kind === 'list'
        ? this.#element(namespace, type.item, of(type.of), 'minOccurs="0" maxOccurs="unbounded"')
        : type.members.map(([member, memberType]) => this.#element(namespace, member, of(memberType))).join('')
      this.#schema(namespace).text.push(`<xs:complexType name="${name}"><xs:sequence>${members}</xs:sequence></xs:complexType>`)
    }
    return known
  }

  #dictionary (): TypeName {
    const pair = '<xs:element minOccurs="0" maxOccurs="unbounded" name="KeyValueOfstringstring"><xs:complexType><xs:sequence><xs:element name="Key" nillable="true" type="xs:string"/><xs:element name="Value" nillable="true" type="xs:string"/></xs:sequence></xs:complexType></xs:element>'
    const isDictionary = `<xs:annotation><xs:appinfo><IsDictionary xmlns="${SERIALIZATION}">true</IsDictionary></xs:appinfo></xs:annotation>`
    return this.#define(ARRAYS, 'ArrayOfKeyValueOfstringstring', `<xs:complexType name="ArrayOfKeyValueOfstringstring">${isDictionary}<xs:sequence>${pair}</xs:sequence></xs:complexType>`, true)
  }

  #define (namespace: string, name: string, text: string, isNillable: boolean): TypeName {
    const schema = this.#schema(namespace)
    if (!schema.types.has(name)) schema.text.push(text)
    schema.types.add(name)
    return { namespace, name, isNillable }
  }
}
