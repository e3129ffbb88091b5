export interface TcpLimits {
  /** A preamble is complete within this time. CoreWCF's default: 30 s. */
  readonly preambleTimeoutMs: number
  /** How long a connection may wait for its next session after End. WCF's default: 2 min. */
  readonly idleTimeoutMs: number
  /** How long calls in hand may go on after the client's End, and how long we wait for the client's after ours. */
  readonly closeTimeoutMs: number
  /** Messages of one connection that may be in hand; more are not read. */
  readonly maxInHand: number
  readonly maxInHandBytes: number
}

export const TCP_LIMITS: TcpLimits = { preambleTimeoutMs: 30_000, idleTimeoutMs: 120_000, closeTimeoutMs: 10_000, maxInHand: 1024, maxInHandBytes: 16_777_216 }
