import { isSoaError, SoaError } from '../../core/errors.ts'

const PREFIX = 'http://schemas.microsoft.com/ws/2006/05/framing/faults/'

/** What a server can say in a Fault record, and when: [MC-NMF] 2.2.3.5; the names are what .NET's client turns into exceptions (the double Fault is its spelling). */
export const FRAMING_FAULTS = {
  UnsupportedVersion: 'the major version is not 1',
  UnsupportedMode: 'the mode is unknown or not offered',
  ViaTooLong: 'the via has more than 2048 bytes',
  ContentTypeTooLong: 'the content type, or the name of an upgrade, has more than 256 bytes',
  ContentTypeInvalid: 'the encoding is not one that the endpoint reads',
  EndpointNotFound: 'nothing listens at the via',
  EndpointUnavailable: 'the endpoint is known and does not serve now',
  ConnectionDispatchFailed: 'the connection could not be handed on to its endpoint',
  ServiceActivationFailed: 'the service could not be started',
  ServerTooBusy: 'too many connections',
  UpgradeInvalid: 'the upgrade is not offered',
  MaxMessageSizeExceededFault: 'an envelope is larger than the endpoint takes'
} as const
export type FramingFault = keyof typeof FRAMING_FAULTS

export const faultUri = (fault: FramingFault): string => PREFIX + fault

/** Name of the fault in a Fault record; undefined: one that nobody here knows. */
export function framingFaultOf (uri: string): FramingFault | undefined {
  const name = uri.startsWith(PREFIX) ? uri.slice(PREFIX.length) : ''
  return Object.hasOwn(FRAMING_FAULTS, name) ? name as FramingFault : undefined
}

/** An error that the peer is told as a Fault record (server), or that a Fault record told us (client). */
export const framingError = (fault: FramingFault, why: string): SoaError<'badFrame'> => new SoaError('badFrame', { why, framingFault: fault })

/** The fault to send before the connection is closed; undefined: the protocol has none for it, so only the close is left. */
export function framingFault (error: unknown): FramingFault | undefined {
  const name = isSoaError(error, 'badFrame') ? error.context[1] ?? '' : ''
  return Object.hasOwn(FRAMING_FAULTS, name) ? name as FramingFault : undefined
}
