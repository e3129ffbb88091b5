import { Lifetime } from '../../core/lifetime.ts'
import type { Logger } from '../../core/log.ts'
import type { DuplexEndpoint } from '../../transport/channel.ts'
import { tcpServer, type SoapOverTcp } from '../../transport/tcp/listener.ts'
import { tcpRelay } from '../../transport/tcp/relay.ts'
import { tlsFrom, type TlsSettings } from '../../transport/tcp/tls.ts'

export interface NetTcpDoorNeeds {
  host: string
  /** Ports to listen on, each for everything; the first is the one that clients are told for brokers. 0 picks a free one. */
  ports: readonly number[]
  /** Unix socket of the worker that serves the session of a path over net.tcp; undefined: it is of no session, or nobody serves it. */
  socketOf: (path: string) => Promise<string | undefined>
  /** What is served by the head itself. */
  launchers: (path: string) => DuplexEndpoint | undefined
  settings: TlsSettings & { maxReceivingBytes: number }
  log: Logger
}

export interface NetTcpDoor {
  /** As they were asked for, 0 replaced by what was picked. */
  readonly ports: readonly number[]
  close (): Promise<void>
}

/** Calls and channels that are open when the head stops get this long before their connections are cut. */
const GRACE_MS = 1000

/** The head's side of net.tcp: the via of each connection says who gets it. Brokers are at their workers, HPC Pack's launchers here. */
export async function netTcpDoor ({ host, ports, socketOf, launchers, settings, log }: NetTcpDoorNeeds): Promise<NetTcpDoor> {
  const life = new Lifetime()
  const options: SoapOverTcp = { route: launchers, tls: tlsFrom(settings), maxReceivingBytes: settings.maxReceivingBytes, log }
  const server = life.own(tcpServer(options), server => server.close(GRACE_MS))
  const picked: number[] = []
  try {
    for (const port of ports) {
      const relay = life.own(await tcpRelay({
        host,
        port,
        server,
        async decide (path) {
          if (launchers(path) !== undefined) return { here: true }
          const to = await socketOf(path)
          return to === undefined ? undefined : { to }
        },
        log,
      }), relay => relay.close(GRACE_MS))
      picked.push(relay.port)
    }
  } catch (error) {
    await life.close()
    throw error
  }
  return { ports: picked, close: () => life.close() }
}
