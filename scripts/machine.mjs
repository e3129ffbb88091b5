// What a bare machine lacks, and how it is got. Only node: builtins.
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const say = text => process.stderr.write(`${text}\n`)

/** Absolute path of a program; /usr/sbin too, where a user's PATH may not go. */
export function onPath (name) {
  for (const folder of [...(process.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin']) {
    try {
      accessSync(join(folder || '.', name), constants.X_OK)
      return join(folder || '.', name)
    } catch { /* not here: the next folder */ }
  }
}

/** Debian and its children, as root: the only machine that is changed without asking. */
export const canInstall = () => process.getuid?.() === 0 && onPath('apt-get') !== undefined

const POLICY = '/usr/sbin/policy-rc.d'

/**
 * Installs Debian packages without starting the services that they bring: Debian asks policy-rc.d, and 101 means no. One that the machine has already is left as it is.
 * True: all are there.
 */
export function aptInstall (packages) {
  const isOurs = !existsSync(POLICY)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = (...args) => spawnSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 2] }).status === 0
  say(`installing ${packages.join(' ')} (apt-get) …`)
  try {
    if (isOurs) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    // The list may be old or absent (container images have none); only a failing install says so.
    return apt('install', '--no-install-recommends', '-y', ...packages) || (apt('update') && apt('install', '--no-install-recommends', '-y', ...packages))
  } finally {
    if (isOurs) rmSync(POLICY, { force: true })
  }
}

/** True: redis-server is there, or is now. */
export const haveRedis = () => onPath('redis-server') !== undefined || (canInstall() && aptInstall(['redis-server']) && onPath('redis-server') !== undefined)

/** True: Debian's own Python has zeep, or has it now. `python3` on PATH may be another that cannot see Debian's packages. */
export function haveZeep () {
  const isThere = () => spawnSync('/usr/bin/python3', ['-c', 'import zeep'], { stdio: 'ignore' }).status === 0
  return isThere() || (canInstall() && aptInstall(['python3-zeep']) && isThere())
}
