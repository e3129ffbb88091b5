import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Collects all garbage now: what is left is held by somebody. Works without `--expose-gc`. */
export function collectGarbage (): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  gc()
  gc() // what finalizers let go of in the first
}
