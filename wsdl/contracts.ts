/**
 * Our SOAP contracts, each operation once: action, wrapper and fields in wire order ([wire-contract] §1). Document/literal wrapped:
 * the request's wrapper is the operation's name, the reply's is name + `Response`, all in the contract's namespace.
 * A .NET reader walks forward only, so the order of the fields is the order on the wire.
 */

import {
  BROKER_CLIENT_STATUS, BROKER_INITIALIZATION_RESULT, CLUSTER_INFO, DICTIONARY, GET_RESPONSE_POSITION, SESSION_ALLOCATE_INFO, SESSION_INFO, SESSION_START_INFO, STRINGS, VERSION, VERSIONS,
  type DataType
} from './data-contracts.ts'

/** `xml`: bytes that are written as they are (replies only). */
export type FieldType = DataType | 'xml'

export type Field = readonly [name: string, type: FieldType]

export interface Operation {
  readonly name: string
  readonly namespace: string
  readonly action: string
  readonly replyAction: string
  readonly input: readonly Field[]
  readonly output: readonly Field[]
  readonly oneWay?: boolean
}

export interface Contract<N extends string = string> {
  readonly name: string
  readonly namespace: string
  /** What it is for, in a sentence or two. */
  readonly about: string
  readonly operations: Readonly<Record<N, Operation>>
}

type Rows = Record<string, { in: readonly Field[], out: readonly Field[], action?: string, oneWay?: boolean }>

/** The default action of WCF: namespace, contract, operation; a row with `action` has its own (an explicit `Action=`). */
function contract<const R extends Rows> (namespace: string, name: string, rows: R, about = ''): Contract<keyof R & string> {
  const base = `${namespace}${namespace.endsWith('/') ? '' : '/'}${name}/`
  const operations = Object.fromEntries(Object.entries(rows).map(([op, row]) => {
    const action = row.action ?? base + op
    return [op, { name: op, namespace, action, replyAction: `${action}Response`, input: row.in, output: row.out, ...(row.oneWay ? { oneWay: true } : {}) }]
  })) as unknown as Record<keyof R & string, Operation>
  return { name, namespace, about, operations }
}

/** [wire-contract] 1.3. `clientid` is spelled in lower case in Flush, EndRequests and Purge, `clientId` elsewhere. */
export const BROKER_CONTROLLER = contract('http://hpc.microsoft.com/brokercontroller/', 'IBrokerController', {
  Flush: { in: [['count', 'int'], ['clientid', 'string'], ['batchId', 'int'], ['timeoutThrottlingMs', 'int'], ['timeoutFlushMs', 'int']], out: [] },
  EndRequests: { in: [['count', 'int'], ['clientid', 'string'], ['batchId', 'int'], ['timeoutThrottlingMs', 'int'], ['timeoutEOMMs', 'int']], out: [] },
  Purge: { in: [['clientid', 'string']], out: [] },
  GetBrokerClientStatus: { in: [['clientId', 'string']], out: [['GetBrokerClientStatusResult', BROKER_CLIENT_STATUS]] },
  GetRequestsCount: { in: [['clientId', 'string']], out: [['GetRequestsCountResult', 'int']] },
  PullResponses: { in: [['action', 'string'], ['position', GET_RESPONSE_POSITION], ['count', 'int'], ['clientId', 'string']], out: [['PullResponsesResult', 'xml']] },
  GetResponsesAQ: {
    in: [['action', 'string'], ['clientData', 'string'], ['resetToBegin', GET_RESPONSE_POSITION], ['count', 'int'], ['clientId', 'string'], ['sessionHash', 'int']],
    out: [['azureResponseQueueUri', 'string'], ['azureResponseBlobUri', 'string']]
  },
  Ping: { in: [], out: [] }
}, 'HPC Pack\'s broker controller: says when a client\'s requests are complete, and brings its responses.')

const START_INFO = ['info', SESSION_START_INFO] as const
const SESSION_ID = ['sessionId', 'string'] as const
/** The two pings spell it so. */
const PINGED_ID = ['sessionID', 'string'] as const

/** [wire-contract] 1.1, and the operations by which HPC Pack 2016's client says the same ([wire-contract] 9): its ids are numbers, which is the same text. */
export const SESSION_LAUNCHER = contract('http://hpc.microsoft.com/sessionlauncher/', 'ISessionLauncher', {
  GetServerVersion: { in: [], out: [['GetServerVersionResult', VERSION]] },
  Allocate: { in: [START_INFO, ['endpointPrefix', 'string']], out: [['AllocateResult', SESSION_ALLOCATE_INFO]] },
  AllocateDurable: { in: [START_INFO, ['endpointPrefix', 'string']], out: [['AllocateDurableResult', SESSION_ALLOCATE_INFO]] },
  GetInfo: { in: [['endpointPrefix', 'string'], SESSION_ID], out: [['GetInfoResult', SESSION_INFO]] },
  Terminate: { in: [SESSION_ID], out: [] },
  GetServiceVersions: { in: [['serviceName', 'string']], out: [['GetServiceVersionsResult', VERSIONS]] },
  GetSOAConfiguration: { in: [['key', 'string']], out: [['GetSOAConfigurationResult', 'string']] },
  GetSOAConfigurations: { in: [['keys', STRINGS]], out: [['GetSOAConfigurationsResult', DICTIONARY]] },
  GetClusterInfo: { in: [], out: [['GetClusterInfoResult', CLUSTER_INFO]] },
  AllocateV5: { in: [START_INFO, ['endpointPrefix', 'string']], out: [['AllocateV5Result', SESSION_ALLOCATE_INFO]] },
  AllocateDurableV5: { in: [START_INFO, ['endpointPrefix', 'string']], out: [['AllocateDurableV5Result', SESSION_ALLOCATE_INFO]] },
  GetInfoV5: { in: [['endpointPrefix', 'string'], SESSION_ID], out: [['GetInfoV5Result', SESSION_INFO]] },
  GetInfoV5Sp1: { in: [['endpointPrefix', 'string'], SESSION_ID, ['useAad', 'boolean']], out: [['GetInfoV5Sp1Result', SESSION_INFO]] },
  TerminateV5: { in: [SESSION_ID], out: [] }
}, 'HPC Pack\'s session launcher: Allocate checks what a session asks for, and gives its id and the address of the broker launcher that starts it.')

/** [wire-contract] 1.2. GetActiveBrokerIdList sends strings, as HPC Pack's server does; its client's copy of the contract says int, and never calls it. */
export const BROKER_LAUNCHER = contract('http://hpc.microsoft.com/brokerlauncher/', 'IBrokerLauncher', {
  Create: { in: [START_INFO, SESSION_ID], out: [['CreateResult', BROKER_INITIALIZATION_RESULT]] },
  CreateDurable: { in: [START_INFO, SESSION_ID], out: [['CreateDurableResult', BROKER_INITIALIZATION_RESULT]] },
  Attach: { in: [SESSION_ID], out: [['AttachResult', BROKER_INITIALIZATION_RESULT]] },
  Close: { in: [SESSION_ID], out: [] },
  PingBroker: { in: [PINGED_ID], out: [['PingBrokerResult', 'boolean']] },
  PingBroker2: { in: [PINGED_ID], out: [['PingBroker2Result', 'string']] },
  GetActiveBrokerIdList: { in: [], out: [['GetActiveBrokerIdListResult', STRINGS]] }
}, 'HPC Pack\'s broker launcher: Create starts a session that was allocated, and gives the addresses of its broker; Attach gives those of a session that is there.')

/** [wire-contract] 1.4: the responses themselves come as messages of their own down the same channel. */
export const RESPONSE_SERVICE = contract('http://hpc.microsoft.com', 'ResponseService', {
  GetResponses: { in: [['action', 'string'], ['clientData', 'string'], ['resetToBegin', GET_RESPONSE_POSITION], ['count', 'int'], ['clientId', 'string']], out: [] }
})

/** [wire-contract] 1.6: what a broker says to a service host's controller. */
export const SERVICE_HOST = contract('http://hpc.microsoft.com/hpcservicehost/', 'IHpcServiceHost', {
  Exit: { in: [], out: [], action: 'http://hpc.microsoft.com/hpcservicehost/exit', oneWay: true }
})

/** The operation that a message is for: by action, else by its body element (SOAP 1.1 without an action). */
export function operationOf<N extends string> (from: Contract<N>, action: string, bodyElement: string | undefined): { name: N, operation: Operation } | undefined {
  for (const name of Object.keys(from.operations) as N[]) {
    const operation = from.operations[name]
    if (action === '' ? bodyElement === `{${operation.namespace}}${operation.name}` : action === operation.action) return { name, operation }
  }
  return undefined
}
