/**
 * The address that a caller uses, which is the one that it is told: in WSDLs, in the addresses of sessions and brokers, in REST. What a caller says of it
 * comes back to that caller only, and never as anything but a host name or an address.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { BlockList, isIP, isIPv6, type Socket } from 'node:net'
import { SoaError } from '../../core/errors.ts'
import { callerOf } from '../introduction.ts'

export interface AddressSettings {
  /** HOST[:PORT], or a URL; empty: what the caller used. */
  readonly advertise: string
  /** Addresses and networks, separated by commas; `loopback` stands for 127.0.0.0/8 and ::1. */
  readonly trustedProxies: string
}

/** What is looked at of a request; Fastify's have it too. */
export interface Addressed { readonly headers: IncomingHttpHeaders, readonly socket: Socket, readonly url?: string | undefined }

/** Scheme, host, port and prefix, without a trailing slash: `https://grid.example:8443/soa`. */
export type BaseUrlOf = (request: Addressed) => string

const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[([0-9A-Fa-f:.]{2,45})\])(?::(\d{1,5}))?$/
const PREFIX = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)+\/?$/

/** A name or an address with an optional port, as a Host header has it. */
function isAuthority (text: string): boolean {
  const [whole, ipv6, port] = HOST.exec(text) ?? []
  return whole !== undefined && (ipv6 === undefined || isIPv6(ipv6)) && (port === undefined || (Number(port) > 0 && Number(port) < 65_536))
}

/**
 * Who is told which address: what `advertise` says; else what the caller used, as trusted proxies tell it (Forwarded [RFC 7239], X-Forwarded-Proto, -Host,
 * -Port and -Prefix) or as its Host header has it; else the address that it reached. Refuses settings with `Broker_InvalidConfiguration`.
 */
export function baseUrls ({ advertise, trustedProxies }: AddressSettings): BaseUrlOf {
  const told = readAdvertise(advertise)
  const isTrusted = trustOf(trustedProxies)
  return ({ headers, socket, url = '' }) => {
    const { peer, reached, isOurs } = callerOf(socket)
    // A process of ours has made the address by these same rules, and says it in the proxies' words.
    if (!isOurs && told !== undefined) return told.isWhole ? told.url : `${told.url}:${reached?.slice(reached.lastIndexOf(':') + 1) ?? '80'}`
    const forwarded = isOurs || (peer !== undefined && isTrusted(peer)) ? forwardedBy(headers, isTrusted) : {}
    // The target's own host counts more than the header's. [RFC 9112] 3.2.2
    const asked = [/^https?:\/\/([^/?#]*)/i.exec(url)?.[1], headers.host].find(host => host !== undefined && isAuthority(host))
    const scheme = forwarded.scheme ?? 'http'
    const host = forwarded.host ?? asked ?? reached ?? 'localhost'
    return `${scheme}://${withPort(host, scheme, forwarded.port)}${forwarded.prefix ?? ''}`
  }
}

/** Headers that say this address to another process of ours. */
export function forwardedHeaders (baseUrl: string): string[] {
  const [, scheme = 'http', host = '', prefix = ''] = /^(\w+):\/\/([^/]*)(.*)$/.exec(baseUrl) ?? []
  return ['x-forwarded-proto', scheme, 'x-forwarded-host', host, ...prefix === '' ? [] : ['x-forwarded-prefix', prefix]]
}

/** The headers that address making looks at; whoever passes a request on takes them out and says its own. */
export const FORWARDED_HEADERS: ReadonlySet<string> = new Set(['forwarded', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-prefix'])

function readAdvertise (advertise: string): { url: string, isWhole: boolean } | undefined {
  if (advertise === '') return undefined
  const [, url, host = '', prefix = ''] = /^(https?:\/\/)?([^/]*)(\/.*)?$/i.exec(advertise) ?? []
  if (!isAuthority(host) || (prefix !== '' && prefix !== '/' && (url === undefined || !PREFIX.test(prefix)))) {
    throw new SoaError('Broker_InvalidConfiguration', { setting: 'advertise', why: `HOST, HOST:PORT or a URL, not ${JSON.stringify(advertise.slice(0, 100))}` })
  }
  return { url: `${url?.toLowerCase() ?? 'http://'}${host}${prefix.replace(/\/$/, '')}`, isWhole: url !== undefined || /:\d+$/.test(host) }
}

function trustOf (trustedProxies: string): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of trustedProxies.split(',').map(part => part.trim()).filter(part => part !== '')) {
    const refuse = (): never => { throw new SoaError('Broker_InvalidConfiguration', { setting: 'trustedProxies', why: `addresses and networks like 10.0.0.0/8 or ::1, separated by commas, not ${JSON.stringify(entry.slice(0, 100))}` }) }
    if (entry === 'loopback') {
      list.addSubnet('127.0.0.0', 8, 'ipv4')
      list.addAddress('::1', 'ipv6')
      continue
    }
    const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? refuse()
    const version = isIP(address)
    const most = version === 6 ? 128 : 32
    if (version === 0 || Number(bits ?? 0) > most) refuse()
    list.addSubnet(address, Number(bits ?? most), version === 6 ? 'ipv6' : 'ipv4')
  }
  return address => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

interface Forwarded { readonly scheme?: string | undefined, readonly host?: string | undefined, readonly port?: string | undefined, readonly prefix?: string | undefined }

/**
 * What the outermost trusted proxy saw. Each proxy adds its own to the right, so we count from there: as long as the one before is trusted too, its word
 * counts. Anything further left a stranger may have written.
 */
function forwardedBy (headers: IncomingHttpHeaders, isTrusted: (address: string) => boolean): Forwarded {
  const list = (name: string): string[] => headers[name] === undefined ? [] : String(headers[name]).split(',').map(part => part.trim())
  const hops = hopsIn(list('x-forwarded-for'), isTrusted)
  // Most proxies write a list of senders, but one value of all else: then the one there is.
  const seen = (name: string, isGood: (value: string) => boolean): string | undefined => {
    const values = list(name)
    const value = values[Math.max(0, values.length - hops)] ?? ''
    return isGood(value) ? value : undefined
  }
  const standard = elementsOf(String(headers.forwarded ?? ''))
  const element = standard[Math.max(0, standard.length - hopsIn(standard.map(({ for: sender = '' }) => sender), isTrusted))]
  const scheme = [element?.proto, seen('x-forwarded-proto', isScheme)].find(value => value !== undefined && isScheme(value))?.toLowerCase()
  return {
    scheme: scheme === 'wss' ? 'https' : scheme === 'ws' ? 'http' : scheme,
    host: [element?.host, seen('x-forwarded-host', isAuthority)].find(value => value !== undefined && isAuthority(value)),
    port: seen('x-forwarded-port', value => /^\d{1,5}$/.test(value) && Number(value) > 0 && Number(value) < 65_536),
    prefix: seen('x-forwarded-prefix', value => PREFIX.test(value) && value.length < 1000)?.replace(/\/$/, '')
  }
}

const isScheme = (value: string): boolean => /^(?:https?|wss?)$/i.test(value)

/** The proxy that we talk to, and those behind it that are trusted as well. */
function hopsIn (senders: readonly string[], isTrusted: (address: string) => boolean): number {
  let hops = 1
  for (const sender of [...senders].reverse()) {
    // [::1]:80, 10.0.0.1:80, or the address alone
    const address = isIP(sender) !== 0 ? sender : /^\[([^\]]*)\]/.exec(sender)?.[1] ?? sender.replace(/:\d+$/, '')
    if (!isTrusted(address)) break
    hops++
  }
  return hops
}

/** The port that a proxy tells stands where the host has none of its own. */
function withPort (host: string, scheme: string, port: string | undefined): string {
  const isUsual = port === undefined || Number(port) === (scheme === 'https' ? 443 : 80)
  return isUsual || /:\d+$/.test(host) ? host : `${host}:${Number(port)}`
}

interface ForwardedElement { readonly for?: string, readonly host?: string, readonly proto?: string }

const PAIR = /\s*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w:[\]-]+)|"((?:[^"\\]|\\.)*)"))?\s*(;|,|$)/y

/** Elements of a Forwarded header, the nearest proxy's last; none when it is not well-formed. Values without quotes may hold a port, as many write it. [RFC 7239] 4 */
function elementsOf (header: string): ForwardedElement[] {
  const elements: Array<Record<string, string>> = [{}]
  if (header.length > 8192) return []
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < header.length) {
    const found = PAIR.exec(header)
    if (found === null) return []
    const [, name, token, quoted, end] = found
    if (name !== undefined) (elements[elements.length - 1] as Record<string, string>)[name.toLowerCase()] = token ?? (quoted ?? '').replace(/\\(.)/g, '$1')
    if (end === ',') elements.push({})
  }
  return header.trim() === '' ? [] : elements
}
