import { nearNames } from '../../../core/near-names.ts'
import type { Problem } from '../../contract.ts'

const PREFIX = '/api/v1'
/** What a head answers beside the API's routes, and what of a session's is answered by its broker. */
const OTHER_PATHS = ['/SessionLauncher', '/BrokerLauncher', '/:id/Http', '/:id/Http/Controller', '/:id/NetHttp', '/:id/NetHttp/Controller']
const MOST_NAMED = 3
const SHOWN_CHARACTERS = 200

export interface KnownRoute { readonly method: string, readonly url: string }

/** What is at a path where nothing is: says so by its name, with what there is by this path for other methods, or by paths that are near. */
export function nowhere (method: string, url: string, routes: readonly KnownRoute[]): Problem {
  const parts = partsOf(url.replace(/\?.*$/s, ''))
  const bare = parts[0] === 'api' ? parts.slice(/^v\d+$/i.test(parts[1] ?? '') ? 2 : 1) : parts
  const found = new Map<string, { methods: Set<string>, wrong: number }>()
  for (const { method, url } of [...routes, ...OTHER_PATHS.map(url => ({ method: 'POST', url }))]) {
    if (method === 'HEAD' || method === 'OPTIONS') continue
    const isOfApi = url.startsWith(`${PREFIX}/`)
    if (parts[0] === 'api' && !isOfApi) continue
    const pattern = partsOf(isOfApi ? url.slice(PREFIX.length) : url)
    const wrong = wrongParts(bare, pattern)
    if (wrong === undefined) continue
    const path = `${isOfApi ? PREFIX : ''}/${pattern.map((part, i) => part.startsWith(':') ? bare[i] : part).join('/')}`
    const there = found.get(path) ?? { methods: new Set(), wrong }
    there.methods.add(method)
    found.set(path, there)
  }
  const here = found.get(`/${parts.join('/')}`)
  const least = Math.min(...[...found.values()].map(({ wrong }) => wrong))
  const near = [...found].filter(([, { wrong }]) => wrong === least).slice(0, MOST_NAMED).map(([path, { methods }]) => `${listed(methods)} ${path.slice(0, SHOWN_CHARACTERS)}`)
  const hint = here !== undefined ? `; what is there takes ${listed(here.methods)}` : near.length === 0 ? '' : `; near it ${near.length === 1 ? 'is' : 'are'} ${near.join(', ')}`
  return { title: 'Not Found', status: 404, detail: `nothing is at ${method} ${url.slice(0, SHOWN_CHARACTERS)}${hint}; ${PREFIX}/openapi.json has what is` }
}

/** Parts of the path that differ from the route's, each of which may have been meant; undefined: it is another path. */
function wrongParts (path: readonly string[], pattern: readonly string[]): number | undefined {
  if (path.length !== pattern.length) return undefined
  let wrong = 0
  for (const [i, part] of pattern.entries()) {
    if (part.startsWith(':') || part === path[i]) continue
    if (nearNames(path[i] as string, [part]).length === 0) return undefined
    wrong++
  }
  return wrong
}

const partsOf = (path: string): string[] => path.split('/').filter(part => part !== '')
const listed = (methods: ReadonlySet<string>): string => [...methods].sort().join('/')
