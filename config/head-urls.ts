/** Where a head listens when nobody says otherwise (the setting `head`). */
export const DEFAULT_HEAD = 'http://127.0.0.1:8080'

/** Heads that one setting may name. */
export const MOST_HEADS = 32

/**
 * `http://a:8080, http://b:8080/soa/` → the URLs without trailing slashes, in the order in which they are tried, each once.
 *
 * @param refuse makes the error of what is thrown; `why` names the entry and what it should be
 */
export function headUrls (said: string, refuse: (why: string) => Error): string[] {
  const entries = said.split(',').map(entry => entry.trim())
  if (entries.length > MOST_HEADS) throw refuse(`at most ${MOST_HEADS} heads are tried, not ${entries.length}`)
  return [...new Set(entries.map((entry, i) => {
    const place = entries.length === 1 ? '' : `, entry ${i + 1} of ${entries.length}`
    if (!isHeadUrl(entry)) throw refuse(`a URL such as ${DEFAULT_HEAD} is expected, or several with commas between them, not ${JSON.stringify(entry.slice(0, 200))}${place}`)
    return entry.replace(/\/+$/, '')
  }))]
}

function isHeadUrl (entry: string): boolean {
  // An empty query or fragment is none to URL, but would swallow the path that is put behind it; a ; is a list of somebody who meant a comma.
  if (!/^https?:\/\/[^/?#;\\][^?#;\\]*$/i.test(entry) || !URL.canParse(entry)) return false
  const { username, password, port } = new URL(entry)
  return username === '' && password === '' && port !== '0'
}
