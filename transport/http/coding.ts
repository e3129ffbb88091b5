import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable, pipeline } from 'node:stream'
import { constants, createBrotliDecompress, createGzip, createInflate, createUnzip } from 'node:zlib'

/** Content codings of bodies that are taken, as Accept-Encoding names them. [RFC 9110] 8.4.1, [RFC 7932] */
export const TAKEN_CODINGS = 'gzip, deflate, br'

/** The coding of a message, by its Content-Encoding header; undefined: one that is not taken, or several on top of each other. */
export function codingOf (header: string | undefined): 'identity' | 'gzip' | 'deflate' | 'br' | undefined {
  const codings = (header ?? '').split(',').map(coding => coding.trim().toLowerCase()).filter(coding => coding !== '' && coding !== 'identity')
  switch (codings.length > 1 ? '' : codings[0]) {
    case undefined: return 'identity'
    case 'gzip': case 'x-gzip': return 'gzip'
    case 'deflate': return 'deflate'
    case 'br': return 'br'
  }
}

/** What a body says, as it comes: in chunks of 64 KiB at most, so that whoever counts them stops a small body that unpacks to a large one in time. */
export function unpacked (body: Readable, coding: 'identity' | 'gzip' | 'deflate' | 'br'): Readable {
  switch (coding) {
    case 'identity': return body
    case 'gzip': return body.pipe(createUnzip())
    case 'deflate': return body.pipe(createInflate())
    case 'br': return body.pipe(createBrotliDecompress())
  }
}

/** Whether Accept-Encoding takes gzip: named, or meant by `*`, and not with q=0. [RFC 9110] 12.5.3 */
export function acceptsGzip (header: string | undefined): boolean {
  if (header === undefined) return false
  let any = false
  for (const part of header.split(',')) {
    const [coding = '', ...parameters] = part.split(';').map(piece => piece.trim().toLowerCase())
    const accepted = !parameters.some(parameter => /^q\s*=\s*0(?:\.0{0,3})?$/.test(parameter))
    if (coding === 'gzip' || coding === 'x-gzip') return accepted
    if (coding === '*') any = accepted
  }
  return any
}

/** Fast rather than small: what is saved after level 1 costs more time than the network takes for it. */
const LEVEL = constants.Z_BEST_SPEED
/** Up to this size a body is copied into one piece, which takes less time than writing several. */
const ONE_PIECE_BYTES = 65_536

/**
 * Writes a whole answer. From `gzipFromBytes` on (0: never) it is packed for callers that accept that, piece by piece as the caller reads; what has this size
 * says that it varies, packed or not.
 */
export function sendBody (request: IncomingMessage, response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, parts: readonly Uint8Array[], gzipFromBytes: number): void {
  const size = parts.reduce((sum, part) => sum + part.length, 0)
  const mayPack = gzipFromBytes > 0 && size >= gzipFromBytes
  // HTTP/1.0 has no chunks: packed, its connection would have to end with each answer.
  if (mayPack && acceptsGzip(request.headers['accept-encoding']) && request.httpVersion !== '1.0') {
    response.writeHead(status, { ...headers, 'content-encoding': 'gzip', vary: 'accept-encoding' })
    pipeline(Readable.from(parts, { objectMode: false }), createGzip({ level: LEVEL }), response, () => { /* a caller that left is heard of by the response's close */ })
    return
  }
  response.writeHead(status, { ...headers, 'content-length': size, ...mayPack ? { vary: 'accept-encoding' } : {} })
  if (size <= ONE_PIECE_BYTES) response.end(parts.length === 1 ? parts[0] : Buffer.concat(parts, size))
  else {
    response.cork()
    for (const part of parts) response.write(part)
    response.end()
  }
}
