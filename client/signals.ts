import { setMaxListeners } from 'node:events'

/**
 * A signal that as many waits may listen to as there are: one signal for thousands of sends is a good use of it, and Node would warn of a leak
 * from the eleventh on. Without one: one that never aborts.
 */
export function signalFor (signal: AbortSignal | undefined): AbortSignal {
  const any = signal ?? new AbortController().signal
  setMaxListeners(0, any)
  return any
}
