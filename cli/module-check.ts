/** Whether the module of a service, or of a custom broker, loads and has what it needs: by the loader that will load it, in a process of its own, because a module runs when it is loaded. */
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CheckedModule } from './module-check-main.ts'

export interface ModuleCheckOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
  /** What the module prints. */
  err (text: string): void
}

/** Undefined: it can be served; else why not. Never rejects for the module's sake. */
export async function checkModule (what: CheckedModule, { timeoutMs, signal, env, err }: ModuleCheckOptions): Promise<string | undefined> {
  if (!existsSync(dirname(what.module))) return `module ${what.module} cannot be loaded: its folder is not there`
  const child = fork(fileURLToPath(new URL('module-check-main.js', import.meta.url)), [], {
    // As a service host starts: with none of the options that this process was started with, whose paths may mean another folder.
    execArgv: [],
    cwd: dirname(what.module),
    env: { ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    signal,
    killSignal: 'SIGKILL',
    timeout: timeoutMs
  })
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => err(text.trimEnd()))
  return await new Promise(resolve => {
    let answer: { why?: string } | undefined
    child.on('message', (said: { why?: string }) => { answer = said })
    child.on('error', error => { if (signal.aborted) resolve('the check was given up'); else resolve(`no process for it: ${error.message}`) })
    child.on('close', (code, by) => {
      if (answer !== undefined) resolve(answer.why)
      else resolve(by === 'SIGKILL' ? `module ${what.module} was not loaded within ${timeoutMs} ms (${what.kind === 'broker' ? 'hookTimeoutMs' : 'serviceInitializationTimeout'})` : `module ${what.module} ended its process while it was loaded (${by ?? `exit code ${code}`})`)
    })
    child.send(what)
  })
}
