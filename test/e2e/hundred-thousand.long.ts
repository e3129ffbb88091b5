import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { Pool } from 'undici'
import { asset } from '../../core/assets.ts'
import { DurableSession } from '../../client/index.ts'
import { SOAP11, SOAP12, WSA } from '../../wire/soap/envelope.ts'
import { registration, servicesFolder } from '../interop/services.ts'
import { Cluster, eventually, type Role } from './cluster.ts'

/** 100,000 calls in rounds: four of five are answered in the same exchange, the others stored, flushed and pulled by a client that is then forgotten. */
const ROUNDS = 10
const DIRECT = 8000
const STORED = 2000
const IN_FLIGHT = 16
/** The first look, when pools, caches and compiled code are there. */
const WARM_ROUNDS = 2
/** What a process may hold more after 100,000 calls than after 20,000, when its garbage is collected. 50 bytes a call would be 4 MB. */
const MOST_GROWTH_BYTES = 4_000_000

t.setTimeout(600_000)

t.test('100,000 calls, in the same exchange and stored: the heap of worker, host, head and node is flat', async t => {
  const dir = mkdtempSync(join(tmpdir(), 'soa-heap-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const probe = `--import=${new URL('./heap-probe.js', import.meta.url).href}?dir=${dir}`
  const before = process.env.NODE_OPTIONS
  process.env.NODE_OPTIONS = `${before ?? ''} ${probe}`.trim()
  const services = servicesFolder(t, {
    Echo: {
      'echo.mjs': 'export default { Echo: ({ input }) => ({ EchoResult: input }), EchoData () {}, GenerateLoad () {} }',
      'Echo.wsdl': readFileSync(asset('examples/services/CcpEchoSvc/CcpEchoSvc.wsdl'), 'utf8'),
      'Echo.config': registration(`<service assembly="echo.mjs" contract="IEchoSvc" maxConcurrentCalls="8"><environmentVariables><add name="NODE_OPTIONS" value="${probe}"/></environmentVariables></service>`)
    }
  })
  const cluster = await Cluster.start(t, { services, cores: 1 }).finally(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS
    else process.env.NODE_OPTIONS = before
  })
  await using session = await DurableSession.create({ service: 'Echo', head: cluster.head, minUnits: 1, maxUnits: 1 })
  const { origin, pathname } = new URL(session.endpoint)
  const pool = new Pool(origin, { connections: IN_FLIGHT, pipelining: 1 })
  t.teardown(() => pool.destroy())

  const action = 'http://tempuri.org/IEchoSvc/Echo'
  const body = (n: number): string => `<s:Body><Echo xmlns="http://tempuri.org/"><input>${n}</input></Echo></s:Body></s:Envelope>`
  const call = async (n: number): Promise<void> => {
    const is11 = n % 2 === 0
    const answer = await pool.request({
      method: 'POST',
      path: pathname,
      headers: is11 ? { 'content-type': 'text/xml; charset=utf-8', soapaction: `"${action}"` } : { 'content-type': `application/soap+xml; charset=utf-8; action="${action}"` },
      body: is11
        ? `<s:Envelope xmlns:s="${SOAP11}">${body(n)}`
        : `<s:Envelope xmlns:s="${SOAP12}"><s:Header><a:Action xmlns:a="${WSA}">${action}</a:Action><a:MessageID xmlns:a="${WSA}">urn:uuid:${n}</a:MessageID></s:Header>${body(n)}`
    })
    const text = await answer.body.text()
    if (answer.statusCode !== 200 || !text.includes(`EchoResult>${n}<`)) throw new Error(`call ${n}: ${answer.statusCode} ${text}`)
  }
  const round = async (number: number): Promise<void> => {
    let next = number * DIRECT
    const end = next + DIRECT
    const direct = Array.from({ length: IN_FLIGHT }, async () => { while (next < end) await call(next++) })
    const client = session.client(`round-${number}`)
    for (let n = 0; n < STORED; n += 500) await Promise.all(Array.from({ length: 500 }, (_, i) => client.send('Echo', { input: `s${n + i}` }, { userData: String(n + i) })))
    await client.endRequests()
    let right = 0
    for await (const response of client.responses()) if ((response.result() as { EchoResult: string }).EchoResult === `s${response.userData}`) right++
    await client.purge()
    await Promise.all(direct)
    if (right !== STORED) throw new Error(`${right} of ${STORED} responses in round ${number}`)
  }

  const roles: readonly Role[] = ['worker', 'host', 'head', 'node']
  const pids = new Map<Role, number>()
  for (const role of roles) pids.set(role, await cluster.pid(role, session.id))
  const look = async (): Promise<Map<Role, number>> => {
    const held = new Map<Role, number>()
    for (const [role, pid] of pids) {
      const path = join(dir, `${pid}.json`)
      rmSync(path, { force: true })
      process.kill(pid, 'SIGUSR2')
      await eventually(`the ${role} says what it holds`, () => existsSync(path))
      held.set(role, (JSON.parse(readFileSync(path, 'utf8')) as { bytes: number }).bytes)
    }
    return held
  }

  for (let n = 0; n < WARM_ROUNDS; n++) await round(n)
  const first = await look()
  for (let n = WARM_ROUNDS; n < ROUNDS; n++) await round(n)
  const last = await look()
  for (const role of roles) t.equal(await cluster.pid(role, session.id), pids.get(role), `the ${role} is the same process`)
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(1)
  for (const role of roles) {
    const from = first.get(role) ?? NaN
    const to = last.get(role) ?? NaN
    t.ok(to - from < MOST_GROWTH_BYTES, `${role}: ${mb(from)} MB after ${WARM_ROUNDS * (DIRECT + STORED)} calls, ${mb(to)} MB after ${ROUNDS * (DIRECT + STORED)}`)
  }
  t.same((await cluster.session(session.id)).counters?.faulted, 0)
})
