import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessSettings } from '../../config/settings.ts'

/** What a worker is started with: JSON in SOA_WORKER_SPEC. */
export interface WorkerSpec {
  workerId: string
  /** Unix socket where SOAP over HTTP is served. */
  socket: string
  /** Unix socket where SOAP over net.tcp is served. */
  netTcp: string
  /** Unix socket where heads give orders. */
  control: string
  redisUrl: string
  prefix: string
  runDir: string
  /** Unix socket of the head's own HTTP server: requests that reached the wrong worker go there. */
  headSocket: string
  settings: ProcessSettings
  logLevel: string
}

export interface StartedWorker {
  readonly pid: number
  /** Resolves once it has ended, or could not be started: `exit code 1`, `signal SIGKILL`. */
  readonly ended: Promise<string>
}

/** Names of a new worker. Short, because the path of a Unix socket has 107 bytes; the id begins with the machine, so that a head knows whose sockets it can reach. */
export function newWorker (machine: string, runDir: string): Pick<WorkerSpec, 'workerId' | 'socket' | 'netTcp' | 'control'> {
  const name = randomBytes(5).toString('hex')
  return { workerId: `${machine}/${name}`, socket: join(runDir, `w-${name}.sock`), netTcp: join(runDir, `w-${name}.tcp`), control: join(runDir, `w-${name}.ctl`) }
}

export const isOfMachine = (workerId: string, machine: string): boolean => workerId.startsWith(`${machine}/`)

/**
 * Starts `program` in a session of its own: it outlives the head by design, and signals to the head's group do not reach it. What it prints goes to
 * the head's stderr as a file descriptor, with no pipe in between whose reader could die with the head.
 */
export function startWorker (program: string, spec: WorkerSpec, env: NodeJS.ProcessEnv): StartedWorker {
  const child = spawn(process.execPath, [program], { detached: true, stdio: ['ignore', 2, 2], env: { ...env, SOA_WORKER_SPEC: JSON.stringify(spec) } })
  const ended = new Promise<string>(resolve => {
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
    child.once('error', error => resolve(`not started: ${error.message}`))
  })
  child.unref()
  return { pid: child.pid ?? 0, ended }
}

/**
 * The process with this number is alive and is this worker. Numbers are used again, so the number alone says nothing; the id stands in its
 * environment. A zombie has none, and counts as gone.
 */
export function isWorkerAlive (pid: number, workerId: string): boolean {
  if (pid <= 0) return false
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(JSON.stringify(workerId))
  } catch {
    return false // no such process, or somebody else's
  }
}

/** Ends a worker that no longer answers; false: it was gone. */
export function killWorker (pid: number, workerId: string): boolean {
  if (!isWorkerAlive(pid, workerId)) return false
  try { process.kill(pid, 'SIGKILL'); return true } catch { return false } // ended between look and shot
}
