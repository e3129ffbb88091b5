import type { TLSSocket } from 'node:tls'

/**
 * Why the certificate that a client has shown is not to be trusted; undefined: it is. Node says so by `authorized`, but only on sockets that a tls.Server has
 * accepted; on one that was upgraded later that is always false, and this is what tls.Server asks. Without an answer nobody is trusted.
 */
export function whyNotTrusted (socket: TLSSocket): Error | undefined {
  if (Object.keys(socket.getPeerCertificate()).length === 0) return new Error('the client has shown no certificate')
  const { _handle: handle } = socket as unknown as { readonly _handle?: { verifyError? (): Error | null | undefined } | null }
  if (typeof handle?.verifyError !== 'function') return new Error('this version of Node does not say whether a certificate is trusted')
  return handle.verifyError() ?? undefined
}
