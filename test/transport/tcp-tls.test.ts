import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import { silent } from '../../core/log.ts'
import { answeringEndpoint } from '../../transport/answering.ts'
import { tcpCaller } from '../../transport/tcp/caller.ts'
import { listenTcp } from '../../transport/tcp/listener.ts'
import { tlsFrom } from '../../transport/tcp/tls.ts'
import { MSBINSESSION1 } from '../../wire/framing/records.ts'
import { certificates, type Certificates } from '../interop/certificates.ts'

const limits = { maxMessageSize: 4_000_000, maxHeaderBytes: 65_536, maxDepth: 64 }
const echo = answeringEndpoint({ limits, handle: async ({ reading }) => ({ envelope: { ...reading.envelope, action: 'urn:EchoResponse' } }) }, silent)

async function serve (t: Test, made: Certificates, more: { tlsClientCa?: string, tlsRequired?: boolean } = {}) {
  const tls = tlsFrom({ tlsCertificate: made.server, tlsKey: made.serverKey, tlsClientCa: '', tlsRequired: false, ...more })
  const listener = await listenTcp({ listen: { host: '127.0.0.1', port: 0 }, route: path => path === '/echo' ? echo : undefined, tls, log: silent })
  t.teardown(() => listener.close())
  return `${listener.address}/echo`
}

/** Outcome of one call on a connection of its own. */
async function call (url: string, tls: ConnectionOptions | undefined, text = 'x'): Promise<string> {
  const caller = tcpCaller(url, { limits, connections: 1, callsPerConnection: 1, tls, contentType: MSBINSESSION1, connectTimeoutMs: 20_000 })
  const result = await caller.call({ v: 1, soap: 12, enc: 'utf8', action: 'urn:Echo', otherHeaders: [], prefixesInScope: [], body: Buffer.from(`<n>${text}</n>`) }, { timeoutMs: 30_000, signal: new AbortController().signal })
  await caller.close()
  return result.outcome
}

t.test('tcp with TLS: what the settings ask for is what a client needs, and no client certificate but one of the authority opens the door', async t => {
  const made = certificates(t)
  const ca = readFileSync(made.authority)
  const trusting: ConnectionOptions = { ca, checkServerIdentity: () => undefined }
  const showing = (pfx: string): ConnectionOptions => ({ ...trusting, pfx: readFileSync(pfx), passphrase: '' })

  const open = await serve(t, made)
  t.equal(await call(open, trusting), 'answered')
  t.equal(await call(open, trusting, 'y'.repeat(1_000_000)), 'answered')
  t.equal(await call(open, undefined), 'answered', 'in clear too, while TLS is not required')
  t.equal(await call(open, { checkServerIdentity: () => undefined }), 'unreachable', 'a client that does not trust the authority')

  const closed = await serve(t, made, { tlsClientCa: made.authority, tlsRequired: true })
  t.equal(await call(closed, showing(made.client)), 'answered')
  t.equal(await call(closed, showing(made.client), 'y'.repeat(1_000_000)), 'answered')
  t.equal(await call(closed, showing(made.stranger)), 'unreachable', 'signed by itself')
  t.equal(await call(closed, trusting), 'unreachable', 'no certificate')
  t.equal(await call(closed, undefined), 'unreachable', 'no TLS')
})
