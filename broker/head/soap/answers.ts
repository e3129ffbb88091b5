import type { Settings } from '../../../config/settings.ts'
import type { SessionRecord } from '../../../store/session-store.ts'
import { toVersion } from '../../../wsdl/data-contracts.ts'
import type { Values } from '../../../wsdl/shapes.ts'

/** What is told of the version of this server: HPC Pack's current generation of these contracts. */
export const SERVER_VERSION = '5.0.0.0'

/** PingBroker2's answer when the session has no broker ([wire-contract] 1.2). */
export const BROKER_NOT_EXIST = 'PingBroker2Result_BrokerNotExist'

/** How often clients ask for their broker, in ms, and how many failures they bear ([wire-contract] 2.6). */
const heartbeat = (settings: Settings): Values => ({ ClientBrokerHeartbeatInterval: settings.clientBrokerHeartbeatInterval, ClientBrokerHeartbeatRetryCount: settings.clientBrokerHeartbeatRetryCount })

/** A list of addresses by transport scheme: NetTcp, Http, Custom, WebAPI, NetHttp, AzureStorage, and one more as HPC Pack sends it; what is not served is nil. */
const bySchemes = (netTcp: string | undefined, http: string | undefined, netHttp: string): Array<string | undefined> => [netTcp, http, undefined, undefined, netHttp, undefined, undefined]

/**
 * Where brokers are created, by the prefix that a client asked for. HPC Pack's client says `https://` for its HTTP scheme and then calls the broker launcher over
 * net.tcp all the same ([wire-contract] 4.3), so only `http://`, which it never says, is for those that cannot.
 */
export function brokerLauncherAddress ({ http, brokerLauncher }: BrokerAddresses, endpointPrefix: string): string {
  return `${brokerLauncher === undefined || /^http:/i.test(endpointPrefix) ? http : brokerLauncher}/BrokerLauncher`
}

/** What addresses.ts says. */
export interface BrokerAddresses { readonly http: string, readonly netTcp: string | undefined, readonly brokerLauncher: string | undefined }

/** BrokerInitializationResult: all that a client needs to call a session's broker. */
export function brokerInitializationResult (sessionId: string, brokerUniqueId: string, settings: Settings, { http, netTcp }: BrokerAddresses): Values {
  const overTcp = (suffix = ''): string | undefined => netTcp === undefined ? undefined : `${netTcp}/${sessionId}/NetTcp${suffix}`
  // A WebSocket is opened at an address of HTTP, as HPC Pack tells it: .NET makes ws:// of it.
  const netHttp = `${http}/${sessionId}/NetHttp`
  return {
    BrokerEpr: bySchemes(overTcp(), `${http}/${sessionId}/Http`, netHttp),
    BrokerUniqueId: brokerUniqueId,
    ...heartbeat(settings),
    ControllerEpr: bySchemes(overTcp('/Controller'), `${http}/${sessionId}/Http/Controller`, `${netHttp}/Controller`),
    MaxMessageSize: settings.maxMessageSize,
    ResponseEpr: bySchemes(overTcp('/GetResponse'), undefined, `${netHttp}/GetResponse`), // over HTTP responses are pulled from the controller
    ServiceOperationTimeout: int(settings.serviceOperationTimeout),
    SupportsMessageDetails: false,
    UseAzureQueue: false
  }
}

/** The state of HPC's service job; clients parse the name, so there must be one. A suspended session is served on the next call: to clients it runs. */
const JOB_STATE: Readonly<Record<SessionRecord['state'], string>> = { Starting: 'Queued', Running: 'Running', Suspended: 'Running', Canceled: 'Canceled', Finished: 'Finished', Failed: 'Failed' }

/** SessionInfo: what a client needs to attach. The addresses of the broker come with Attach's answer, so they are nil here, as HPC Pack has it. */
export function sessionInfo (record: SessionRecord, settings: Settings, at: BrokerAddresses, endpointPrefix: string, secure: boolean): Values {
  return {
    BrokerLauncherEpr: brokerLauncherAddress(at, endpointPrefix),
    ...heartbeat(settings),
    Durable: record.durable,
    Id: record.sessionId,
    JobState: JOB_STATE[record.state],
    Secure: secure,
    ServerVersion: toVersion(SERVER_VERSION),
    ServiceOperationTimeout: int(settings.serviceOperationTimeout),
    ServiceVersion: toVersion(record.version),
    SessionACL: [],
    SessionOwner: 'Everyone',
    // Who attaches says by the prefix which one it will use.
    TransportScheme: at.netTcp === undefined || /^http/i.test(endpointPrefix) ? 'Http' : 'NetTcp',
    UseAad: false,
    UseInprocessBroker: false
  }
}

/** A setting that may be larger than the contract's int. */
const int = (value: number): number => Math.min(value, 2 ** 31 - 1)
