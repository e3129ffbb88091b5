import type { IncomingMessage } from 'node:http'

/**
 * A server with an `upgrade` listener gives it every request that asks for one, whatever to. Java's client asks each server whether it speaks HTTP/2, and who does
 * not, answers as if nothing had been asked. [RFC 9110] 7.8
 */
export const isForWebSocket = (request: IncomingMessage): boolean => /(?:^|,)\s*websocket\s*(?:$|,)/i.test(request.headers.upgrade ?? '')

const UPGRADE = /^(?:upgrade|http2-settings)$/i

/**
 * The bytes of a request whose connection its server has let go of, for whoever reads the connection from here on: as they came, or without the wish for an upgrade.
 * @param head what had come behind the request's headers
 */
export function requestBytes ({ method, url, httpVersion, rawHeaders }: IncomingMessage, head: Buffer, { isUpgrade }: { isUpgrade: boolean }): Buffer {
  let lines = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i] as string, rawHeaders[i + 1] as string]
    if (isUpgrade) lines += `${name}: ${value}\r\n`
    else if (!UPGRADE.test(name)) lines += `${name}: ${/^connection$/i.test(name) ? value.split(',').filter(token => !UPGRADE.test(token.trim())).join(',') : value}\r\n`
  }
  return Buffer.concat([Buffer.from(`${lines}\r\n`, 'latin1'), head])
}
