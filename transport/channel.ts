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
  /** One request, one reply. `soap` undefined: in the version that the envelope came in. */
  call (envelope: Envelope, options: { timeoutMs: number, signal: AbortSignal, soap?: SoapVersion | undefined }): Promise<CallResult>
  close (): Promise<void>
}
