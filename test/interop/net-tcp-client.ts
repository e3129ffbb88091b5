/** Scenarios of test/interop/dotnet/telepathy/ that ask this side for what only it can do: kill a process, for one. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { CLIENT, dotnetEnv, type Finding } from './dotnet.ts'

/** What it asks for; its own process, should it be meant. */
export type Deed = (sessionId: string, pid: number) => Promise<void> | void

const LIMIT_MS = 240_000

/**
 * Runs a scenario, makes a check of each of its lines and does what it asks for. Rejects when it ends in another way than by itself, unless a deed has killed it, and
 * when it checks nothing.
 */
export async function perform (t: Test, [name, ...args]: readonly string[], deeds: Readonly<Record<string, Deed>> = {}): Promise<void> {
  const child = spawn('dotnet', [CLIENT, name as string, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env: dotnetEnv, timeout: LIMIT_MS, killSignal: 'SIGKILL' })
  const ended = once(child, 'exit')
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => { err += text })
  child.stdin.on('error', () => { /* it was killed by what it asked for */ })
  let checks = 0
  let isKilled = false
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Finding | { ask: string, sessionId: string }
    if ('check' in said) {
      checks++
      t.ok(said.ok, said.why === undefined ? said.check : `${said.check}: ${said.why}`)
      continue
    }
    const deed = deeds[said.ask]
    if (deed === undefined) throw new Error(`scenario ${name as string} asks for "${said.ask}", which nobody does`)
    await deed(said.sessionId, child.pid as number)
    isKilled ||= said.ask === 'kill me'
    child.stdin.write('done\n')
  }
  const [code, signal] = await ended
  if (checks === 0 || (code !== 0 && code !== 1 && !isKilled)) throw new Error(`scenario ${name as string} ended with ${String(code ?? signal)} after ${checks} checks: ${err}`)
}
