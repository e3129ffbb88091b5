import { isSoaError } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Envelope, Reading } from '../wire/soap/envelope.ts'
import { toFault } from '../wire/soap/fault.ts'
import { ChannelClosed, type DuplexChannel, type DuplexEndpoint, type DuplexSession, type SoapEndpoint } from './channel.ts'

/** The reply to a request of a duplex channel: related to its MessageID, and addressed to where it wants replies ([wire-contract] 3.2). */
export async function reply (channel: DuplexChannel, request: Reading, envelope: Envelope): Promise<void> {
  const { messageId } = request.envelope
  // Who names no MessageID cannot tell an answer from a push, and waits for none.
  if (messageId !== undefined) await channel.send({ envelope: { ...envelope, relatesTo: messageId }, to: request.replyTo })
}

/** Whatever was thrown while a request was handled, as the reply to it. */
export async function replyFault (channel: DuplexChannel, request: Reading, error: unknown, log: Logger): Promise<void> {
  const { messageId, action } = request.envelope
  if (error instanceof ChannelClosed || channel.signal.aborted) { log.debug({ path: channel.path, action, err: error as Error }, 'the caller left before the answer'); return }
  if (isSoaError(error)) log.debug({ path: channel.path, action, err: error }, 'a request was refused')
  else log.error({ path: channel.path, action, err: error as Error }, 'a request failed in a way it should not')
  await reply(channel, request, toFault(error, { soap: 12, addressed: true, relatesTo: messageId, requestAction: action || undefined }))
}

/** A request/reply endpoint on a duplex channel: any number of requests at once, answered in the order in which they are done. */
export function answering (endpoint: SoapEndpoint, channel: DuplexChannel, log: Logger): DuplexSession {
  const { path, baseUrl, signal } = channel
  return {
    async message (reading) {
      try {
        const answer = await endpoint.handle({ path, baseUrl, reading, signal })
        if (!('oneWay' in answer)) await reply(channel, reading, answer.envelope)
      } catch (error) {
        await replyFault(channel, reading, error, log).catch((closed: unknown) => { if (!(closed instanceof ChannelClosed)) throw closed })
      }
    }
  }
}

/** The same as what is at a path. */
export const answeringEndpoint = (endpoint: SoapEndpoint, log: Logger): DuplexEndpoint => ({ limits: endpoint.limits, open: channel => answering(endpoint, channel, log) })

/** The same for what is found by a path: one for each endpoint. */
export function answeringEndpoints (route: (path: string) => SoapEndpoint | undefined, log: Logger): (path: string) => DuplexEndpoint | undefined {
  const made = new WeakMap<SoapEndpoint, DuplexEndpoint>()
  return path => {
    const endpoint = route(path)
    if (endpoint === undefined) return undefined
    let duplex = made.get(endpoint)
    if (duplex === undefined) made.set(endpoint, duplex = answeringEndpoint(endpoint, log))
    return duplex
  }
}
