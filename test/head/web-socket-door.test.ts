import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { silent } from '../../core/log.ts'
import { FrontDoor, type FrontDoorNeeds } from '../../broker/head/front-door.ts'
import type { DuplexChannel } from '../../transport/channel.ts'
import { closeHttp, listenHttp, serveWebSockets, soapServer } from '../../transport/http/listener.ts'

const limits = { maxMessageSize: 65_536, maxHeaderBytes: 65_536, maxDepth: 64 }
const headers = { 'soap-content-type': 'application/soap+msbinsession1' }

t.test('front door: a WebSocket on a connection that began with something else goes to its session\'s worker, which is told whose it is', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'soa-door-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const channels: DuplexChannel[] = []
  const worker = join(dir, 'worker.sock')
  const listener = await listenHttp({
    listen: { path: worker }, takesIntroductions: true, log: silent, route: () => undefined, webSockets: { route: path => path === '/7/NetHttp' ? { limits, open (channel) { channels.push(channel); return { message: async () => {} } } } : undefined }
  })
  t.teardown(() => listener.close())
  const raising = { locate: async (id: string) => { if (id !== '7') throw new Error('nobody serves it'); return { socket: worker } } } as unknown as FrontDoorNeeds['raising']
  const door = new FrontDoor({ raising, forward: async () => {}, limits, log: silent })
  const server = soapServer({ route: () => undefined, log: silent })
  serveWebSockets(server, { route: () => undefined, fallback: (request, socket, head) => door.takeWebSocket(request, socket, head), log: silent })
  let connections = 0
  server.on('connection', () => { connections++ })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => closeHttp(server))
  const at = `127.0.0.1:${(server.address() as AddressInfo).port}`

  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const [first] = await once(get(`http://${at}/elsewhere`, { agent }), 'response') as [IncomingMessage]
  await once(first.resume(), 'end')
  const socket = new WebSocket(`ws://${at}/7/NetHttp`, 'soap', { agent, headers })
  await once(socket, 'open')
  t.equal(connections, 1, 'the same connection')
  t.match(channels, [{ path: '/7/NetHttp', baseUrl: `http://${at}` }])
  socket.close()
  await once(socket, 'close')

  const unknown = new WebSocket(`ws://${at}/8/NetHttp`, 'soap', { headers })
  unknown.on('error', () => { /* its answer says why */ })
  const [, refusal] = await once(unknown, 'unexpected-response') as [unknown, IncomingMessage]
  t.equal(refusal.statusCode, 404)
  refusal.resume()
})
