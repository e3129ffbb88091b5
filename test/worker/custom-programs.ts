import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock, type Clock } from '../../core/clock.ts'
import { silent } from '../../core/log.ts'
import { parseRegistration } from '../../config/service-registration.ts'
import { SETTINGS, type Settings } from '../../config/settings.ts'
import { openCustomBroker } from '../../broker/worker/custom-opening.ts'
import type { CustomNeeds } from '../../broker/worker/custom-setup.ts'
import { registration } from '../interop/services.ts'

const DEFAULTS = Object.fromEntries(Object.entries(SETTINGS).map(([name, { default: value }]) => [name, value])) as unknown as Settings

/** Serves `hooks`, functions of what is sent that give the answer; one that throws is answered with 500. Each test's program is this and its hooks. */
const SERVER = `
import { createServer } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
const url = new URL(process.env.SOA_LISTEN_URL)
const whole = async req => { let text = ''; for await (const part of req.setEncoding('utf8')) text += part; return text }
/** How often this program has been started, this time included. */
const starts = () => { let n = 0; try { n = Number(readFileSync('starts', 'utf8')) } catch {} writeFileSync('starts', String(++n)); return n }
const serve = (hooks, description = {}) => createServer(async (req, res) => {
  const text = await whole(req)
  const say = (status, body) => { const bytes = Buffer.from(body); res.writeHead(status, { 'content-length': bytes.length }).end(bytes) }
  try {
    if (req.method === 'GET') say(200, JSON.stringify({ name: 'test', hooks: Object.keys(hooks), ...description }))
    else { const answer = await hooks[req.url.slice(1)](JSON.parse(text), res); if (answer !== res) say(200, typeof answer === 'string' ? answer : JSON.stringify(answer ?? {})) }
  } catch (error) { console.error(error.message); say(500, error.message) }
}).listen(url.port, url.hostname)
`

export interface ProgramOptions {
  settings?: Partial<Settings>
  durable?: boolean
  env?: Readonly<Record<string, string | undefined>>
  /** Attributes and content of customBroker; default: the script, run by this Node. */
  element?: string
  clock?: Clock
}

/** Time as it is, but for waits of just so many ms: they are over when the test says so. */
export class HeldClock implements Clock {
  readonly #ms: number
  readonly #held = new Set<() => void>()

  constructor (ms: number) { this.#ms = ms }
  now (): number { return systemClock.now() }

  after (ms: number, call: () => void, options?: { unref?: boolean }): () => void {
    if (ms !== this.#ms) return systemClock.after(ms, call, options)
    this.#held.add(call)
    return () => { this.#held.delete(call) }
  }

  over (): void { for (const call of this.#held) call() }
}

/** The program, in a folder of its own that is gone when the test ends, registered as people register theirs, and started. */
export async function openScript (t: Test, script: string, options: ProgramOptions = {}): Promise<CustomNeeds & { folder: string }> {
  const { settings, durable = true, env = process.env, element, clock = systemClock } = options
  const folder = mkdtempSync(join(tmpdir(), 'soa-program-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'program.mjs'), `${SERVER}\n${script}`)
  const file = join(folder, 'Echo.config')
  const xml = registration('<service assembly="echo.mjs" contract="IEchoSvc"/>', '', element ?? `<customBroker executive="${process.execPath}" arguments="program.mjs"/>`)
  const opened = await openCustomBroker(parseRegistration(xml, file, {}), { session: { sessionId: '7', durable }, settings: { ...DEFAULTS, ...settings }, lastWordsFile: join(folder, 'last'), env, clock, log: silent }) as CustomNeeds
  t.teardown(() => opened.close())
  return { ...opened, folder }
}
