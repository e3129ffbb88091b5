import { tcpCaller } from '../transport/tcp/caller.ts'
import { Callers } from './callers.ts'
import { framingFault } from '../wire/framing/faults.ts'
import { BrokenError, ConnectionError } from './errors.ts'
import { READ_LIMITS } from './fault.ts'
import type { Transport } from './transport.ts'

/** The broker cuts its pages at 16 MiB, or at one message if that is larger. */
const MAX_PAGE_BYTES = 1024 * 1024 * 1024
/** Of messages that a client reads. */
export const MESSAGE_LIMITS = { maxMessageSize: MAX_PAGE_BYTES, ...READ_LIMITS }
/** The signal of each exchange is what ends it. */
const NO_LIMIT_MS = 365 * 86_400_000

/**
 * `send` and `call` over net.tcp: a channel for each client id, because the broker binds a channel to the first that it carries, and one for calls, which have
 * none. A request with a ReplyTo is acknowledged as over HTTP (ADR 0017), so a send that resolved has arrived.
 * @param address `net.tcp://…/{id}/NetTcp`, asked for each channel
 * @param stillThere asked when nobody was reached: rejects when the session is no more
 */
export function netTcpTransport (address: () => string, stillThere: (error: Error, signal: AbortSignal) => Promise<void>): Transport {
  const callers = new Callers(() => tcpCaller(address(), { limits: MESSAGE_LIMITS, connections: 1, callsPerConnection: Infinity }))
  return {
    async exchange ({ operation, action, messageId, clientId, isOneWay, headers, body, signal }) {
      const envelope = { v: 1, soap: 12, enc: 'utf8', action, messageId, otherHeaders: headers === '' ? [] : [Buffer.from(headers)], prefixesInScope: [], body: Buffer.from(body) } as const
      const result = await callers.call(clientId?.toLowerCase(), envelope, { timeoutMs: NO_LIMIT_MS, signal, isOneWay })
      switch (result.outcome) {
        case 'answered': return { status: result.reading.isFault ? 500 : 200, reading: result.reading }
        case 'accepted': return { status: 202, reading: undefined }
        case 'aborted': case 'timedOut': throw signal.reason
        case 'badReply': throw new ConnectionError(`${operation}: ${result.error.message}`, {}, { cause: result.error })
        case 'unreachable': case 'broken':
          // An answer, and the same again would get the same: which message it was a framing fault cannot say, nor the limit.
          if ((framingFault(result.error) ?? framingFault(result.error.cause)) === 'MaxMessageSizeExceededFault') {
            throw new ConnectionError(`${operation}: one of the messages on this connection is larger than the session's maxMessageSize; this one has a body of ${body.length} characters`, {}, { cause: result.error })
          }
          if (result.outcome === 'unreachable') await stillThere(result.error, signal)
          throw new BrokenError(operation, result.error)
      }
    },
    release: clientId => callers.release(clientId.toLowerCase()),
    renew: () => callers.renew(),
    close: () => callers.close(),
  }
}
