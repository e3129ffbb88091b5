import { rmSync, writeFileSync } from 'node:fs'
import { Worker, isMainThread, workerData } from 'node:worker_threads'
import type { Hook } from '../custom-broker.ts'
import { HOOKS } from '../custom-broker.ts'
import type { LastWords } from '../contract.ts'

/**
 * An endless loop in a hook stops everything of its process, every time limit included. So a second thread looks whether the first one still beats. When it has not for
 * some seconds the thread writes down which hook that is, and takes it back when it beats again; after hookTimeoutMs it ends the process with SIGKILL, unless the head was
 * faster. The head reads what is written and lets that session fail, instead of raising it again and again.
 */
interface Watched { marks: Int32Array, ticks: number, lastWordsFile: string, sessionId: string, name: string, timeoutMs: number }

/** Marks: 0 beats of the first thread · 1 the hook that runs now, its number + 1, or 0 · 2 the hook that was begun last, likewise: it may have waited and then gone on. */
const BEAT = 0
const RUNS = 1
const LAST = 2
const TICK_MS = 250
/** Looks without a beat after which it is written down: below the time after which a head ends a worker that does not answer. */
const SUSPECT_TICKS = 16

export class HookWatch {
  readonly #marks = new Int32Array(new SharedArrayBuffer(12))
  readonly #thread: Worker
  readonly #beat: NodeJS.Timeout

  /** @param watched.lastWordsFile what the head reads when this worker is gone */
  constructor (watched: Omit<Watched, 'marks' | 'ticks'>) {
    const data: Watched = { ...watched, marks: this.#marks, ticks: Math.max(4, Math.ceil(watched.timeoutMs / TICK_MS)) }
    this.#thread = new Worker(new URL(import.meta.url), { workerData: data })
    this.#thread.unref()
    this.#beat = setInterval(() => { this.#marks[BEAT] = ((this.#marks[BEAT] as number) + 1) | 0 }, TICK_MS).unref()
  }

  /** Runs what may not return. */
  run<T> (hook: Hook, call: () => T): T {
    this.#marks[RUNS] = this.#marks[LAST] = HOOKS.indexOf(hook) + 1
    try { return call() } finally { this.#marks[RUNS] = 0 }
  }

  async close (): Promise<void> {
    clearInterval(this.#beat)
    await this.#thread.terminate()
  }
}

/** The second thread. It counts its own looks and not the time: a process that was stopped as a whole has not hung. */
function watch ({ marks, ticks, lastWordsFile, sessionId, name, timeoutMs }: Watched): void {
  const suspicious = Math.min(ticks, SUSPECT_TICKS)
  let beat = -1
  let seen = 0
  setInterval(() => {
    const now = Atomics.load(marks, BEAT)
    if (now !== beat && seen >= suspicious) rmSync(lastWordsFile, { force: true })
    seen = now === beat ? seen + 1 : 0
    beat = now
    if (seen !== suspicious && seen < ticks) return
    const hook = HOOKS[(Atomics.load(marks, RUNS) || Atomics.load(marks, LAST)) - 1] ?? 'its code'
    const words: LastWords = { sessionId, why: `custom broker ${name}: ${hook} did not return within ${timeoutMs} ms (hookTimeoutMs)` }
    try { writeFileSync(lastWordsFile, JSON.stringify(words)) } finally { if (seen >= ticks) process.kill(process.pid, 'SIGKILL') }
  }, TICK_MS)
}

if (!isMainThread && (workerData as Partial<Watched> | null)?.ticks !== undefined) watch(workerData as Watched)
