import t, { type Test } from 'tap'
import { silent } from '../../core/log.ts'
import { checkDurable } from '../../store/redis-check.ts'
import { closeRedis, openRedis, type Redis } from '../../store/redis.ts'
import { needsRedis, startRedis } from '../redis-server.ts'
import { fault } from './store-promises.ts'

const connect = async (t: Test, url: string): Promise<Redis> => {
  const redis = await openRedis(url, { log: silent })
  t.teardown(() => closeRedis(redis))
  return redis
}

t.test('durable Redis: every setting that would lose messages is refused with its value and what to type', { ...needsRedis }, async t => {
  const redis = await connect(t, (await startRedis(t)).url)
  await checkDurable(redis, 'disk')
  await checkDurable(redis, 'process')
  await t.rejects(checkDurable(redis, 'replicas'), fault('refused', [/min-replicas-to-write is 0.*CONFIG SET min-replicas-to-write 1/]))
  await redis.config('SET', 'appendfsync', 'everysec')
  await checkDurable(redis, 'process')
  await t.rejects(checkDurable(redis, 'disk'), fault('refused', [/appendfsync is everysec.*CONFIG SET appendfsync always/]))
  await redis.config('SET', 'appendfsync', 'always')
  await redis.config('SET', 'no-appendfsync-on-rewrite', 'yes')
  await t.rejects(checkDurable(redis, 'disk'), fault('refused', [/no-appendfsync-on-rewrite is yes/]))
  await redis.config('SET', 'no-appendfsync-on-rewrite', 'no')
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
  for (const level of ['process', 'disk'] as const) await t.rejects(checkDurable(redis, level), fault('refused', [/maxmemory-policy is allkeys-lru, must be noeviction/]), level)
  await redis.config('SET', 'appendonly', 'no')
  await t.rejects(checkDurable(redis, 'process'), fault('refused', [/maxmemory-policy is allkeys-lru.*; appendonly is no, must be yes/]), 'all in one go')
})

t.test('durable Redis: where CONFIG is forbidden, INFO tells, and what nobody tells is refused', { ...needsRedis }, async t => {
  const server = await startRedis(t)
  const admin = await connect(t, server.url)
  await admin.acl('SETUSER', 'plain', 'on', '>secret', '~*', '+@all', '-config')
  const plain = await connect(t, `unix://plain:secret@localhost${server.path}`)
  await checkDurable(plain, 'process')
  await t.rejects(checkDurable(plain, 'disk'), fault('refused', [/appendfsync cannot be seen.*\+config\|get.*SOA_DURABILITY=process/]))
  await admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  await admin.config('SET', 'appendonly', 'no')
  await t.rejects(checkDurable(plain, 'process'), fault('refused', [/maxmemory-policy is volatile-ttl.*appendonly is no/]))
})
