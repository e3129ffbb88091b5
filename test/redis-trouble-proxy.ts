import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'

/** pass · slow: each answer comes so many ms late · hole: bytes go nowhere, connections stay · cut: connections are broken, and new ones too */
export type Trouble = 'pass' | 'slow' | 'hole' | 'cut'

/** A Unix socket in front of Redis's that lies between it and all who use it. */
export interface TroubleProxy {
  readonly url: string
  set (trouble: Trouble, delayMs?: number): void
}

export async function troubleProxy (t: { teardown: (end: () => unknown) => unknown }, target: string): Promise<TroubleProxy> {
  const path = `${target}.between`
  const open = new Set<Socket>()
  let trouble: Trouble = 'pass'
  let delay = 0
  /** Bytes that a hole has swallowed make a connection useless: what came after it would be no protocol. */
  const spoiled = new Set<Socket>()
  const server = createServer(client => {
    if (trouble === 'cut') { client.destroy(); return }
    const upstream = connect(target)
    for (const [socket, other] of [[client, upstream], [upstream, client]] as const) {
      let last = Promise.resolve() // nothing overtakes what is late
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => { open.delete(socket); spoiled.delete(socket); other.destroy() })
      socket.on('data', bytes => {
        if (trouble === 'hole' || spoiled.has(socket)) { spoiled.add(socket); spoiled.add(other); return }
        const pass = (): void => { if (!other.destroyed && !spoiled.has(other)) other.write(bytes) }
        const isLate = socket === upstream && trouble === 'slow'
        const due = isLate ? new Promise<void>(resolve => { setTimeout(resolve, delay) }) : undefined
        last = Promise.all([last, due]).then(pass)
      })
    }
  })
  server.listen(path)
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of open) socket.destroy()
    server.close()
    await rm(path, { force: true })
  })
  return {
    url: `unix://${path}`,
    set (now, delayMs = 0) {
      trouble = now
      delay = delayMs
      if (now === 'cut') for (const socket of open) socket.destroy()
      // The other side of a partition comes back and knows nothing of these connections.
      if (now === 'pass') for (const socket of spoiled) socket.destroy()
    }
  }
}
