import { spawn, type ChildProcess } from 'node:child_process'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { main } from '../../cli/main.ts'

/** Runs a command line in this process and tells what it said. */
export async function run (argv: string[], env: Record<string, string> = {}): Promise<{ code: number, out: string, err: string }> {
  let out = ''
  let err = ''
  const { signal } = new AbortController()
  const code = await main(argv, { env, signal, hurry: signal, out: text => { out += `${text}\n` }, err: text => { err += `${text}\n` } })
  return { code, out, err }
}

export interface Asked { method: string, url: string, body: string }

/** An HTTP server at a door of the head: `answer` gets each request with its body. */
export async function fakeHead (answer: (request: Asked) => { status: number, json?: unknown, text?: string, headers?: Record<string, string> }): Promise<{ url: string, close: () => Promise<void> }> {
  const server: Server = createServer((request: IncomingMessage, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => { body += part }).on('end', () => {
      const { status, json, text, headers } = answer({ method: request.method ?? '', url: request.url ?? '', body })
      response.writeHead(status, { connection: 'close', ...headers }).end(json === undefined ? text ?? '' : JSON.stringify(json))
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => new Promise(resolve => server.close(() => resolve())) }
}

/** A process whose lines can be waited for. */
export class Watched {
  readonly process: ChildProcess
  readonly ended: Promise<number | null>
  readonly lines: string[] = []
  #waiting: Array<{ wanted: (line: string) => boolean, resolve: (line: string) => void, reject: (error: Error) => void }> = []

  constructor (command: string, args: string[], env: NodeJS.ProcessEnv) {
    this.process = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.process.stdout, this.process.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on('line', line => this.#heard(line))
    }
    this.ended = new Promise(resolve => this.process.once('close', code => {
      resolve(code)
      for (const { reject } of this.#waiting) reject(new Error(`ended with ${code} before it said so:\n${this.lines.join('\n')}`))
    }))
  }

  /** The first line, of those said since `from` (default: ever), that is wanted. */
  line (wanted: (line: string) => boolean, from = 0): Promise<string> {
    const said = this.lines.slice(from).find(wanted)
    if (said !== undefined) return Promise.resolve(said)
    return new Promise((resolve, reject) => this.#waiting.push({ wanted, resolve, reject }))
  }

  #heard (line: string): void {
    this.lines.push(line)
    this.#waiting = this.#waiting.filter(({ wanted, resolve }) => !wanted(line) || resolve(line))
  }
}

/** `soa up` with children that only pretend (test/cli/pretend-up.ts). */
export const pretendUp = (args: string[], env: NodeJS.ProcessEnv = {}): Watched =>
  new Watched(process.execPath, [fileURLToPath(new URL('pretend-up.js', import.meta.url)), ...args], { PATH: process.env.PATH, HOME: process.env.HOME, ...env })

export const isAlive = (pid: number): boolean => { try { process.kill(pid, 0); return true } catch { return false } }

/** Resolves when no process has this number. A process that is no child of ours gives no event, so it is looked for. */
export async function gone (pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise(resolve => setImmediate(resolve))
}

export interface Ready { ready: boolean, http: string, netTcp: string | null, redis: string, dataDir: string, pids: { redis: number, head: number, node: number } }

/** A folder of one's own with a path short enough for sockets, gone after the test. */
export function folder (t: { teardown: (end: () => void) => unknown }): string {
  const path = mkdtempSync(join(tmpdir(), 'soa-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export const isReady = (line: string): boolean => line.startsWith('{"ready"')
export const ready = async (up: Watched): Promise<Ready> => JSON.parse(await up.line(isReady)) as Ready
export const upOptions = (dataDir: string, more: object = {}): string[] => [JSON.stringify({ dataDir, http: '127.0.0.1:0', netTcp: '127.0.0.1:0', sessionLauncherPort: 0, brokerLauncherPort: 0, logLevel: 'info', ...more })]

/** Started, and ended with the test whatever happens. */
export function started (t: { teardown: (end: () => Promise<void>) => unknown }, args: string[], env: NodeJS.ProcessEnv = {}): Watched {
  const up = pretendUp(args, env)
  t.teardown(async () => { up.process.kill('SIGKILL'); await up.ended })
  return up
}

export function redisSays (socket: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = connect(socket, () => connection.write(`${command}\r\n`))
    connection.once('data', data => { connection.destroy(); resolve(data.toString()) })
    connection.once('error', reject)
  })
}
