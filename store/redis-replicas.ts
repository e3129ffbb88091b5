import { NotYet } from './redis-call.ts'
import type { Redis } from './redis.ts'

/**
 * Waits until so many replicas have all that this connection has written, and with it all that anybody had written before: the stream to them is one. Short, and thrown as
 * NotYet to be asked again, because WAIT holds up everything behind it on the connection.
 */
export const replicasHave = (redis: Redis, wanted: number, waitMs: number): (() => Promise<void>) => async () => {
  const reached = await redis.wait(wanted, waitMs)
  if (reached < wanted) throw new NotYet(`${reached} of ${wanted} replicas have what was written (level replicas)`)
}
