import { SoaError } from '../../core/errors.ts'
import type { Logger } from '../../core/log.ts'
import { answering, reply, replyFault } from '../../transport/answering.ts'
import type { DuplexChannel, DuplexEndpoint, DuplexSession } from '../../transport/channel.ts'
import { serveContract } from '../../transport/serve-contract.ts'
import { newMessageId } from '../../core/ids.ts'
import type { Reading } from '../../wire/soap/envelope.ts'
import { RESPONSE_SERVICE } from '../../wsdl/contracts.ts'
import type { BrokerClient } from './broker-client.ts'
import { controller } from './controller.ts'
import { checkClientId, emptyAnswer, PLAIN_CLIENT_ID } from './front-end.ts'
import type { BrokerSession } from './session.ts'

/** What a session has on duplex channels (net.tcp, WebSocket): requests, controller, responses ([wire-contract] 4.1). */
export interface DuplexEndpoints { readonly front: DuplexEndpoint, readonly control: DuplexEndpoint, readonly responses: DuplexEndpoint }

export function duplexEndpoints (session: BrokerSession, log: Logger): DuplexEndpoints {
  const { settings } = session.service
  const endpoint = (open: (channel: DuplexChannel, bound: BoundClient) => Omit<DuplexSession, 'closed'>): DuplexEndpoint => ({
    limits: settings,
    open (channel) {
      const bound = new BoundClient(session, channel)
      return { ...open(channel, bound), closed: () => bound.closed() }
    },
  })
  return {
    front: endpoint((channel, bound) => ({ message: reading => take(session, channel, bound, reading, log) })),
    control: endpoint((channel, bound) => answering(controller(session, clientId => bound.client(clientId)), channel, log)),
    responses: endpoint((channel, bound) => answering(responseService(session, channel, bound), channel, log)),
  }
}

/** A channel belongs to the first client id that it carries ([broker-behaviour] 2.2), and keeps that client connected. */
class BoundClient {
  readonly #session: BrokerSession
  readonly #channel: DuplexChannel
  #key: string | undefined
  #connected: BrokerClient | undefined
  #leave: () => void = () => {}

  constructor (session: BrokerSession, channel: DuplexChannel) {
    this.#session = session
    this.#channel = channel
  }

  client (clientId: string): BrokerClient {
    const key = checkClientId(clientId).toLowerCase()
    this.#key ??= key
    if (key !== this.#key) throw new SoaError('Broker_ClientIdNotMatch', {})
    const client = this.#session.client(clientId)
    // Purged or timed out, the same id comes back as a new object: the channel then keeps that one connected.
    if (client !== this.#connected && !this.#channel.signal.aborted) {
      this.#leave()
      this.#connected = client
      this.#leave = client.connect()
    }
    return client
  }

  closed (): void { this.#leave() }
}

/**
 * A request on the raw channel ([wire-contract] 7): with UserData it is stored and nothing is sent back; without, the service's reply comes back on this channel.
 * A stored one that has a ReplyTo, which HPC's client never sends, is acknowledged with an empty reply, as over HTTP. A refusal is sent as a fault in all
 * cases; HPC's client does not read it, so it is kept for its Flush or EndRequests too.
 */
async function take (session: BrokerSession, channel: DuplexChannel, bound: BoundClient, reading: Reading, log: Logger): Promise<void> {
  const { signal } = channel
  const action = session.service.actionOf(reading.envelope, reading.bodyElement)
  const envelope = { ...reading.envelope, action, messageId: reading.envelope.messageId ?? newMessageId() }
  let client: BrokerClient | undefined
  try {
    session.refuseUnlessTaking()
    client = bound.client(envelope.clientId ?? PLAIN_CLIENT_ID)
    if (envelope.userData !== undefined) {
      const isAcknowledged = reading.replyTo !== undefined
      await client.accept(envelope, reading.batchId, signal, isAcknowledged)
      session.workCame()
      if (isAcknowledged) await reply(channel, reading, emptyAnswer(envelope))
      return
    }
    client.refuseUnlessConnected()
    // One-way is what names no MessageID; a service's operation that the WSDL calls one-way has no reply to wait for either.
    if (reading.envelope.messageId === undefined || session.service.isOneWay(action)) { session.callOneWay(client, envelope); return }
    const answer = await session.call(client, envelope, signal)
    if (!('oneWay' in answer)) await reply(channel, reading, answer.envelope)
  } catch (error) {
    if (envelope.userData !== undefined && reading.replyTo === undefined) client?.refused(error)
    await replyFault(channel, reading, error, log)
  }
}

/** `…/GetResponse`: HPC's ResponseService. */
function responseService (session: BrokerSession, channel: DuplexChannel, bound: BoundClient) {
  return serveContract(RESPONSE_SERVICE, session.service.settings, {
    async GetResponses ({ fields }) {
      const { action = '', clientData = '', resetToBegin: position, count, clientId = '' } = fields
      if (position !== 'Begin' && position !== 'Current') throw new SoaError('InvalidArgument', { argument: 'resetToBegin', why: `Begin or Current is expected, not "${String(position ?? '')}"` })
      if (typeof count !== 'number' || (count < 1 && count !== -1)) throw new SoaError('InvalidArgument', { argument: 'count', why: `${String(count ?? 'nothing')} is neither above 0 nor -1` })
      bound.client(String(clientId)).getResponses({ action: String(action), clientData: String(clientData), position, count: count === -1 ? Infinity : count }, channel, () => session.readEnd())
      return {}
    },
  })
}
