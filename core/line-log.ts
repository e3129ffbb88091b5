import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'

/** Lines of one program that the log takes in a second, and the longest of them; the others are counted. */
const LOGGED_A_SECOND = 20
const LOGGED_CHARACTERS = 2000

/** What somebody else's program prints, line by line into the log: its author looks for it there. `who`: `host` is logged as "host says". */
export function lineLog ({ clock, log, who }: { readonly clock: Clock, readonly log: Pick<Logger, 'warn'>, readonly who: string }): (chunk: Buffer) => void {
  let rest = ''
  let second = 0
  let lines = 0
  let left = 0
  return chunk => {
    const parts = (rest + chunk.toString('utf8')).split('\n')
    rest = (parts.pop() ?? '').slice(0, LOGGED_CHARACTERS)
    for (const line of parts) {
      if (line.trim() === '') continue
      const now = Math.floor(clock.now() / 1000)
      if (now !== second) {
        if (left > 0) log.warn({ lines: left }, `the ${who} printed more than the log takes`)
        second = now
        lines = left = 0
      }
      if (++lines > LOGGED_A_SECOND) left++
      else log.warn({ line: line.slice(0, LOGGED_CHARACTERS) }, `${who} says`)
    }
  }
}
