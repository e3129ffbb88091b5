import { readdirSync, readFileSync } from 'node:fs'

/** One process as /proc shows it. A number alone can be another process tomorrow; with its start time it cannot. */
export interface Proc {
  readonly pid: number
  readonly parent: number
  readonly startTime: string
  readonly state: string
  readonly commandLine: string
  readonly environment: string
}

const read = (path: string): string => {
  try { return readFileSync(path, 'utf8') } catch { return '' } // ended meanwhile, or not ours to see
}

/** undefined: there is none. A zombie counts as none: it runs nothing and holds nothing. */
export function proc (pid: number): Proc | undefined {
  const stat = read(`/proc/${pid}/stat`)
  // The command stands in parentheses and may hold anything; what is behind the last one is numbers.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state = '', parent = ''] = fields
  if (stat === '' || state === 'Z' || state === 'X') return undefined
  return { pid, parent: Number(parent), startTime: fields[19] ?? '', state, commandLine: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim(), environment: read(`/proc/${pid}/environ`) }
}

export const processes = (): Proc[] => readdirSync('/proc').filter(name => /^\d+$/.test(name)).flatMap(name => proc(Number(name)) ?? [])

export const isAlive = ({ pid, startTime }: Proc): boolean => proc(pid)?.startTime === startTime

/** The process and all that came from it, by parenthood as it is now. */
export function familyOf (pid: number, all: readonly Proc[] = processes()): Proc[] {
  const mine = all.filter(one => one.pid === pid)
  for (let i = 0; i < mine.length; i++) mine.push(...all.filter(one => one.parent === mine[i]?.pid))
  return mine
}
