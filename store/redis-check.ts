import { SoaError } from '../core/errors.ts'
import { failureOf } from './redis-call.ts'
import type { Level } from './redis-store.ts'
import type { Redis } from './redis.ts'

const OLDEST = 7

/**
 * Refuses to keep durable sessions in a Redis that would lose them: `missingHere` for a Redis that is too old, `refused` with every
 * setting that is wrong, its value, and what to do; `replicas` is how many each write waits for at that level. Settings are read by CONFIG GET, and where that is forbidden from INFO as far as it
 * tells them; a setting that cannot be seen at all is refused too, because the promise rests on it.
 */
export async function checkDurable (redis: Redis, level: Level, replicas = 1): Promise<void> {
  const info = await redis.info()
  const version = told(info, 'redis_version') ?? '0'
  if (Number.parseInt(version) < OLDEST) throw new SoaError('missingHere', { what: `Redis ${OLDEST}.0 or newer`, mend: `the one that answers is ${version}; install a newer redis-server or give the URL of one` })
  const config = await configOf(redis)
  const value = (setting: string, inInfo?: string): string | undefined => config?.get(setting) ?? (inInfo === undefined ? undefined : told(info, inInfo))
  const wrong: string[] = []
  const must = (setting: string, is: string | undefined, right: (value: string) => boolean, wanted: string, why: string): void => {
    if (is === undefined) {
      wrong.push(`${setting} cannot be seen (CONFIG GET is forbidden): allow it (ACL SETUSER … +config|get)${setting === 'appendfsync' ? ' or choose SOA_DURABILITY=process' : ''}`)
    } else if (!right(is)) {
      wrong.push(`${setting} is ${is}, must be ${wanted} (${why}): redis-cli CONFIG SET ${setting} ${wanted}, and the same in redis.conf`)
    }
  }
  must('maxmemory-policy', value('maxmemory-policy', 'maxmemory_policy'), is => is === 'noeviction', 'noeviction', 'a full Redis would throw stored messages away')
  must('appendonly', value('appendonly') ?? yesNo(told(info, 'aof_enabled')), is => is === 'yes', 'yes', 'a restart of Redis would lose what was acknowledged')
  if (level !== 'process') {
    must('appendfsync', value('appendfsync'), is => is === 'always', 'always', `level ${level}; for the last second at risk choose SOA_DURABILITY=process`)
    must('no-appendfsync-on-rewrite', value('no-appendfsync-on-rewrite') ?? 'no', is => is === 'no', 'no', `level ${level}: nothing would be synced while the log is rewritten`)
  }
  if (level === 'replicas') must('min-replicas-to-write', value('min-replicas-to-write'), is => Number(is) >= replicas, String(replicas), 'level replicas: a primary that was replaced unseen must take nothing more')
  if (wrong.length > 0) throw new SoaError('refused', { why: `this Redis cannot keep durable sessions: ${wrong.join('; ')}` })
}

/** undefined: we may not ask. */
async function configOf (redis: Redis): Promise<Map<string, string> | undefined> {
  try {
    const flat = await redis.config('GET', 'maxmemory-policy', 'appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'min-replicas-to-write') as string[]
    const config = new Map<string, string>()
    for (let i = 0; i < flat.length; i += 2) config.set(flat[i] ?? '', flat[i + 1] ?? '')
    return config
  } catch (error) {
    const { word, kind, error: err } = failureOf(error)
    // No permission, or the command was renamed away, as managed Redis does.
    if (kind === 'bad' && (word === 'NOPERM' || /unknown command/i.test(err.message))) return undefined
    throw error
  }
}

const told = (info: string, name: string): string | undefined => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
const yesNo = (flag: string | undefined): string | undefined => flag === undefined ? undefined : flag === '1' ? 'yes' : 'no'
