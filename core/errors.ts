/**
 * Every way this system says no, one row each.
 *
 * The names and numbers with a `code` are HPC Pack's SOAFaultCode: they travel to clients as SessionFault (the number in
 * the detail, the name as subcode) and to REST callers as `code` and `name`. A .NET client formats its own text with the
 * context, so the order of `context` is part of the contract, and a row never has fewer items than that client's placeholders.
 * Rows without a code are ours: they never become a SessionFault (a framing fault, a SOAP fault of the standard's own, an HTTP status).
 */
export interface FaultRow {
  readonly code: number | undefined
  readonly blame: 'sender' | 'receiver'
  readonly text: string
  readonly context: readonly string[]
}

export const FAULTS = {
  OperationTimeout: { code: 0x01000002, blame: 'receiver', text: '{0} took longer than {1} ms', context: ['operation', 'timeoutMs'] },
  Broker_CustomBrokerReadyTimeout: { code: 0x01000005, blame: 'receiver', text: 'the custom broker {0} was not ready within {1} ms', context: ['program', 'timeoutMs'] },
  Broker_CustomBrokerExitBeforeReady: { code: 0x01000006, blame: 'receiver', text: 'the custom broker {0} ended before it was ready: {1}', context: ['program', 'why'] },
  Broker_EOMRejected: { code: 0x0100000b, blame: 'sender', text: 'EndRequests is not possible in state {0}', context: ['state'] },
  Broker_BrokerIsOffline: { code: 0x0100000d, blame: 'receiver', text: 'the broker takes no new sessions: it is being drained', context: [] },
  Broker_FailedToStartBrokerServiceProcess: { code: 0x0100000e, blame: 'receiver', text: 'the broker worker could not be started: {0}', context: ['why'] },
  Broker_TooManyBrokerRunning: { code: 0x01000013, blame: 'receiver', text: '{0} sessions are open, which is the limit (maxSessions)', context: ['limit'] },
  Broker_BrokerSuspending: { code: 0x01000015, blame: 'receiver', text: 'session {0} is being suspended; attach again in a moment', context: ['sessionId'] },
  Broker_EOMReject_GetResponse: { code: 0x01000018, blame: 'sender', text: 'EndRequests after responses were asked for', context: [] },
  Broker_EOMReject_EndRequests: { code: 0x01000019, blame: 'sender', text: 'EndRequests was called before for this client', context: [] },
  Broker_FlushRejected: { code: 0x0100001a, blame: 'sender', text: 'Flush is not possible in state {0}', context: ['state'] },
  Broker_AlreadyClosed: { code: 0x0100001b, blame: 'sender', text: 'the session is closed', context: [] },
  Broker_EOMReject_NoRequest: { code: 0x0100001e, blame: 'sender', text: 'EndRequests without any request sent', context: [] },
  Broker_BrokerUnavailable: { code: 0x02000007, blame: 'receiver', text: 'the broker of session {0} is gone', context: ['sessionId'] },
  Broker_BrokerQueueFailure: { code: 0x0200000a, blame: 'receiver', text: 'the queue could not be read: {0}', context: ['why'] },
  Broker_SessionFailure: { code: 0x0200000b, blame: 'receiver', text: 'session {0} failed: {1}', context: ['sessionId', 'why'] },
  TimeoutToGetBrokerWorkerProcess: { code: 0x0200000c, blame: 'receiver', text: 'no broker worker became ready within {0} ms', context: ['timeoutMs'] },
  InvalidArgument: { code: 0x03000000, blame: 'sender', text: '{0}: {1}', context: ['argument', 'why'] },
  InvalidSessionId: { code: 0x03000001, blame: 'sender', text: '{0} is not the id of a session here', context: ['sessionId'] },
  StorageServiceNotAvailble: { code: 0x03000006, blame: 'receiver', text: 'the store cannot be reached: {0}', context: ['why'] },
  StorageSpaceNotSufficient: { code: 0x03000007, blame: 'receiver', text: 'the store is full: {0} is {1}, the limit is {2}', context: ['setting', 'value', 'limit'] },
  StorageFailure: { code: 0x03000008, blame: 'receiver', text: 'the store failed: {0}', context: ['why'] },
  StorageClosed: { code: 0x03000009, blame: 'receiver', text: 'the queue is closed', context: [] },
  InvalidAttachDurableSession: { code: 0x0300000a, blame: 'sender', text: 'session {0} is interactive, not durable', context: ['sessionId'] },
  InvalidAttachInteractiveSession: { code: 0x0300000b, blame: 'sender', text: 'session {0} is durable, not interactive', context: ['sessionId'] },
  Broker_InvalidConfiguration: { code: 0x0300000e, blame: 'sender', text: '{0}: {1}', context: ['setting', 'why'] },
  Broker_SessionIdAlreadyExists: { code: 0x0300000f, blame: 'sender', text: 'session {0} exists already', context: ['sessionId'] },
  Broker_InvalidSessionId: { code: 0x03000010, blame: 'sender', text: '{0} is no session id', context: ['sessionId'] },
  Broker_BindingSecurityModeMismatched: { code: 0x03000011, blame: 'sender', text: 'Secure is true, but connections are not secured here; ask for a session with Secure=false', context: [] },
  Broker_InvalidClientIdOrTooLong: { code: 0x03000016, blame: 'sender', text: 'the client id is longer than 128 characters or has other characters than letters, digits, blank and _ - { }', context: [] },
  Broker_ClientIdNotMatch: { code: 0x03000017, blame: 'sender', text: 'this connection belongs to another client id', context: [] },
  Session_ValidateJobFailed_AlreadyFinished: { code: 0x0300001b, blame: 'sender', text: 'session {0} is finished', context: ['sessionId'] },
  Session_ValidateJobFailed_JobCanceled: { code: 0x0300001c, blame: 'sender', text: 'session {0} was canceled', context: ['sessionId'] },
  ConfigFile_Invalid: { code: 0x0300001d, blame: 'sender', text: 'service registration {0}: {1}', context: ['file', 'why'] },
  Service_NotFound: { code: 0x0300001e, blame: 'sender', text: 'no service {0} is registered', context: ['serviceName'] },
  ServiceVersion_NotFound: { code: 0x03000020, blame: 'sender', text: 'service {0} has no version {1}', context: ['serviceName', 'version'] },
  Broker_UnsupportedVersion: { code: 0x03000021, blame: 'receiver', text: 'stored form version {0} is newer than this broker reads ({1})', context: ['version', 'known'] },
  Broker_UnsupportedOperation: { code: 0x03000022, blame: 'sender', text: '{0} is not supported here: {1}', context: ['operation', 'why'] },
  Service_Preempted: { code: 0x03000024, blame: 'receiver', text: 'the task was preempted; {0} calls are still in progress there', context: ['left'] },
  ClientPurged: { code: 0x04000000, blame: 'sender', text: 'the client was purged', context: [] },
  Broker_RetryLimitExceeded: { code: 0x04000001, blame: 'receiver', text: 'gave up after {0} tries: {1}', context: ['tries', 'why'] },
  ClientTimeout: { code: 0x04000003, blame: 'sender', text: 'the client timed out', context: [] },
  Service_InitializeFailed: { code: 0x04000004, blame: 'receiver', text: 'the service could not be loaded: {0}', context: ['why'] },
  Service_Unreachable: { code: 0x04000005, blame: 'receiver', text: 'service instance {0} cannot be reached: {1}', context: ['taskId', 'why'] },
  UnknownError: { code: 0x0f000000, blame: 'receiver', text: '{0}', context: ['why'] },
  // Ours: what a peer did to the wire, answered by SOAP's own fault codes or by an HTTP status.
  badEnvelope: { code: undefined, blame: 'sender', text: 'no SOAP envelope: {0}', context: ['why'] },
  overLimit: { code: undefined, blame: 'sender', text: '{0} is {2}, the limit is {1}', context: ['setting', 'limit', 'value'] },
  badMediaType: { code: undefined, blame: 'sender', text: 'media type {0} is not served here; send text/xml (SOAP 1.1), application/soap+xml (SOAP 1.2) or application/soap+msbin1 (binary)', context: ['mediaType'] },
  versionMismatch: { code: undefined, blame: 'sender', text: 'envelope namespace {0} is neither SOAP 1.1 nor SOAP 1.2', context: ['namespace'] },
  mustUnderstand: { code: undefined, blame: 'sender', text: 'header {0} must be understood and is not known here', context: ['header'] },
  actionNotSupported: { code: undefined, blame: 'sender', text: 'action {0} is not supported here', context: ['action'] },
  badFrame: { code: undefined, blame: 'sender', text: 'net.tcp framing: {0}', context: ['why', 'framingFault'] },
  // Ours: between bytes and a service's values ([libraries] 8).
  badXml: { code: undefined, blame: 'sender', text: 'XML is not accepted: {0}', context: ['why'] },
  badBody: { code: undefined, blame: 'sender', text: 'the body does not match the contract at {0}: {1}', context: ['path', 'why'] },
  badValue: { code: undefined, blame: 'receiver', text: 'the value does not match the contract: {0}', context: ['why'] },
  badContract: { code: undefined, blame: 'receiver', text: 'WSDL {0}: {1}', context: ['document', 'why'] },
  // Ours: between broker and store, and in the command line.
  storeFenced: { code: undefined, blame: 'receiver', text: 'session {0} belongs to another broker now', context: ['sessionId'] },
  storeLost: { code: undefined, blame: 'receiver', text: 'the store lost data of session {0}: it has {1}, {2} were acknowledged', context: ['sessionId', 'has', 'acknowledged'] },
  noDeadLetter: { code: undefined, blame: 'sender', text: 'session {0} has no dead letter {1}', context: ['sessionId', 'id'] },
  deadLetterRead: { code: undefined, blame: 'sender', text: 'the fault of dead letter {0} was read and freed, so there is no place for another response', context: ['id'] },
  noMessage: { code: undefined, blame: 'sender', text: 'session {0} has no message {1}: it never came, was purged, or was delivered and freed so long ago that its trace is gone (traceMessages)', context: ['sessionId', 'messageId'] },
  missingHere: { code: undefined, blame: 'receiver', text: '{0} is missing on this machine: {1}', context: ['what', 'mend'] },
  refused: { code: undefined, blame: 'receiver', text: '{0}', context: ['why'] },
} as const satisfies Record<string, FaultRow>

export type FaultName = keyof typeof FAULTS

/** What anything here throws to refuse a caller. Compare `error.fault`, never the sentence. */
export class SoaError<N extends FaultName = FaultName> extends Error {
  override readonly name = 'SoaError'
  readonly fault: N
  /** In the row's order, as text: what travels in SessionFault's Context. */
  readonly context: readonly string[]

  /** @param options `hint`: more for people, behind the row's text */
  constructor (fault: N, values: Record<(typeof FAULTS)[N]['context'][number], string | number>, options?: ErrorOptions & { hint?: string }) {
    const row: FaultRow = FAULTS[fault]
    const context = row.context.map(key => String((values as Record<string, unknown>)[key]))
    super(row.text.replace(/\{(\d)\}/g, (_, i) => context[Number(i)] ?? '?') + (options?.hint ?? ''), options)
    this.fault = fault
    this.context = context
  }
}

export function isSoaError<N extends FaultName> (error: unknown, ...faults: N[]): error is SoaError<N> {
  return error instanceof SoaError && (faults.length === 0 || (faults as string[]).includes(error.fault))
}
