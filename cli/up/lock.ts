import { spawnSync } from 'node:child_process'
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { CommandFailed, EXIT } from '../exit-codes.ts'

export interface Lock { release (): void }

/**
 * Takes the data folder for this process. The lock is the kernel's (flock): it is gone with the process, even by kill -9, so there is no stale lock to judge; the number
 * in the file is for people. `flock` (util-linux) takes it on our descriptor, and it stays with the descriptor when that program has ended.
 */
export function takeLock (path: string, dataDir: string): Lock {
  const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    const { status, error } = spawnSync('flock', ['--nonblock', '--exclusive', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] })
    if (error !== undefined) throw new CommandFailed(EXIT.missingHere, 'flock is missing on this machine: install the package util-linux', { cause: error })
    if (status !== 0) {
      const holder = readFileSync(path, 'utf8').trim()
      throw new CommandFailed(EXIT.refused, `another "soa up"${holder === '' ? '' : ` (pid ${holder})`} runs on ${dataDir}; end it first, or give this one a folder of its own with --data-dir`)
    }
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`, 0)
  } catch (error) {
    closeSync(fd)
    throw error
  }
  return { release: () => closeSync(fd) } // the file stays: removing it would let two processes lock two files of one name
}
