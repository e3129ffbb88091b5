import type { Test } from 'tap'
import { DurableSession, type BrokerClient, type Session } from '../../client/index.ts'
import { eventually, type Cluster } from './cluster.ts'

export const REQUESTS = 5000
export const CLIENT_ID = 'five-thousand'

/** What request `i` says; no other request's text ends like it. */
export const inputOf = (i: number): string => `<${i}>`

export async function openSession (head: string): Promise<{ session: DurableSession, client: BrokerClient }> {
  const session = await DurableSession.create({ service: 'CcpEchoSvc', head })
  return { session, client: session.client(CLIENT_ID) }
}

/** Sends all of them, row numbers as user data. */
export const sendAll = (client: BrokerClient): Promise<string[]> => Promise.all(Array.from({ length: REQUESTS }, (_, i) => client.send('Echo', { input: inputOf(i) }, { userData: String(i) })))

/**
 * Waits until a tenth is processed, strikes, and shows that it was before nine tenths were.
 * @returns how many were processed when it struck.
 */
export async function inTheMiddle (t: Test, cluster: Cluster, sessionId: string, strike: () => Promise<unknown>): Promise<number> {
  const processed = await eventually('a tenth of the requests is processed', async () => {
    const { counters } = await cluster.session(sessionId)
    return counters.processed >= REQUESTS * 0.1 && counters.processed
  })
  t.ok(processed <= REQUESTS * 0.9, `struck when ${processed} of ${REQUESTS} were processed`)
  await strike()
  return processed
}

/** Reads to the end and shows that each request was answered once, and rightly. */
export async function readAll (t: Test, client: BrokerClient): Promise<void> {
  const times = new Map<number, number>()
  const wrong: string[] = []
  for await (const response of client.responses({ timeoutMs: 120_000 })) {
    const row = Number(response.userData)
    times.set(row, (times.get(row) ?? 0) + 1)
    if (response.fault) wrong.push(`${row}: ${response.fault.message}`)
    else if (!String((response.result() as { EchoResult?: unknown }).EchoResult).endsWith(inputOf(row))) wrong.push(`${row}: ${JSON.stringify(response.result())}`)
  }
  t.same(wrong.slice(0, 5), [], 'every response is right')
  t.equal(times.size, REQUESTS, `${REQUESTS} distinct responses`)
  t.same([...times].filter(([, n]) => n !== 1).slice(0, 5), [], 'none twice')
}

/** A session of 5,000 with something killed in the middle of it, from start to close. */
export async function survives (t: Test, cluster: Cluster, strike: (session: Session) => Promise<unknown>): Promise<void> {
  const { session, client } = await openSession(cluster.head)
  try {
    await sendAll(client)
    t.equal(await client.endRequests(), REQUESTS)
    await inTheMiddle(t, cluster, session.id, () => strike(session))
    await readAll(t, client)
    await session.close()
    t.same((await cluster.keys()).filter(key => key.includes(session.id)), [], 'no key of the session is left')
  } finally {
    await session.detach()
  }
}
