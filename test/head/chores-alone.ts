import { silent as log } from '../../core/log.ts'
import { systemClock as clock } from '../../core/clock.ts'
import { Chores } from '../../broker/head/chores.ts'
import { RedisTimers } from '../../store/redis-timers.ts'
import { closeRedis, openRedis } from '../../store/redis.ts'

// Chores in a process of their own, that ends on SIGTERM; prints a dot for each pass.
const url = process.argv[2] ?? ''
const redis = await openRedis(url, { log, timeoutMs: 1000 })
const connection = await openRedis(url, { log, kind: 'bullmq' })
const nothing = async (): Promise<void> => {}
const chores = new Chores({
  connection,
  prefix: 'alone',
  placement: { async pass () { process.stdout.write('.') } },
  sinceSweepMs: async () => 0,
  timers: new RedisTimers({ redis, prefix: 'alone', log }),
  sessions: { raise: nothing, suspend: nothing, purge: nothing },
  onTimer: {},
  clock,
  log
})
process.once('SIGTERM', () => {
  void chores.close().then(() => closeRedis(connection)).then(() => closeRedis(redis)).then(() => process.exit(0))
})
await chores.start()
