import { connect, createServer, isIP, type AddressInfo } from 'node:net'
import { sleep, type Clock } from '../core/clock.ts'

const FIRST_POLL_MS = 5
const LONGEST_POLL_MS = 200

/** A port where nobody listens now. Until somebody does, it may be given again. */
export function freePort (host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

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
