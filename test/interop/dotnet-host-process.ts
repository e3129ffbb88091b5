/** examples/dotnet-host as a process of its own, without a node manager. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Caller } from '../service-host/caller.ts'
import { freePort } from '../service-host/process.ts'
import { HOST } from './dotnet.ts'

/** A registration file of HPC Pack's shape with these attributes of `service`; removed with the test. */
export function registration (t: Pick<Test, 'teardown'>, service: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'soa-dotnet-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'Test.config')
  const attributes = Object.entries(service).map(([name, value]) => `${name}="${value}"`).join(' ')
  writeFileSync(file, `<configuration><microsoft.Hpc.Session.ServiceRegistration><service ${attributes}/></microsoft.Hpc.Session.ServiceRegistration></configuration>`)
  return file
}

export class DotnetHost extends Caller {
  readonly child: ChildProcess
  readonly exited: Promise<number | string>
  stderr = ''

  constructor (url: string, config: string, env: Record<string, string>) {
    super(url)
    const own = { PATH: process.env.PATH, HOME: process.env.HOME, DOTNET_EnableDiagnostics: '0', DOTNET_TieredPGO: '0', SOA_LISTEN_URL: url, CCP_TASKINSTANCEID: '7.1', CCP_NUMCPUS: '2', CCP_SERVICE_MAXMESSAGESIZE: '2097152' }
    this.child = spawn('dotnet', [HOST, config], { stdio: ['ignore', 'ignore', 'pipe'], env: { ...own, ...env } })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => { this.stderr += text })
    this.exited = once(this.child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  }

  /** Resolves to itself when it answers, rejects with its stderr when it ends first. */
  async ready (): Promise<this> {
    let ended: number | string | undefined
    void this.exited.then(code => { ended = code })
    while (await fetch(this.url).then(() => false, () => true)) {
      if (ended !== undefined) throw new Error(`ended with ${ended}: ${this.stderr}`)
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    return this
  }
}

/** Killed with the test at the latest. */
export async function startDotnetHost (t: Pick<Test, 'teardown'>, config: string, env: Record<string, string> = {}): Promise<DotnetHost> {
  const host = new DotnetHost(`http://127.0.0.1:${await freePort()}/9/7.1/_defaultEndpoint`, config, env)
  t.teardown(async () => { host.child.kill('SIGKILL'); await host.exited })
  return host
}
