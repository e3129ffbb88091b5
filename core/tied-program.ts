import { existsSync } from 'node:fs'

const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'].find(path => existsSync(path))
// The parent may die before the parent-death signal is set; then nobody would ever send it. So, after it is set, look whether the parent is still ours.
const IF_PARENT_LIVES = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'

/** How to start a program that gets SIGKILL when this process is gone, even by kill -9. What the program starts itself is not followed. */
export function tied (program: string, programArgs: readonly string[]): { readonly command: string, readonly args: string[] } {
  const [command = '', ...args] = [...SETPRIV === undefined ? [] : [SETPRIV, '--pdeathsig', 'KILL', '--'], '/bin/sh', '-c', IF_PARENT_LIVES, 'tied', String(process.pid), program, ...programArgs]
  return { command, args }
}
