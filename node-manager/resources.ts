import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'

/** Slots that the node offers: as told (0: not told), else what the machine lets this process use. More than it has is allowed: services often wait. */
export const coresOf = (told: number): number => told > 0 ? told : availableParallelism()

/** Processor packages of this machine, as the kernel counts them; 1 where it does not say. */
export function socketsHere (folder = '/sys/devices/system/cpu'): number {
  const packages = new Set<string>()
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const file = join(folder, name, 'topology/physical_package_id')
    if (/^cpu\d+$/.test(name) && existsSync(file)) packages.add(readFileSync(file, 'utf8').trim())
  }
  return Math.max(1, packages.size)
}

/** The node's name, kept across restarts: as told, else the machine's. Letters, digits, `.`, `_` and `-`, at most 64. */
export function nodeIdOf (told: string): string {
  const id = told === '' ? hostname().replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64) || 'node' : told
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(id)) throw new TypeError(`nodeId: letters, digits, ".", "_" and "-", at most 64, not "${id.slice(0, 100)}"`)
  return id
}

/** `gpu=yes,zone=b` as labels; a name alone has the value `true`. */
export function labelsOf (told: string): Record<string, string> {
  return Object.fromEntries(listOf(told).map(label => {
    const equals = label.indexOf('=')
    return equals === -1 ? [label, 'true'] : [label.slice(0, equals).trim(), label.slice(equals + 1).trim()]
  }))
}

export const listOf = (told: string): string[] => told.split(',').map(part => part.trim()).filter(part => part !== '')
