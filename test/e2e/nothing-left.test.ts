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

/** What a grid holds, without the names that differ from one process to the next. */
async function holdings (cluster: Cluster): Promise<{ processes: string[], sockets: string[], keys: string[] }> {
  const plain = (text: string): string => text.replace(/[0-9a-f]{10,}/g, '*').replace(/\d{3,}/g, '#')
  const family = cluster.look().map(one => plain(one.commandLine.replace(/^.*?(entry|main)\.js/, '$1.js')))
  return { processes: family.sort(), sockets: cluster.sockets().map(plain).sort(), keys: (await cluster.keys()).map(plain).sort() }
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

/** A client that opens an interactive session with short idle times, sends, and is killed. */
async function useAndDie (cluster: Cluster): Promise<string> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('abandoner.js', import.meta.url)), cluster.head], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [sessionId] = await once(createInterface({ input: child.stdout }), 'line') as [string]
  child.kill('SIGKILL')
  await once(child, 'exit')
  return sessionId
}

t.setTimeout(600_000)

t.test(`nothing left: ${SESSIONS} sessions opened and closed, some by killed clients`, async t => {
  const cluster = await Cluster.start(t)
  await useOnce(cluster, Session, -1) // what is started with the first session and kept (a warm host, a worker) is there before
  await useOnce(cluster, DurableSession, -2)
  const before = await holdings(cluster)

  const abandoned: string[] = []
  const work = Array.from({ length: SESSIONS }, (_, i) => async () => {
    if (i % KILLED_EVERY === 0) abandoned.push(await useAndDie(cluster))
    else await useOnce(cluster, i % 2 === 0 ? Session : DurableSession, i)
  })
  await Promise.all(Array.from({ length: 5 }, async () => { for (let next = work.shift(); next; next = work.shift()) await next() }))
  t.equal(abandoned.length, SESSIONS / KILLED_EVERY)

  await t.test('the sessions of killed clients end by themselves', async t => {
    for (const id of abandoned) {
      const state = await eventually(`session ${id} ends`, async () => {
        const { state } = await cluster.session(id)
        return state !== 'Running' && state !== 'Starting' && state
      })
      t.equal(state, 'Finished')
      const gone = await fetch(`${cluster.head}/api/v1/sessions/${id}`, { method: 'DELETE' })
      t.equal(gone.status, 204)
    }
  })

  let after = await holdings(cluster)
  await eventually('processes, sockets and keys are as before', async () => {
    after = await holdings(cluster)
    return JSON.stringify(after) === JSON.stringify(before)
  }, 30_000).catch(() => {}) // what differs is shown by the comparison
  t.same(after, before)
})
