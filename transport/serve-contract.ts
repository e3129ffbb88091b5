import { SoaError } from '../core/errors.ts'
import { HPC, WSA, WSA_NONE } from '../wire/soap/envelope.ts'
import { withTextBody } from '../wire/soap/body-form.ts'
import { operationOf, type Contract } from '../wsdl/contracts.ts'
import { CONTRACT_WSDL, contractDocuments } from '../wsdl/contract-wsdl.ts'
import { helpPage } from '../wsdl/help-page.ts'
import { httpEndpoint, ServedWsdl } from '../wsdl/served-wsdl.ts'
import { CONTRACT_DEPTH, decodeRequest, encodeReply, type Value, type Values } from '../wsdl/shapes.ts'
import type { SoapEndpoint, SoapReply, SoapRequest } from './channel.ts'

/** One call of an operation: its fields by the contract's names, nil and absent ones undefined. */
export interface ContractCall {
  readonly fields: Readonly<Record<string, Value>>
  readonly baseUrl: string
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal
}

/** What each operation does. It answers with the fields of the reply, or with the reply's whole body where another serializer wrote it. */
export type Operations<N extends string> = { readonly [K in N]: (call: ContractCall) => Promise<Values | Buffer> }

/**
 * An endpoint for one of our contracts: refuses headers that it would have to understand and actions that it does not have, as the standards say,
 * reads the body by the contract's rows and writes the reply in the request's SOAP version.
 */
export function serveContract<N extends string> (contract: Contract<N>, limits: SoapEndpoint['limits'], operations: Operations<N>): SoapEndpoint {
  async function handle (request: SoapRequest): Promise<SoapReply> {
    const { reading, baseUrl } = request
    const { envelope } = reading
    refuseUnknownHeaders(reading.mustUnderstand)
    const found = operationOf(contract, envelope.action, reading.bodyElement)
    if (found === undefined) throw new SoaError('actionNotSupported', { action: envelope.action || (reading.bodyElement ?? '(none)') })
    const { name, operation } = found
    const { body: sent, prefixesInScope } = withTextBody(envelope)
    const fields = decodeRequest(operation, sent, prefixesInScope)
    // A getter: the signal is made when somebody asks for it.
    const result = await operations[name]({ fields, baseUrl, get signal () { return request.signal } })
    const body = Buffer.isBuffer(result) ? result : encodeReply(operation, result)
    return { envelope: { v: 1, soap: envelope.soap, enc: 'utf8', action: operation.replyAction, relatesTo: envelope.messageId, otherHeaders: [], prefixesInScope: [], body } }
  }
  return { limits: { ...limits, maxDepth: CONTRACT_DEPTH }, handle, get: describe(contract) }
}

/** One for each contract, however many sessions have an endpoint of it; made when somebody asks. */
const served = new Map<Contract, ServedWsdl>()

/** GET: the contract's WSDL, and without a query a page that says what is here. */
function describe (contract: Contract): NonNullable<SoapEndpoint['get']> {
  return async ({ path, query, baseUrl }) => {
    const wsdl = served.get(contract) ?? new ServedWsdl(contractDocuments(contract), CONTRACT_WSDL)
    served.set(contract, wsdl)
    const url = `${baseUrl}${path}`
    if (query !== '') return wsdl.answer(query, httpEndpoint(url))
    return { status: 200, contentType: 'text/html; charset=utf-8', body: helpPage({ title: contract.name, about: contract.about, url, queries: wsdl.queries, operations: wsdl.operations }) }
  }
}

/** Every endpoint of ours understands addressing and HPC's own headers. */
function refuseUnknownHeaders (mustUnderstand: readonly string[]): void {
  const unknown = mustUnderstand.find(name => ![WSA, WSA_NONE, HPC].some(namespace => name.startsWith(`{${namespace}}`)))
  if (unknown !== undefined) throw new SoaError('mustUnderstand', { header: unknown })
}
