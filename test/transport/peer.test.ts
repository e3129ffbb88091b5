import t from 'tap'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../core/log.ts'
import { dialPeer, peerListener } from '../../transport/peer.ts'

/** A worker's socket that says what it hears, and a head in front of it. */
async function peers (t: { teardown: (end: () => unknown) => unknown }): Promise<{ address: string, port: number }> {
  const dir = await mkdtemp(join(tmpdir(), 'soa-peer-'))
  const path = join(dir, 'w.sock')
  const open = new Set<Socket>()
  const worker = createServer({ allowHalfOpen: true }, socket => { open.add(socket); socket.on('error', () => {}); socket.pipe(socket) })
  worker.listen(path)
  await once(worker, 'listening')
  const listener = await peerListener({ host: '127.0.0.1', port: 0, secret: 's3cret', socketOf: async (name, kind) => name === 'w1' && kind === 'http' ? path : undefined, log: silent })
  t.teardown(async () => {
    await listener.close()
    for (const socket of open) socket.destroy()
    worker.close()
    await rm(dir, { recursive: true, force: true })
  })
  return { address: `127.0.0.1:${listener.port}`, port: listener.port }
}

const heard = async (socket: Socket): Promise<string> => {
  let text = ''
  for await (const part of socket) text += String(part)
  return text
}

t.test('peer: bytes go both ways, and each side ends its half', async t => {
  const socket = await dialPeer((await peers(t)).address, 's3cret', 'w1', 'http')
  const bytes = 'PROXY TCP4 192.0.2.7 10.0.0.1 51324 8080\r\n' + 'x'.repeat(300_000)
  socket.end(bytes)
  t.equal(await heard(socket), bytes, 'the introduction in front among them')
})

t.test('peer: who does not know the secret, asks for what is not there, or speaks something else gets the end of the connection', async t => {
  const { address, port } = await peers(t)
  const wrong = await dialPeer(address, 'guess', 'w1', 'http')
  wrong.write('GET / HTTP/1.1\r\n\r\n')
  t.equal(await heard(wrong).catch(() => ''), '')
  const unknown = await dialPeer(address, 's3cret', 'w2', 'http')
  t.equal(await heard(unknown).catch(() => ''), '')
  for (const said of ['GET / HTTP/1.1\r\n\r\n', 'x'.repeat(10_000)]) {
    const stranger = connect(port, '127.0.0.1')
    stranger.write(said)
    t.match(await heard(stranger).catch(() => 'SOA-PEER/1'), /^SOA-PEER\/1 ?[0-9a-f]*\s*$/, 'no more than the greeting')
  }
})

t.test('peer: somebody else at the address is told from a head', async t => {
  const other = createServer(socket => { socket.on('error', () => {}); socket.end('HTTP/1.1 400 Bad Request\r\n\r\n') })
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  await t.rejects(dialPeer(`127.0.0.1:${(other.address() as { port: number }).port}`, 's', 'w1', 'http'), { message: 'no head of ours answers there' })
  await t.rejects(dialPeer('127.0.0.1:1', 's', 'w1', 'http'), { code: 'ECONNREFUSED' })
})
