/** How fast net.tcp frames are taken out of what a socket brings, per second of processor time. `node dist/bench/framing.bench.js`; one JSON line per case. */
import { FrameDecoder } from '../wire/framing/decoder.ts'
import { preamble, PREAMBLE_END, sizedEnvelope } from '../wire/framing/encoder.ts'
import { MSBINSESSION1 } from '../wire/framing/records.ts'
import { perSecond } from './per-second.ts'

const opened = Buffer.concat([preamble({ via: 'net.tcp://localhost:9091/1/NetTcp', contentType: MSBINSESSION1 }), PREAMBLE_END])
for (const [name, bytes, chunkBytes] of [
  ['200 bytes, many in a chunk', 200, 65_536], ['200 bytes, one in a chunk', 200, 203], ['200 bytes, in pieces of 50', 200, 50], ['4 KB, many in a chunk', 4096, 65_536],
  ['1 MB, in chunks of 64 KB', 1_000_000, 65_536], ['1 MB, in pieces of 1 KB', 1_000_000, 1024]
] as const) {
  const envelope = sizedEnvelope(Buffer.alloc(bytes, 'x'))
  const count = Math.max(1, Math.floor(chunkBytes / envelope.length)) * 4
  const stream = Buffer.concat(Array.from({ length: count }, () => envelope))
  const chunks: Buffer[] = []
  for (let at = 0; at < stream.length; at += chunkBytes) chunks.push(stream.subarray(at, at + chunkBytes))
  const decoder = new FrameDecoder({ of: 'client', maxMessageSize: 4_194_304 }).push(opened)
  while (decoder.next() !== undefined);
  const rate = perSecond(() => { for (const chunk of chunks) { decoder.push(chunk); while (decoder.next() !== undefined); } })
  console.log(JSON.stringify({ case: name, framesPerSecond: rate * count, mbs: Math.round(rate * stream.length / 1e6) }))
}
