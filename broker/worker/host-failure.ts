import { cutText, readableText } from '../../core/cut-text.ts'
import type { TaskInfo } from '../../store/placement-store.ts'

type Exit = NonNullable<TaskInfo['exit']>

/** How a service host ended, in one text for whoever waits for its answer: status or signal, and its last lines. */
export function hostFailureText ({ why, stderr }: Exit): string {
  const said = readableText(stderr).trim()
  return cutText(said === '' ? `service host: ${why}` : `service host: ${why}; its last lines on stderr:\n${said}`)
}
