/** .NET programs of this repository, built by scripts/dotnet.mjs. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { asset } from '../../core/assets.ts'

export const CLIENT = asset('test/interop/dotnet/bin/interop.dll')
export const HOST = asset('examples/dotnet-host/out/dotnet-host.dll')

/** For tap: why .NET's tests cannot run, or false. */
export const skip = [CLIENT, HOST, asset('examples/services/TradeDesk/bin/TradeDesk.dll')].every(path => existsSync(path)) ? false : 'the .NET programs are not built (node scripts/dotnet.mjs)'

export interface Finding { readonly check: string, readonly ok: boolean, readonly why?: string }

/** Its environment is the machine's, without diagnostics (their pipes in /tmp outlive a killed process), and with the JIT that starts soonest. */
export const dotnetEnv = { ...process.env, DOTNET_EnableDiagnostics: '0', DOTNET_TieredPGO: '0', DOTNET_NOLOGO: '1' }

/** Runs `dotnet DLL ARGS`; resolves to its output and status. Rejects when it takes more than a minute and a half. */
export async function dotnet (...args: string[]): Promise<{ code: number, out: string, err: string }> {
  const { stdout, stderr, code } = await promisify(execFile)('dotnet', args, { timeout: 90_000, env: dotnetEnv, maxBuffer: 16 * 1024 * 1024 })
    .then(done => ({ ...done, code: 0 }), (error: Error & { code?: unknown, stdout?: string, stderr?: string }) => {
      if (typeof error.code !== 'number') throw error
      return { stdout: error.stdout ?? '', stderr: error.stderr ?? '', code: error.code }
    })
  return { code, out: stdout, err: stderr }
}

/** What a scenario of test/interop/dotnet/ found, check by check. A program that found nothing is an error. */
export async function scenario (name: string, ...args: string[]): Promise<Finding[]> {
  const { out, err, code } = await dotnet(CLIENT, name, ...args)
  const findings = out.trim().split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line) as Finding)
  if (findings.length === 0 || (code !== 0 && findings.every(one => one.ok))) throw new Error(`scenario ${name} ended with ${code}: ${err || out}`)
  return findings
}

/** C# that .NET's own importers make of a WSDL. */
export async function proxyOf (wsdl: string, namespace: string): Promise<string> {
  const { out, err, code } = await dotnet(CLIENT, 'proxy', wsdl, namespace)
  if (code !== 0) throw new Error(err)
  return out
}
