import type { Socket } from 'node:net'

/** Resolves when none is left; whoever owns them takes each out when it closes. Not events.once: that rejects when a socket breaks, and one that does is gone as well as any. */
export async function allClosed (sockets: ReadonlySet<Socket> | ReadonlyMap<Socket, unknown>): Promise<void> {
  while (sockets.size > 0) await new Promise(resolve => { ([...sockets.keys()][0] as Socket).once('close', resolve) })
}
