/** Where a caller finds this cluster. */
export interface Told {
  /** `http://grid.example:8080`, without a trailing slash. */
  readonly http: string
  /** `net.tcp://grid.example:9091`; undefined where net.tcp is not served. */
  readonly netTcp: string | undefined
}

/** The same for the ports that are listened on, which are known last: 0 until then, and for what is not served. */
export interface ListeningPorts { http: number, netTcp: number, brokerLauncher: number }

/** Host and port of a base URL: `http://[::1]:8080/soa` → `[::1]`. */
const hostOf = (baseUrl: string): string => /^[\w.]+:\/\/(\[[^\]]*\]|[^:/]*)/.exec(baseUrl)?.[1] ?? 'localhost'

/** Makes addresses on the host that the caller used, whichever way it came; `advertise` (HOST, HOST:PORT or a URL) says another one. */
export function addresses ({ advertise }: { advertise: string }, ports: ListeningPorts): (baseUrl: string) => Told & { readonly brokerLauncher: string | undefined } {
  const overHttp = (host: string): string => {
    if (advertise === '') return `http://${host}:${ports.http}`
    if (advertise.includes('://')) return advertise.replace(/\/$/, '')
    return /:\d+$/.test(advertise) ? `http://${advertise}` : `http://${advertise}:${ports.http}`
  }
  return baseUrl => {
    // A base URL of HTTP is made by the same rules already (transport/http/base-url.ts).
    const http = baseUrl.startsWith('net.tcp:') ? overHttp(hostOf(baseUrl)) : baseUrl
    const at = (port: number): string | undefined => port === 0 ? undefined : `net.tcp://${hostOf(http)}:${port}`
    return { http, netTcp: at(ports.netTcp), brokerLauncher: at(ports.brokerLauncher) }
  }
}
