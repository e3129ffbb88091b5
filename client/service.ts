import type { Agent } from 'undici'
import { SoaError } from '../core/errors.ts'
import type { Envelope, QName, Scope } from '../wire/soap/envelope.ts'
import { readEnvelope } from '../wire/soap/read.ts'
import { loadWsdl, type WsdlOperation } from '../wsdl/document.ts'
import { readBody } from '../wsdl/schema/reader.ts'
import type { SchemaSet } from '../wsdl/schema/schema.ts'
import { writeElement } from '../wsdl/schema/writer.ts'
import { faultOf, readAnswer, READ_LIMITS, type DetailReader } from './fault.ts'
import { StatusError } from './retry.ts'
import type { Response } from './response.ts'
import { openTransport, type Answer, type Transport } from './transport.ts'
import { readUserData } from './user-data.ts'
import type { Way } from './way.ts'

/** One operation of the session's service: values ⇄ bodies. */
export interface ServiceOperation {
  readonly name: string
  readonly action: string
  readonly isOneWay: boolean
  /** The request's body. @throws `SoaError` with `badValue`: path and reason of the first thing that the WSDL does not allow. */
  writeArgs (args: unknown): string
  /** The reply's wrapper element as a value. Members that the WSDL does not know are skipped: the service may be newer. */
  readResult (envelope: Envelope): unknown
  /** A fault's detail as a value, where the WSDL declares it. */
  readonly readDetail: DetailReader
}

/** What a session serves, from its WSDL, and the way to it. */
export interface Service {
  /** @throws `SoaError` with `InvalidArgument` that lists the operations there are. */
  operation (name: string): ServiceOperation
  /** The reply of a call; a fault in it is thrown. */
  readReply (operation: ServiceOperation, answer: Answer): unknown
  /** One pulled response: a complete SOAP envelope. */
  readResponse (xml: string): Response
  /** Opened when it is first asked for. */
  transport (): Promise<Transport>
}

/** @param netTcp how requests go, where they do not go over HTTP */
export async function openService ({ agent, way, netTcp, retryForMs }: { agent: Agent, way: Way, netTcp?: Transport | undefined, retryForMs: number }): Promise<Service> {
  const url = `${way.place.http}?singleWsdl`
  const text = await way.persist(`GET ${url}`, { retryForMs }, () => fetchText(agent, `${way.place.http}?singleWsdl`))
  const wsdl = loadWsdl({ [url]: text }, url)
  const rows = wsdl.operations.map(row => ({ actions: row.actions, operation: operationOf(wsdl.schema, row) }))
  const operations = new Map(rows.map(({ operation }) => [operation.name, operation]))
  const byAction = new Map(rows.flatMap(({ actions, operation }) => [...actions].map(action => [action, operation] as const)))
  let transport: Promise<Transport> | undefined

  return {
    operation (name) {
      const found = operations.get(name)
      if (!found) throw new SoaError('InvalidArgument', { argument: 'op', why: `the service has no operation ${name}; it has ${[...operations.keys()].join(', ')}` })
      return found
    },
    readReply (operation, answer) {
      const reading = readAnswer(answer)
      if (reading.isFault) throw faultOf(reading, operation.readDetail)
      return operation.readResult(reading.envelope)
    },
    readResponse: xml => readResponse(xml, byAction),
    transport: () => netTcp !== undefined ? Promise.resolve(netTcp) : (transport ??= openTransport({ agent, endpoint: () => way.place.http, wsdl: text, operations: [...operations.keys()] }, wsdl.operations.some(({ style }) => style === 'rpc') ? 'plain' : 'soap'))
  }
}

async function fetchText (agent: Agent, url: string): Promise<string> {
  const { origin, pathname, search } = new URL(url)
  const { statusCode, body } = await agent.request({ origin, path: pathname + search, method: 'GET', headersTimeout: 60_000, bodyTimeout: 60_000 })
  const text = await body.text()
  if (statusCode !== 200) throw new StatusError(statusCode, text.trim())
  return text
}

function operationOf (schema: SchemaSet, { name, action, inputElement, oneWay, faults }: WsdlOperation): ServiceOperation {
  return {
    name,
    action,
    isOneWay: oneWay,
    writeArgs: args => inputElement === undefined ? '' : writeElement(schema, inputElement, args ?? {}),
    readResult: ({ body, prefixesInScope }) => readBody(schema, body, prefixesInScope, LENIENT)?.value,
    readDetail: (detail, scope) => declaredDetail(schema, detail, scope, new Set(faults.map(fault => fault.element)))
  }
}

const LENIENT = { isLenient: true, maxDepth: READ_LIMITS.maxDepth }

function declaredDetail (schema: SchemaSet, detail: Uint8Array, scope: Scope, declared: ReadonlySet<QName>): unknown {
  try {
    const read = readBody(schema, detail, scope, LENIENT)
    return read && declared.has(read.name) ? read.value : undefined
  } catch {
    return undefined // a detail of somebody else's; it is still there as XML
  }
}

function readResponse (xml: string, byAction: ReadonlyMap<string, ServiceOperation>): Response {
  const reading = readEnvelope(Buffer.from(xml), { limits: READ_LIMITS })
  const { envelope, requestAction = '', isFault } = reading
  const operation = byAction.get(requestAction)
  const fault = isFault ? faultOf(reading, operation?.readDetail) : undefined
  return {
    messageId: envelope.relatesTo ?? envelope.messageId ?? '',
    userData: readUserData(envelope.userData),
    op: operation?.name ?? '',
    fault,
    result () {
      if (fault) throw fault
      if (!operation) throw new SoaError('badBody', { path: '/', why: `the WSDL has no operation of action ${requestAction || '(none)'}` })
      return operation.readResult(envelope)
    },
    envelope
  }
}
