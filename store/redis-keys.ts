/**
 * Names of the keys in Redis. Every key begins with a hash tag, and all keys of one script share a tag, so that Redis Cluster can follow:
 *
 *     {soa}:…              directories that all processes share: sessions, workers, services, placement
 *     {soa:s:1730412}:…    one session, written by its broker only
 *
 * One session:
 *
 *     {…}:meta             hash   token, number (of owners so far), writes (moves done), bytes, purgedTotal, purgedProcessed, purgedFaulted, letters (dead letters ever), lettersDropped
 *     {…}:clients          set    client ids that have data
 *     {…}:state            hash   the custom broker's durable map (store/lua/state.lua)
 *     {…}:dead             zset   the dead letters, in the order in which they died (store/lua/letters.lua)
 *     {…}:letters          hash   number of a dead letter → packed letter
 *     {…}:client:<id>      hash   display, appended, gaps, committed, committedSeq, eom, batch, responses, faults, released, bytes
 *     {…}:requests:<id>    hash   seq → packed request without a response (store/pack.ts)
 *     {…}:responses:<id>   hash   place → packed response
 */
export const DEFAULT_PREFIX = 'soa'

/** The hash tag of what all processes share. */
export const sharedTag = (prefix: string): string => `{${tagText(prefix)}}`

/** A key of what all processes share, e.g. `sharedKey('soa', 'placement', 'nodes')`. */
export const sharedKey = (prefix: string, ...parts: string[]): string => [sharedTag(prefix), ...parts].join(':')

/** The hash tag of one session; everything under `<tag>:` is the session's. */
export const sessionTag = (prefix: string, sessionId: string): string => `{${tagText(prefix)}:s:${tagText(sessionId)}}`

/** A key of one session, e.g. `sessionKey('soa', '42', 'state')`. */
export const sessionKey = (prefix: string, sessionId: string, ...parts: string[]): string => [sessionTag(prefix, sessionId), ...parts].join(':')

export interface ClientKeys { readonly client: string, readonly requests: string, readonly responses: string }

export interface SessionKeys {
  readonly meta: string
  readonly clients: string
  readonly state: string
  readonly dead: string
  readonly letters: string
  of (clientId: string): ClientKeys
}

export function sessionKeys (prefix: string, sessionId: string): SessionKeys {
  const tag = sessionTag(prefix, sessionId)
  return {
    meta: `${tag}:meta`,
    clients: `${tag}:clients`,
    state: `${tag}:state`,
    dead: `${tag}:dead`,
    letters: `${tag}:letters`,
    of: clientId => ({ client: `${tag}:client:${clientId}`, requests: `${tag}:requests:${clientId}`, responses: `${tag}:responses:${clientId}` })
  }
}

// A brace inside the tag would end it early, and the keys of one script would no longer share a slot.
function tagText (text: string): string {
  if (text === '' || /[{}]/.test(text)) throw new TypeError(`"${text}" cannot be part of a Redis hash tag: it is empty or has a brace`)
  return text
}
