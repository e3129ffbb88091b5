import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Server } from 'node:net'

/** Half of the 16,384 bytes that .NET lets wait unread on a net.tcp connection, and half of that again. */
export const SEGMENT_BYTES = 4096

/** IPPROTO_TCP and TCP_MAXSEG, on every Linux. The listening socket is the program's third descriptor. */
const WAYS: ReadonlyArray<readonly [program: string, flag: string, code: string]> = [
  ['perl', '-e', `open(my $s, "+<&=", 3) && setsockopt($s, 6, 2, pack("i", ${SEGMENT_BYTES})) or exit 1`],
  ['python3', '-c', `import socket; socket.socket(fileno=3).setsockopt(6, 2, ${SEGMENT_BYTES})`],
]
const LIMIT_MS = 30_000

/**
 * Connections of this listener send in segments that .NET's clients have room for. On a machine's own interface segments are as large as 65,483 bytes, .NET takes
 * its receive buffer down to 8 KiB once a connection is open, and Linux then holds back every segment that does not fit until a timer of 200 ms has run out:
 * 80 kB/s. On a network segments are smaller than this anyway. Node cannot set the option, so a small program does, on the same socket; where there is
 * none all works, but slowly for .NET on this machine (docs/adr/0018).
 * @returns whether it could be set; resolves when the small program is gone
 */
export async function limitSegments (listener: Server): Promise<boolean> {
  const fd = (listener as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle?.fd
  if (process.platform !== 'linux' || fd === undefined || fd < 0) return false
  for (const [program, flag, code] of WAYS) {
    const child = spawn(program, [flag, code], { stdio: ['ignore', 'ignore', 'ignore', fd], timeout: LIMIT_MS, killSignal: 'SIGKILL' })
    const [status] = await once(child, 'close').catch(() => [undefined]) // not installed
    if (status === 0) return true
  }
  return false
}
