import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DurableSession, Session } from '../../client/index.ts'
import { Cluster, eventually } from './cluster.ts'

const SESSIONS = 50
/** Every fifth session belongs to a client that is killed; the session must notice by itself. */
const KILLED_EVERY = 5

/** BullMQ's counter, events and settings of a queue: made with its first job, one of each whatever the queue has seen. */
const QUEUE_ITSELF = /:bull\}:\w+:(id|events|meta|stalled-check|marker)$/

/** What a grid holds, without the names that differ from one process to the next. */
async function holdings (cluster: Cluster): Promise<{ processes: string[], sockets: string[], keys: string[] }> {
  const plain = (text: string): string => text.replace(/[0-9a-f]{10,}/g, '*').replace(/\d{3,}/g, '#')
  const family = cluster.look().map(one => plain(one.commandLine.replace(/^.*?(entry|main)\.js/, '$1.js')))
  const keys = (await cluster.keys()).filter(key => !QUEUE_ITSELF.test(key))
  return { processes: family.sort(), sockets: cluster.sockets().map(plain).sort(), keys: keys.map(plain).sort() }
}

/** What is in `after` and was not in `before`, one for one. Less than before is no leak: a pool that grew for a burst shrinks again. */
function more (before: readonly string[], after: readonly string[]): string[] {
  const left = [...before]
  return after.filter(one => {
    const at = left.indexOf(one)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

async function useOnce (cluster: Cluster, Kind: typeof Session, i: number): Promise<void> {
  const session = await Kind.create({ service: 'CcpEchoSvc', head: cluster.head, maxUnits: 1 })
  const client = session.client(`c${i}`)
  await Promise.all([0, 1, 2].map(j => client.send('Echo', { input: `${i}.${j}` }, { userData: String(j) })))
  await client.endRequests()
  let n = 0
  for await (const response of client.responses()) { n++; response.result() }
  if (n !== 3) throw new Error(`session ${i}: ${n} responses`)
  await session.close()
}

/** The session of a killed client, once it has ended by itself. */
async function destroyEnded (cluster: Cluster, id: string): Promise<string> {
  const state = await eventually(`session ${id} ends`, async () => {
    const { state } = await cluster.session(id)
    return state !== 'Running' && state !== 'Starting' && state
  })
  const { status } = await fetch(`${cluster.head}/api/v1/sessions/${id}`, { method: 'DELETE' })
  return `${state}, ${status}`
}

/** A client that opens an interactive session with short idle times, sends, and is killed. */
async function useAndDie (cluster: Cluster): Promise<string> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('abandoner.js', import.meta.url)), cluster.head], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(([code]) => { throw new Error(`the client ended with ${String(code)} before it was killed`) })
  ended.catch(() => {}) // heard only until it has said its session
  const [sessionId] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended]) as [string]
  child.kill('SIGKILL')
  await once(child, 'exit')
  return sessionId
}

t.setTimeout(600_000)

t.test(`nothing left: ${SESSIONS} sessions opened and closed, some by killed clients`, async t => {
  const cluster = await Cluster.start(t)
  // What is made for the first session of a kind and kept (a warm host, a worker, the queues' own keys) is there before.
  await useOnce(cluster, Session, -1)
  await useOnce(cluster, DurableSession, -2)
  await destroyEnded(cluster, await useAndDie(cluster))
  const before = await holdings(cluster)

  const abandoned: string[] = []
  const work = Array.from({ length: SESSIONS }, (_, i) => async () => {
    if (i % KILLED_EVERY === 0) abandoned.push(await useAndDie(cluster))
    else await useOnce(cluster, i % 2 === 0 ? Session : DurableSession, i)
  })
  await Promise.all(Array.from({ length: 5 }, async () => { for (let next = work.shift(); next; next = work.shift()) await next() }))
  t.equal(abandoned.length, SESSIONS / KILLED_EVERY)

  await t.test('the sessions of killed clients end by themselves', async t => {
    for (const id of abandoned) t.equal(await destroyEnded(cluster, id), 'Finished, 204')
  })

  let left: unknown
  await eventually('processes, sockets and keys are as before', async () => {
    const after = await holdings(cluster)
    left = { processes: more(before.processes, after.processes), sockets: more(before.sockets, after.sockets), keys: more(before.keys, after.keys) }
    return Object.values(left as object).flat().length === 0
  }, 30_000).catch(() => {}) // what is left is shown by the comparison
  t.same(left, { processes: [], sockets: [], keys: [] })
})
