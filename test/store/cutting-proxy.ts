import { createServer, connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'

/** A Unix-socket relay in front of Redis that can lose an answer, or hold back what was sent, at a moment that the test picks. */
export interface CuttingProxy {
  readonly url: string
  /** The next answer is thrown away and its connection with it: Redis has done the work, and nobody was told. */
  loseNextAnswer (): void
  /** From now on, what comes over the connections open now is kept from Redis, and the client's side of them is cut after the next write. */
  holdNextRequest (): void
  /** Hands Redis what was held; resolves with its answer to it. */
  release (): Promise<string>
}

export async function cuttingProxy (t: { teardown: (end: () => unknown) => unknown }, target: string): Promise<CuttingProxy> {
  const path = `${target}.proxy`
  const open = new Set<Socket>()
  let isLosing = false
  let isHolding = false
  let held: { upstream: Socket, bytes: Buffer } | undefined
  const server = createServer(client => {
    const upstream = connect(target)
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => open.delete(socket))
    }
    client.on('data', bytes => {
      if (isHolding) {
        isHolding = false
        held = { upstream, bytes }
        client.destroy()
      } else {
        upstream.write(bytes)
      }
    })
    client.on('close', () => { if (held?.upstream !== upstream) upstream.destroy() })
    upstream.on('data', bytes => {
      if (isLosing) {
        isLosing = false
        client.destroy()
        upstream.destroy()
      } else if (!client.destroyed) {
        client.write(bytes)
      }
    })
    upstream.on('close', () => client.destroy())
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
    loseNextAnswer: () => { isLosing = true },
    holdNextRequest: () => { isHolding = true },
    async release () {
      if (held === undefined) throw new Error('nothing is held')
      const { upstream, bytes } = held
      upstream.write(bytes)
      const [answer] = await once(upstream, 'data') as [Buffer]
      upstream.destroy()
      return answer.toString()
    }
  }
}
