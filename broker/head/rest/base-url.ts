import type { IncomingHttpHeaders } from 'node:http'
import { SoaError } from '../../../core/errors.ts'

/** A name or address with an optional port, as a Host header has it. Anything else would go into an answer as it came. */
const AUTHORITY = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * Scheme, host, port and prefix that a caller is told to use, without a trailing slash: what `--advertise` says; else what the caller used,
 * through a proxy (X-Forwarded-Proto, -Host, -Prefix) or not; else where this head listens. All of it comes back to the caller only.
 */
export function baseUrlOf (headers: IncomingHttpHeaders, told: { advertise: string, listening: string }): string {
  if (told.advertise !== '') return `http://${told.advertise}`
  const first = (name: string): string => String(headers[name] ?? '').split(',', 1)[0]!.trim()
  const proto = first('x-forwarded-proto').toLowerCase() === 'https' ? 'https' : 'http'
  const prefix = /^(?:\/[\w.~-]+)+\/?$/.test(first('x-forwarded-prefix')) ? first('x-forwarded-prefix').replace(/\/$/, '') : ''
  for (const host of [first('x-forwarded-host'), headers.host ?? '']) if (AUTHORITY.test(host)) return `${proto}://${host}${prefix}`
  return `${told.listening}${prefix}`
}

/** HOST[:PORT] of `--advertise`, with the port that the head listens on when it says none. */
export function advertised (advertise: string, port: number): string {
  if (advertise === '') return ''
  if (!AUTHORITY.test(advertise)) throw new SoaError('Broker_InvalidConfiguration', { setting: 'advertise', why: `HOST or HOST:PORT, not ${JSON.stringify(advertise.slice(0, 100))}` })
  return /:\d+$/.test(advertise) ? advertise : `${advertise}:${port}`
}
