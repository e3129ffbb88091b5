import { readFileSync, rmSync } from 'node:fs'
import { lastWordsFile, type LastWords } from '../contract.ts'

/** What a worker that ended itself has left, and takes it away. Undefined: nothing, as when it was killed from outside. */
export function takeLastWords (control: string): LastWords | undefined {
  const file = lastWordsFile(control)
  try {
    const words = JSON.parse(readFileSync(file, 'utf8')) as Partial<LastWords>
    rmSync(file, { force: true })
    return typeof words.sessionId === 'string' && typeof words.why === 'string' ? { sessionId: words.sessionId, why: words.why } : undefined
  } catch {
    return undefined // none, or cut short by its death
  }
}
