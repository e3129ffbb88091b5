import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import { SoaError } from '../core/errors.ts'
import type { Io } from './io.ts'

/** Absolute path of a program, or undefined. /usr/sbin is looked at too: setpriv and redis-server of some distributions lie where a user's PATH does not go. */
export function onPath (io: Io, name: string): string | undefined {
  for (const folder of [...(io.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin']) {
    const path = join(folder || '.', name)
    try {
      accessSync(path, constants.X_OK)
      if (statSync(path).isFile()) return path
    } catch { /* not here: the next folder */ }
  }
  return undefined
}

/** The program's path, or a refusal with exit code 3 that says how to mend it. */
export function needProgram (io: Io, what: string, mend: string): string {
  const path = onPath(io, what)
  if (path === undefined) throw new SoaError('missingHere', { what, mend })
  return path
}
