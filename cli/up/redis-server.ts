import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { sleep, type Clock } from '../../core/clock.ts'
import type { Program } from './child.ts'

export interface PrivateRedis { readonly socket: string, readonly dir: string, readonly pidFile: string, readonly logFile: string }

export const privateRedis = (dataDir: string, runDir: string): PrivateRedis => ({
  socket: join(runDir, 'redis.sock'), dir: join(dataDir, 'redis'), pidFile: join(runDir, 'redis.pid'), logFile: join(dataDir, 'redis', 'redis.log')
})

/**
 * The program and arguments of our own redis-server: a Unix socket and no port, every write on disk before it is answered (level `disk`; once a second at `process`), nothing
 * ever evicted. It refuses writes at three quarters of the memory, since one that the kernel kills would refuse everything.
 */
export function redisProgram ({ socket, dir, pidFile, logFile }: PrivateRedis, durability: string, env: Program['env']): Program {
  const bytes = Math.floor(Math.min(totalmem(), process.constrainedMemory() || Infinity) * 0.75)
  const options: Record<string, string> = {
    port: '0',
    unixsocket: socket,
    unixsocketperm: '700',
    dir,
    pidfile: pidFile,
    logfile: logFile,
    loglevel: 'notice',
    daemonize: 'no',
    save: '',
    appendonly: 'yes',
    appendfsync: durability === 'process' ? 'everysec' : 'always',
    'maxmemory-policy': 'noeviction',
    maxmemory: String(bytes)
  }
  return { command: 'redis-server', args: Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]), env }
}

/** Resolves when the server behind the socket answers PING: connections before that, and while it loads its data, are answered otherwise. */
export async function redisAnswers (socket: string, clock: Clock, signal: AbortSignal): Promise<void> {
  while (await ping(socket) !== '+PONG') await sleep(clock, 25, signal)
}

function ping (socket: string): Promise<string> {
  return new Promise(resolve => {
    const connection = connect(socket, () => connection.write('PING\r\n'))
    const done = (answer: string): void => { connection.destroy(); resolve(answer) }
    connection.setTimeout(1000, () => done(''))
    connection.once('data', data => done(data.toString('latin1').split('\r\n')[0] ?? ''))
    connection.once('error', () => done('')) // not there yet: the caller asks again
    connection.once('close', () => done(''))
  })
}

/**
 * Resolves when a redis-server that an earlier `soa up` left is gone: the kernel kills it with its parent, but two of them must not write one file for even a moment.
 * Its number alone says nothing, numbers are used again; its command line names the socket.
 */
export async function formerRedisIsGone ({ pidFile, socket }: PrivateRedis, clock: Clock, signal: AbortSignal): Promise<void> {
  const pid = Number(read(pidFile))
  if (!Number.isInteger(pid) || pid <= 1) return
  for (let tried = 0; read(`/proc/${pid}/cmdline`).includes(socket); tried++) {
    if (tried === 40) try { process.kill(pid, 'SIGKILL') } catch { return } // 1 s; gone between look and shot
    await sleep(clock, 25, signal)
  }
}

function read (path: string): string {
  try { return readFileSync(path, 'utf8').trim() } catch { return '' } // not there
}

/** The last lines of its log, for somebody who asks why it did not start. */
export const redisLogTail = (redis: PrivateRedis): string => read(redis.logFile).split('\n').slice(-3).join(' · ')
