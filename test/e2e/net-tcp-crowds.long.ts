import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { sleep, systemClock } from '../../core/clock.ts'
import { newMessageId } from '../../core/ids.ts'
import { Session } from '../../client/index.ts'
import { openTcp, type TcpChannel } from '../../transport/tcp/client-session.ts'
import { ANONYMOUS } from '../../transport/channel.ts'
import { preamble } from '../../wire/framing/encoder.ts'
import { MSBINSESSION1 } from '../../wire/framing/records.ts'
import { Cluster, eventually } from './cluster.ts'

/** Crowds at the net.tcp door: many that come back at once, many that say nothing, many that come and go. */
t.setTimeout(900_000)

const LOOPS = 10_000
const WARM_LOOPS = 2000
const AT_ONCE = 8
const SILENT = 5000
/** Of a listener and of a relay (transport/tcp): connections whose preamble is not complete. */
const MOST_PENDING = 1000
const SILENT_WITH_VIA = 500
const RETURNING = 2000
/** What a process may hold more after 10,000 sessions than after 2,000: 500 bytes a session. */
const MOST_GROWTH_BYTES = 4_000_000
const NEEDED_FILES = 12_000

const files = Number(/Max open files\s+\S+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
const skip = files < NEEDED_FILES ? `ulimit -Hn is ${files}, ${NEEDED_FILES} are needed` : false

const limits = { maxMessageSize: 65_536, maxHeaderBytes: 65_536, maxDepth: 64 }
const ACTION = 'http://tempuri.org/IEchoSvc/Echo'

/** A channel and one call at a time on it. */
async function open (url: string): Promise<{ channel: TcpChannel, call: (text: string) => Promise<string> }> {
  let answered: (action: string) => void = () => {}
  let broken: (error: Error) => void = () => {}
  const channel = await openTcp(url, { limits, connectTimeoutMs: 60_000, message: ({ envelope }) => answered(envelope.action), closed: reason => broken(reason) })
  return {
    channel,
    call: text => new Promise((resolve, reject) => {
      answered = resolve
      broken = reject
      channel.send({ envelope: { v: 1, soap: 12, enc: 'utf8', action: ACTION, messageId: newMessageId(), otherHeaders: [], prefixesInScope: [], body: Buffer.from(`<Echo xmlns="http://tempuri.org/"><input>${text}</input></Echo>`) }, replyTo: ANONYMOUS }).catch(reject)
    })
  }
}

function isEcho (action: string): void {
  if (action !== `${ACTION}Response`) throw new Error(`answered with ${action}`)
}

/** What a process holds once its garbage is collected (heap-probe.ts), and its open files. */
async function held (dir: string, pid: number): Promise<{ bytes: number, files: number }> {
  const path = join(dir, `${pid}.json`)
  rmSync(path, { force: true })
  process.kill(pid, 'SIGUSR2')
  const { bytes } = await eventually(`process ${pid} says what it holds`, () => { try { return JSON.parse(readFileSync(path, 'utf8')) as { bytes: number } } catch { return undefined } })
  return { bytes, files: readdirSync(`/proc/${pid}/fd`).length }
}

/** A grid whose processes can be asked what they hold, and an interactive session of the echo service. */
async function start (t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'soa-crowds-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const before = process.env.NODE_OPTIONS
  process.env.NODE_OPTIONS = `${before ?? ''} --import=${new URL('./heap-probe.js', import.meta.url).href}?dir=${dir}`.trim()
  const cluster = await Cluster.start(t, { cores: 1 }).finally(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS
    else process.env.NODE_OPTIONS = before
  })
  // What is traced has a bound of its own, which is to be reached before the first look.
  const session = await Session.create({ service: 'CcpEchoSvc', head: cluster.head, minUnits: 1, maxUnits: 1, settings: { traceMessages: 1000 } })
  t.teardown(() => session.close())
  const url = `${cluster.netTcp}/${session.id}/NetTcp`
  const first = await open(url)
  await first.call('the host is there')
  await first.channel.close()
  const pids = { worker: await cluster.pid('worker', session.id), head: await cluster.pid('head') }
  return { cluster, url, pids, hold: (role: keyof typeof pids) => held(dir, pids[role]) }
}

t.test(`net.tcp: ${LOOPS} sessions opened, called and closed leave heap and files of worker and head as they were`, { skip }, async t => {
  const { url, hold } = await start(t)
  let next = 0
  const loop = async (until: number): Promise<void> => {
    while (next < until) {
      const n = next++
      const { channel, call } = await open(url)
      isEcho(await call(`loop ${n}`))
      await channel.close()
    }
  }
  const before: Record<string, { bytes: number, files: number }> = {}
  for (const [until, isLast] of [[WARM_LOOPS, false], [LOOPS, true]] as const) {
    await Promise.all(Array.from({ length: AT_ONCE }, () => loop(until)))
    for (const role of ['worker', 'head'] as const) {
      if (!isLast) { before[role] = await hold(role); continue }
      const [then, now] = [before[role] as { bytes: number, files: number }, await hold(role)]
      t.comment(`${role}: ${then.bytes} → ${now.bytes} bytes, ${then.files} → ${now.files} files`)
      t.ok(now.bytes - then.bytes < MOST_GROWTH_BYTES, `${role}: ${now.bytes - then.bytes} bytes more`)
      t.ok(now.files <= then.files + AT_ONCE, `${role}: ${now.files - then.files} files more`)
    }
  }
})

t.test(`net.tcp: of ${SILENT} sockets that say nothing ${MOST_PENDING} are kept, those that speak are served, and the memory comes back`, { skip }, async t => {
  const { cluster, url, hold } = await start(t)
  const before = await hold('head')
  const { hostname, port } = new URL(cluster.netTcp.replace('net.tcp', 'http'))
  const sockets: Socket[] = []
  t.teardown(() => { for (const socket of sockets) socket.destroy() })
  let isOver = 0
  for (let n = 0; n < SILENT; n++) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {}).once('close', () => { isOver++ }).resume()
    sockets.push(socket)
    await once(socket, 'connect')
    if (n % 2 === 0) socket.write(Buffer.of(0, 1, 0, 1)) // the beginning of a preamble
  }
  await eventually('all but those that may wait have been closed', () => isOver >= SILENT - MOST_PENDING)
  t.equal(isOver, SILENT - MOST_PENDING, 'the oldest ones went')
  const meanwhile = await hold('head')
  t.ok(meanwhile.files - before.files <= MOST_PENDING + 10, `${meanwhile.files - before.files} files more`)
  for (let n = 0; n < 20; n++) {
    const { channel, call } = await open(url)
    isEcho(await call('in the crowd'))
    await channel.close()
  }
  // Those that say for whom they come are the worker's to bear, and fall silent there.
  isOver = 0
  const half = preamble({ via: url, contentType: MSBINSESSION1 })
  for (let n = 0; n < MOST_PENDING + SILENT_WITH_VIA; n++) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {}).once('close', () => { isOver++ }).resume()
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write(half)
  }
  await eventually('the worker has closed all but those that may wait', () => isOver >= SILENT_WITH_VIA)
  const { channel, call } = await open(url)
  isEcho(await call('in the crowd'))
  await channel.close()
  for (const socket of sockets) socket.destroy()
  const after = await eventually('the head has let go of them', async () => { const now = await hold('head'); return now.files <= before.files + 10 && now })
  t.comment(`head: ${before.bytes} → ${meanwhile.bytes} → ${after.bytes} bytes, ${before.files} → ${meanwhile.files} → ${after.files} files`)
  t.ok(after.bytes - before.bytes < MOST_GROWTH_BYTES, `${after.bytes - before.bytes} bytes more`)
})

t.test(`net.tcp: ${RETURNING} clients whose head is killed come back together, and all are served`, { skip }, async t => {
  const { cluster, url } = await start(t)
  /** As a patient client does it: whoever is not served tries again, later each time and not when all others do. */
  const patiently = async (): Promise<Awaited<ReturnType<typeof open>>> => {
    for (let wait = 50, tries = 0; ; wait = Math.min(wait * 2, 2000), tries++) {
      try {
        const one = await open(url)
        isEcho(await one.call('here'))
        return one
      } catch (error) {
        if (tries >= 30) throw error
        await sleep(systemClock, wait * (0.5 + Math.random()))
      }
    }
  }
  const crowd: Array<Awaited<ReturnType<typeof open>>> = []
  for (let n = 0; n < RETURNING; n += 100) crowd.push(...await Promise.all(Array.from({ length: 100 }, patiently)))
  await cluster.kill('head')
  await Promise.all(crowd.map(({ channel }) => channel.signal.aborted || once(channel.signal, 'abort')))
  const began = Date.now()
  const again = await Promise.all(crowd.map(patiently))
  t.comment(`${again.length} were served within ${Date.now() - began} ms of the kill`)
  const answers = await Promise.all(again.map(({ call }) => call('again')))
  t.equal(answers.filter(action => action === `${ACTION}Response`).length, RETURNING)
  await Promise.all(again.map(({ channel }) => channel.close()))
})
