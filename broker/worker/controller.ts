import { SoaError } from '../../core/errors.ts'
import type { SoapVersion } from '../../wire/soap/envelope.ts'
import { messageIdHeader, requestActionHeader } from '../../wire/soap/hpc-headers.ts'
import { writeEnvelope } from '../../wire/soap/write.ts'
import type { StoredResponse } from '../../store/message-store.ts'
import type { SoapEndpoint } from '../../transport/channel.ts'
import { serveContract, type ContractCall as Call } from '../../transport/serve-contract.ts'
import { BROKER_CONTROLLER } from '../../wsdl/contracts.ts'
import type { Values } from '../../wsdl/shapes.ts'
import { writePulledPage } from '../../wsdl/pulled-page.ts'
import { checkClientId } from './front-end.ts'
import type { BrokerClient } from './broker-client.ts'
import type { BrokerSession } from './session.ts'

/** One page of PullResponses: a client's window of 512 small responses fits, 512 of the largest messages must not. */
export const MAX_PAGE_BYTES = 16 * 1024 * 1024

const text = (call: Call, field: string): string => String(call.fields[field] ?? '')

/** A field that is checked before its operation runs ([wire-contract] 1.3). */
function whole (call: Call, field: string, least: number, alsoInfinite = false): number {
  const value = call.fields[field]
  if (typeof value !== 'number') throw new SoaError('InvalidArgument', { argument: field, why: 'is missing' })
  if (value < least && !(alsoInfinite && value === -1)) throw new SoaError('InvalidArgument', { argument: field, why: `${value} is below ${least}${alsoInfinite ? ' and not -1' : ''}` })
  return value
}

/**
 * `…/Controller`: HPC's IBrokerController. Over HTTP any client id may be named by any call; a channel is bound to the first that it names.
 * @param clientOf the client of an id, which it refuses where it is not the channel's
 */
export function controller (session: BrokerSession, clientOf = (clientId: string): BrokerClient => session.client(checkClientId(clientId))): SoapEndpoint {
  const { settings } = session.service

  async function commit (call: Call, endOfMessages: boolean): Promise<Values> {
    const count = whole(call, 'count', endOfMessages ? 0 : 1)
    const batchId = call.fields.batchId === undefined ? -1 : Number(call.fields.batchId)
    const throttlingMs = whole(call, 'timeoutThrottlingMs', 1, true)
    const timeoutMs = whole(call, endOfMessages ? 'timeoutEOMMs' : 'timeoutFlushMs', 1, true)
    const client = clientOf(text(call, 'clientid'))
    await session.throttleOpen(throttlingMs, call.signal)
    await (endOfMessages ? client.endRequests : client.flush).call(client, count, { batchId, timeoutMs, signal: call.signal })
    session.workCame()
    return {}
  }

  async function pull (call: Call): Promise<Buffer> {
    const position = text(call, 'position')
    if (position !== 'Begin' && position !== 'Current') throw new SoaError('InvalidArgument', { argument: 'position', why: `Begin or Current is expected, not "${position}"` })
    const client = clientOf(text(call, 'clientId'))
    const page = await client.pull(position, whole(call, 'count', 1), text(call, 'action'), { maxBytes: MAX_PAGE_BYTES, signal: call.signal, end: () => session.readEnd() })
    return writePulledPage(page.endOfMessages, page.responses.map(embedded))
  }

  return serveContract(BROKER_CONTROLLER, settings, {
    Flush: call => commit(call, false),
    EndRequests: call => commit(call, true),
    PullResponses: pull,
    async Purge (call) { await session.purge(clientOf(text(call, 'clientid')).queue.displayId); return {} },
    async GetBrokerClientStatus (call) { return { GetBrokerClientStatusResult: clientOf(text(call, 'clientId')).status } },
    async GetRequestsCount (call) { return { GetRequestsCountResult: clientOf(text(call, 'clientId')).queue.committed } },
    async GetResponsesAQ () { throw new SoaError('Broker_UnsupportedOperation', { operation: 'GetResponsesAQ', why: 'there are no Azure queues here; use PullResponses' }) },
    async Ping () { return {} },
  })
}

/** A response as one SOAP 1.1 envelope inside PullResponses: with the Action header of `addressing/none`, the only place where a client finds the reply's action. */
function embedded (response: StoredResponse): Buffer {
  return deliverable(response, 11, 'none')
}

/** A stored response as bytes for a client: RequestActionNS, UserDataNS and MessageIdNS are on it ([wire-contract] 3.3), on faults too. */
export function deliverable (response: StoredResponse, soap: SoapVersion, addressing: 'none' | 'wsa'): Buffer {
  const { envelope } = response
  const extraHeaders = [requestActionHeader(response.requestAction), ...(envelope.relatesTo === undefined ? [] : [messageIdHeader(envelope.relatesTo)])]
  return writeEnvelope(envelope, { soap, addressing, extraHeaders })
}
