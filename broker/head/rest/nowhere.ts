import { nearNames } from '../../../core/near-names.ts'
import type { Problem } from '../../contract.ts'

const PREFIX = '/api/v1'
/** What a head answers beside the API's routes, and what of a session's is answered by its broker. */
const OTHER_PATHS = ['/SessionLauncher', '/BrokerLauncher', '/:id/Http', '/:id/Http/Controller', '/:id/NetHttp', '/:id/NetHttp/Controller']
const MOST_NAMED = 3
const SHOWN_CHARACTERS = 200

export interface KnownRoute { readonly method: string, readonly url: string }
/** `allow`: what the path takes instead; empty: there is no such path. */
export interface Nowhere { readonly problem: Problem, readonly allow: readonly string[] }

/** What is where nothing is for this method: 405 with what the path takes, or 404 with paths that are near, a part shorter or longer where no name is. */
export function nowhere (method: string, url: string, routes: readonly KnownRoute[]): Nowhere {
  const parts = partsOf(url.replace(/\?.*$/s, ''))
  const bare = parts[0] === 'api' ? parts.slice(/^v\d+$/i.test(parts[1] ?? '') ? 2 : 1) : parts
  const found = new Map<string, { methods: Set<string>, wrong: number }>()
  const allow = new Set<string>()
  for (const { method, url } of [...routes, ...OTHER_PATHS.map(url => ({ method: 'POST', url }))]) {
    const isOfApi = url.startsWith(`${PREFIX}/`)
    if (parts[0] === 'api' && !isOfApi) continue
    const pattern = partsOf(isOfApi ? url.slice(PREFIX.length) : url)
    const wrong = wrongParts(bare, pattern)
    if (wrong === undefined) continue
    const path = `${isOfApi ? PREFIX : ''}/${pattern.map((part, i) => part.startsWith(':') ? bare[i] ?? `{${part.slice(1)}}` : part).join('/')}`
    if (path === `/${parts.join('/')}`) allow.add(method)
    if (method === 'HEAD' || method === 'OPTIONS') continue
    const there = found.get(path) ?? { methods: new Set(), wrong }
    there.methods.add(method)
    found.set(path, there)
  }
  if (allow.size > 0) return { allow: [...allow].sort(), problem: { title: 'Method Not Allowed', status: 405, detail: `${url.slice(0, SHOWN_CHARACTERS)} takes ${[...allow].filter(method => method !== 'HEAD').sort().join(' and ')}, not ${method}` } }
  const least = Math.min(...[...found.values()].map(({ wrong }) => wrong))
  const near = [...found].filter(([, { wrong }]) => wrong === least).slice(0, MOST_NAMED).map(([path, { methods }]) => `${listed(methods)} ${path.slice(0, SHOWN_CHARACTERS)}`)
  const hint = near.length === 0 ? '' : `; near it ${near.length === 1 ? 'is' : 'are'} ${near.join(', ')}`
  return { allow: [], problem: { title: 'Not Found', status: 404, detail: `nothing is at ${method} ${url.slice(0, SHOWN_CHARACTERS)}${hint}; ${PREFIX}/openapi.json has what is` } }
}

/** A part too many, or one that lacks, is more wrong than any misspelt ones. */
const OTHER_LENGTH = 100

/** Parts of the path that differ from the route's, each of which may have been meant; undefined: it is another path. */
function wrongParts (path: readonly string[], pattern: readonly string[]): number | undefined {
  const isOfLength = path.length === pattern.length
  if (!isOfLength && (Math.abs(path.length - pattern.length) > 1 || path.length === 0 || pattern[0] === undefined || pattern[0].startsWith(':'))) return undefined
  let wrong = isOfLength ? 0 : OTHER_LENGTH
  for (const [i, part] of pattern.slice(0, path.length).entries()) {
    if (part.startsWith(':') || part === path[i]) continue
    if (nearNames(path[i] as string, [part]).length === 0) return undefined
    wrong++
  }
  return wrong
}

const partsOf = (path: string): string[] => path.split('/').filter(part => part !== '')
const listed = (methods: ReadonlySet<string>): string => [...methods].sort().join('/')
