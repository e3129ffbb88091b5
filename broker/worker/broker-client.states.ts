import { states } from '../../core/machine.ts'

/**
 * One ClientId's life ([broker-behaviour] 2.1). Whether a socket is open is no state: a durable client's requests run on while nobody is
 * connected, so in EndRequests a vanished client changes nothing.
 */
export const BROKER_CLIENT = states({
  ClientConnected: { endRequests: 'EndRequests', allProcessed: 'AllRequestDone', jobEnded: 'GetResponse', idle: 'Disconnected', gone: 'Disconnected', purge: 'Disconnected' },
  EndRequests: { allProcessed: 'AllRequestDone', jobEnded: 'GetResponse', purge: 'Disconnected' },
  AllRequestDone: { getResponses: 'GetResponse', jobEnded: 'GetResponse', idle: 'Disconnected', gone: 'Disconnected', purge: 'Disconnected' },
  GetResponse: { idle: 'Disconnected', gone: 'Disconnected', purge: 'Disconnected' },
  Disconnected: {},
})

export type BrokerClientState = keyof typeof BROKER_CLIENT

/** What GetBrokerClientStatus says ([wire-contract] 2.7). */
export const CLIENT_STATUS = {
  ClientConnected: 'Ready',
  EndRequests: 'Processing',
  AllRequestDone: 'Finished',
  GetResponse: 'Finished',
  Disconnected: 'Unknown',
} as const satisfies Record<BrokerClientState, string>
