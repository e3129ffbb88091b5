import type { Envelope, Reading, SoapVersion } from '../wire/soap/envelope.ts'

/** One SOAP request over HTTP, headers read, body closed. */
export interface SoapRequest {
  /** Path without query, as sent: `/1730412/Http`. */
  readonly path: string
  /** Scheme, host, port and prefix that the caller used, without a trailing slash: `http://grid.example:8080`. */
  readonly baseUrl: string
  readonly reading: Reading
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal
}

/** What a handler answers: an envelope (the listener writes it in the request's SOAP version; a fault goes as 500), or 202 for a one-way call. */
export type SoapReply = { readonly envelope: Envelope, readonly isFault?: boolean } | { readonly oneWay: true }

/** Throws are turned into SOAP faults by the listener (wire/soap/fault.ts `toFault`). */
export type SoapHandler = (request: SoapRequest) => Promise<SoapReply>

/** What is at a path: undefined → 404. Limits are the session's own; `get` serves ?wsdl and the help page. */
export interface SoapEndpoint {
  readonly limits: { readonly maxMessageSize: number, readonly maxHeaderBytes: number, readonly maxDepth: number }
  readonly handle: SoapHandler
  get? (request: { path: string, query: string, baseUrl: string }): Promise<{ status: number, contentType: string, body: string | Uint8Array } | undefined>
}

/** A message to write, in the SOAP version that the channel speaks. */
export interface OutgoingMessage {
  readonly envelope: Envelope
  /** Self-contained elements, written behind the envelope's own headers. */
  readonly extraHeaders?: readonly Uint8Array[] | undefined
  /** WS-Addressing To; undefined: none. */
  readonly to?: string | undefined
  /** WS-Addressing ReplyTo; undefined: none. Who waits for a reply on this channel says ANONYMOUS. */
  readonly replyTo?: string | undefined
}

/** "Answer on the channel that this came on." [WS-Addressing 1.0 Core] 2.1 */
export { ANONYMOUS } from '../wire/soap/binary-write.ts'

/** A channel on which both sides speak when they like: a net.tcp session, a WebSocket. Both directions keep the order of messages. */
export interface DuplexChannel {
  /** Path of the address that the client opened, without query: `/1730412/NetTcp`. */
  readonly path: string
  /** Scheme, host and port of it: `net.tcp://grid.example:9091`. */
  readonly baseUrl: string
  /** Aborted when the channel is over, whoever ended it, with ChannelClosed as its reason. */
  readonly signal: AbortSignal
  /** Resolves when the message has left this process, or is among so few that waiting would not help; that is the back-pressure of whoever sends much. Rejects with ChannelClosed. */
  send (message: OutgoingMessage): Promise<void>
  /** Nothing more will be said: what is queued is sent, then the end of our side. The peer may still speak. */
  end (): void
}

/** A channel that is over, and why. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed'
}

/** Who hears what comes in on one channel. */
export interface DuplexSession {
  /**
   * One message, in order of arrival; the next may be handed over before this one is settled. While too many are unsettled nothing is read, which is
   * the back-pressure towards the client. A rejection goes back as a fault where the message has a MessageID to relate it to.
   */
  message (reading: Reading): Promise<void>
  /** The channel is over; called once. */
  closed? (): void
}

/** What is at a path for those who open a channel there. */
export interface DuplexEndpoint {
  readonly limits: { readonly maxMessageSize: number, readonly maxHeaderBytes: number, readonly maxDepth: number }
  open (channel: DuplexChannel): DuplexSession
}

/** A call to a service host, as a tagged value: failures here are part of the work. `reached` false: no byte of the request was sent. */
export type CallResult =
  | { readonly outcome: 'answered', readonly reading: Reading }
  /** 202, or 200 without a body: a one-way operation was taken. */
  | { readonly outcome: 'accepted' }
  | { readonly outcome: 'timedOut' }
  | { readonly outcome: 'unreachable', readonly error: Error }
  | { readonly outcome: 'broken', readonly error: Error }
  /** `status`: HTTP's, where an answer came that was no SOAP: a door without a room behind it says 502 or 503. */
  | { readonly outcome: 'badReply', readonly error: Error, readonly status?: number }
  | { readonly outcome: 'aborted' }

export interface SoapCaller {
  /**
   * One request, one reply. `soap` undefined: in the version that the envelope came in, where the way has both.
   * `isOneWay`: no reply is due; where the way itself does not say that a message was taken (net.tcp), its having been sent is all that can be known.
   */
  call (envelope: Envelope, options: { timeoutMs: number, signal: AbortSignal, soap?: SoapVersion | undefined, isOneWay?: boolean | undefined }): Promise<CallResult>
  close (): Promise<void>
}
