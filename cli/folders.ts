import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, rmdirSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { ProcessSettings } from '../config/settings.ts'
import { CommandFailed, EXIT } from './exit-codes.ts'
import type { Io } from './io.ts'

/** sun_path of Linux has 108 bytes with its end. */
const LONGEST_SOCKET_PATH = 107
/** `/w-` and 10 hexadecimal digits and `.sock`, the longest socket name in a run folder, with some room. */
const ROOM_FOR_NAME = 32

/** What `soa up` keeps: `--data-dir`, else $XDG_STATE_HOME/soa-broker, else ~/.local/state/soa-broker. */
export const dataPath = (settings: ProcessSettings, io: Io): string =>
  resolve(settings.dataDir || join(io.env.XDG_STATE_HOME || join(io.env.HOME || homedir(), '.local/state'), 'soa-broker'))

/** The same, made if it is not there. */
export function dataFolder (settings: ProcessSettings, io: Io): string {
  const path = dataPath(settings, io)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  return path
}

/** Where sockets lie. `preferred` unless `--run-dir` says otherwise; a short folder of this user in the temporary folder when the path is too long for a Unix socket. */
export function runFolder (settings: ProcessSettings, io: Io, preferred?: string): string {
  const wanted = resolve(settings.runDir || preferred || (io.env.XDG_RUNTIME_DIR ? join(io.env.XDG_RUNTIME_DIR, 'soa-broker') : join(tmpdir(), `soa-${process.getuid?.() ?? 0}`)))
  const fits = Buffer.byteLength(wanted) + ROOM_FOR_NAME <= LONGEST_SOCKET_PATH
  if (!fits && settings.runDir !== '') throw new CommandFailed(EXIT.usage, `--run-dir ${wanted} has ${Buffer.byteLength(wanted)} bytes; the path of a Unix socket in it would pass ${LONGEST_SOCKET_PATH}: ${LONGEST_SOCKET_PATH - ROOM_FOR_NAME} are the most`)
  const path = fits ? wanted : join(tmpdir(), `soa-${process.getuid?.() ?? 0}-${createHash('sha256').update(wanted).digest('hex').slice(0, 12)}`)
  if (!fits) io.err(`sockets are in ${path}: below ${wanted} their paths would be longer than the ${LONGEST_SOCKET_PATH} bytes of a Unix socket`)
  mkdirSync(path, { recursive: true, mode: 0o700 })
  // In a folder that all may write, somebody else may have been first; a socket there would be theirs.
  const { uid, mode } = lstatSync(path)
  if (process.getuid !== undefined && (uid !== process.getuid() || (mode & 0o022) !== 0)) throw new CommandFailed(EXIT.refused, `${path} is not this user's alone; say where sockets may lie with --run-dir`)
  return path
}

/** Takes an empty run folder away; one in which others still have sockets stays. */
export function leaveRunFolder (path: string): void {
  try { rmdirSync(path) } catch { /* ENOTEMPTY */ }
}
