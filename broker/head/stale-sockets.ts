import { readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'

/** Sockets of workers, as `newWorker` names them, and those that stand for workers of other machines (far-workers.ts). */
const WORKER_SOCKET = /^[wp]-[0-9a-f]+\.(sock|tcp|ctl)$/

/**
 * Removes what killed workers left in the run folder: a process that dies by SIGKILL takes its listening away, but not the file. One that
 * somebody still listens on is let be, whoever that is.
 */
export async function removeStaleSockets (runDir: string): Promise<string[]> {
  const paths = (await readdir(runDir)).filter(name => WORKER_SOCKET.test(name)).map(name => join(runDir, name))
  const removed = await Promise.all(paths.map(async path => {
    if (!await isDeaf(path)) return []
    await rm(path, { force: true })
    return [path]
  }))
  return removed.flat()
}

function isDeaf (path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => { socket.destroy(); resolve(false) })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
