import { createServer, connect, type AddressInfo } from 'node:net'
import { isIP } from 'node:net'
import { sleep, type Clock } from '../core/clock.ts'

const FIRST_POLL_MS = 5
const LONGEST_POLL_MS = 200
const TRIES = 50

/** Ports for hosts of this node. A port that was handed out is not handed out again before it is given back: between our close and the host's bind it looks free. */
export class Ports {
  readonly #host: string
  readonly #taken = new Set<number>()

  constructor (host: string) { this.#host = host }

  async take (): Promise<number> {
    for (let i = 0; i < TRIES; i++) {
      const port = await freePort(this.#host)
      if (this.#taken.has(port)) continue
      this.#taken.add(port)
      return port
    }
    throw new Error(`no free port on ${this.#host} after ${TRIES} tries`)
  }

  giveBack (port: number): void { this.#taken.delete(port) }
}

function freePort (host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/** HPC Pack's port of a task by its first core ([broker-behaviour] 7.3). */
export const hpcPort = (firstCore: number): number => firstCore < 100 ? 9100 + firstCore : 9300 + 2 * (firstCore - 100)

/** And that of its controller. */
export const hpcControllerPort = (firstCore: number): number => firstCore < 100 ? 9200 + firstCore : 9301 + 2 * (firstCore - 100)

/** Resolves when something accepts connections there, rejects when the signal aborts. The pauses grow from 5 to 200 ms. */
export async function accepting (host: string, port: number, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_POLL_MS; ; pause = Math.min(pause * 1.5, LONGEST_POLL_MS)) {
    if (await accepts(host, port, signal)) return
    await sleep(clock, pause, signal)
  }
}

function accepts (host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) { reject(signal.reason); return }
    // From another loopback address: from the same one, our own end may get the very port that we knock at, and TCP then connects us with ourselves.
    const socket = connect({ host, port, ...(isIP(host) === 4 && host.startsWith('127.') ? { localAddress: '127.0.0.2' } : {}) })
    const done = (settle: () => void): void => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      settle()
    }
    const abort = (): void => done(() => reject(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    socket.once('connect', () => done(() => resolve(socket.localPort !== port || socket.localAddress !== socket.remoteAddress)))
    socket.once('error', () => done(() => resolve(false)))
  })
}
