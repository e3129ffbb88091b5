import { isIP } from 'node:net'
import { SoaError } from '../core/errors.ts'

/** An address of this machine that no other machine reaches. */
export function isLoopback (host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '')
  return bare === 'localhost' || bare === '::1' || (isIP(bare) === 4 && bare.startsWith('127.')) || /^::ffff:127\./i.test(bare)
}

/** Until callers are asked who they are, only this machine may call, unless somebody says otherwise in so many words. Refuses with `refused`. */
export function refuseOpenAddress (host: string, isInsecure: boolean): void {
  if (isLoopback(host) || isInsecure) return
  throw new SoaError('refused', {
    why: `refused to listen on ${host === '' ? 'every address' : host}: nobody is asked who they are, so everyone who reaches that address could run your services; listen on 127.0.0.1, or say --insecure (SOA_INSECURE=true) on a network that you trust`,
  })
}

/** The address that a node's service hosts listen on is the one that brokers call, so it must name one machine. Refuses with `Broker_InvalidConfiguration`. */
export function refuseManyAddresses (host: string): void {
  const bare = host.replace(/^\[|\]$/g, '')
  const isOne = /^[\w.:-]+$/.test(bare) && bare !== '0.0.0.0' && !/^[0:]+$/.test(bare)
  if (!isOne) throw new SoaError('Broker_InvalidConfiguration', { setting: 'hostAddress', why: `brokers call it, so it is one address or name of this machine, not ${JSON.stringify(host.slice(0, 100))}` })
}

/** `[::1]:9089` → `::1` and 9089, as Node's listen wants them; port 0 picks a free one. Refuses with `Broker_InvalidConfiguration`. */
export function addressIn (setting: string, text: string): { host: string, port: number } {
  const [, ipv6, name, port = ''] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):(\d{1,5})$/.exec(text) ?? []
  const host = ipv6 ?? name
  if (host === undefined || Number(port) > 65_535) throw new SoaError('Broker_InvalidConfiguration', { setting, why: `HOST:PORT is expected (127.0.0.1:0, [::1]:9089), not ${JSON.stringify(text.slice(0, 100))}` })
  return { host, port: Number(port) }
}

/** How this machine is called among heads: the setting, else the host name. It is part of keys and of ids in paths. Refuses with `Broker_InvalidConfiguration`. */
export function machineName (setting: string, hostname: string): string {
  const name = setting === '' ? hostname : setting
  if (!/^[\w.-]{1,200}$/.test(name)) throw new SoaError('Broker_InvalidConfiguration', { setting: 'machine', why: `1 to 200 letters, digits, _ - and ., not ${JSON.stringify(name.slice(0, 100))}` })
  return name
}
