/**
 * The thread that sees what the host's own clock cannot: a service that never gives the processor back (an endless loop without an await) stops every timer of
 * its thread. Runs only where serviceHangTimeout is set. It can but kill: the status 253 is given by the host itself when its thread still runs.
 */
import { writeSync } from 'node:fs'
import { Worker, isMainThread, workerData } from 'node:worker_threads'

/** The host's own clock comes first; this one is for when that does not come. */
const AFTER_MS = 500
const SHORTEST_LOOK_MS = 20

/** Steps so far, calls in hand, and whether the watch is over. */
const STEPS = 0
const CALLS = 1
const OVER = 2

interface Watched { readonly hangMs: number, readonly shared: SharedArrayBuffer }

/** Starts the thread; `stepped` is told every step (Progress). */
export function watchFromOutside (hangMs: number): { stepped (steps: number, calls: number): void, stop (): void } {
  const shared = new SharedArrayBuffer(12)
  const cells = new Int32Array(shared)
  const thread = new Worker(new URL('hang-watchdog.js', import.meta.url), { workerData: { hangMs, shared } satisfies Watched, env: {}, stdin: false })
  thread.unref()
  return {
    stepped (steps, calls) {
      Atomics.store(cells, STEPS, steps | 0)
      Atomics.store(cells, CALLS, calls)
    },
    stop () {
      Atomics.store(cells, OVER, 1)
      Atomics.notify(cells, OVER)
    }
  }
}

function watch ({ hangMs, shared }: Watched): void {
  const cells = new Int32Array(shared)
  const look = Math.max(SHORTEST_LOOK_MS, Math.min(1000, hangMs / 10))
  let steps = -1
  let since = performance.now()
  while (Atomics.wait(cells, OVER, 0, look) === 'timed-out') {
    const now = performance.now()
    const seen = Atomics.load(cells, STEPS)
    if (seen !== steps || Atomics.load(cells, CALLS) === 0) { steps = seen; since = now; continue }
    if (now - since < hangMs + AFTER_MS) continue
    try {
      writeSync(2, `service host: the service keeps the processor: ${Atomics.load(cells, CALLS)} calls in hand have made no progress for ${hangMs} ms (serviceHangTimeout); killed\n`)
    } catch { /* nobody reads: it is killed all the same */ }
    process.kill(process.pid, 'SIGKILL')
  }
}

if (!isMainThread && (workerData as Partial<Watched> | null)?.shared instanceof SharedArrayBuffer) watch(workerData as Watched)
