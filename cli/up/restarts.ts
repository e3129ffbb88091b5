/** Deaths within this window are counted. */
export const WINDOW_MS = 60_000
/** One death more than this within the window: there is something that starting again does not mend. */
export const MOST_IN_WINDOW = 10
const FIRST_DELAY_MS = 200
const LONGEST_DELAY_MS = 5000

/**
 * When a child that ended is started again: after 0.2 s, doubled for each death of the last minute up to 5 s; after more than 10 in a minute, never.
 *
 * @param deaths when it ended, ms since the epoch, this time included
 */
export function restartDelay (deaths: readonly number[], now: number): number | 'give up' {
  const recent = deaths.filter(at => now - at < WINDOW_MS).length
  if (recent > MOST_IN_WINDOW) return 'give up'
  return Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, recent - 1))
}

/** A child that ends with one of these knows that trying again is no use: usage, something missing on this machine, refused (surface.md, CLI). */
export const isFinal = (exitCode: number | null): boolean => exitCode === 2 || exitCode === 3 || exitCode === 5
