/** A service host as a process of its own, with a module and a contract of the test's choice. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { documents } from '../wsdl/cases.ts'
import { Caller } from './caller.ts'

const main = fileURLToPath(new URL('../../service-host/main.js', import.meta.url))
/** For fixtures: the module that `soa-broker/service` is, of the same build as the host. */
export const serviceModule = new URL('../../service-host/index.js', import.meta.url).href

export async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

export class HostProcess extends Caller {
  readonly specFile: string
  readonly child: ChildProcess
  readonly #dir: string
  stderr = ''
  readonly exited: Promise<number | string>

  constructor (url: string, dir: string, specFile: string, env: Record<string, string>) {
    super(url)
    this.#dir = dir
    this.specFile = specFile
    this.child = spawn(process.execPath, [main], { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH, ...env } })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => { this.stderr += text })
    this.exited = once(this.child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  }

  /** Resolves when the port accepts; rejects with stderr when the process ends first. */
  async ready (): Promise<this> {
    const { hostname, port } = new URL(this.url)
    let code: number | string | undefined
    void this.exited.then(ended => { code = ended })
    for (;;) {
      if (code !== undefined) throw new Error(`ended with ${code}: ${this.stderr}`)
      const socket = connect({ host: hostname, port: Number(port) })
      const isOpen = await new Promise(resolve => socket.once('connect', () => resolve(true)).once('error', () => resolve(false)))
      socket.destroy()
      if (isOpen) return this
      await new Promise(resolve => setImmediate(resolve))
    }
  }

  /** Resolves when stderr holds `text`. */
  async says (text: string): Promise<void> {
    while (!this.stderr.includes(text)) await once(this.child.stderr as NodeJS.ReadableStream, 'data')
  }

  async close (): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.exited
    rmSync(this.#dir, { recursive: true, force: true })
  }
}

export interface HostOptions {
  /** Code of the module; `SERVICE` in it stands for the URL of `soa-broker/service`. */
  readonly code?: string
  readonly module?: string
  readonly wsdl?: { readonly file: string, readonly documents: Record<string, string> }
  readonly spec?: Record<string, unknown>
  readonly env?: Record<string, string>
}

/** Starts a host; the contract is the vectors' `calc` unless said. Not yet ready. */
export async function startHost (t: { teardown (end: () => unknown): void }, options: HostOptions): Promise<HostProcess> {
  const dir = mkdtempSync(join(tmpdir(), 'soa-host-'))
  const module = options.module ?? join(dir, 'service.mjs')
  if (options.code !== undefined) writeFileSync(module, options.code.replaceAll('SERVICE', JSON.stringify(serviceModule)))
  const listenUrl = `http://127.0.0.1:${await freePort()}/7/1/_defaultEndpoint`
  const specFile = join(dir, 'spec.json')
  const wsdl = options.wsdl ?? { file: 'flat.wsdl', documents: Object.fromEntries(documents('calc')) }
  writeFileSync(specFile, JSON.stringify({
    sessionId: '7',
    taskId: '1.3',
    listenUrl,
    controllerUrl: `${listenUrl}/controller`,
    service: 'Test',
    module,
    contract: '',
    wsdlFile: wsdl.file,
    documents: wsdl.documents,
    maxConcurrentCalls: 0,
    maxMessageSize: 1_048_576,
    maxHeaderBytes: 65536,
    maxDepth: 128,
    includeExceptionDetailInFaults: false,
    cancelGraceMs: 15_000,
    finishesCalls: true,
    serviceHostIdleTimeout: -1,
    serviceHangTimeout: -1,
    ...options.spec
  }))
  const host = new HostProcess(listenUrl, dir, specFile, { SOA_HOST_SPEC: specFile, ...options.env })
  t.teardown(() => host.close())
  return host
}
