import type { Settings } from '../../config/settings.ts'
import type { SoapCaller } from '../../transport/channel.ts'
import { httpCaller } from '../../transport/http/connector.ts'
import { tcpCaller } from '../../transport/tcp/caller.ts'

/**
 * The way to a service host, by its address. Our own takes all its calls over one net.tcp connection and answers in any order; one of another make gets one call
 * per connection, as HPC Pack's broker does it, because many of them work on one call of a connection after the other.
 */
export function callHost (address: string, { slots, isOurs, settings }: { slots: number, isOurs: boolean, settings: Settings }): SoapCaller {
  const { maxMessageSize, maxHeaderBytes, maxDepth } = settings
  if (!address.startsWith('net.tcp:')) {
    // SOAP 1.1 too goes with addressing: what HPC Pack sends to hosts of other makes ([broker-behaviour] 7.7), and they answer with the action of their reply.
    return httpCaller(address, { connections: slots, maxMessageSize, maxHeaderBytes, maxDepth, addressing: 'wsa' })
  }
  return tcpCaller(address, { limits: { maxMessageSize, maxHeaderBytes, maxDepth }, connections: isOurs ? 1 : slots, callsPerConnection: isOurs ? Infinity : 1 })
}
