import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { SoaError } from '../../core/errors.ts'
import type { TlsOptions } from './served-connection.ts'

export interface TlsSettings {
  /** PEM file of the certificate, with its chain; empty: no TLS over net.tcp. */
  readonly tlsCertificate: string
  /** PEM file of its private key; empty: it is in the same file. */
  readonly tlsKey: string
  /** PEM file of the authorities that sign clients' certificates; empty: clients show none. */
  readonly tlsClientCa: string
  /** Sessions without TLS are refused. */
  readonly tlsRequired: boolean
}

/** TLS over net.tcp as the settings say; undefined: none. Throws `Broker_InvalidConfiguration` that names the setting whose file is of no use. */
export function tlsFrom ({ tlsCertificate, tlsKey, tlsClientCa, tlsRequired }: TlsSettings): TlsOptions | undefined {
  if (tlsCertificate === '') {
    if (tlsRequired) throw new SoaError('Broker_InvalidConfiguration', { setting: 'tlsRequired', why: 'a certificate (tlsCertificate) is needed first' })
    return undefined
  }
  const read = (setting: string, path: string): Buffer => {
    try {
      return readFileSync(path)
    } catch (error) {
      throw new SoaError('Broker_InvalidConfiguration', { setting, why: `${path}: ${(error as Error).message}` }, { cause: error })
    }
  }
  const cert = read('tlsCertificate', tlsCertificate)
  const key = tlsKey === '' ? cert : read('tlsKey', tlsKey)
  const ca = tlsClientCa === '' ? undefined : read('tlsClientCa', tlsClientCa)
  try {
    return { context: createSecureContext({ cert, key, ...ca === undefined ? {} : { ca } }), clientCertificate: ca === undefined ? 'none' : 'required', isRequired: tlsRequired }
  } catch (error) {
    throw new SoaError('Broker_InvalidConfiguration', { setting: 'tlsCertificate', why: `${tlsCertificate}${tlsKey === '' ? '' : ` and ${tlsKey}`}: ${(error as Error).message}` }, { cause: error })
  }
}
