import { SoaError } from '../core/errors.ts'
import { HPC, WSA, WSA_NONE } from '../wire/soap/envelope.ts'
import { operationOf, type Contract } from '../wsdl/contracts.ts'
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
    const fields = decodeRequest(operation, envelope.body, envelope.prefixesInScope)
    // A getter: the signal is made when somebody asks for it.
    const result = await operations[name]({ fields, baseUrl, get signal () { return request.signal } })
    const body = Buffer.isBuffer(result) ? result : encodeReply(operation, result)
    return { envelope: { v: 1, soap: envelope.soap, enc: 'utf8', action: operation.replyAction, relatesTo: envelope.messageId, otherHeaders: [], prefixesInScope: [], body } }
  }
  return { limits: { ...limits, maxDepth: CONTRACT_DEPTH }, handle }
}

/** Every endpoint of ours understands addressing and HPC's own headers. */
function refuseUnknownHeaders (mustUnderstand: readonly string[]): void {
  const unknown = mustUnderstand.find(name => ![WSA, WSA_NONE, HPC].some(namespace => name.startsWith(`{${namespace}}`)))
  if (unknown !== undefined) throw new SoaError('mustUnderstand', { header: unknown })
}
