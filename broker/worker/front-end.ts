import { SoaError } from '../../core/errors.ts'
import { newMessageId } from '../../core/ids.ts'
import type { Envelope } from '../../wire/soap/envelope.ts'
import { toFault } from '../../wire/soap/fault.ts'
import type { SoapEndpoint, SoapReply, SoapRequest } from '../../transport/channel.ts'
import { describeSession } from './description.ts'
import type { BrokerSession } from './session.ts'

/** [broker-behaviour] 2.2: empty is legal and a client of its own. */
const CLIENT_ID = /^[0-9a-zA-Z_\-{}\s]*$/
const MAX_CLIENT_ID = 128
/** The client of callers that send no ClientId header (plain SOAP proxies), per user; everybody is Anonymous without authentication. */
export const PLAIN_CLIENT_ID = '076EC2DC-BFE3-4865-9092-EDE051B794CE--'

export function checkClientId (clientId: string): string {
  if (clientId.length > MAX_CLIENT_ID || !CLIENT_ID.test(clientId)) throw new SoaError('Broker_InvalidClientIdOrTooLong', {})
  return clientId
}

/**
 * Where requests come in over HTTP, `/{sessionId}/Http` ([wire-contract] 7): any action, any body, unknown headers passed on.
 * With UserData: stored, and answered at once with an empty Body. Without: the service's reply in the same exchange.
 */
export function frontEnd (session: BrokerSession): SoapEndpoint {
  const { settings } = session.service
  return {
    limits: settings,
    handle: request => handle(session, request),
    get: describeSession(session),
  }
}

async function handle (session: BrokerSession, { reading, signal }: SoapRequest): Promise<SoapReply> {
  const { envelope: sent } = reading
  const action = session.service.actionOf(sent, reading.bodyElement)
  const envelope: Envelope = { ...sent, action, messageId: sent.messageId ?? newMessageId() }
  try {
    session.refuseUnlessTaking()
    const client = session.client(checkClientId(envelope.clientId ?? PLAIN_CLIENT_ID))
    if (envelope.userData !== undefined) {
      await client.accept(envelope, reading.batchId, signal)
      session.workCame()
      return { envelope: emptyAnswer(envelope) }
    }
    client.refuseUnlessConnected()
    if (session.service.isOneWay(action)) {
      session.callOneWay(client, envelope)
      return { oneWay: true }
    }
    return await session.call(client, envelope, signal)
  } catch (error) {
    // Faults of the broker carry the request's action, so that a client can tell what they answer ([wire-contract] 7).
    if (!(error instanceof SoaError)) throw error
    return { envelope: toFault(error, { soap: envelope.soap, relatesTo: envelope.messageId, requestAction: action }), isFault: true }
  }
}

/** HPC's answer to a stored request: an empty body whose action is the request's + `Response` ([wire-contract] 5.8). */
export function emptyAnswer (request: Envelope): Envelope {
  return { v: 1, soap: request.soap, enc: 'utf8', action: `${request.action}Response`, relatesTo: request.messageId, otherHeaders: [], prefixesInScope: [], body: new Uint8Array() }
}
