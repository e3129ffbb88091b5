import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { limitSegments, SEGMENT_BYTES } from '../../transport/tcp/segment-size.ts'

/** Largest segment that this end of a connection sends; undefined where nothing can ask. */
function segmentOf (socket: object): number | undefined {
  const { fd } = (socket as { _handle: { fd: number } })._handle
  const { status, stdout } = spawnSync('perl', ['-e', 'open(my $s, "+<&=", 3) or exit 1; print unpack("i", getsockopt($s, 6, 2))'], { stdio: ['ignore', 'pipe', 'ignore', fd] })
  return status === 0 ? Number(stdout) : undefined
}

t.test('segment size: connections of a listener send no larger segments than .NET has room for', { skip: spawnSync('perl', ['-v']).status === 0 ? false : 'perl is not installed' }, async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.ok(await limitSegments(server))
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [served] = await once(server, 'connection')
  await once(client, 'connect')
  t.ok((segmentOf(served) ?? Infinity) <= SEGMENT_BYTES)
  t.ok((segmentOf(client) ?? Infinity) <= SEGMENT_BYTES, 'the other way too')
  client.destroy()
  server.close()
  await once(server, 'close')
  t.notOk(await limitSegments(server), 'a listener that is closed has no socket')
})
