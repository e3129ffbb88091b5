import { SoaError } from '../core/errors.ts'
import { didYouMean, nearNames } from '../core/near-names.ts'
import { patiently } from './redis-call.ts'
import { sharedKey } from './redis-keys.ts'
import type { DirectoryNeeds } from './redis-sessions.ts'
import type { RegisteredService, ServiceRegistry } from './service-registry.ts'

/**
 * Registered services: one hash, `{soa}:services`, field `<name>/<version>` in lower case (`<name>/` for the unversioned one), value JSON.
 * Which version is taken when none is asked for: [broker-behaviour] 6.10.
 */
export class RedisServiceRegistry implements ServiceRegistry {
  readonly #needs: DirectoryNeeds
  readonly #key: string

  constructor (needs: DirectoryNeeds) {
    this.#needs = needs
    this.#key = sharedKey(needs.prefix, 'services')
  }

  async put (service: RegisteredService): Promise<void> {
    for (const [argument, part] of [['name', service.name], ['version', service.version ?? 'none']] as const) {
      if (part === '' || part.includes('/')) throw new SoaError('InvalidArgument', { argument, why: `"${part}" is empty or has a slash` })
    }
    await patiently(this.#needs, () => this.#needs.redis.hset(this.#key, fieldOf(service.name, service.version), JSON.stringify(service)))
  }

  async get (name: string, version?: string): Promise<RegisteredService> {
    const asked = await this.#read(fieldOf(name, version))
    if (asked !== undefined) return asked
    const fields = await patiently(this.#needs, () => this.#needs.redis.hkeys(this.#key))
    const versions = fields.filter(field => field.startsWith(fieldOf(name))).map(field => field.slice(field.indexOf('/') + 1))
    if (versions.length === 0) throw new SoaError('Service_NotFound', { serviceName: name }, { hint: await this.#hint(name, fields) })
    if (version !== undefined) throw new SoaError('ServiceVersion_NotFound', { serviceName: name, version }, { hint: versionsHint(versions) })
    const highest = versions.filter(isVersion).sort(compareVersions).at(-1)
    const found = highest === undefined ? undefined : await this.#read(fieldOf(name, highest))
    if (found === undefined) throw new SoaError('Service_NotFound', { serviceName: name })
    return found
  }

  /** The names that are near, as they were registered. */
  async #hint (name: string, fields: readonly string[]): Promise<string> {
    const known = new Map(fields.map(field => [field.slice(0, field.indexOf('/')), field]))
    const near = await Promise.all(nearNames(name, known.keys()).map(async key => (await this.#read(known.get(key) as string))?.name))
    return didYouMean(near.filter(found => found !== undefined))
  }

  async list (): Promise<RegisteredService[]> {
    const all = await patiently(this.#needs, () => this.#needs.redis.hgetall(this.#key))
    return Object.values(all).map(json => JSON.parse(json) as RegisteredService).sort((a, b) =>
      compareText(a.name.toLowerCase(), b.name.toLowerCase()) || compareVersions(a.version ?? '', b.version ?? ''))
  }

  async #read (field: string): Promise<RegisteredService | undefined> {
    const json = await patiently(this.#needs, () => this.#needs.redis.hget(this.#key, field))
    return json === null ? undefined : JSON.parse(json) as RegisteredService
  }
}

const fieldOf = (name: string, version = ''): string => `${name.toLowerCase()}/${version.toLowerCase()}`
const VERSIONS_NAMED = 5

function versionsHint (versions: readonly string[]): string {
  const named = [...versions].filter(version => version !== '').sort(compareVersions).reverse()
  const said = [...named.slice(0, VERSIONS_NAMED), ...(named.length > VERSIONS_NAMED ? [`${named.length - VERSIONS_NAMED} more`] : []), ...(versions.includes('') ? ['one without a version'] : [])]
  return `; it has ${said.length === 1 ? '' : `${said.slice(0, -1).join(', ')} and `}${said.at(-1) ?? ''}`
}

const compareText = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

/** Two to four numbers, as .NET's Version reads them; 0.0 is none ([broker-behaviour] 6.10). */
export function isVersion (text: string): boolean { return /^\d{1,9}(\.\d{1,9}){1,3}$/.test(text) && !/^0+\.0+$/.test(text) }

/** By number, part by part; a part that is missing is lower than 0, as in .NET (1.0 < 1.0.0). What is no version comes first, by its text. */
export function compareVersions (a: string, b: string): number {
  if (!isVersion(a) || !isVersion(b)) return Number(isVersion(a)) - Number(isVersion(b)) || compareText(a, b)
  const [one, two] = [a.split('.').map(Number), b.split('.').map(Number)]
  for (let i = 0; i < 4; i++) {
    const difference = (one[i] ?? -1) - (two[i] ?? -1)
    if (difference !== 0) return difference
  }
  return 0
}
