import { SoaError } from '../../../core/errors.ts'
import type { SessionSettingName } from '../../../config/settings.ts'
import { versionText } from '../../../wsdl/data-contracts.ts'
import type { Value, Values } from '../../../wsdl/shapes.ts'
import type { SessionRequest } from '../session-request.ts'

/** Members of SessionStartInfoContract that are settings of the session, and their names here. */
const SETTINGS: ReadonlyArray<readonly [member: string, setting: SessionSettingName]> = [
  ['ClientBrokerHeartbeatInterval', 'clientBrokerHeartbeatInterval'],
  ['ClientBrokerHeartbeatRetryCount', 'clientBrokerHeartbeatRetryCount'],
  ['ClientConnectionTimeout', 'clientConnectionTimeout'],
  ['ClientIdleTimeout', 'clientIdleTimeout'],
  ['DispatcherCapacityInGrowShrink', 'dispatcherCapacityInGrowShrink'],
  ['MaxMessageSize', 'maxMessageSize'],
  ['MessagesThrottleStartThreshold', 'messageThrottleStartThreshold'],
  ['MessagesThrottleStopThreshold', 'messageThrottleStopThreshold'],
  ['ServiceHangTimeout', 'serviceHangTimeout'],
  ['ServiceHostIdleTimeout', 'serviceHostIdleTimeout'],
  ['ServiceOperationTimeout', 'serviceOperationTimeout'],
  ['SessionIdleTimeout', 'sessionIdleTimeout']
]

/** Members that would change what a user sees, and do nothing here: named in the log when they are set. All others are the client's own affair. */
const IDLE = [
  'DependFiles', 'IsNoSession', 'JobTemplate', 'ParentJobIds', 'RegPath', 'RequestedNodesStr', 'Runtime', 'UseAzureQueue', 'UseInprocessBroker'
]

/** SessionUnitType by number ([wire-contract] 2.2); 3, Gpu, is no unit here: ask for a label of the nodes that have one. */
const UNIT_TYPES = ['core', 'socket', 'node'] as const

/** HPC's five priorities, Lowest 0 … Highest 4, lie a thousand apart on the scale of ExtendedPriority. */
const PRIORITY_STEP = 1000

/**
 * What a start info asks for ([wire-contract] 2.2), and which of its members have no effect here. Refuses what cannot be served at all; ranges are the
 * launcher's to check.
 * @param isTlsServed net.tcp with a certificate, the one kind of security that there is; whoever asks for security without it is told at once
 */
export function sessionRequest (info: Value, durable: boolean, isTlsServed: boolean): { request: SessionRequest, idle: string[] } {
  if (typeof info !== 'object') throw new SoaError('InvalidArgument', { argument: 'info', why: 'is missing' })
  const start = info as Values
  if (start.Secure === true && !isTlsServed) throw new SoaError('Broker_BindingSecurityModeMismatched', {})
  if (start.ServiceName === undefined) throw new SoaError('InvalidArgument', { argument: 'info.ServiceName', why: 'is missing' })
  if (start.UseSessionPool === true && start.ShareSession !== true) throw new SoaError('InvalidArgument', { argument: 'info.UseSessionPool', why: 'sessions of the pool are shared: ShareSession must be true too' })
  const priority = whole(start.ExtendedPriority) ?? (typeof start.Priority === 'number' ? start.Priority * PRIORITY_STEP : undefined)
  return {
    request: {
      service: String(start.ServiceName),
      version: start.ServiceVersion === undefined ? undefined : versionText(start.ServiceVersion as Values),
      durable,
      pool: start.UseSessionPool === true,
      shared: start.ShareSession === true,
      minUnits: whole(start.MinUnits),
      maxUnits: whole(start.MaxUnits),
      priority,
      group: typeof start.NodeGroupsStr === 'string' && start.NodeGroupsStr.trim() !== '' ? start.NodeGroupsStr : undefined,
      unitType: unitType(whole(start.ResourceUnitType)),
      canPreempt: typeof start.CanPreempt === 'boolean' ? start.CanPreempt : undefined,
      settings: settingsIn(start),
      environment: Object.fromEntries(Object.entries(start.Environments ?? {}).filter((pair): pair is [string, string] => typeof pair[1] === 'string')) // .NET: null removes a variable
    },
    idle: IDLE.filter(member => says(start[member]))
  }
}

function settingsIn (start: Values): Record<string, number> {
  const settings: Record<string, number> = {}
  for (const [member, setting] of SETTINGS) {
    const value = whole(start[member])
    if (value === undefined || (member === 'MaxMessageSize' && value <= 0)) continue // 0 and less: the default, as in registration files
    settings[setting] = value
  }
  // HPC's client library sets both at once ([broker-behaviour] 1.8). 0 would end the session before its first client can connect.
  if (settings.sessionIdleTimeout !== undefined && settings.sessionIdleTimeout > 0) settings.clientConnectionTimeout ??= settings.sessionIdleTimeout
  return settings
}

function unitType (number: number | undefined): SessionRequest['unitType'] {
  if (number === undefined) return undefined
  const found = UNIT_TYPES[number]
  if (found === undefined) throw new SoaError('InvalidArgument', { argument: 'info.ResourceUnitType', why: `0 (core), 1 (socket) or 2 (node), not ${number}` })
  return found
}

const whole = (value: Value): number | undefined => typeof value === 'number' ? value : undefined

function says (value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0
  return value !== undefined && value !== false && value !== '' && value !== 0 && value !== -1
}
