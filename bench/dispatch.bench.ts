/**
 * What a broker does with a request between socket and service host, without either: accept, store (memory), dispatch, settle, read. Requests a processor second, and
 * what a custom broker's hooks leave of it. `node dist/bench/dispatch.bench.js [requests]`
 *
 * Each kind runs three times, in turns, and the best counts: ratios within one run say more than any figure alone.
 */
import { CustomBroker, type CustomDispatcher, type CustomRequest, type CustomResponse, type CustomSession, type Verdict } from '../broker/custom-broker.ts'
import { openSession, never, FLUSH, request } from '../test/worker/open-session.ts'
import { systemClock } from '../core/clock.ts'

const REQUESTS = Number(process.argv[2] ?? 20_000)
const INSTANCES = 8

class OnlyNotices extends CustomBroker { override onTaskStateChanged (): void {} }
class Passes extends CustomBroker { override onRequest (): Verdict { return 'pass' } }
class LooksAtUserData extends CustomBroker { override onRequest ({ userData }: CustomRequest): Verdict { return { lane: userData === '1' ? 1 : 0 } } }
class Counts extends CustomBroker { override onRequest (_request: CustomRequest, { state }: CustomSession): Verdict { state.set('n', Number(state.get('n') ?? 0) + 1); return 'pass' } }
class Chooses extends CustomBroker { override chooseDispatcher (_request: CustomRequest, free: readonly CustomDispatcher[]): CustomDispatcher { return free[0] as CustomDispatcher } }
class Rewrites extends CustomBroker { override onResponse (_request: CustomRequest, { body }: CustomResponse) { return { body } } }

const KINDS: ReadonlyArray<[string, () => CustomBroker | undefined, Record<string, number>?]> = [
  ['stock', () => undefined],
  ['stock, traceMessages 0', () => undefined, { traceMessages: 0 }],
  ['custom, no hook on the path', () => new OnlyNotices()],
  ['onRequest passes', () => new Passes()],
  ['onRequest looks at UserData', () => new LooksAtUserData()],
  ['onRequest keeps state', () => new Counts()],
  ['chooseDispatcher', () => new Chooses()],
  ['onResponse makes the body anew', () => new Rewrites()],
]

async function run (custom: CustomBroker | undefined, settings: Record<string, number> = {}): Promise<number> {
  const { session } = await openSession({ durable: true, instances: INSTANCES, clock: systemClock, settings, ...(custom === undefined ? {} : { custom }) })
  const client = session.client('c')
  const before = process.cpuUsage()
  for (let n = 0; n < REQUESTS; n += 1000) await Promise.all(Array.from({ length: 1000 }, (_, i) => client.accept(request(n + i), -1, never)))
  await client.endRequests(REQUESTS, FLUSH)
  for (let read = 0; read < REQUESTS;) read += (await client.pull('Current', 500, '', { maxBytes: 1e9, signal: never, end: () => undefined })).responses.length
  const { user, system } = process.cpuUsage(before)
  await session.close('destroyed')
  return REQUESTS / ((user + system) / 1e6)
}

const best = new Map<string, number>()
for (let turn = 0; turn < 3; turn++) for (const [name, make, settings] of KINDS) best.set(name, Math.max(best.get(name) ?? 0, await run(make(), settings)))
const stock = best.get('stock') ?? NaN
for (const [name, rate] of best) console.log(`${name.padEnd(32)} ${Math.round(rate).toLocaleString('en').padStart(9)} requests/s  ${(rate / stock).toFixed(2)}`)
