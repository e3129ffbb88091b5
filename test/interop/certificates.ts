/** Certificates for tests, made by openssl: an authority, and by it a server's for localhost and a client's; and one that nobody has signed. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Paths of PEM files, and of PFX files without a password for those who want key and certificate in one. */
export interface Certificates {
  readonly authority: string
  readonly server: string
  readonly serverKey: string
  readonly client: string
  /** Of a client, but signed by itself. */
  readonly stranger: string
}

const openssl = (...args: string[]): void => { execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] }) }

/** In a folder of their own, which the test's end removes. Valid for two days. */
export function certificates (t: Test): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'soa-certificates-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = (name: string): string => join(folder, name)
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', file('authority.key'), '-out', file('authority.pem'), '-days', '2', '-subj', '/CN=authority of a test', '-addext', 'keyUsage=keyCertSign')
  const signed = (name: string, subject: string, ...extensions: string[]): void => {
    openssl('req', '-x509', ...key, '-keyout', file(`${name}.key`), '-out', file(`${name}.pem`), '-days', '2', '-subj', subject, '-CA', file('authority.pem'), '-CAkey', file('authority.key'), ...extensions.flatMap(one => ['-addext', one]))
  }
  signed('server', '/CN=localhost', 'subjectAltName=DNS:localhost,IP:127.0.0.1', 'extendedKeyUsage=serverAuth', 'basicConstraints=critical,CA:FALSE')
  signed('client', '/CN=a client', 'extendedKeyUsage=clientAuth', 'basicConstraints=critical,CA:FALSE')
  openssl('req', '-x509', ...key, '-keyout', file('stranger.key'), '-out', file('stranger.pem'), '-days', '2', '-subj', '/CN=a client', '-addext', 'extendedKeyUsage=clientAuth')
  const pfx = (name: string): string => {
    openssl('pkcs12', '-export', '-inkey', file(`${name}.key`), '-in', file(`${name}.pem`), '-out', file(`${name}.pfx`), '-passout', 'pass:')
    return file(`${name}.pfx`)
  }
  return { authority: file('authority.pem'), server: file('server.pem'), serverKey: file('server.key'), client: pfx('client'), stranger: pfx('stranger') }
}
