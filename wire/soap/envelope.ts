/**
 * A SOAP message as a value: what every room between the sockets and the service passes around, and what the store keeps.
 *
 * The form is fixed and versioned (`v`): a newer broker reads an older form and refuses a newer one by number. The body is
 * *closed*: the bytes between the Body's tags in the encoding they came in, never turned into objects on the way.
 */

/** 11: SOAP 1.1, 12: SOAP 1.2. */
export type SoapVersion = 11 | 12

/** `utf8`: text. `nbfx-static`: binary XML with the static dictionary only (net.tcp), so that it needs no connection to be read. */
export type BodyEncoding = 'utf8' | 'nbfx-static'

/** Namespace declarations in force, innermost winning, `''` = default namespace. `xml` is never listed. */
export type Scope = ReadonlyArray<readonly [prefix: string, uri: string]>

export interface Envelope {
  readonly v: 1
  readonly soap: SoapVersion
  readonly enc: BodyEncoding
  /** Empty when the message names none (then the body element's name is what decides). */
  readonly action: string
  /** WS-Addressing MessageID, else HPC's MessageIdNS. The broker gives one where both are absent. */
  readonly messageId?: string | undefined
  readonly relatesTo?: string | undefined
  /** HPCServer2008_Broker_ClientIdNS as text; absent and empty are different. */
  readonly clientId?: string | undefined
  /** The whole UserDataNS header element, made self-contained (its scope is spliced in). Its presence means "store the response, answer empty". */
  readonly userData?: Uint8Array | undefined
  /** All other header elements that are passed on, each self-contained. Addressing headers that have a field here or are per hop (To, ReplyTo, FaultTo, From) are not among them, nor is Security. */
  readonly otherHeaders: readonly Uint8Array[]
  /** What the body's bytes may refer to: declarations of Envelope and Body. A writer repeats them on its own Body element. */
  readonly prefixesInScope: Scope
  /** The bytes between `<Body>` and `</Body>`; empty for an empty body. */
  readonly body: Uint8Array
}

/** Name of an element: `{namespace}local`, or `local` in no namespace. */
export type QName = string

/** What reading finds beside the envelope: facts of this one hop, which the stored form does not keep. */
export interface Reading {
  readonly envelope: Envelope
  /** HPCServer2008_Broker_ClientInstanceIdNS (batch id); HPC reads absent as -1. */
  readonly batchId: number
  /** HPCServer2008_Broker_RequestActionNS on a response. */
  readonly requestAction?: string | undefined
  readonly to?: string | undefined
  readonly replyTo?: string | undefined
  /** `preemption` header of a service host: calls still in progress there. */
  readonly preemption?: number | undefined
  /** Headers with mustUnderstand=1 aimed at the receiver (no actor/role, or "next"/"ultimateReceiver"), in document order. */
  readonly mustUnderstand: readonly QName[]
  /** The first element in the body; undefined for an empty body. */
  readonly bodyElement?: QName | undefined
  readonly isFault: boolean
  /** The message carried WS-Addressing 1.0 headers: the reply then carries them too. */
  readonly addressed: boolean
}

export const SOAP11 = 'http://schemas.xmlsoap.org/soap/envelope/'
export const SOAP12 = 'http://www.w3.org/2003/05/soap-envelope'
export const WSA = 'http://www.w3.org/2005/08/addressing'
/**
 * WS-Addressing before it was a standard, newest first: what Axis, WSE and old stacks write. Read where 1.0 says nothing, never written, and per hop like all
 * addressing: none of it is passed on.
 */
export const OLD_WSA: readonly string[] = ['2004/08', '2004/03', '2003/03'].map(version => `http://schemas.xmlsoap.org/ws/${version}/addressing`)
/** WCF writes the action here when a message without addressing is written outside HTTP ([wire-contract] 2.7). */
export const WSA_NONE = 'http://schemas.microsoft.com/ws/2005/05/addressing/none'
export const HPC = 'http://www.microsoft.com/hpc'
