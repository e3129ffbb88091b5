/**
 * Data contracts as tables ([wire-contract] 2). Members stand in the order of the wire, which for all of them is the alphabet's, by code unit: a .NET
 * reader walks forward only, and a member that comes too late is lost without an error. Mind the namespaces: some end in a slash, some do not.
 */

/** Simple types; base64 is a string here. With `?` they may be nil by the contract; what is written nil anyway, where a peer left it out, is read as undefined. */
export type SimpleType = 'int' | 'long' | 'string' | 'boolean' | 'base64' | 'int?' | 'boolean?'

export type DataType = SimpleType | DataEnum | DataContract | DataList | DataDictionary

/** Value: a string. `isFlags`: any number of these words, with blanks between. */
export interface DataEnum { readonly kind: 'enum', readonly name: string, readonly namespace: string, readonly values: readonly string[], readonly isFlags?: boolean }

/** Value: an object with these members; undefined ones are nil. */
export interface DataContract { readonly kind: 'contract', readonly name: string, readonly namespace: string, readonly members: ReadonlyArray<readonly [name: string, type: DataType]> }
/** Value: an array; undefined items are nil. */
export interface DataList { readonly kind: 'list', readonly name: string, readonly namespace: string, readonly item: string, readonly of: DataType }
/** string → string. Value: an object. */
export interface DataDictionary { readonly kind: 'dictionary' }

export const ARRAYS = 'http://schemas.microsoft.com/2003/10/Serialization/Arrays'
const SYSTEM = 'http://schemas.datacontract.org/2004/07/System'
const SESSION_LAUNCHER_DATA = 'http://hpc.microsoft.com/SessionLauncher'
const BROKER_LAUNCHER_DATA = 'http://hpc.microsoft.com/BrokerLauncher'

export const STRINGS = { kind: 'list', name: 'ArrayOfstring', namespace: ARRAYS, item: 'string', of: 'string' } as const satisfies DataList
const INTS = { kind: 'list', name: 'ArrayOfint', namespace: ARRAYS, item: 'int', of: 'int' } as const satisfies DataList
export const DICTIONARY = { kind: 'dictionary' } as const satisfies DataDictionary

/** System.Version; a part that is not given is -1. `toVersion` and `versionText` convert. */
export const VERSION = { kind: 'contract', name: 'Version', namespace: SYSTEM, members: [['_Build', 'int'], ['_Major', 'int'], ['_Minor', 'int'], ['_Revision', 'int']] } as const satisfies DataContract
export const VERSIONS = { kind: 'list', name: 'ArrayOfVersion', namespace: SYSTEM, item: 'Version', of: VERSION } as const satisfies DataList

/** [wire-contract] 2.2 */
export const TRANSPORT_SCHEME = { kind: 'enum', name: 'TransportScheme', namespace: 'http://hpc.microsoft.com/', isFlags: true, values: ['None', 'NetTcp', 'Http', 'Custom', 'WebAPI', 'NetHttp', 'AzureStorage'] } as const satisfies DataEnum

/** [wire-contract] 2.4 */
const JOB_STATE = {
  kind: 'enum',
  name: 'JobState',
  namespace: 'http://schemas.datacontract.org/2004/07/Microsoft.Telepathy.Session.Data',
  values: ['Configuring', 'Submitted', 'Validating', 'ExternalValidation', 'Queued', 'Running', 'Finishing', 'Finished', 'Failed', 'Canceled', 'Canceling', 'All']
} as const satisfies DataEnum

/** [wire-contract] 2.7 */
export const BROKER_CLIENT_STATUS = { kind: 'enum', name: 'BrokerClientStatus', namespace: 'http://hpc.microsoft.com', values: ['Unknown', 'Ready', 'Processing', 'Finished'] } as const satisfies DataEnum
export const GET_RESPONSE_POSITION = { kind: 'enum', name: 'GetResponsePosition', namespace: 'http://schemas.datacontract.org/2004/07/Microsoft.Telepathy.Session.Interface', values: ['Begin', 'Current'] } as const satisfies DataEnum

/** [wire-contract] 2.2; the only one whose namespace is the bare host with a slash. */
export const SESSION_START_INFO = {
  kind: 'contract',
  name: 'SessionStartInfoContract',
  namespace: 'http://hpc.microsoft.com/',
  members: [
    ['AdminJobForHostInDiag', 'boolean'], ['AllocationGrowLoadRatioThreshold', 'int?'], ['AllocationShrinkLoadRatioThreshold', 'int?'],
    ['AutoDisposeBrokerClient', 'boolean?'], ['CanPreempt', 'boolean?'], ['Certificate', 'base64'], ['ClientBrokerHeartbeatInterval', 'int?'],
    ['ClientBrokerHeartbeatRetryCount', 'int?'], ['ClientConnectionTimeout', 'int?'], ['ClientIdleTimeout', 'int?'], ['ClientVersion', VERSION],
    ['DependFiles', 'string'], ['DependFilesStorageInfo', DICTIONARY], ['DiagnosticBrokerNode', 'string'], ['DispatcherCapacityInGrowShrink', 'int?'],
    ['Environments', DICTIONARY], ['ExtendedPriority', 'int?'], ['IpAddress', STRINGS], ['IsNoSession', 'boolean'], ['JobTemplate', 'string'],
    ['LocalUser', 'boolean?'], ['MaxMessageSize', 'int?'], ['MaxUnits', 'int?'], ['MessagesThrottleStartThreshold', 'int?'],
    ['MessagesThrottleStopThreshold', 'int?'], ['MinUnits', 'int?'], ['NodeGroupsStr', 'string'], ['ParentJobIds', INTS], ['Password', 'string'],
    ['PfxPassword', 'string'], ['Priority', 'int?'], ['RegPath', 'string'], ['RequestedNodesStr', 'string'], ['ResourceUnitType', 'int?'],
    ['Runtime', 'int'], ['SavePassword', 'boolean?'], ['Secure', 'boolean'], ['ServiceHangTimeout', 'int?'], ['ServiceHostIdleTimeout', 'int?'],
    ['ServiceJobName', 'string'], ['ServiceJobProject', 'string'], ['ServiceName', 'string'], ['ServiceOperationTimeout', 'int?'],
    ['ServiceVersion', VERSION], ['SessionIdleTimeout', 'int?'], ['ShareSession', 'boolean'], ['TransportScheme', TRANSPORT_SCHEME], ['UseAad', 'boolean'],
    ['UseAzureQueue', 'boolean?'], ['UseInprocessBroker', 'boolean'], ['UseSessionPool', 'boolean'], ['UseWindowsClientCredential', 'boolean'],
    ['Username', 'string']
  ]
} as const satisfies DataContract

/** [wire-contract] 2.4 (CLR: SessionInfoContract) */
export const SESSION_INFO = {
  kind: 'contract',
  name: 'SessionInfo',
  namespace: SESSION_LAUNCHER_DATA,
  members: [
    ['BrokerEpr', STRINGS], ['BrokerLauncherEpr', 'string'], ['ClientBrokerHeartbeatInterval', 'int'], ['ClientBrokerHeartbeatRetryCount', 'int'],
    ['ControllerEpr', STRINGS], ['Durable', 'boolean'], ['Id', 'string'], ['JobState', JOB_STATE], ['ResponseEpr', STRINGS], ['Secure', 'boolean'],
    ['ServerVersion', VERSION], ['ServiceOperationTimeout', 'int'], ['ServiceVersion', VERSION], ['SessionACL', STRINGS], ['SessionOwner', 'string'],
    ['TransportScheme', TRANSPORT_SCHEME], ['UseAad', 'boolean'], ['UseInprocessBroker', 'boolean']
  ]
} as const satisfies DataContract

/** [wire-contract] 2.3 */
export const SESSION_ALLOCATE_INFO = {
  kind: 'contract', name: 'SessionAllocateInfo', namespace: SESSION_LAUNCHER_DATA, members: [['BrokerLauncherEpr', STRINGS], ['Id', 'string'], ['ServiceVersion', VERSION], ['SessionInfo', SESSION_INFO]]
} as const satisfies DataContract

/** [wire-contract] 2.5 */
export const CLUSTER_INFO = {
  kind: 'contract', name: 'ClusterInfoContract', namespace: SESSION_LAUNCHER_DATA, members: [['AzureStorageConnectionString', 'string'], ['ClusterId', 'string'], ['ClusterName', 'string'], ['NetworkTopology', 'string']]
} as const satisfies DataContract

/** [wire-contract] 2.6. The three Epr lists are indexed by log2 of the transport scheme. */
export const BROKER_INITIALIZATION_RESULT = {
  kind: 'contract',
  name: 'BrokerInitializationResult',
  namespace: BROKER_LAUNCHER_DATA,
  members: [
    ['AzureControllerRequestQueueUri', 'string'], ['AzureControllerResponseQueueUri', 'string'], ['AzureRequestBlobUri', 'string'],
    ['AzureRequestQueueUris', STRINGS], ['BrokerEpr', STRINGS], ['BrokerUniqueId', 'string'], ['ClientBrokerHeartbeatInterval', 'int'],
    ['ClientBrokerHeartbeatRetryCount', 'int'], ['ControllerEpr', STRINGS], ['MaxMessageSize', 'long'], ['ResponseEpr', STRINGS],
    ['ServiceOperationTimeout', 'int'], ['SupportsMessageDetails', 'boolean'], ['UseAzureQueue', 'boolean']
  ]
} as const satisfies DataContract

export interface VersionValue { readonly [part: string]: number, readonly _Build: number, readonly _Major: number, readonly _Minor: number, readonly _Revision: number }

/** `1.0` → 1, 0, -1, -1. Undefined for text that .NET would not read as a version: two to four numbers. */
export function toVersion (text: string | undefined): VersionValue | undefined {
  if (text === undefined || !/^\d{1,9}(?:\.\d{1,9}){1,3}$/.test(text)) return undefined
  const [major = 0, minor = 0, build = -1, revision = -1] = text.split('.').map(Number)
  return { _Build: build, _Major: major, _Minor: minor, _Revision: revision }
}

/** The other way; a part that is negative or absent ends the text. */
export function versionText (version: Readonly<Record<string, unknown>>): string {
  const parts = [version._Major, version._Minor, version._Build, version._Revision].map(part => typeof part === 'number' ? part : -1)
  const end = parts.findIndex(part => part < 0)
  return parts.slice(0, end < 0 ? undefined : end).join('.')
}
