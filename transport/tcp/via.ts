/** The address that a client opened: what it called us, and what it wants. */
export interface Via {
  /** `net.tcp://grid.example:9091`, without a trailing slash. */
  readonly baseUrl: string
  /** Percent-encoded as it came, without query; at least `/`. */
  readonly path: string
}

/** A name or address with an optional port. Anything else would go into answers as it came. */
const VIA = /^net\.tcp:\/\/((?:[\w.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?)(\/[^?#]*)?/i

/** undefined: no net.tcp address. */
export function parseVia (via: string): Via | undefined {
  const [, authority, path] = VIA.exec(via) ?? []
  return authority === undefined ? undefined : { baseUrl: `net.tcp://${authority}`, path: path ?? '/' }
}
